"""Candidates to verify on held-out samples."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from litesmith.evidence.records import Speed, TakenOps
from litesmith.evidence.tune_record import (
    FITS,
    FLOAT,
    MISSES,
    NEAR,
    SET_ASIDE,
    RoomLeft,
    TargetTime,
)
from litesmith.search.trial.tried_model import TriedModel, is_better
from litesmith.search.tuning.proof import find_holding, find_provable, find_quicker, has_no_better
from litesmith.timing.statistics import FASTER, SAME, UNCLEAR
from tests.search.choosing.taught import record


def asked(*records: TriedModel) -> list[str]:
    return [one.name for one in find_provable(records, "latency")]


def test_nothing_that_is_slower_than_the_model_as_it_came() -> None:
    first, slow = record(FLOAT, ratio=1.0), record("slow", ratio=29.0)
    assert asked(first, slow) == []
    assert asked(first, slow, record("fast", ratio=0.5)) == ["fast"]


def test_the_last_one_is_who_has_most_room() -> None:
    quick = [record(f"q{n}", ratio=0.3 + 0.03 * n, room=0.0) for n in range(5)]
    sure = record("sure", ratio=0.9, room=0.01)
    assert asked(record(FLOAT, ratio=1.0), *quick, sure) == ["q0", "q1", "q2", "sure"]


def test_who_nearly_misses_is_asked_about_first_where_it_costs_far_less() -> None:
    first, fits = record(FLOAT, ratio=1.0), record("fits", ratio=0.5)
    near = record("near", ratio=0.4, status=NEAR, room=-0.004)
    nearer = record("nearer", ratio=0.42, status=NEAR, room=-0.002)
    assert asked(first, fits, near, nearer) == ["nearer", "fits"]
    assert asked(first, near) == ["near"]
    more = [record(f"q{n}", ratio=0.5 + 0.03 * n, room=0.0) for n in range(5)]
    assert asked(first, near, *more) == ["near", "q0", "q1", "q2"]
    assert asked(first, fits, record("same", ratio=0.47, status=NEAR, room=-0.002)) == ["fits"]
    assert asked(first, fits, record("misses", ratio=0.1, status=MISSES, room=-0.1)) == ["fits"]
    assert asked(first, record("slow", ratio=1.3, status=NEAR, room=-0.002)) == []


def test_what_leaves_more_ops_to_a_cpu_is_not_asked_about_before_what_fits() -> None:
    def placed(name: str, left: int, **more: Any) -> TriedModel:
        return record(name, placed=TakenOps("gpu", "rules", 9 - left, 9, 1, ""), **more)

    first = placed(FLOAT, 9, ratio=1.0)
    fits = placed("fits", 1, ratio=0.5)
    behind = placed("behind", 3, ratio=0.2, status=NEAR, room=-0.002)
    whole = placed("whole", 0, ratio=0.6, status=NEAR, room=-0.002)
    assert asked(first, fits, behind) == ["fits"]
    assert asked(first, fits, whole) == ["whole", "fits"]


def held(records: Sequence[TriedModel], **rooms: tuple[float, float]) -> list[str]:
    """Who holds, in the order to ship, by the estimate and low end that each is held to have."""

    def verify(one: TriedModel) -> TriedModel:
        estimate, low = rooms[one.name]
        left = RoomLeft(estimate, low, estimate, reason="", allowed=0.01)
        status = FITS if estimate >= 0 else MISSES
        return TriedModel(
            replace(one.trial, details=replace(one.details, room=left, status=status))
        )

    return [one.name for one, _ in find_holding(records, verify)]


def test_who_nearly_missed_is_shipped_before_what_fits_only_where_it_is_proven() -> None:
    near, fits = record("near", status=NEAR, room=-0.002), record("fits")
    sure, likely, worse = (0.01, 0.001), (0.01, -0.001), (-0.01, -0.02)
    assert held([near, fits], near=sure, fits=likely) == ["near", "fits"]
    assert held([near, fits], near=likely, fits=likely) == ["fits", "near"]
    assert held([near, fits], near=likely, fits=worse) == ["near"]
    assert held([near, fits], near=worse, fits=worse) == []


def test_nothing_is_better_only_where_nothing_missed_what_was_asked() -> None:
    first, fits = record(FLOAT), record("fits")
    aside, near = record("aside", status=SET_ASIDE), record("near", status=NEAR, room=-0.002)
    assert has_no_better([first, fits, near]) and has_no_better([first, aside])
    assert not has_no_better([first, aside, near])
    assert not has_no_better([first, aside, record("misses", status=MISSES, room=-0.1)])


def test_what_is_no_faster_beyond_the_noise_is_not_proven() -> None:
    """A file no faster and 1.01 times as large was shipped as proven."""

    def timed(name: str, low: float, high: float, verdict: str) -> TriedModel:
        speed = Speed("cpu:1", "measured", 9.0, 10.0, (low + high) / 2, low, high, verdict)
        return record(name, size=1010, latency=speed)

    first = record(FLOAT, ratio=1.0, size=1000)
    same, fast = timed("same", 0.97, 1.01, SAME), timed("fast", 0.5, 0.6, FASTER)
    busy = timed("busy", 0.5, 0.6, UNCLEAR)
    assert asked(first, same) == []
    assert asked(first, same, fast) == ["fast"]
    assert asked(first, busy) == ["busy"]  # the proof measures it again
    assert is_better(busy, first, "latency", busy.latency) is None
    assert not is_better(fast, first, "size", fast.latency)
    assert is_better(record("small", size=900), first, "size", None)


def timed(model: str, us: float, about: float = 0.01, target: str = "cpu:1") -> TargetTime:
    return TargetTime(target, model, us, "measured", us * (1 - about), us * (1 + about))


def test_who_is_quicker_in_the_same_run_is_asked_before_the_best_is_shipped() -> None:
    """Each trial has a run of its own; only the proof's run has all of them in turns."""
    records = [record(name, ratio=0.39) for name in ("int8", "dynamic", "float16")]

    def quicker(*times: TargetTime) -> list[str]:
        return [one.name for one in find_quicker((timed(FLOAT, 100), *times), records)]

    assert quicker(timed("best", 40), timed("dynamic", 36)) == ["dynamic"]
    assert quicker(timed("best", 40), timed("dynamic", 36), timed("float16", 30)) == [
        "float16",
        "dynamic",
    ]
    assert quicker(timed("best", 40), timed("dynamic", 39.5, about=0)) == [], "a tie"
    assert quicker(timed("best", 40), timed("dynamic", 36, about=0.2)) == [], "noise"
    assert quicker(timed("best", 40), timed("dynamic", 36, target="cpu:2")) == []
    assert quicker(timed("best", 40), timed("other", 20)) == [], "not asked about"
    assert quicker(timed("dynamic", 36)) == []
