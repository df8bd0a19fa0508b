"""What `retrain` leaves in its folder."""

from dataclasses import dataclass
from typing import Annotated, Literal

from litesmith.evidence.codec import Count, Key, Mark
from litesmith.evidence.records import Environment


@dataclass(frozen=True)
class RetrainTrial:
    """The head alone, the fine-tuned model, or a network trained from scratch."""

    name: str
    kind: Literal["retrained"] = "retrained"


@dataclass(frozen=True)
class ShareRight:
    """The share that is right, with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ClassShare:
    """How one class fares; a class without items to judge by has no share."""

    name: Annotated[str, Key("class")]
    n: Count
    share: Annotated[ShareRight | None, Mark.FLAT] = None


@dataclass(frozen=True)
class EmbeddingRow:
    """The tensor that the head learns from."""

    tensor: str
    size: Count
    how: str


@dataclass(frozen=True)
class FineTuning:
    """What fine-tuning came to: `before` and `after` are shares of the `held_out` items."""

    layers: str
    is_kept: bool
    before: float | None
    after: float | None
    held_out: Count
    told: str
    head_alone: ShareRight | None


@dataclass(frozen=True)
class FromScratch:
    """A network that was trained from random weights; `first` and `best` are losses."""

    network: str
    first: float | None
    best: float | None
    told: str


@dataclass(frozen=True)
class RetrainResult:
    """What a program wants to know: the same in the record and with --json."""

    out: str
    right: Annotated[ShareRight | None, Mark.FLAT]
    n: Count
    classes: tuple[str, ...]
    metric: str
    per_class: tuple[ClassShare, ...]
    confusion: tuple[tuple[Count, ...], ...]
    learned: Count
    embedding: EmbeddingRow
    preparation: str
    strength: float | None
    fine_tuned: FineTuning | None
    from_scratch: FromScratch | None
    digest: str
    seconds: float | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RetrainData:
    """What was learned from and judged by; `is_part` where the second is a part of the first."""

    learned: str
    judged: str
    is_part: bool
    learned_counts: tuple[Count, ...]
    judged_counts: tuple[Count, ...]


@dataclass(frozen=True)
class HeadTried:
    """A strength of the head's penalty, and how it did in cross-validation."""

    strength: float
    loss: float
    accuracy: float


@dataclass(frozen=True)
class RetrainSummary:
    """retrain.json."""

    schema: Literal[1]
    version: str
    command: str
    model: str
    backbone: str
    backbone_digest: str
    data: RetrainData
    head: tuple[HeadTried, ...]
    environment: Environment
    result: Annotated[RetrainResult, Mark.FLAT]


@dataclass(frozen=True)
class WordRow:
    """A word of a text, and how much more probable it made what the model said."""

    word: str
    weight: float


@dataclass(frozen=True)
class MistakeRow:
    """An item that the model was sure of and wrong about; `thumbnail` is a JPEG in base64, `words`
    are those of a text."""

    name: str
    true: str
    said: str
    confidence: float | None
    thumbnail: str
    words: Annotated[tuple[WordRow, ...], Mark.OMITTED] = ()


@dataclass(frozen=True)
class CurveRow:
    """Of one class, pairs of the share that is found and the precision at it."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class RetrainInside:
    """evidence/DIGEST.json: the mistakes with their pictures, and the curves of a detector."""

    mistakes: tuple[MistakeRow, ...]
    curves: Annotated[tuple[CurveRow, ...], Mark.OMITTED] = ()
