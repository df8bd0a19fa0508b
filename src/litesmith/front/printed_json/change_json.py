"""What `quantize`, `qat`, `prune`, `cluster`, `apply` and `export` print."""

from typing import NotRequired, TypedDict

from litesmith.calibration.claims import OpGroup
from litesmith.calibration.claims import OutputDrift as DriftedOutput
from litesmith.calibration.mixed_outputs import MixedOutput
from litesmith.front.printed_json.micro_facts import MicroFacts
from litesmith.front.printed_json.shared_facts import One, RatioFacts, ScoreFacts
from litesmith.passes.core.step import Skip
from litesmith.precision.fastest_forms import SlowKind


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


class ExportJson(TypedDict):
    schema: One
    before: MicroFacts
    after: MicroFacts
    overlap: str
    reordered: bool
    files: list[str]
