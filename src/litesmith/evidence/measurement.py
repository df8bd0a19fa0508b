"""Measurements with their samples, and trials of models."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Generic, NamedTuple, TypeVar

from litesmith.phrases import phrase

Interval = tuple[float, float]
Details = TypeVar("Details", covariant=True)
Other = TypeVar("Other")

# Below six samples no order statistics enclose the median with 95 % confidence (2 / 2**5 > 5 %).
LEAST_SAMPLES = 6


def median_interval(samples: Sequence[float]) -> Interval:
    """The 95 % interval of the median, from the order of the samples (the inverted sign test).

    The samples may have any distribution but must be independent. Too few samples bound nothing:
    the interval is infinite.
    """
    if len(samples) < LEAST_SAMPLES:
        return -math.inf, math.inf
    ordered = sorted(samples)
    place = _outside(len(ordered))
    return ordered[place], ordered[-1 - place]


def _outside(count: int) -> int:
    """The number of samples at each end that lie outside the median's 95 % interval."""
    if count > 1000:  # the binomial is normal by then, and its terms are too small for a float
        return int(count / 2 - 0.98 * math.sqrt(count)) - 1
    term, tail, place = 0.5**count, 0.0, 0
    while tail + term <= 0.025:
        tail += term
        term *= (count - place) / (place + 1)
        place += 1
    return place - 1


@dataclass(frozen=True)
class Measurement:
    """The samples of one metric of one model on one target; all else is computed from the
    samples."""

    metric: str
    unit: str
    samples: tuple[float, ...]
    target: str
    model_digest: str
    host: str

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError(
                phrase("a measurement of {metric!r} needs at least one sample", self.metric)
            )

    @property
    def value(self) -> float:
        """The median of the samples."""
        return median(self.samples)

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the median, if the samples are independent."""
        return median_interval(self.samples)


class Skipped(NamedTuple):
    """What a recipe left alone in a model, and why."""

    where: str
    why: str


@dataclass(frozen=True)
class Trial(Generic[Details]):
    """A model, how it was made, and its measurements.

    details  what the command that made the trial adds, in its own type
    """

    recipe: str
    parent_digest: str
    model_digest: str
    measurements: tuple[Measurement, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    reason: str = ""
    details: Details = field(kw_only=True)

    def with_details(self, details: Other) -> "Trial[Other]":
        """The same trial with other details, possibly of another type."""
        return Trial(
            self.recipe,
            self.parent_digest,
            self.model_digest,
            self.measurements,
            self.skipped,
            self.reason,
            details=details,
        )


@dataclass(frozen=True)
class MarkRow:
    """A box on an image, in shares of its size, with words; or a point."""

    box: tuple[float, ...]
    words: str = ""
    is_point: bool = False


@dataclass(frozen=True)
class AnswerRow:
    """A model's answer to an item: score, words, marks, and a mask as a PNG in base64."""

    score: float | None
    text: str = ""
    marks: tuple[MarkRow, ...] = ()
    mask: str = ""


@dataclass(frozen=True)
class DisagreementRow:
    """An item that two models answer differently; `thumbnail` is a JPEG in base64."""

    name: str
    thumbnail: str
    before: AnswerRow
    after: AnswerRow
