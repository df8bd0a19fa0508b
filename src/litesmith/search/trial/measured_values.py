"""Measurements as the evidence stores them: evaluations, times, placements."""

from litesmith.accuracy.evaluate import Evaluation
from litesmith.evidence.codec import finite
from litesmith.evidence.records import CompilerEstimate, PairedScore, Score, Speed, TakenOps
from litesmith.run.core.placement import ESTIMATED, MEASURED, Placement
from litesmith.timing.latency import Result, ratio


def score_of(found: Evaluation) -> Score:
    """Converts an evaluation, without its samples."""
    paired = found.against
    numbers = (
        ()
        if paired is None
        else (
            paired.value,
            paired.low,
            paired.high,
            paired.difference,
            paired.difference_low,
            paired.difference_high,
            paired.agreement,
            paired.snr_db,
        )
    )
    return Score(
        found.metric,
        found.title,
        found.unit,
        *map(finite, (found.value, found.low, found.high)),
        n=found.n,
        better=None if paired is None else paired.better,
        against=PairedScore(*map(finite, numbers)) if numbers else None,
        independent=found.independent,
    )


def speed_of(own: Result, first: Result) -> Speed:
    """Converts a time, beside the time of the run's first model."""
    found = ratio(first, own) if own is not first else None
    low, high = found.interval if found else (1.0, 1.0)
    return Speed(
        target=own.target,
        how=MEASURED,
        p50_us=own.percentile_us(50),
        float_us=first.percentile_us(50),
        ratio=found.value if found else 1.0,
        low=finite(low),
        high=finite(high),
        verdict=found.verdict if found else "",
    )


def estimated_speed(found: Placement) -> Speed:
    """Converts a compiler's estimate: for the whole model, or for the target's share of the ops."""
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
        estimate=CompilerEstimate(part_us, cycles),
    )


def _fact(found: Placement, name: str) -> float | None:
    value = found.facts.get(name)
    return value if isinstance(value, int | float) else None


def taken_of(found: Placement) -> TakenOps:
    """Converts the ops that a target takes and leaves."""
    return TakenOps(
        target=found.target,
        how=found.how,
        taken=found.taken,
        ops=len(found.homes),
        partitions=found.partitions,
        why=found.main_reason,
    )


def cycles_of(found: Placement) -> float | None:
    """The cycles that the target's compiler estimates; None where it estimates none."""
    return _fact(found, "cycles")
