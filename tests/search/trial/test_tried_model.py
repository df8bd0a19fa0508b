"""Which model is shipped, which are on the front, and records that survive their file."""

import json
import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from litesmith.accuracy.evaluate import Against, Evaluation
from litesmith.evidence.codec import decode, encode
from litesmith.evidence.log import Log
from litesmith.evidence.measurement import Measurement, Skipped, Trial
from litesmith.evidence.records import Score
from litesmith.evidence.tune_record import FITS, FLOAT, Tried
from litesmith.search.trial.budget import Limits
from litesmith.search.trial.measured_values import score_of
from litesmith.search.trial.tried_model import TriedModel, find_front, find_nearest, rank
from tests.draws import draws
from tests.search.choosing.taught import record

TIE = 1.02

RATIOS = st.integers(20, 200).map(lambda n: n / 100)
Row = tuple[float, int, int, str]


def made(rows: list[Row]) -> list[TriedModel]:
    return [
        record(f"m{n}", ratio=ratio, size=size, value=value / 10, room=value / 100, status=status)
        for n, (ratio, size, value, status) in enumerate(rows)
    ]


STATUS = st.sampled_from(["fits", "misses"])
RECORDS = st.lists(
    st.tuples(RATIOS, st.integers(100, 4000), st.integers(0, 10), STATUS), max_size=12
).map(made)

# Costs that are ties, or nearly so.
NEAR = st.lists(
    st.tuples(
        st.integers(100, 105).map(lambda n: n / 100),
        st.integers(100, 105).map(lambda n: 10 * n),
        st.integers(9, 10),
        STATUS,
    ),
    max_size=8,
).map(made)


def names(records: list[TriedModel]) -> list[str]:
    return [one.name for one in records]


# Ranking.


@given(RECORDS, st.sampled_from(["latency", "size", "download"]))
def test_the_one_to_ship_fits_and_costs_least(records: list[TriedModel], minimize: str) -> None:
    order = rank(records, minimize)
    assert sorted(names(order)) == sorted(r.name for r in records if r.status == FITS)
    for place, one in enumerate(order):
        cost = one.cost(minimize)
        left = [r.cost(minimize) for r in order[place:]]
        assert cost is not None
        assert all(cost <= TIE * other for other in left if other is not None)
        same = [r for r in order[place:] if (r.cost(minimize) or 0) <= cost]
        if not one.has_room_to_spare:
            assert one.room.estimate >= max(r.room.estimate for r in same)


def test_of_equals_with_room_to_spare_the_plainest_is_first() -> None:
    """Their order of trial decides, not the luck of a score; integers throughout come first."""
    plain, lucky = record("plain", room=0.006), record("lucky", room=0.012)
    assert names(rank([plain, lucky], "latency")) == ["plain", "lucky"]
    integer = record("integer", room=0.006, is_integer=True)
    assert names(rank([plain, lucky, integer], "latency")) == ["integer", "plain", "lucky"]


def test_of_costs_that_are_the_same_the_one_with_more_room_is_first() -> None:
    near = record("near", ratio=0.500, room=0.002)
    far = record("far", ratio=0.509, room=0.009)
    slow = record("slow", ratio=0.52, room=0.01)
    assert names(rank([near, far, slow], "latency")) == ["far", "near", "slow"]


def test_the_model_as_it_came_is_last_of_its_equals() -> None:
    first = record(FLOAT, ratio=1.0, room=0.01)
    same, slow = record("same", ratio=1.01, room=0.0), record("slow", ratio=1.2)
    assert names(rank([first, slow, same], "latency")) == ["same", FLOAT, "slow"]


def test_what_was_not_measured_is_not_ranked() -> None:
    assert rank([record("a", latency=None)], "latency") == []
    assert rank([record("a")], "memory") == []
    assert names(rank([record("a", peak_bytes=7)], "memory")) == ["a"]


def test_the_nearest_is_no_float_model_and_was_scored() -> None:
    first, far, near = record(FLOAT, room=0.01), record("far", room=-0.5), record("n", room=-0.02)
    unscored = record("unscored", room=math.nan)
    found = find_nearest([first, far, unscored, near], Limits())
    assert found is not None and found.name == "n"
    assert find_nearest([first, unscored], Limits()) is None


def test_where_enough_lose_little_the_nearest_is_least_above_the_ceiling() -> None:
    large, small = record("large", size=9000, room=0.01), record("small", size=4000, room=0.001)
    lost = record("lost", size=100, room=-0.1)
    found = find_nearest([large, lost, small], Limits(max_bytes=3000))
    assert found is not None and found.name == "small"


# The front.


def sides(a: TriedModel, b: TriedModel) -> list[tuple[float, float]]:
    """The costs of both: in time, in bytes."""
    return [(a.ratio or 0, b.ratio or 0), (a.cost("size") or 0, b.cost("size") or 0)]


