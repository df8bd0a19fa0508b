"""Objects that several commands print."""

from typing import Literal, NotRequired, TypedDict

from litesmith.evidence.bench_record import OpHome

One = Literal[1]  # the version of what is printed


class HostFacts(TypedDict):
    """The machine."""

    cpu: str
    cores: int
    governor: str
    load: float
    busy: float
    memory_bytes: int
    system: str
    python: str
    litesmith: str
    runtime: str


class TensorFacts(TypedDict):
    name: str
    dtype: str
    shape: list[int]


class RatioFacts(TypedDict):
    """Time after / time before; null where it was not measured, and `verdict` says why."""

    ratio: float | None
    low: float | None
    high: float | None
    verdict: str
    before_us: NotRequired[float]
    after_us: NotRequired[float]
    target: NotRequired[str]


class ScoreFacts(TypedDict):
    """A score beside the original's."""

    metric: str
    n: int
    independent: int
    value: float | None
    low: float | None
    high: float | None
    reference: NotRequired[float | None]
    difference: NotRequired[float | None]
    difference_low: NotRequired[float | None]
    difference_high: NotRequired[float | None]
    agreement: NotRequired[float | None]
    snr_db: NotRequired[float | None]


class FindingFacts(TypedDict):
    """Something that costs time or accuracy, and the command that helps."""

    what: str
    where: str
    why: str
    costs: str
    costs_us: float | None
    costs_share: float | None
    command: str


class PlacementFacts(TypedDict):
    """Which ops of a model a target takes."""

    how: str
    taken: int
    left: int
    partitions: int
    is_whole: bool
    refused: str
    latency_us: float | None
    latency_how: str
    facts: dict[str, object]
    homes: list[OpHome]
