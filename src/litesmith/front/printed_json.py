"""What `--json` prints and what files keep, as types: JSON schemas are made of them, and tests hold
the results of every command against the schemas."""

from typing import Annotated, Literal, NotRequired, TypedDict

from litesmith.anatomy.findings import Finding
from litesmith.calibration.claims import OpGroup
from litesmith.calibration.claims import OutputDrift as DriftedOutput
from litesmith.calibration.mixed_outputs import MixedOutput
from litesmith.conversion.core.lowering import Left
from litesmith.conversion.proof import OutputDifference
from litesmith.errors import BadInput
from litesmith.evidence.bench_record import (
    BenchSummary,
    ComparedTimes,
    LatencyRow,
    OpHome,
    TargetRow,
    ThreadsRow,
)
from litesmith.evidence.choose_record import CandidateRow, ChooseData, ChooseRequest, ChooseSummary
from litesmith.evidence.codec import Mark
from litesmith.evidence.gate_record import GateSummary
from litesmith.evidence.json_schema import Schema, make_schema
from litesmith.evidence.retrain_record import RetrainResult, RetrainSummary
from litesmith.evidence.tune_record import TunedModel, TuneSummary
from litesmith.known_networks import Pretrained
from litesmith.micro.boards import Room
from litesmith.passes.core.step import Skip
from litesmith.precision.fastest_forms import SlowKind
from litesmith.regression.baseline import Baseline
from litesmith.regression.comparison import OutputDrift
from litesmith.search.tuning.replay import RecipeFile

One = Literal[1]  # the version of what is printed

# What several commands print.


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


class MadeFacts(TypedDict):
    """A model that was made of another."""

    schema: One
    out: str | None
    bytes: int
    gzip_bytes: int
    digest: str
    touched: list[str]
    skipped: list[Skip]


class CostFacts(TypedDict):
    bytes: int
    gzip_bytes: int
    zstd_bytes: int
    macs: int
    zeros: int
    zero_share: float


class WeightFacts(TypedDict):
    name: str
    op: str
    dtype: str
    elements: int
    zeros: int
    unique: int
    codes: int | None
    bits: int
    sparse: bool


class ArmFacts(TypedDict):
    """Whether XNNPACK on ARM skips the zeros of a convolution."""

    op: str
    sparse: bool
    why: str


class SkippingFacts(TypedDict):
    """The zeros that make a layer faster with Litesmith's own kernels."""

    op: str
    index: int
    zero_blocks: float
    even: float | None
    gain: float | None
    target: str


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


# One type a command; several where it prints several sorts of objects.


class OpFacts(TypedDict):
    graph: str
    index: int
    kind: str
    outputs: list[TensorFacts]
    macs: int
    constant_bytes: int


class InspectJson(TypedDict):
    schema: One
    file_bytes: int
    gzip_bytes: int
    parameters: int
    macs: int
    peak_activation_bytes: int | None
    ops: dict[str, int]
    scheme: str
    bytes_by_op: dict[str, int]
    bytes_by_type: dict[str, int]
    inputs: list[TensorFacts]
    outputs: list[TensorFacts]
    signatures: list[str]
    metadata: dict[str, int]
    findings: list[Finding]
    op_list: NotRequired[list[OpFacts]]


class DifferenceFacts(TypedDict):
    kind: Literal["ops", "op", "constant", "interface", "metadata"]
    where: str
    before: str
    after: str


class DiffJson(TypedDict):
    schema: One
    same: bool
    differences: list[DifferenceFacts]


class TimesFacts(TypedDict):
    """The samples beside what `LatencyRow` has."""

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
    results: list["TimedFacts"]
    comparisons: list[ComparedTimes]
    host: HostFacts
    warnings: list[str]
    threads: NotRequired[list[SituationFacts]]
    copies: NotRequired[list[CopiesFacts]]


class TargetsOfModel(TypedDict):
    """A model on every target."""

    model: str
    targets: list["ReachedFacts"]
    results: list["TimedFacts"]
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


class OpTimeFacts(TypedDict):
    graph: int
    index: int
    kind: str
    name: str
    us: float
    share: float
    kernel: str
    detail: str
    macs: int
    gmacs: float | None
    of_best: float | None
    fused_into: int | None
    why: str


class UnmatchedFacts(TypedDict):
    tag: str
    us: float


