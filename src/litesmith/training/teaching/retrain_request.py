"""The request of `retrain`, and what training returns."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from litesmith.data.preparation import UNTOUCHED, Preparation
from litesmith.data.sources import Given
from litesmith.ir.types import Model
from litesmith.known_networks import is_network
from litesmith.training.settings import Training, TrainingRecord
from litesmith.training.teaching.picture_tasks import PICTURE_TASKS

# One item in this many of every class is held out, where no separate data is given to judge by.
HELD_OUT = 5

NO_TUNING = "none"


def is_scratch(backbone: Path) -> bool:
    return is_network(backbone.as_posix()) and not backbone.exists()


@dataclass(frozen=True)
class RetrainRequest:
    """What to learn, from what and how.

    backbone   a file; otherwise the name of a catalogue network, which learns from random weights
    at         the tensor to learn from; "" for the one before the head
    val        data to judge by; None for a part of the data
    balance    True where every class has the same weight, however many items it has
    fine_tune  none; last, all, or the number of layers to train behind the head
    shape      sizes of the backbone's inputs, as the step `resize` takes them; otherwise its own
    raw        True where a detector outputs its head's predictions, and boxes are selected
               elsewhere
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
    record: TrainingRecord = field(default_factory=TrainingRecord)
    shape: tuple[str, ...] = ()
    raw: bool = False

    @property
    def is_scratch(self) -> bool:
        """True where a network of the catalogue is meant; a file of that name comes first."""
        return is_scratch(self.backbone)

    @property
    def trains(self) -> bool:
        """True where torch is needed, and a record of the training."""
        is_taught = self.preparation.task in PICTURE_TASKS
        return self.is_scratch or is_taught or self.fine_tune != NO_TUNING


class FineTuned(NamedTuple):
    """The result of fine-tuning.

    model     the trained model; None where it is no better, and the head alone stays
    told      the course of the training in a sentence
    before    the head's share of right answers on samples held out from the training
    after     the trained model's share
    """

    model: Model | None
    told: str
    before: float
    after: float
    held: int


class Trained(NamedTuple):
    """A network trained from random weights.

    name       its catalogue name, with its size
    told       the course of the training in a sentence
    first      the loss on held-out samples before the training
    best       the least loss reached
    """

    model: Model
    name: str
    told: str
    first: float
    best: float
