"""The contents of the folder of `retrain`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from litesmith.evidence.codec import Count, Key, Mark
from litesmith.evidence.records import Environment


@dataclass(frozen=True)
class RetrainTrial:
    """A trained candidate: the head alone, the fine-tuned model, or a network trained from
    scratch."""

    name: str
    kind: Literal["retrained"] = "retrained"


@dataclass(frozen=True)
class ShareRight:
    """The share of right answers, with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ClassShare:
    """The result for one class; a class without items to judge by has no share."""

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
    """The result of fine-tuning: `before` and `after` are shares of the `held_out` items."""

    layers: str
    is_kept: bool
    before: float | None
    after: float | None
    held_out: Count
    told: str
    head_alone: ShareRight | None


@dataclass(frozen=True)
class FromScratch:
    """A network trained from random weights; `first` and `best` are losses."""

    network: str
    first: float | None
    best: float | None
    told: str


@dataclass(frozen=True)
class RetrainResult:
    """The result as a program needs it; the record and --json share these fields."""

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
    """The data for learning and for judging; `is_part` where the second is a part of the first."""

    learned: str
    judged: str
    is_part: bool
    learned_counts: tuple[Count, ...]
    judged_counts: tuple[Count, ...]


@dataclass(frozen=True)
class HeadTried:
    """One strength of the head's penalty, and its score in cross-validation."""

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
    """A word of a text, and how much more probable it made the model's answer."""

    word: str
    weight: float


@dataclass(frozen=True)
class MistakeRow:
    """A confident mistake; `thumbnail` is a JPEG in base64, `words` are those of a text."""

    name: str
    true: str
    said: str
    confidence: float | None
    thumbnail: str
    words: Annotated[tuple[WordRow, ...], Mark.OMITTED] = ()


@dataclass(frozen=True)
class CurveRow:
    """The precision curve of one class: pairs of the share that is found and the precision
    there."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class RetrainInside:
    """evidence/DIGEST.json: the mistakes with their pictures, and the curves of a detector."""

    mistakes: tuple[MistakeRow, ...]
    curves: Annotated[tuple[CurveRow, ...], Mark.OMITTED] = ()
