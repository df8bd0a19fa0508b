"""The contents of the folder of `choose`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from litesmith.evidence.codec import Count, Mark, Positive
from litesmith.evidence.records import Environment, Score

MADE, TIMED, SCORED = "made", "timed", "scored"
MEASURED, PUBLISHED, NONE = "measured", "published", "none"


@dataclass(frozen=True)
class MadeModel:
    """A model made from a candidate: retrained, or in int8."""

    name: str
    kind: Literal["made"]
    key: str
    notes: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class TimedModel:
    """The costs of a candidate, from one run in turns with all the others.

    ratios      the time relative to the model with this digest, and the 95 % interval
    is_unclear  True where the machine was too busy to distinguish this time from another's
    """

    name: str
    kind: Literal["timed"]
    key: str
    target: str
    p50_us: Positive
    p50_low_us: float | None
    p50_high_us: float | None
    p95_us: float | None
    first_us: float | None
    peak_bytes: Count | None
    runs: Count
    bytes: Count
    gzip_bytes: Count
    ratios: Mapping[str, tuple[float, float | None, float | None]]
    note: str
    warnings: tuple[str, ...]
    device: Annotated[str, Mark.OMITTED] = ""
    is_unclear: Annotated[bool, Mark.OMITTED] = False


@dataclass(frozen=True)
class ScoredModel:
    """The score of a candidate; `ScoresBySample` has its result on each sample."""

    accuracy: Score
    notes: tuple[str, ...]
    name: str
    kind: Literal["scored"]
    key: str
    preparation: str
    seconds: float


# The details of the trials in a folder of `choose`, by their kind.
CHOOSE_KINDS: dict[str, type[MadeModel] | type[TimedModel] | type[ScoredModel]] = {
    MADE: MadeModel,
    TIMED: TimedModel,
    SCORED: ScoredModel,
}


@dataclass(frozen=True)
class ScoresBySample:
    """evidence/DIGEST.json: the score of a model on each sample, by the key of its trial; None for
    infinite scores."""

    schema: Literal[1]
    name: str
    scores: Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True)
class PublishedScore:
    """An accuracy published by a model's makers, and where; not measured here."""

    value: float
    source: str


@dataclass(frozen=True)
class ChooseRequest:
    """The request; `ceilings` are upper limits of costs, in microseconds or bytes."""

    goal: str
    limits: tuple[str, ...]
    ceilings: Mapping[str, Positive]
    min_accuracy: float | None
    target: str
    quantized: bool
    retrained: bool


@dataclass(frozen=True)
class ChooseData:
    """The origin of the samples, and how many served each purpose."""

    source: str
    judged: Count
    learned: Count
    calibration: Count
    calibration_source: str | None


@dataclass(frozen=True)
class CandidateRow:
    """What is known of a candidate; None where a value is not known yet.

    file     the path; None for a catalogue network that is not written yet
    parent   the candidate from which this one was made, by `recipe`
    as_good  models that differ from it by no more than the noise
    misses   the requirements that it misses
    """

    model: str
    file: str | None
    digest: str
    parent: str | None
    recipe: str
    is_integer: bool
    value: float | None
    low: float | None
    high: float | None
    n: Count | None
    unit: str | None
    metric: str | None
    title: str | None
    better: int | None
    p50_us: Positive | None
    p50_low_us: float | None
    p50_high_us: float | None
    bytes: Count | None
    gzip_bytes: Count | None
    peak_bytes: Count | None
    published: PublishedScore | None
    preparation: str | None
    notes: tuple[str, ...]
    on_front: bool
    as_good: tuple[str, ...]
    fits: bool | None
    misses: tuple[str, ...]


@dataclass(frozen=True)
class ChooseSummary:
    """choose.json: the state of a choice.

    basis       the origin of the accuracies: measured here, published, or none
    nearest     the nearest miss, where no model fits
    is_unclear  True where nothing is picked because the machine was too busy to distinguish times
    """

    schema: Literal[1]
    version: str
    command: str
    state: str
    request: ChooseRequest
    basis: str
    data: Annotated[ChooseData | None, Mark.EMPTY]
    candidates: tuple[CandidateRow, ...]
    front: tuple[str, ...]
    pick: str | None
    pick_file: str | None
    nearest: str | None
    reason: str
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    environment: Environment
    seconds: float | None
    is_unclear: Annotated[bool, Mark.OMITTED] = False
