"""Measurements as the records of a search keep them, and back."""

import math
from typing import cast

from litesmith.accuracy.evaluate import Against, Evaluation
from litesmith.evidence import Measurement
from litesmith.run.core.placement import MEASURED
from litesmith.search.trial.budget import Room
from litesmith.timing.latency import Result, ratio
from litesmith.units import gain_text, score_text

Json = dict[str, object]

_OF_BOTH = ("difference", "difference_low", "difference_high", "agreement", "snr_db")


def accuracy_facts(found: Evaluation) -> Json:
    """An evaluation without its samples."""
    facts: Json = {
        "metric": found.metric,
        "title": found.title,
        "unit": found.unit,
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "n": found.n,
    }
    if found.against is not None:
        facts |= {"reference": found.against.value, "better": found.against.better}
        facts |= {"reference_low": found.against.low, "reference_high": found.against.high}
        facts |= {name: getattr(found.against, name) for name in _OF_BOTH}
    return known(facts)


def evaluation_of(facts: Json) -> Evaluation:
    """The evaluation that facts were taken from, but for its samples."""
    value = _number(facts, "value")
    against = Against(
        _maybe(facts, "reference"),
        *(_maybe(facts, name) for name in _OF_BOTH[:4]),
        snr_db=_maybe(facts, "snr_db"),
        better=int(cast(int, facts.get("better", 1))),
    )
    metric, unit = str(facts["metric"]), str(facts["unit"])
    return Evaluation(
        metric,
        unit,
        value,
        _number(facts, "low"),
        _number(facts, "high"),
        int(cast(int, facts["n"])),
        Measurement(metric, unit, (value,), "", "", ""),
        source="",
        preparation="",
        against=against,
    )


def latency_facts(own: Result, first: Result) -> Json:
    """A time beside the float model's of the same run, which may be itself."""
    found = ratio(first, own) if own is not first else None
    low, high = found.interval if found else (1.0, 1.0)
    return known(
        {
            "target": own.target,
            "how": MEASURED,
            "p50_us": own.percentile_us(50),
            "float_us": first.percentile_us(50),
            "ratio": found.value if found else 1.0,
            "low": low,
            "high": high,
            "verdict": found.verdict if found else "",
        }
    )


def room_facts(room: Room, allowed: float) -> Json:
    """How much room is left, of how much."""
    return known({**room._asdict(), "allowed": allowed})


def told(found: Evaluation, room: Room) -> str:
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


def known(facts: Json) -> Json:
    """The same with None for numbers that JSON has no word for."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in facts.items()
    }


def _maybe(facts: Json, key: str) -> float | None:
    return cast("float | None", facts.get(key))


def _number(facts: Json, key: str) -> float:
    found = _maybe(facts, key)
    return math.nan if found is None else found
