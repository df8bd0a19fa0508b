"""What `bench` prints."""

from typing import NotRequired, TypedDict

from litesmith.evidence.bench_record import ComparedTimes, ThreadsRow
from litesmith.front.printed_json.micro_facts import MicroFacts
from litesmith.front.printed_json.shared_facts import HostFacts, One, PlacementFacts


class TimedFacts(TypedDict):
    """A model on a target: the numbers of `LatencyRow`, and the samples."""

    samples_us: list[float]


class SituationFacts(TypedDict):
    """Thread counts, alone or beside a load."""

    situation: str
    competitors: int
    recommended: int
    reasons: list[str]
    counts: list[ThreadsRow]


class CopiesFacts(TypedDict):
    """A way to feed inputs and to read outputs."""

    way: str
    skipped: str
    feed_us: NotRequired[float]
    run_us: NotRequired[float]
    read_us: NotRequired[float]
    copied_bytes: NotRequired[int]
    share: NotRequired[float]


class BenchJson(TypedDict):
    schema: One
    results: list[TimedFacts]
    comparisons: list[ComparedTimes]
    host: HostFacts
    warnings: list[str]
    threads: NotRequired[list[SituationFacts]]
    copies: NotRequired[list[CopiesFacts]]


class ReachedFacts(TypedDict):
    """A target: what `TargetRow` has, and which ops it takes."""

    placement: PlacementFacts | None


class TargetsOfModel(TypedDict):
    """A model on every target."""

    model: str
    targets: list[ReachedFacts]
    results: list[TimedFacts]
    comparisons: list[ComparedTimes]
    host: HostFacts
    warnings: list[str]


class BenchAllJson(TargetsOfModel):
    """`bench --on all` of one model."""

    schema: One


class BenchAllModelsJson(TypedDict):
    """`bench --on all` of several models."""

    schema: One
    models: list[TargetsOfModel]


class BenchMicroJson(TypedDict):
    schema: One
    models: list[MicroFacts]