def beats(a: TriedModel, b: TriedModel) -> bool:
    """True beyond any tie: nowhere worse at all, and somewhere better by more than two ties."""
    gain = (a.value or 0) - (b.value or 0)
    if gain < 0 or any(x > y for x, y in sides(a, b)):
        return False
    return gain > 0 or any(x * TIE**2 < y for x, y in sides(a, b))


def is_as_good(a: TriedModel, b: TriedModel) -> bool:
    """True where a is nowhere worse than by two ties."""
    return (a.value or 0) >= (b.value or 0) and all(x <= y * TIE**2 for x, y in sides(a, b))


@draws(300)
@given(RECORDS | NEAR)
def test_nobody_on_the_front_is_beaten(records: list[TriedModel]) -> None:
    assert not any(beats(other, one) for one in find_front(records) for other in records)


@draws(300)
@given(RECORDS | NEAR)
def test_who_is_not_on_the_front_is_no_better_than_another(records: list[TriedModel]) -> None:
    found = find_front(records)
    for one in records:
        others = [r for r in records if r is not one]
        assert one in found or any(is_as_good(other, one) for other in others)


@draws(300)
@given(NEAR)
def test_there_is_a_front_wherever_there_is_a_model(records: list[TriedModel]) -> None:
    found = find_front(records)
    assert bool(found) == bool(records)
    values = [max((r.value or 0 for r in some), default=0) for some in (found, records)]
    assert values[0] == values[1]


def test_ties_in_a_ring_leave_someone_on_the_front() -> None:
    """Each is faster or smaller than the next by more than a tie, and worse by less than one."""
    ring = [
        record("c", ratio=1.0, size=1020),
        record("a", ratio=1.03, size=1001),
        record("b", ratio=1.015, size=990),
    ]
    assert find_front(ring)


def test_what_was_not_scored_is_not_on_the_front() -> None:
    scored = record("scored", ratio=2.0, size=9000, value=0.1)
    assert names(find_front([scored, record("a", accuracy=None), record("b", latency=None)])) == [
        "scored"
    ]


# Records.


def test_room_to_spare_is_half_of_what_may_be_lost() -> None:
    assert record(room=0.005, allowed=0.01).has_room_to_spare
    assert not record(room=0.0049, allowed=0.01).has_room_to_spare
    assert not record(room=math.nan).has_room_to_spare


def test_a_record_survives_its_file(tmp_path: Path) -> None:
    log = Log(tmp_path / "trials.jsonl")
    ratios = Measurement("latency_ratio", "ratio", (0.5, 0.4), "cpu:1", "d", "here")
    skipped = (Skipped("op 1", "why"),)
    details = record().details
    trial = Trial("quantize", "in", "out", (ratios,), skipped, "so", details=details)
    log.append(trial)
    (again,) = map(TriedModel, log.read({"candidate": Tried}))
    assert again.trial == trial
    assert (again.name, again.ratio, again.value) == ("int8", 0.5, 0.9)
    assert again.room == record().room


def test_a_torn_last_line_costs_that_line_only(tmp_path: Path) -> None:
    log = Log(tmp_path / "trials.jsonl")
    for name in ("a", "b"):
        log.append(record(name).trial)
    whole = log.path.read_bytes()
    for end in range(len(whole.splitlines()[0]) + 2, len(whole) - 1, 37):
        log.path.write_bytes(whole[:end])
        assert [t.details.name for t in log.read({"candidate": Tried})] == ["a"]
    log.append(record("c").trial)
    assert [t.details.name for t in log.read({"candidate": Tried})] == ["a", "c"]


FINITE = st.floats(-1e6, 1e6)
MAYBE = st.none() | FINITE


@given(FINITE, FINITE, FINITE, st.tuples(MAYBE, MAYBE, MAYBE, MAYBE, MAYBE, MAYBE))
def test_an_evaluation_survives_as_facts(
    value: float, low: float, high: float, of_both: tuple[float | None, ...]
) -> None:
    reference, difference, *ends = of_both
    against = Against(reference, difference, *ends[:3], snr_db=ends[3], better=-1)
    samples = Measurement("top1", "share", (value,), "cpu:1", "", "")
    found = Evaluation("top1", "share", value, low, high, 9, samples, "d", "", (), against)
    score = score_of(found)
    assert decode(Score, json.loads(json.dumps(encode(score), allow_nan=False))) == score
    assert (score.value, score.low, score.high, score.n) == (value, low, high, 9)
    kept = score.against
    assert kept is not None and score.better == -1
    assert (kept.reference, kept.difference, kept.difference_low, kept.difference_high) == of_both[
        :4
    ]
    assert (kept.agreement, kept.snr_db) == of_both[4:]


def test_numbers_without_a_word_in_json_are_not_known() -> None:
    samples = Measurement("top1", "share", (math.nan,), "cpu:1", "", "")
    found = Evaluation("top1", "share", math.nan, -math.inf, 1.5, 9, samples, "d", "", (), None)
    score = score_of(found)
    assert (score.value, score.low, score.high) == (None, None, 1.5)
