"""`litesmith profile` as a user meets it."""

import json
from pathlib import Path

import pytest

from litesmith.operating_system import usable_cores
from litesmith.tflite.file import save
from tests import zoo
from tests.cli.test_cli import litesmith


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.tflite"
    save(zoo.careless(), path)
    return path


def test_tables_fit_80_columns_and_are_plain_in_a_pipe(model: Path) -> None:
    shown = litesmith("profile", model, "--runs", 2)
    assert shown.returncode == 0, shown.stderr
    assert "\x1b" not in shown.stdout
    assert all(len(line) <= 80 for line in shown.stdout.splitlines())
    for words in ("in run order", "top 10 by time", "by kind", "→ 1", "builtin", "xnnpack"):
        assert words in shown.stdout
    assert "its result is not used" in shown.stdout


def test_top_prints_so_many_ops_and_nothing_else(model: Path) -> None:
    shown = litesmith("profile", model, "--runs", 2, "--top", 3)
    assert shown.returncode == 0, shown.stderr
    assert "in run order" not in shown.stdout and "by kind" not in shown.stdout
    title = next(i for i, t in enumerate(shown.stdout.splitlines()) if "top 3 by time" in t)
    assert len(shown.stdout.splitlines()[title + 1 :]) == 4  # a head and three ops


def test_json_and_a_trace(model: Path, tmp_path: Path) -> None:
    trace = tmp_path / "t.json"
    shown = litesmith("profile", model, "--runs", 2, "--json", "--trace", trace)
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    assert found["schema"] == 1
    assert {"run_us", "overhead", "ops", "target", "host"} <= set(found)
    keys = {"index", "kind", "name", "us", "kernel", "macs", "fused_into"}
    assert all(keys <= set(op) for op in found["ops"])
    assert [op["index"] for op in found["ops"]] == list(range(15))
    events = json.loads(trace.read_text("utf-8"))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    timed = sum(bool(op["kernel"]) for op in found["ops"])
    assert len(slices) == 2 * (timed + 1)


def test_help_platform_needs_no_model() -> None:
    shown = litesmith("profile", "--help-platform")
    assert shown.returncode == 0
    for word in ("perf record", "simpleperf", "Perfetto", "Instruments"):
        assert word in shown.stdout
    assert all(len(line) <= 80 for line in shown.stdout.splitlines())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("missing.tflite",), "no such file"),
        (("{model}", "--on", "tpu"), "no target 'tpu'"),
        (("{model}", "--on", "numpy"), "no profile on numpy"),
        (("{model}", "--trace", "missing/t.json"), "does not exist"),
        (("{custom}",), "Mystery"),
        (("{strings}",), "no profile on cpu:1"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    places: dict[str, Path] = {}
    for name in ("model", "custom", "strings"):
        places[name] = tmp_path / f"{name}.tflite"
        save(zoo.MODELS["convnet" if name == "model" else name](), places[name])
    shown = litesmith("profile", *(word.format(**places) for word in words), cwd=tmp_path)
    assert shown.returncode == 2
    assert told in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert not shown.stdout


def test_more_threads_than_cores_is_a_warning(model: Path) -> None:
    many = usable_cores() + 1
    shown = litesmith("profile", model, "--runs", 1, "--on", f"cpu:{many}", "--json")
    assert shown.returncode == 0
    assert "warning" in shown.stderr
    json.loads(shown.stdout)