class ProfileJson(TypedDict):
    schema: One
    model: str
    target: str
    run_us: float
    overhead: float
    profiled_us: float
    ops_us: float
    runs: int
    samples_us: list[float]
    ops: list[OpTimeFacts]
    unmatched: list[UnmatchedFacts]
    best_gmacs: dict[str, float]
    note: str
    host: HostFacts | None
    warnings: list[str]


class EvaluateJson(TypedDict):
    schema: One
    model: str
    metric: str
    unit: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    independent: int
    data: str
    preparation: str
    target: str
    runtime: str
    notes: list[str]
    reference: NotRequired[float | None]
    difference: NotRequired[float | None]
    difference_low: NotRequired[float | None]
    difference_high: NotRequired[float | None]
    agreement: NotRequired[float | None]
    cosine: NotRequired[float | None]
    snr_db: NotRequired[float | None]
    verdict: NotRequired[str | None]


class BundleFacts(TypedDict):
    out: str
    files: dict[str, int]


class SlownessJson(TypedDict):
    """`doctor`: why it is slow."""

    schema: One
    model: str | None
    target: str
    run_us: float | None
    findings: list[FindingFacts]
    bundle: NotRequired[BundleFacts]


class InaccuracyJson(TypedDict):
    """`doctor --data`: why it is inaccurate."""

    schema: One
    model: str | None
    verdict: str
    snr_db: float | None
    findings: list[FindingFacts]


class ObstacleFacts(TypedDict):
    what: str
    why: str


class FitFacts(TypedDict):
    recipe: str
    command: str
    taken: int
    ops: int
    how: str
    left: list[ObstacleFacts]
    notes: list[str]
    hint: str


# `doctor --for`: what an accelerator does not take. "for" is a word of Python.
FittingJson = TypedDict(
    "FittingJson",
    {
        "schema": One,
        "model": str | None,
        "for": str,
        "how": str,
        "is_whole": bool,
        "findings": list[FindingFacts],
        "fit": FitFacts,
    },
)


class TargetFacts(TypedDict):
    name: str
    title: str
    usable: bool
    why: str
    how: str
    runs: bool
    placement: NotRequired[PlacementFacts]


class BoardFacts(TypedDict):
    """A microcontroller; `fits` is null where no model was given."""

    name: str
    title: str
    chip: str
    core: str
    ram: int
    flash: int
    fits: bool | None


class TargetsJson(TypedDict):
    schema: One
    targets: list[TargetFacts]
    boards: list[BoardFacts]


class PublishedFacts(TypedDict):
    size: str
    width: float
    resolution: int
    parameters: str
    macs: str
    accuracy: str
    differs: str


class NetworkFacts(TypedDict):
    name: str
    title: str
    width: float
    input: list[int]
    classes: int
    norm: str
    parameters: int
    macs: int
    data: str
    source: str
    published: list[PublishedFacts]
    pretrained: Pretrained | None


class CatalogueJson(TypedDict):
    """`catalogue`: every network."""

    schema: One
    networks: list[NetworkFacts]


class NetworkJson(NetworkFacts):
    """`catalogue NAME`, and with -o what was written."""

    schema: One
    out: NotRequired[str]
    bytes: NotRequired[int]
    digest: NotRequired[str]
    weights: NotRequired[str]


class ShrunkFacts(TypedDict, total=False):
    """What pruning, clustering and training add."""

    zstd_bytes: int
    macs: int
    zeros: int
    zero_share: float
    before: CostFacts
    weights: list[WeightFacts]
    verified: bool
    broken: list[str]
    trained: list[str]
    arm: list[ArmFacts]
    litesmith: list[SkippingFacts]


class ApplyJson(MadeFacts, ShrunkFacts):
    latency: NotRequired[RatioFacts]
    slower_ops: NotRequired[list[SlowKind]]
    same: NotRequired[bool]


class ClaimFacts(TypedDict):
    """What is said of a written file, and was checked on it."""

    runs: bool
    failure: str
    fully_integer: bool
    float_ops: list[OpGroup]
    conversions: int
    in_xnnpack: bool | None
    outside_xnnpack: list[OpGroup]
    unknown: str
    snr_db: float | None
    outputs: list[DriftedOutput]
    samples: int


class QuantizeJson(MadeFacts):
    recipe: str
    data: str | None
    samples: int
    random_data: bool
    preparation: str
    claims: ClaimFacts
    latency: RatioFacts
    slower_ops: list[SlowKind]
    predicted_us: float | None
    mixed_outputs: list[MixedOutput]
    notes: list[str]
    evaluation: NotRequired[ScoreFacts]


