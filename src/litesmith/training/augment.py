"""Images moved, mirrored and mixed at random: more data than there is, which the original model can
label too.
"""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from litesmith.data.images import picture
from litesmith.ir.types import Array, Graph, Tensor

# Pictures move by at most this share of their size.
_SHIFT = 1 / 8

# Smaller inputs, or inputs without three colours, may be anything: a spectrogram, a table.
_LEAST_SIZE, _COLOURS = 16, 3

# The share of the pictures that are mixed with another. ResNet-8 without 40 % of its work, trained
# for 80 epochs on 5,250 pictures: 84.1 % right with none, 84.6 % with half, 84.4 % with all.
_MIXED = 0.5


class Mixed(NamedTuple):
    """Which sample each one of a batch was mixed with, and the share that it kept of itself."""

    others: torch.Tensor
    kept: torch.Tensor


class Changed(NamedTuple):
    """A batch after its random changes; `mixed` is None where no samples were mixed."""

    inputs: list[torch.Tensor | Array]
    mixed: Mixed | None = None


class Augment:
    """Random changes to the images among a model's inputs.

    auto   shifted by up to an eighth of their size, and mirrored
    mix    as auto, and every second image mixed with another: for trainings of a hundred epochs
    flip   mirrored only
    shift  shifted only: for images whose mirror image means something else
    none   unchanged
    """

    def __init__(self, graph: Graph, how: str, seed: int) -> None:
        self._seed = seed
        self._flips, self._shifts = how in ("auto", "mix", "flip"), how in ("auto", "mix", "shift")
        self._places = [place for place, t in enumerate(graph.inputs) if _is_picture(t)]
        # Mixing needs a single image as the sample: among several inputs, no image stands for the
        # whole.
        self._mixes = how == "mix" and len(graph.inputs) == len(self._places) == 1

    @property
    def is_idle(self) -> bool:
        return not self._places or not (self._flips or self._shifts)

    def __call__(self, inputs: Sequence[torch.Tensor | Array], turn: int) -> Changed:
        """The inputs of a batch, changed; the same in the same turn."""
        drawn = self.draw([tuple(value.shape) for value in inputs], turn)
        device = next((v.device for v in inputs if isinstance(v, torch.Tensor)), None)
        return self.change(inputs, [torch.from_numpy(value).to(device) for value in drawn])

    def draw(self, shapes: Sequence[Sequence[int]], turn: int) -> list[Array]:
        """Draws the random numbers for a batch of inputs of these shapes."""
        random = np.random.default_rng((self._seed, turn))
        drawn: list[Array] = []
        for place in self._places:
            drawn += self._draw_lines(random, shapes[place])
            if self._mixes:
                drawn += _draw_mixture(random, shapes[place])
        return drawn

    def change(
        self, inputs: Sequence[torch.Tensor | Array], drawn: Sequence[torch.Tensor]
    ) -> Changed:
        """The inputs of a batch, changed by these numbers."""
        changed, left = list(inputs), list(drawn)
        for place in self._places:
            value = changed[place]
            rows, columns, *left = left
            if isinstance(value, torch.Tensor):
                each = torch.arange(len(value), device=value.device)[:, None, None]
                value = changed[place] = value[each, rows[:, :, None], columns[:, None, :]]
                if self._mixes:
                    others, weight, kept = left
                    laid = value + weight[..., None] * (value[others] - value)
                    return Changed([laid], Mixed(others, kept))
        return Changed(changed)

    def _draw_lines(self, random: np.random.Generator, shape: Sequence[int]) -> list[Array]:
        """Draws, for each image, the source row or column of every line: shifted, with the edge
        repeated where nothing can move in, and mirrored.
        """
        count, height, width = shape[:3]
        rows = self._lines(random, count, height)
        columns = self._lines(random, count, width)
        if self._flips:
            mirrored = random.random(count) < 0.5
            columns[mirrored] = columns[mirrored, ::-1]
        return [rows, columns]

    def _lines(self, random: np.random.Generator, count: int, size: int) -> Array:
        most = int(size * _SHIFT) if self._shifts else 0
        shifts = random.integers(-most, most + 1, (count, 1))
        return np.clip(np.arange(size)[None, :] + shifts, 0, size - 1)


def _draw_mixture(random: np.random.Generator, shape: Sequence[int]) -> list[Array]:
    """Draws which other image is laid over each image, its weight at every pixel (evenly thin, or a
    rectangle), and the share that each image keeps of itself.
    """
    count, height, width = shape[:3]
    others = random.permutation(count)
    share = random.random(count) / 2  # of the other one
    share[random.random(count) >= _MIXED] = 0
    side = np.sqrt(share)[:, None]
    rows, columns = (
        np.abs(np.arange(size) - size * random.random((count, 1))) < side * size / 2
        for size in (height, width)
    )
    piece = rows[:, :, None] & columns[:, None, :]
    as_piece = random.random(count) < 0.5
    weight = np.where(as_piece[:, None, None], piece, share[:, None, None]).astype(np.float32)
    return [others, weight, 1 - weight.mean((1, 2))]


def _is_picture(tensor: Tensor) -> bool:
    """True for colour pictures with the colours last."""
    is_picture = picture(tensor)
    if is_picture is None or len(tensor.shape) != 4 or tensor.shape[3] != _COLOURS:
        return False
    return min(tensor.shape[1:3]) >= _LEAST_SIZE
