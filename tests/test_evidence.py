"""Measurements compute from their samples; the log survives what happens to files."""

import json
import math
from dataclasses import FrozenInstanceError
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput
from litesmith.evidence import Log, Measurement, Trial, median_interval

numbers = st.floats(-1e6, 1e6)


def measurement(*samples: float) -> Measurement:
    return Measurement("latency", "us", samples, "cpu:1", "d1", "a machine")


def trial(number: int) -> Trial:
    return Trial(
        recipe="cleanup | fuse",
        parent_digest="d0",
        model_digest=f"d{number}",
        measurements=(measurement(3.0, 1.0, 2.5),),
        skipped=(("CONV_2D 'x'", "it is not fusable"),),
        reason="bench",
        details={"op_us": [1, 2], "name": "é\n"},
    )


def test_a_measurement_keeps_samples_and_computes_the_rest() -> None:
    found = measurement(5, 1, 9, 2, 7, 8)
    assert found.value == 6
    assert found.interval == (1, 9)
    with pytest.raises(FrozenInstanceError):
        found.unit = "ms"  # type: ignore[misc]
    with pytest.raises(ValueError, match="'latency' needs at least one sample"):
        measurement()


@given(st.lists(numbers, min_size=1, max_size=60), st.randoms())
def test_order_does_not_matter_and_the_interval_holds_the_median(samples, random) -> None:
    low, high = median_interval(samples)
    assert low <= median(samples) <= high
    random.shuffle(samples)
    assert median_interval(samples) == (low, high)


@given(st.lists(numbers, min_size=6, max_size=60), st.floats(0.1, 10), st.floats(-100, 100))
def test_the_interval_follows_a_change_of_scale(samples, factor: float, shift: float) -> None:
    moved = median_interval([sample * factor + shift for sample in samples])
    assert moved == pytest.approx([x * factor + shift for x in median_interval(samples)])


def test_too_few_samples_bound_nothing() -> None:
    assert median_interval([1.0] * 5) == (-math.inf, math.inf)
    assert median_interval([]) == (-math.inf, math.inf)


@pytest.mark.parametrize("count", [6, 9, 12, 50, 1000, 1001, 2000])
def test_the_interval_covers_the_true_median_at_least_as_often_as_it_says(count: int) -> None:
    random = np.random.default_rng(count)
    rounds = 1000 if count < 1000 else 300
    held = 0
    for _ in range(rounds):
        low, high = median_interval(random.exponential(1, count).tolist())
        held += low <= math.log(2) <= high
    assert 0.93 <= held / rounds <= 0.995


def test_the_log_gives_back_what_was_added(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl")
    for number in range(3):
        log.append(trial(number))
    assert log.read() == tuple(trial(number) for number in range(3))
    assert len(log.path.read_text().splitlines()) == 3


@given(st.integers(0, 10_000))
def test_a_torn_last_line_costs_only_itself(tmp_path_factory, place: int) -> None:
    log = Log(tmp_path_factory.mktemp("log") / "log.jsonl")
    log.append(trial(1))
    whole = log.path.read_bytes()
    torn = f"{trial(2).to_line()}\n".encode()
    log.path.write_bytes(whole + torn[: place % len(torn)])
    known = len(log.read())
    assert known in (1, 2)  # the line is whole where only its end is missing
    log.append(trial(3))
    assert [t.model_digest for t in log.read()][known - 1 :] == [f"d{known}", "d3"]
    assert log.path.read_bytes().startswith(whole)


def test_unknown_keys_are_ignored_and_stay(tmp_path: Path) -> None:
    shown = {**json.loads(trial(1).to_line()), "colour": "blue"}
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(shown) + "\n")
    assert Log(path).read() == (trial(1),)
    Log(path).append(trial(2))
    assert "blue" in path.read_text()


def test_what_is_no_trial_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"recipe": ""}\n')
    with pytest.raises(BadInput, match="line 1: is not a trial"):
        Log(path).read()
    with pytest.raises(BadInput, match="No such file"):
        Log(tmp_path / "none").read()
    with pytest.raises(BadInput, match="cannot be written"):
        Log(tmp_path).append(trial(1))


def test_a_number_that_json_has_not_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        Trial("", "", "d", (measurement(math.inf),)).to_line()
