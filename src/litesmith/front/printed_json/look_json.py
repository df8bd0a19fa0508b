"""What `inspect`, `view`, `profile`, `eval`, `compare`, `diff` and `targets` print."""

from typing import Literal, NotRequired, TypedDict

from litesmith.anatomy.findings import Finding
from litesmith.front.printed_json.shared_facts import HostFacts, One, PlacementFacts, TensorFacts
from litesmith.regression.comparison import OutputDrift


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


class DifferenceFacts(TypedDict):
    kind: Literal["ops", "op", "constant", "interface", "metadata"]
    where: str
    before: str
    after: str


class DiffJson(TypedDict):
    schema: One
    same: bool
    differences: list[DifferenceFacts]


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
