"""What `choose`, `retrain`, `catalogue` and `convert` print."""

from typing import Annotated, NotRequired, TypedDict

from litesmith.conversion.core.lowering import Left
from litesmith.conversion.proof import OutputDifference
from litesmith.evidence.choose_record import CandidateRow, ChooseData, ChooseRequest
from litesmith.evidence.codec import Mark
from litesmith.front.printed_json.shared_facts import One
from litesmith.known_networks import Pretrained


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


class RetrainJson(TypedDict):
    """What `RetrainResult` has, and where the page is."""

    schema: One
    report: str | None


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
