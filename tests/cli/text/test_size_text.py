"""How sizes and time are told together."""

import json
from dataclasses import replace

import pytest

from litesmith.anatomy.weights import Promises, WeightFacts
from litesmith.cli.text import printing as show
from litesmith.cli.text.size_text import print_shrunk
from litesmith.regression.size_report import FileSizes, Latency, Shrunk
from litesmith.timing.statistics import Ratio


def facts(number: int, name: str = "") -> WeightFacts:
    elements = 1000 - number
    return WeightFacts(name or f"w{number}", "CONV_2D", "float32", elements, elements // 2, 77)


def record(*weights: WeightFacts) -> Shrunk:
    before = FileSizes(2000, 1900, 1800, 1234, tuple(replace(w, zeros=0) for w in weights))
    after = FileSizes(1000, 300, 200, 1234, weights)
    latency = Latency(10.0, 10.1, Ratio((1.01,) * 6), "cpu:1")
    return Shrunk(before, after, Promises(len(weights), ()), latency)


def shown(one: Shrunk, capsys: pytest.CaptureFixture[str], *arm: str) -> list[str]:
    width, show.console.width = show.console.width, 80
    try:
        print_shrunk(one, arm)
    finally:
        show.console.width = width
    return capsys.readouterr().out.splitlines()


def test_all_sizes_and_the_time_together(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(shown(record(facts(0)), capsys, "on ARM: dense"))
    for words in ("2.00 KB", "1.00 KB", "300 B", "200 B", "1.23 K", "50.0 %", "10.1 µs"):
        assert words in text
    assert "not faster; zeros are multiplied like any number here" in text
    assert "on ARM: dense" in text
    assert "1 layers keep" in text


@pytest.mark.parametrize("count", [0, 1, 12, 13, 40])
def test_the_largest_weights_and_a_line_for_the_rest(
    count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(record(*map(facts, range(count))), capsys)
    assert sum(line.startswith("w") and "CONV_2D" in line for line in lines) == min(count, 12)
    assert any(f"and {count - 12} more" in line for line in lines) == (count > 12)
    assert ("weights" in lines) == (count > 0)


@pytest.mark.parametrize("name", ["scope/" * 40 + "end", "[red]x[/red]", "a\nb\x1b[31m"])
def test_any_name_is_one_line_of_eighty_columns(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(record(facts(0, name), facts(1)), capsys)
    assert all(len(line) <= 80 for line in lines)
    assert sum("CONV_2D" in line for line in lines) == 2
    assert "\x1b" not in "".join(lines)


def test_what_was_lost_is_loud(capsys: pytest.CaptureFixture[str]) -> None:
    broken = tuple(f"layer {number} lost a zero" for number in range(9))
    lines = shown(replace(record(facts(0)), promises=Promises(9, broken)), capsys)
    assert sum(line.startswith("WARNING: layer") for line in lines) == 6
    assert any("and 3 more" in line for line in lines)
    assert not any("keep" in line for line in lines)


def test_json() -> None:
    one = record(facts(0), facts(1))
    told = json.loads(json.dumps(one.to_json(), allow_nan=False))
    assert (told["bytes"], told["gzip_bytes"], told["zstd_bytes"]) == (1000, 300, 200)
    assert (told["macs"], told["zeros"], told["verified"]) == (1234, 999, True)
    assert told["zero_share"] == one.after.zero_share
    assert told["before"]["bytes"] == 2000
    latency = told["latency"]
    assert latency["low"] <= latency["ratio"] <= latency["high"]
    assert latency["verdict"] == one.verdict
    assert [weight["name"] for weight in told["weights"]] == ["w0", "w1"]
    keys = {"name", "op", "dtype", "elements", "zeros", "unique"}
    assert all(keys <= weight.keys() for weight in told["weights"])


@pytest.mark.parametrize("latency", [None, Latency(1, 1, Ratio((1.0,)), "cpu:1")])
def test_json_without_an_interval(latency: Latency | None) -> None:
    told = replace(record(facts(0)), latency=latency, untimed="it is slow").to_json()
    assert json.loads(json.dumps(told, allow_nan=False))["latency"]["high"] is None