class ShrinkJson(MadeFacts, ShrunkFacts):
    recipe: str
    data: str | None
    samples: int
    preparation: str
    latency: NotRequired[RatioFacts]
    evaluation: NotRequired[ScoreFacts]


class AccuracyFacts(TypedDict):
    metric: str
    unit: str
    a: float | None
    b: float | None
    b_low: float | None
    b_high: float | None
    difference: float | None
    low: float | None
    high: float | None
    verdict: str | None
    agreement: float | None
    n: int
    independent: int
    data: str
    preparation: str
    notes: list[str]


class ComparedLatency(TypedDict):
    ratio: float
    low: float
    high: float | None
    verdict: str
    a_us: float
    b_us: float
    target: str
    block_ratios: list[float]


class DriftFacts(TypedDict):
    samples: int
    random: bool
    outputs: list[OutputDrift]
    why: str


class PairOfNumbers(TypedDict):
    a: int | None
    b: int | None


class PairOfTexts(TypedDict):
    a: str
    b: str


class CompareJson(TypedDict):
    schema: One
    a: str
    b: str
    accuracy: AccuracyFacts | None
    no_accuracy: str
    latency: ComparedLatency
    bytes: PairOfNumbers
    gzip_bytes: PairOfNumbers
    peak_bytes: PairOfNumbers
    drift: DriftFacts
    verdict: str
    digests: PairOfTexts
    host: HostFacts
    warnings: list[str]


class CheckFacts(TypedDict, total=False):
    """A quantity held against the baseline, and the numbers that it was judged by."""

    metric: str
    n: int
    independent: int
    baseline: float | None
    now: float | None
    difference: float | None
    low: float | None
    high: float | None
    bound: float | None
    change: float | None
    clock: str
    ratio: float
    baseline_ratio: float
    us: float
    reference_us: float
    baseline_us: float
    blocks: dict[str, int]
    target: str
    how: str
    baseline_left: int
    left: int
    baseline_macs: float
    macs: float
    baseline_partitions: int
    partitions: int
    kinds: dict[str, int]


class GateCheck(CheckFacts):
    quantity: str
    title: str
    verdict: Literal["ok", "worse", "unclear", "unknown", "off"]
    allowed: str
    why: str
    command: str


class GateJson(TypedDict):
    """`gate`."""

    schema: One
    verdict: Literal["ok", "worse", "unclear"]
    baseline: str
    model: str
    digest: str
    target: str
    strict: bool
    checks: list[GateCheck]
    notes: list[str]
    host: HostFacts


class UpdatedJson(TypedDict):
    """`gate --update`."""

    schema: One
    out: str
    model: str
    digest: str
    target: str
    allow: dict[str, str]
    bytes: int


class TuneJson(TypedDict):
    schema: One
    verdict: Literal["proven", "likely", "unclear", "keep", "missed"]
    sentence: str
    within_budget: bool
    folder: str
    report: str | None
    best: TunedModel | None
    value: float | None
    drop: float | None
    latency_ratio: float | None
    bytes_ratio: float | None
    float: TunedModel | None
    front: list[str]
    nearest: TunedModel | None
    next: list[str]


class ChooseJson(TypedDict):
    schema: One
    candidates: list[CandidateRow]
    pick: str | None
    pick_file: str | None
    nearest: str | None
    reason: str
    front: list[str]
    basis: str
    request: ChooseRequest
    data: Annotated[ChooseData | None, Mark.EMPTY]
    notes: list[str]
    warnings: list[str]
    folder: str
    report: str | None


class ConvertJson(TypedDict):
    schema: One
    source: str
    opset: int
    nodes: int
    out: str | None
    bytes: int | None
    digest: str | None
    ops: int
    channels_last: list[str]
    judge: str
    judge_bytes: int
    samples: int
    differences: list[OutputDifference]
    left: list[Left]
    seconds: float
    notes: list[str]


class ViewedModel(TypedDict):
    name: str
    bytes: int
    ops: int
    times: str


class ViewedOp(TypedDict):
    """An op of the first model, of the second, or of both."""

    a: int | None
    b: int | None
    kind: str
    name: str
    change: str
    a_us: float | None
    b_us: float | None
    alone_db: float | None
    total_db: float | None


class ViewJson(TypedDict):
    schema: One
    out: str | None
    models: list[ViewedModel]
    changes: dict[str, int]
    loss_path: list[int]
    ops: list[ViewedOp]


