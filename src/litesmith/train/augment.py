"""Pictures moved and mirrored: more than the data holds, which the original can answer as well."""

from collections.abc import Sequence

import numpy as np
import torch

from litesmith.ir.types import Array, Graph, Tensor
from litesmith.measure.images import picture

# Pictures move by at most this share of their size.
_SHIFT = 1 / 8

# What is smaller, or has other than three colours, may be anything: a spectrogram, a table.
_LEAST_SIZE, _COLOURS = 16, 3


class Augment:
    """What is done to the pictures among a model's inputs, each sample by chance.

    auto   moved by up to an eighth of their size, and mirrored
    flip   mirrored only
    shift  moved only: for pictures whose mirror image means something else
    none   as they are
    """

    def __init__(self, graph: Graph, how: str, seed: int) -> None:
        self._seed = seed
        self._flips, self._shifts = how in ("auto", "flip"), how in ("auto", "shift")
        self._places = [place for place, t in enumerate(graph.inputs) if _is_picture(t)]

    @property
    def is_idle(self) -> bool:
        return not self._places or not (self._flips or self._shifts)

    def __call__(
        self, inputs: Sequence[torch.Tensor | Array], turn: int
    ) -> list[torch.Tensor | Array]:
        """The inputs of a batch, changed; the same in the same turn."""
        random = np.random.default_rng((self._seed, turn))
        changed = list(inputs)
        for place in self._places:
            value = changed[place]
            if isinstance(value, torch.Tensor):
                changed[place] = self._moved(value, random)
        return changed

    def _moved(self, value: torch.Tensor, random: np.random.Generator) -> torch.Tensor:
        """Each picture by its own way; its edge is repeated where there is nothing to move in."""
        count, height, width = value.shape[:3]
        rows = self._lines(random, count, height)
        columns = self._lines(random, count, width)
        if self._flips:
            mirrored = random.random(count) < 0.5
            columns[mirrored] = columns[mirrored, ::-1]
        each = np.arange(count)[:, None, None]
        places = (each, rows[:, :, None], columns[:, None, :])
        return value[tuple(torch.from_numpy(p).to(value.device) for p in places)]

    def _lines(self, random: np.random.Generator, count: int, size: int) -> Array:
        most = int(size * _SHIFT) if self._shifts else 0
        shifts = random.integers(-most, most + 1, (count, 1))
        return np.clip(np.arange(size)[None, :] + shifts, 0, size - 1)


def _is_picture(tensor: Tensor) -> bool:
    """True for colour pictures with the colours last."""
    found = picture(tensor)
    if found is None or len(tensor.shape) != 4 or tensor.shape[3] != _COLOURS:
        return False
    return min(tensor.shape[1:3]) >= _LEAST_SIZE
