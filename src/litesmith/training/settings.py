"""How a training is asked for and watched; nothing here needs torch."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from litesmith.errors import BadInput
from litesmith.units import number_text

# One sample in so many is held out: it judges, and nothing is learned from it.
HELD_OUT = 8

RECORD_SECONDS = 10.0  # between two records of a training

AUGMENTS = ("auto", "mix", "flip", "shift", "none")


@dataclass(frozen=True)
class Training:
    """How long and how a model is trained.

    epochs   times that each sample is used
    minutes  no longer than this; None for as long as it takes
    rate     the learning rate in units of each weight's size; None tries several
    batch    samples a step; 0 for as many as suit
    labels   the share of the loss that labels have, where there are any: 0 to 1
    augment  what is done to pictures, see `augment`
    seed     of the order of the samples, and of all chance
    device   auto, cpu, cuda or what torch knows
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
                raise BadInput(f"{name}={number_text(value)}: a number above 0 is needed")
        for name, count in (("batch", self.batch), ("seed", self.seed)):
            if count < 0:
                raise BadInput("{name}={count}: a number from 0 on is needed", name, count)
        if not 0 <= self.labels <= 1:
            raise BadInput(
                "labels={number}: a share from 0 to 1 is needed", number_text(self.labels)
            )
        if self.augment not in AUGMENTS:
            raise BadInput(f"augment={self.augment}: there are {', '.join(AUGMENTS)}")


class Look(NamedTuple):
    """How far a training has come: what a progress bar shows."""

    what: str
    step: int
    steps: int
    first: float
    best: float


Watch = Callable[[Look], None]
