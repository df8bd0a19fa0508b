"""Pictures moved, mirrored and mixed: more than the data holds, which the original answers too."""

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

# What is smaller, or has other than three colours, may be anything: a spectrogram, a table.
_LEAST_SIZE, _COLOURS = 16, 3

# The share of the pictures that are mixed with another. ResNet-8 without 40 % of its work, trained
# for 80 epochs on 5,250 pictures: 84.1 % right with none, 84.6 % with half, 84.4 % with all.
_MIXED = 0.5


class Mixed(NamedTuple):
    """Which sample each one of a batch was mixed with, and the share that it kept of itself."""

    others: torch.Tensor
    kept: torch.Tensor


class Changed(NamedTuple):
    """A batch after chance had its way; `mixed` where samples were mixed."""

    inputs: list[torch.Tensor | Array]
    mixed: Mixed | None = None


class Augment:
    """What is done to the pictures among a model's inputs, each sample by chance.

    auto   moved by up to an eighth of their size, and mirrored
    mix    the same, and every second one mixed with another: for trainings of a hundred epochs
    flip   mirrored only
    shift  moved only: for pictures whose mirror image means something else
    none   as they are
    """

    def __init__(self, graph: Graph, how: str, seed: int) -> None:
        self._seed = seed
        self._flips, self._shifts = how in ("auto", "mix", "flip"), how in ("auto", "mix", "shift")
        self._places = [place for place, t in enumerate(graph.inputs) if _is_picture(t)]
        # One picture stands for the sample; of several, or beside other inputs, none does.
        self._mixes = how == "mix" and len(graph.inputs) == len(self._places) == 1

    @property
    def is_idle(self) -> bool:
        return not self._places or not (self._flips or self._shifts)

    def __call__(self, inputs: Sequence[torch.Tensor | Array], turn: int) -> Changed:
        """The inputs of a batch, changed; the same in the same turn."""
        random = np.random.default_rng((self._seed, turn))
        changed = list(inputs)
        for place in self._places:
            value = changed[place]
            if isinstance(value, torch.Tensor):
                value = changed[place] = self._moved(value, random)
                if self._mixes:
                    changed[place], mixed = _mixed(value, random)
                    return Changed(changed, mixed)
        return Changed(changed)

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


def _mixed(value: torch.Tensor, random: np.random.Generator) -> tuple[torch.Tensor, Mixed]:
    """Some pictures with another laid over them, thinly all over or as a piece of it."""
    count, height, width = value.shape[:3]
    others = torch.from_numpy(random.permutation(count)).to(value.device)
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
    kept = torch.from_numpy(1 - weight.mean((1, 2))).to(value.device)
    laid = torch.from_numpy(weight[..., None]).to(value.device)
    return value + laid * (value[others] - value), Mixed(others, kept)


def _is_picture(tensor: Tensor) -> bool:
    """True for colour pictures with the colours last."""
    found = picture(tensor)
    if found is None or len(tensor.shape) != 4 or tensor.shape[3] != _COLOURS:
        return False
    return min(tensor.shape[1:3]) >= _LEAST_SIZE
