"""Weights of sparse layers: their blocks of four that are not zero, in the order of the tiles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.types import Array
from litesmith.kernels.programs.sparse_parts import BLOCK

LANES = 16
MOST_VECTORS = 8  # of 16 rows that a tile of int8 takes at once
WINDOW = 32  # blocks side by side among which 16 channels choose in one round


class Blocks(NamedTuple):
    """The blocks of each channel, one channel after the other.

    offsets  bytes from the first input to a block's
    weights  (blocks, 4)
    begins   the first block of each channel, and where the last channel ends
    """

    offsets: NDArray[np.uint32]
    weights: Array
    begins: NDArray[np.int64]


def packed_blocks(weights: Array, input_bytes: int, group: int = 1) -> Blocks:
    """Of weights (channels, inputs). A channel has a multiple of `group` blocks, and at least one:
    blocks of zeros fill up."""
    blocks = weights.reshape(len(weights), -1, BLOCK)
    found = [np.flatnonzero(row) for row in np.any(blocks, axis=2)]
    counts = [max(-(-len(places) // group), 1) * group for places in found]
    begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    offsets = np.zeros(begins[-1], np.uint32)
    packed = np.zeros((begins[-1], BLOCK), weights.dtype)
    for channel, places in enumerate(found):
        span = slice(begins[channel], begins[channel] + len(places))
        offsets[span] = places * (BLOCK * input_bytes)
        packed[span] = blocks[channel, places]
    return Blocks(offsets, packed, begins)


class Rounds(NamedTuple):
    """Rounds in which each of 16 channels has one block; those of a group of channels together.

    offsets  bytes from the first input to the window of blocks that a round looks at
    places   (rounds, 16): of the blocks in the window
    weights  (rounds, 16, 4)
    begins   the first round of each group, and where the last group ends
    """

    offsets: NDArray[np.uint32]
    places: NDArray[np.uint8]
    weights: NDArray[np.int8]
    begins: NDArray[np.int64]


def packed_rounds(weights: NDArray[np.int8]) -> Rounds:
    """Of weights (channels, inputs); the last group of channels overlaps the one before.

    A window begins at the first block that any channel has left. Each channel takes the first one
    that it has left, if it is in the window, and otherwise a block of zeros.
    """
    channels, inputs = weights.shape
    end = inputs // BLOCK
    firsts = np.minimum(np.arange(0, channels, LANES), channels - LANES)
    order = firsts[:, None] + np.arange(LANES)
    blocks = weights.reshape(channels, end, BLOCK)
    queues, taken = _queues(blocks), np.zeros(order.shape, np.int64)
    rounds: list[tuple[Array, Array, Array, Array]] = []
    left = np.arange(len(order))  # groups; each has one round at least
    while len(left):
        places = queues[order, taken]
        window = np.minimum(places.min(axis=1), end - WINDOW)
        is_taken = (places < end) & (places < window[:, None] + WINDOW)
        within = np.where(is_taken, places - window[:, None], 0)
        chosen = blocks[order, np.minimum(places, end - 1)] * is_taken[..., None]
        rounds.append((left, window[left], within[left], chosen[left]))
        taken += is_taken
        left = np.flatnonzero(queues[order, taken].min(axis=1) < end)
    groups, windows, within, chosen = (np.concatenate(part) for part in zip(*rounds, strict=True))
    by_group = np.argsort(groups, kind="stable")
    begins = np.concatenate([[0], np.cumsum(np.bincount(groups))]).astype(np.int64)
    offsets = (windows[by_group] * BLOCK).astype(np.uint32)
    return Rounds(offsets, within[by_group].astype(np.uint8), chosen[by_group], begins)


def _queues(blocks: Array) -> NDArray[np.int64]:
    """The blocks of each channel that are not zero, by place, and what is past the end behind."""
    is_kept, end = blocks.any(axis=2), blocks.shape[1]
    places = np.sort(np.where(is_kept, np.arange(end), end), axis=1)
    most = int(is_kept.sum(axis=1).max(initial=0))
    return np.concatenate([places[:, :most], np.full((len(places), 1), end)], axis=1)
