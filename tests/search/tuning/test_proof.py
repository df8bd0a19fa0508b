"""Candidates to verify on held-out samples."""

from litesmith.evidence.tuning import FLOAT
from litesmith.search.trial.tried_model import TriedModel
from litesmith.search.tuning.proof import find_provable
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
