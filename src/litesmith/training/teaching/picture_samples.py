"""Pictures to train on, on the device where they fit, and what they go through there."""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from litesmith.data.preparation import Norm
from litesmith.ir.types import Array
from litesmith.training.lesson import batch_size, precision
from litesmith.training.settings import Training
from litesmith.training.student import Student
from litesmith.training.teaching.moved_pictures import draw_moves, move_pictures

# More pictures a step teach a small data set less.
_MOST_BATCH = 16


@dataclass(frozen=True, eq=False)
class PictureSamples:
    """Pictures and what is in them.

    pixels   (pictures, height, width, 3) as bytes
    labels   of each, as its task has them
    learned  the places of those to train on
    held     the places of those that decide when to stop
    names    of the classes
    """

    pixels: Array
    labels: Array
    learned: Array
    held: Array
    names: tuple[str, ...]


class PictureStudent:
    """A network of pictures under training, and the pictures it sees."""

    def __init__(
        self, student: Student, samples: PictureSamples, norm: Norm, training: Training
    ) -> None:
        self._student, self._training = student, training
        self.given, self.device = samples, student.device
        self._mean, self._std = (
            on_device(np.broadcast_to(np.array(v, np.float32), (3,)).copy(), self.device)
            for v in (norm.mean, norm.std)
        )
        self._is_reversed = norm.reverse
        self._pixels = _kept(samples.pixels, self.device)
        self.batch = training.batch or min(
            _MOST_BATCH, batch_size(student.model, len(samples.learned))
        )

    def draw(self, places: Array, turn: int) -> list[Array]:
        """Which pictures a step sees, and what chance does to them."""
        random = np.random.default_rng((self._training.seed, turn))
        moves = draw_moves(len(places), self._training.augment, random)
        return [self.given.learned[places], moves]

    @property
    def is_near(self) -> bool:
        """Whether all pictures are on the device."""
        return self._pixels.device.type == self.device.type

    def look(self, places: torch.Tensor, moves: torch.Tensor | None = None) -> torch.Tensor:
        """Pictures as floats of 0 to 255."""
        pixels = self._pixels[places.to(self._pixels.device)].to(self.device).float()
        return pixels if moves is None else move_pictures(pixels, moves)

    def answers(self, pictures: torch.Tensor, *, exact: bool) -> list[torch.Tensor]:
        """What the network tells of pictures."""
        ordered = pictures.flip(-1) if self._is_reversed else pictures
        with precision(self.device, exact=exact, coarse=True):
            told = self._student([(ordered - self._mean) / self._std])
        return [value.float() for value in told]

    def held(self) -> Sequence[Array]:
        """The places of what is held out, a batch at a time."""
        held = self.given.held
        return [held[start : start + self.batch] for start in range(0, len(held), self.batch)]


def on_device(values: Array, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(device)


def _kept(pixels: Array, device: torch.device) -> torch.Tensor:
    """The pictures on the device where they fit there."""
    kept = torch.from_numpy(pixels)
    if device.type != "cuda":
        return kept
    free, _ = torch.cuda.mem_get_info(device)
    return kept.to(device) if pixels.nbytes < free // 2 else kept
