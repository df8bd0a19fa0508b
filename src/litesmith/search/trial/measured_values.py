"""Measurements as evidence keeps them, and back: evaluations, times, placements."""

import math

from litesmith.accuracy.evaluate import Against, Evaluation
from litesmith.evidence.measurement import Measurement
from litesmith.evidence.records import Estimate, PairedScore, Score, Speed, Taken
from litesmith.evidence.tuning import RoomLeft
from litesmith.run.core.placement import ESTIMATED, MEASURED, Placement
from litesmith.search.trial.budget import Room
from litesmith.timing.latency import Result, ratio
from litesmith.units import gain_text, score_text


def score_of(found: Evaluation) -> Score:
    """An evaluation without its samples."""
    against = found.against
    return Score(
        metric=found.metric,
        title=found.title,
        unit=found.unit,
        value=_finite(found.value),
        low=_finite(found.low),
        high=_finite(found.high),
        n=found.n,
        better=None if against is None else against.better,
        against=None if against is None else _paired(against),
    )


def _paired(against: Against) -> PairedScore:
    return PairedScore(
        reference=_finite(against.value),
        reference_low=_finite(against.low),
        reference_high=_finite(against.high),
        difference=_finite(against.difference),
        difference_low=_finite(against.difference_low),
        difference_high=_finite(against.difference_high),
        agreement=_finite(against.agreement),
        snr_db=_finite(against.snr_db),
    )


def evaluation_of(score: Score) -> Evaluation:
    """The evaluation that a score was taken from, but for its samples."""
    value = _number(score.value)
    return Evaluation(
        score.metric,
        score.unit,
        value,
        _number(score.low),
        _number(score.high),
        score.n,
        Measurement(score.metric, score.unit, (value,), "", "", ""),
        source="",
        preparation="",
        against=_against(score),
    )


def _against(score: Score) -> Against:
    found = score.against
    better = 1 if score.better is None else score.better
    if found is None:
        return Against(better=better)
    return Against(
        found.reference,
        found.difference,
        found.difference_low,
        found.difference_high,
        found.agreement,
        snr_db=found.snr_db,
        better=better,
        low=found.reference_low,
        high=found.reference_high,
    )


def speed_of(own: Result, first: Result) -> Speed:
    """A time beside the float model's of the same run, which may be itself."""
    found = ratio(first, own) if own is not first else None
    low, high = found.interval if found else (1.0, 1.0)
    return Speed(
        target=own.target,
        how=MEASURED,
        p50_us=own.percentile_us(50),
        float_us=first.percentile_us(50),
        ratio=found.value if found else 1.0,
        low=_finite(low),
        high=_finite(high),
        verdict=found.verdict if found else "",
    )


def estimated_speed(found: Placement) -> Speed:
    """A time that a compiler worked out: of the whole, or where ops are left of its own part."""
    part_us, cycles = (_fact(found, name) for name in ("npu_us", "cycles"))
    return Speed(
        target=found.target,
        how="" if part_us is None else ESTIMATED,
        p50_us=found.latency_us,
        float_us=None,
        ratio=None,
        low=None,
        high=None,
        verdict="",
        estimate=Estimate(part_us, cycles),
    )


def _fact(found: Placement, name: str) -> float | None:
    value = found.facts.get(name)
    return value if isinstance(value, int | float) else None


def taken_of(found: Placement) -> Taken:
    """Which ops a target takes."""
    return Taken(
        target=found.target,
        how=found.how,
        taken=found.taken,
        ops=len(found.homes),
        partitions=found.partitions,
        why=found.main_reason,
    )


def cycles_of(found: Placement) -> float | None:
    """What the target's compiler counts, where it does."""
    return _fact(found, "cycles")


def room_left(room: Room, allowed: float) -> RoomLeft:
    """How much room is left, of how much."""
    ends = map(_finite, (room.estimate, room.low, room.high))
    return RoomLeft(*ends, reason=room.reason, allowed=_finite(allowed))


def room_of(left: RoomLeft | None) -> Room:
    """The room that was left; NaN where it is not known."""
    if left is None:
        return Room(math.nan, math.nan, math.nan)
    return Room(_number(left.estimate), _number(left.low), _number(left.high), left.reason)


def describe_score(found: Evaluation, room: Room) -> str:
    """What an evaluation says, in a few words."""
    if room.reason:
        return room.reason
    value = f"{found.title} {score_text(found.value, found.unit)}"
    against = found.against
    if against is None or against.difference is None:
        return f"{found.title} {score_text(found.value, found.unit, found.low, found.high)}"
    low, high = against.difference_low, against.difference_high
    if low is None or high is None:
        return value
    return f"{value}, {gain_text(against.difference, found.unit, low, high)}"


def _finite(value: float | None) -> float | None:
    """The number; None where it is infinite or none, as JSON will have it."""
    return value if value is not None and math.isfinite(value) else None


def _number(value: float | None) -> float:
    return math.nan if value is None else value
