"""The settings and the progress of a training; nothing here needs torch."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from math import inf
from pathlib import Path
from typing import NamedTuple, Unpack

from litesmith.arguments import argument, refuse_below, refuse_unknown
from litesmith.data.preparation import Preparing
from litesmith.errors import BadInput
from litesmith.phrases import phrase
from litesmith.progress import Status
from litesmith.units import number_text

# One sample in this many is held out to judge the training.
HELD_OUT = 8

RECORD_SECONDS = 10.0  # between two records of a training


class TrainingRecord(NamedTuple):
    """The folder with the records of a training, whether to resume from them, and the seconds
    between two records.
    """

    folder: Path | None = None
    resume: bool = False
    every: float = RECORD_SECONDS


AUGMENTS = ("auto", "mix", "flip", "shift", "none")


@dataclass(frozen=True)
class Training:
    """How long and how a model is trained.

    >>> litesmith.Training(epochs=2, minutes=5, seed=1).epochs
    2

    epochs   how often each sample is used
    minutes  the time limit; None for as long as it takes
    rate     the learning rate in units of each weight's size; None tries several
    batch    samples per step; 0 chooses a suitable number
    labels   the share of the loss that comes from labels, where there are any: 0 to 1
    augment  how images are changed, see `augment`
    seed     the random seed
    device   auto, cpu, cuda or any device of torch
    """

    epochs: float = 10.0
    minutes: float | None = None
    rate: float | None = None
    batch: int = 0
    labels: float = 0.5
    augment: str = "auto"
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        for name, value in (
            ("epochs", self.epochs),
            ("minutes", self.minutes),
            ("rate", self.rate),
        ):
            if value is not None and not 0 < value < inf:
                raise BadInput("{argument}: a number above 0 is needed", argument(name, value))
        for name, count in (("batch", self.batch), ("seed", self.seed)):
            refuse_below(name, count, 0)
        if not 0 <= self.labels <= 1:
            labels = argument("labels", self.labels)
            raise BadInput("{argument}: a share from 0 to 1 is needed", labels)
        refuse_unknown("augment", self.augment, AUGMENTS)


class TrainingOptions(Preparing, total=False):
    """A user's settings for a preparation and a training, one argument each; None where a setting
    is not given."""

    epochs: float | None
    minutes: float | None
    rate: float | None
    batch: int | None
    labels: float | None
    augment: str | None
    seed: int | None
    device: str | None


def read_training(base: Training | None = None, **options: Unpack[TrainingOptions]) -> Training:
    """The training with a user's options over the defaults of `base`; options of preparation are
    ignored.
    """
    names = {field.name for field in fields(Training)}
    given: dict[str, object] = {n: v for n, v in options.items() if n in names and v is not None}
    return replace(base or Training(), **given)  # pyright: ignore[reportArgumentType]


def split_preparing(options: TrainingOptions) -> Preparing:
    """The part of the options that concerns preparation."""
    names = Preparing.__annotations__
    return Preparing(**{n: v for n, v in options.items() if n in names})  # pyright: ignore


class Look(NamedTuple):
    """The progress of a training, for a progress bar; `told` replaces the losses."""

    what: str
    step: int
    steps: int
    first: float
    best: float
    told: str = ""


Watch = Callable[[Look], None]


def look_status(look: Look, what: str | None = None) -> Status:
    """The progress of a training, with its losses."""
    losses = phrase(
        "loss {best} ({first} at first)", number_text(look.best), number_text(look.first)
    )
    return Status(what or look.what, look.step, look.steps, look.told or losses)
