"""What `retrain` is asked for, and what comes of it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from litesmith.data.preparation import Preparation
from litesmith.data.sources import UNTOUCHED, Given
from litesmith.display import show_html, show_line
from litesmith.evidence.codec import encode_fields
from litesmith.ir.types import Model
from litesmith.known_networks import is_network
from litesmith.phrases import phrase
from litesmith.tflite.file import digest
from litesmith.timing.statistics import Row
from litesmith.training.recipe_context import Record
from litesmith.training.settings import Training
from litesmith.transfer.confusion import Confusion
from litesmith.transfer.embedding import Embedding
from litesmith.transfer.head import Head
from litesmith.transfer.labelled import Labelled
from litesmith.units import plain, score_text, total_text

# One item in so many of every class is held out where no other data is given to judge by.
HELD_OUT = 5

NO_TUNING = "none"


def is_scratch(backbone: Path) -> bool:
    return is_network(str(backbone)) and not backbone.exists()


@dataclass(frozen=True)
class Request:
    """What is to be learned, from what and how.

    backbone   a file; else a network of the catalogue by name, which learns from random weights
    at         the tensor to learn from; "" for the one before the head
    val        data to judge by; None for a part of the data
    balance    True where every class is to count the same, however many items it has
    fine_tune  none; last, all, or the number of layers that are trained behind the head
    """

    backbone: Path
    data: Given
    out: Path
    val: Given | None = None
    at: str = ""
    preparation: Preparation = UNTOUCHED
    samples: int | None = None
    balance: bool = False
    fine_tune: str = NO_TUNING
    training: Training = field(default_factory=Training)
    record: Record = field(default_factory=Record)

    @property
    def is_scratch(self) -> bool:
        """True where a network of the catalogue is meant; a file of that name comes first."""
        return is_scratch(self.backbone)

    @property
    def trains(self) -> bool:
        """True where torch is needed, and a record of what was trained."""
        return self.is_scratch or self.fine_tune != NO_TUNING


class FineTuned(NamedTuple):
    """What fine-tuning came to.

    model     the trained model; None where it is no better, and the head alone stays
    told      how it went, in a sentence
    before    the share that the head alone has right on samples held out from the training
    after     the same of the trained model
    """

    model: Model | None
    told: str
    before: float
    after: float
    held: int


class Trained(NamedTuple):
    """A network that was trained from random weights.

    name       as the catalogue has it, at its size
    told       how it went, in a sentence
    first      the loss on samples held out from the training, before it
    best       the least that it became
    """

    model: Model
    name: str
    told: str
    first: float
    best: float


@dataclass(frozen=True, eq=False, repr=False)
class Retrained:
    """A retrained model and how good it is on items that it has not seen.

    value, low, high, n  the share of them that it has right, its 95 % interval, how many they are
    head       the solved head; None where a whole network was trained from scratch
    report     the page of the folder with the evidence; None where none was asked for
    """

    request: Request
    embedding: Embedding
    learned: Labelled
    proof: Labelled
    head: Head | None
    found: Confusion
    notes: tuple[str, ...]
    seconds: float
    tuned: FineTuned | None = None
    head_alone: Confusion | None = None
    scratch: Trained | None = None
    report: Path | None = None

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        """What it comes to, in a line."""
        value = score_text(self.value, "share", self.low, self.high)
        return phrase(
            "{name}: top-1 {value} on {count} items not learned from",
            plain(self.out.name),
            value,
            total_text(self.n),
        )

    def to_rows(self) -> list[Row]:
        """One row a class, for a data frame."""
        counts = self.found.table.sum(axis=1).tolist()
        shares = map(self.found.of_class, range(len(self.classes)))
        return [
            {"class": name, "n": count} | ({} if share is None else share._asdict())
            for name, count, share in zip(self.classes, counts, shares, strict=True)
        ]

    def to_json(self) -> dict[str, object]:
        """Everything that a program wants to know, as `--json` prints it."""
        from litesmith.training.retrain_record import retrain_result

        page = None if self.report is None else str(self.report)
        return {"schema": 1, **encode_fields(retrain_result(self)), "report": page}

    @property
    def out(self) -> Path:
        return self.request.out

    @property
    def value(self) -> float:
        return self.found.value.value

    @property
    def low(self) -> float:
        return self.found.value.low

    @property
    def high(self) -> float:
        return self.found.value.high

    @property
    def n(self) -> int:
        return len(self.found.labels)

    @property
    def classes(self) -> tuple[str, ...]:
        return self.learned.names

    @property
    def digest(self) -> str:
        return digest(self.out)