class ArenaFacts(TypedDict):
    """The memory of an interpreter on a microcontroller, by kind and by op."""

    total: int
    needed: int
    planned: int
    scratch: int
    lasting: int
    lasting_by_kind: dict[str, int]
    lasting_by_op: dict[str, int]
    unknown: list[str]


class ToldArena(TypedDict):
    total: int
    head: int


class HostArenaFacts(ArenaFacts):
    """The same on this machine, beside what the interpreter itself told."""

    interpreter: ToldArena | None


class FlashFacts(TypedDict):
    """Bytes of flash, estimated: the model, the interpreter, and the kernels that it needs."""

    total: int
    model: int
    interpreter: int
    kernels: dict[str, int]
    unknown: list[str]
    how: str


class PeakFacts(TypedDict):
    op: str
    bytes: int
    buffers: list[str]


class PlannedBuffer(TypedDict):
    name: str
    bytes: int
    at: int
    ticks: list[int]


class MicroFacts(TypedDict):
    model: str
    arena: ArenaFacts
    arena_on_host: HostArenaFacts
    flash: FlashFacts
    peak: PeakFacts
    plan: list[PlannedBuffer]
    room: Room | None
    fits: bool


class BenchMicroJson(TypedDict):
    schema: One
    models: list[MicroFacts]


class ExportJson(TypedDict):
    schema: One
    before: MicroFacts
    after: MicroFacts
    overlap: str
    reordered: bool
    files: list[str]


class TimedFacts(TimesFacts):
    """A model on a target: the numbers of `LatencyRow`, and the samples."""


class ReachedFacts(TypedDict):
    """A target: what `TargetRow` has, and which ops it takes."""

    placement: PlacementFacts | None


class RetrainJson(TypedDict):
    """What `RetrainResult` has, and where the page is."""

    schema: One
    report: str | None


# Objects that also have the keys of a record.
_WITH_RECORDS: dict[str, type] = {
    "TimedFacts": LatencyRow,
    "ReachedFacts": TargetRow,
    "RetrainJson": RetrainResult,
}

# command -> what it prints
PRINTED: dict[str, tuple[type, ...]] = {
    "apply": (ApplyJson,),
    "bench": (BenchJson, BenchAllJson, BenchAllModelsJson, BenchMicroJson),
    "catalogue": (CatalogueJson, NetworkJson),
    "choose": (ChooseJson,),
    "cluster": (ShrinkJson,),
    "compare": (CompareJson,),
    "convert": (ConvertJson,),
    "diff": (DiffJson,),
    "doctor": (SlownessJson, InaccuracyJson, FittingJson),
    "eval": (EvaluateJson,),
    "export": (ExportJson,),
    "gate": (GateJson, UpdatedJson),
    "inspect": (InspectJson,),
    "profile": (ProfileJson,),
    "prune": (ShrinkJson,),
    "qat": (ShrinkJson,),
    "quantize": (QuantizeJson,),
    "retrain": (RetrainJson,),
    "targets": (TargetsJson,),
    "tune": (TuneJson,),
    "view": (ViewJson,),
}

# file -> what it holds
RECORDS: dict[str, type] = {
    "baseline": Baseline,
    "bench-folder": BenchSummary,
    "choose-folder": ChooseSummary,
    "gate-folder": GateSummary,
    "recipe": RecipeFile,
    "retrain-folder": RetrainSummary,
    "tune-folder": TuneSummary,
}

_TITLES = {
    "baseline": "baseline of gate",
    "bench-folder": "bench.json of bench --on all -o",
    "choose-folder": "choose.json of choose",
    "gate-folder": "gate.json of gate -o",
    "recipe": "recipe.json of tune",
    "retrain-folder": "retrain.json of retrain",
    "tune-folder": "tune.json of tune",
}


def schema_of_printed(command: str) -> Schema:
    """The JSON schema of what a command prints with `--json`."""
    if command not in PRINTED:
        raise BadInput("{command!r} prints no JSON; there are {known}", command, ", ".join(PRINTED))
    first, *others = PRINTED[command]
    kind: object = first
    for other in others:
        kind = kind | other
    return make_schema(kind, f"litesmith {command} --json", beside=_WITH_RECORDS)


def schema_of_record(name: str) -> Schema:
    """The JSON schema of a file that commands leave."""
    return make_schema(RECORDS[name], _TITLES[name], is_file=True)
