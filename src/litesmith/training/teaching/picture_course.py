"""A network of images under training: the images, the random changes to them, and the goal."""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from litesmith.data.preparation import Norm
from litesmith.ir.types import Array
from litesmith.training.lesson import batch_size, precision
from litesmith.training.settings import Training
from litesmith.training.student import Student
from litesmith.training.teaching.moved_pictures import draw_moves, move_pictures

# Larger batches learn less from a small data set.
_MOST_BATCH = 16

# The share of the loss in the score: it ranks networks that find nothing yet.
_LOSS_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class PictureSamples:
    """Images and their labels.

    pixels   (images, height, width, 3) as bytes
    labels   the label of each image, in the task's form
    learned  the places of the training images
    held     the places of the images that decide when to stop
    names    the names of the classes
    """

    pixels: Array
    labels: Array
    learned: Array
    held: Array
    names: tuple[str, ...]


class PictureGoal(Protocol):
    """What a network should predict for images, and how far it is from that."""

    def loss(
        self,
        answers: Sequence[torch.Tensor],
        places: torch.Tensor,
        moves: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The distance of the outputs from the labels of the images, which may have been changed at
        random."""
        ...

    def count(self, answers: Sequence[torch.Tensor], places: torch.Tensor) -> list[Array]:
        """The metric's counts for images, as many numbers as it needs."""
        ...

    def score(self, counts: list[Array], loss: float) -> tuple[float, str]:
        """The metric over all that was counted, and how good the network is in words."""
        ...


class PictureCourse:
    """A network of images under training, with the images: a `Trainable`.

    told  the network's score so far, in words
    """

    def __init__(
        self,
        student: Student,
        samples: PictureSamples,
        goal: PictureGoal,
        norm: Norm,
        training: Training,
    ) -> None:
        self._student, self._goal, self._training = student, goal, training
        self._given, self.device = samples, student.device
        self._mean, self._std = (
            on_device(np.broadcast_to(np.array(v, np.float32), (3,)).copy(), self.device)
            for v in (norm.mean, norm.std)
        )
        self._is_reversed = norm.reverse
        self._pixels = _move_if_fits(samples.pixels, self.device)
        self.batch = training.batch or min(
            _MOST_BATCH, batch_size(student.model, len(samples.learned))
        )
        self.parameters, self.masks = student.parameters, list[torch.Tensor]()
        self.samples = len(samples.learned)
        self.told = ""

    def draw(self, places: Array, turn: int) -> list[Array] | None:
        """The places of images and the random changes to them; None where they are not on the
        device."""
        is_near = self._pixels.device.type == self.device.type
        return self._draw(places, turn) if is_near else None

    def loss_of(self, drawn: Sequence[torch.Tensor]) -> torch.Tensor:
        """The loss from the result of `draw`, computed on the device alone."""
        places, moves = drawn
        pictures = move_pictures(self._as_floats(places), moves)
        return self._goal.loss(self._answers(pictures, exact=False), places, moves)

    def loss(self, places: Array, turn: int) -> torch.Tensor:
        return self.loss_of([on_device(value, self.device) for value in self._draw(places, turn)])

    @torch.no_grad()
    def held_out(self) -> float:
        """The metric's distance from its best value, plus a little of the loss."""
        losses: list[float] = []
        counts: list[Array] = []
        for places in self._held_batches():
            chosen = on_device(places, self.device)
            answers = self._answers(self._as_floats(chosen), exact=True)
            losses.append(float(self._goal.loss(answers, chosen)) * len(places))
            counts += self._goal.count(answers, chosen)
        loss = sum(losses) / len(self._given.held)
        value, self.told = self._goal.score(counts, loss)
        return 1 - value + _LOSS_SHARE * loss

    def mask(self, progress: float) -> None:
        """There is nothing to mask."""

    def _draw(self, places: Array, turn: int) -> list[Array]:
        """The images of a step, and the random changes to them."""
        random = np.random.default_rng((self._training.seed, turn))
        moves = draw_moves(len(places), self._training.augment, random)
        return [self._given.learned[places], moves]

    def _as_floats(self, places: torch.Tensor) -> torch.Tensor:
        """Images as floats from 0 to 255."""
        return self._pixels[places.to(self._pixels.device)].to(self.device).float()

    def _answers(self, pictures: torch.Tensor, *, exact: bool) -> list[torch.Tensor]:
        """The network's predictions for images."""
        ordered = pictures.flip(-1) if self._is_reversed else pictures
        with precision(self.device, exact=exact, coarse=True):
            answers = self._student([(ordered - self._mean) / self._std])
        return [value.float() for value in answers]

    def _held_batches(self) -> Sequence[Array]:
        """The places of the pictures that are held out, a batch at a time."""
        held = self._given.held
        return [held[start : start + self.batch] for start in range(0, len(held), self.batch)]


def on_device(values: Array, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(device)


def _move_if_fits(pixels: Array, device: torch.device) -> torch.Tensor:
    """The images, on the device if they fit there."""
    kept = torch.from_numpy(pixels)
    if device.type != "cuda":
        return kept
    free, _ = torch.cuda.mem_get_info(device)
    return kept.to(device) if pixels.nbytes < free // 2 else kept
