"""The log survives what happens to files, and says what is wrong with a line."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput
from litesmith.evidence.bench_record import PartialBench
from litesmith.evidence.codec import dump
from litesmith.evidence.log import Log
from litesmith.evidence.measurement import Measurement, Skipped, Trial
from tests.platforms import posix

KINDS = {"": PartialBench}


def measurement(*samples: float) -> Measurement:
    return Measurement("latency", "us", samples, "cpu:1", "d1", "a machine")


def trial(number: int) -> Trial[PartialBench]:
    return Trial(
        recipe="cleanup | fuse",
        parent_digest="d0",
        model_digest=f"d{number}",
        measurements=(measurement(3.0, 1.0, 2.5),),
        skipped=(Skipped("CONV_2D 'x'", "it is not fusable"),),
        reason="bench",
        details=PartialBench("é"),
    )


def test_the_log_gives_back_what_was_added(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl")
    for number in range(3):
        log.append(trial(number))
    assert log.read(KINDS) == tuple(trial(number) for number in range(3))
    assert len(log.path.read_text("utf-8").splitlines()) == 3


@given(st.integers(0, 10_000))
def test_a_torn_last_line_costs_only_itself(tmp_path_factory, place: int) -> None:
    log = Log(tmp_path_factory.mktemp("log") / "log.jsonl")
    log.append(trial(1))
    whole = log.path.read_bytes()
    torn = f"{dump(trial(2))}\n".encode()
    log.path.write_bytes(whole + torn[: place % len(torn)])
    known = len(log.read(KINDS))
    assert known in (1, 2)  # the line is whole where only its end is missing
    log.append(trial(3))
    assert [t.model_digest for t in log.read(KINDS)][known - 1 :] == [f"d{known}", "d3"]
    assert log.path.read_bytes().startswith(whole)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"colour": "blue"}, '"colour" is unknown to this version'),
        ({"recipe": 3}, "recipe: is 3, not a text"),
        ({"details": {"kind": "other"}}, "details.kind: is 'other', not ''"),
        ({"details": {"device": "a phone"}}, 'has no "is_partial"'),
        ({"measurements": [{}]}, r'measurements\[0\]: has no "metric"'),
    ],
    ids=str,
)
def test_what_was_not_written_so_is_named(tmp_path: Path, change: dict, told: str) -> None:
    path = tmp_path / "log.jsonl"
    Log(path).append(trial(1))
    with path.open("a") as file:
        file.write(json.dumps({**json.loads(dump(trial(2))), **change}) + "\n")
    with pytest.raises(BadInput, match=f"log.jsonl, line 2: is not a trial .*{told}"):
        Log(path).read(KINDS)


def test_what_a_user_hands_over_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    shown = json.loads(dump(trial(1)))
    odd = [{**shown, "reason": 3}, {**shown, "details": {"kind": "x"}}, [], {**shown, "colour": 1}]
    path.write_text("".join(json.dumps(line) + "\n" for line in odd) + "{torn")
    found, losses = Log(path).salvage(KINDS)
    assert found == (replace(trial(1), reason=""), trial(1))
    assert losses == (
        "log.jsonl, line 1: reason: is 3, not a text",
        "log.jsonl, line 2: details.kind: is 'x', not ''",
        "log.jsonl, line 3: is a list, not an object",
    )


def test_what_is_no_trial_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"recipe": ""}\n')
    with pytest.raises(BadInput, match="line 1: is not a trial"):
        Log(path).read(KINDS)
    with pytest.raises(BadInput, match="no such file"):
        Log(tmp_path / "none").read(KINDS)
    with pytest.raises(BadInput, match="cannot be written"):
        Log(tmp_path).append(trial(1))


def test_a_number_that_json_has_not_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        dump(Trial("", "", "d", (measurement(math.inf),), details=PartialBench("")))


@posix
def test_a_log_that_need_not_end_is_refused(tmp_path: Path) -> None:
    """Whoever sends a folder can put a pipe into it, or a link to a device."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device"):
        with pytest.raises(BadInput, match="no regular file"):
            Log(tmp_path / name).read(KINDS)
        with pytest.raises(BadInput, match="no regular file"):
            Log(tmp_path / name).salvage(KINDS)
