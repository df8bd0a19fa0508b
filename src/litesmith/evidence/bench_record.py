"""The contents of the folder of `bench --on all`, and of the log of `bench --log`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from litesmith.evidence.codec import Count, Mark, Omitted, Positive
from litesmith.evidence.records import Environment


@dataclass(frozen=True)
class TargetRow:
    """One model on one target.

    how          measured, estimated, predicted, or refused with `why`
    latency_us   the time of a run, where known
    is_alone     True where the target is too slow to take turns and was timed by itself in a few
                 runs
    ratio        the time relative to the CPU's, where both took turns
    difference   the distance of the outputs from the CPU's, relative to the largest output
    taken        the ops that the target takes, of `ops` in `partitions`; None where it takes all
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
    """A model on one target, as a trial stores it."""

    model: str
    row: Annotated[TargetRow, Mark.FLAT]


@dataclass(frozen=True)
class OpHome:
    """Where one op of the main graph runs, and why."""

    place: int
    kind: str
    taken: bool
    why: str


@dataclass(frozen=True)
class PlacementRow:
    """The placement of a model on a target, with a reason for each op."""

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
    """evidence/DIGEST.json: the placement of a model on every target, op by op."""

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
    """bench.json: every model timed into the folder."""

    schema: Literal[1]
    version: str
    command: str
    models: tuple[BenchedModel, ...]
    environment: Environment


@dataclass(frozen=True)
class LatencyRow:
    """One contender of an interleaved run, without its samples; the interval is that of p50.

    cpu_us  the CPU time of a run, summed over threads; `joules` are of the whole machine
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
    """A model with this number of threads; `joules` are of the whole machine."""

    threads: int
    p50_us: float
    p95_us: float
    variability: float
    cpu_us: float
    joules: float | None


@dataclass(frozen=True)
class ComparedTimes:
    """Two contenders of one interleaved run; `ratio` is time of b / time of a, `b_us` / `a_us`.

    block_ratios  the ratio of each pair of mirrored loads, from which the interval can be computed
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
    """A contender of `bench`, as its log stores it.

    host         the machine
    competitors  the number of other programs kept busy during the run
    """

    model: str
    host: Environment
    competitors: Omitted[int] = None
    comparisons: Omitted[tuple[ComparedTimes, ...]] = None


@dataclass(frozen=True)
class PartialBench:
    """The times measured before a device was lost."""

    device: str
    is_partial: bool = True
