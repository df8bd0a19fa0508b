"""What `gate` prints."""

from typing import Literal, TypedDict

from litesmith.front.printed_json.shared_facts import HostFacts, One


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
