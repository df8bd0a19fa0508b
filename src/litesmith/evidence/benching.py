"""What `bench --on all` leaves in its folder, and `bench --log` in its file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from litesmith.evidence.codec import Count, Mark, Omitted, Positive
from litesmith.evidence.records import Environment


@dataclass(frozen=True)
class TargetRow:
    """What one target makes of a model.

    how          measured, estimated, predicted, or refused with `why`
    latency_us   of a run, where it is known
    is_alone     True where it was timed in a few runs by itself: it is too slow to take turns
    ratio        of the time to the CPU's, where both were timed in turns
    difference   of its outputs from the CPU's, relative to the largest
    taken        ops that it takes, of `ops` in `partitions`; None where it takes all there are
    """

    target: str
    how: str
    why: str
    latency_us: Positive | None
    runs: Count
    is_alone: bool
    ratio: float | None
    low: float | None
    high: float | None
    difference: float | None
    verdict: str
    taken: Count | None
    ops: Count | None
    partitions: Count | None
    placed: str
    main_reason: str


@dataclass(frozen=True)
class TargetTrial:
    """A model on one target, as a trial has it."""

    model: str
    row: Annotated[TargetRow, Mark.FLAT]


@dataclass(frozen=True)
class OpHome:
    """Where one op of the main graph goes, and why."""

    place: int
    kind: str
    taken: bool
    why: str


@dataclass(frozen=True)
class PlacementRow:
    """What a target makes of a model, with a reason for each op."""

    how: str
    taken: Count
    left: Count
    partitions: Count
    is_whole: bool
    refused: str
    latency_us: Positive | None
    latency_how: str
    facts: Mapping[str, str | int | float | None]
    homes: tuple[OpHome, ...]


@dataclass(frozen=True)
class BenchedInside:
    """evidence/DIGEST.json: what every target makes of a model, op by op."""

    schema: Literal[1]
    name: str
    placements: Mapping[str, PlacementRow]


@dataclass(frozen=True)
class BenchedModel:
    """A model on every target."""

    model: str
    digest: str
    bytes: Count | None
    targets: tuple[TargetRow, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class BenchSummary:
    """bench.json: every model that was timed into the folder."""

    schema: Literal[1]
    version: str
    command: str
    models: tuple[BenchedModel, ...]
    environment: Environment


@dataclass(frozen=True)
class LatencyRow:
    """One contender of an interleaved run without its samples; the interval is that of p50.

    cpu_us  CPU time of a run, summed over threads; `joules` of the whole machine
    loads   how often the model was loaded anew
    """

    model: str
    target: str
    p50_us: float
    p90_us: float
    p95_us: float
    p99_us: float
    p50_low_us: float
    p50_high_us: float | None
    create_us: float
    first_us: float
    cpu_us: float | None
    joules: float | None
    peak_bytes: int | None
    runs: int
    loads: int
    digest: str
    note: str


@dataclass(frozen=True)
class ThreadsRow:
    """A model on so many threads; `joules` are of the whole machine."""

    threads: int
    p50_us: float
    p95_us: float
    variability: float
    cpu_us: float
    joules: float | None


@dataclass(frozen=True)
class ComparedTimes:
    """Two contenders of one interleaved run; `ratio` is time of b / time of a, `b_us` / `a_us`.

    block_ratios  the same for each two mirrored loads, from which the interval can be had again
    """

    a: str
    b: str
    a_target: str
    b_target: str
    ratio: float
    low: float | None
    high: float | None
    verdict: str
    blocks: int
    a_us: Omitted[float] = None
    b_us: Omitted[float] = None
    block_ratios: Annotated[tuple[float, ...], Mark.OMITTED] = ()


@dataclass(frozen=True)
class BenchTrial:
    """A contender of `bench`, as its log has it.

    host         the machine
    competitors  how many other programs were kept busy beside it
    """

    model: str
    host: Environment
    competitors: Omitted[int] = None
    comparisons: Omitted[tuple[ComparedTimes, ...]] = None


@dataclass(frozen=True)
class PartialBench:
    """Times that came before a device was lost."""

    device: str
    is_partial: bool = True
