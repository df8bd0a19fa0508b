"""What `tune` and `doctor` print."""

from typing import Literal, NotRequired, TypedDict

from litesmith.evidence.tune_record import TunedModel
from litesmith.front.printed_json.shared_facts import FindingFacts, One


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
    warnings: list[str]
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
