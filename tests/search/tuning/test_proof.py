"""Candidates to verify on held-out samples."""

from litesmith.evidence.records import Speed
from litesmith.evidence.tune_record import FLOAT, MISSES, NEAR
from litesmith.search.trial.tried_model import TriedModel, is_better
from litesmith.search.tuning.proof import find_provable
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
