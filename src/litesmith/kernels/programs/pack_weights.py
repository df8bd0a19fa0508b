"""Weights in the order in which tiles read them.

Dense weights are cut where sums of 32 bits could overflow; of sparse weights, the blocks of four
that are not zero are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.types import Array
from litesmith.kernels.programs.sparse_parts import BLOCK

# The sum of magnitudes of weights that no int16 inputs can make overflow: 65,535 × 32,768 < 2³¹.
MOST = 65_535


@dataclass(frozen=True, eq=False)
class Packed:
    """Weights of a product: panels of channels, each (pairs, vectors, 16 channels, 2)."""

    weights: Array  # int16, or int8
    panels: int
    panel_bytes: int
    cuts: NDArray[np.int64]  # (panels, 1 + most chunks): how many chunks, and the pairs of each


def pack_dense(weights: NDArray[np.int8], vectors: int, *, narrow: bool) -> Packed:
    """Weights (channels, inputs) for tiles of that many vectors; int8 if narrow, else int16."""
    channels, inputs = weights.shape
    pairs, wide = -(-inputs // 2), -(-channels // 16)
    padded = np.zeros((wide * 16, pairs * 2), np.int16)
    padded[:channels, :inputs] = weights
    by_vector = padded.reshape(wide, 16, pairs, 2)
    panels = [by_vector[first : first + vectors] for first in range(0, wide, vectors)]
    flat = [panel.transpose(2, 0, 1, 3).ravel() for panel in panels]
    kind = np.int8 if narrow else np.int16
    cuts = [_cuts(np.abs(panel).sum(axis=-1, dtype=np.int64)) for panel in panels]
    most = max(len(cut) for cut in cuts)
    table = np.zeros((len(panels), 1 + most), np.int64)
    for place, cut in enumerate(cuts):
        table[place, : 1 + len(cut)] = [len(cut), *cut]
    size = vectors * pairs * 32 * np.dtype(kind).itemsize
    return Packed(np.concatenate(flat).astype(kind), len(panels), size, table)


def _cuts(magnitudes: NDArray[np.int64]) -> list[int]:
    """The number of pairs in each chunk: (vectors, 16, pairs) -> counts whose sums cannot
    overflow."""
    running = np.cumsum(magnitudes.reshape(-1, magnitudes.shape[-1]), axis=1)
    cuts: list[int] = []
    start = 0
    while start < running.shape[1]:
        before = running[:, start - 1] if start else 0
        sums = running[:, start:] - np.reshape(before, (-1, 1))
        fits = np.asarray(sums.max(axis=0) <= MOST)
        count = len(fits) if fits.all() else int(np.argmin(fits))
        cuts.append(count)
        start += count
    return cuts


# Lanes of the two sums that the unpack instructions make of 32 channels.
_LOW = np.array([q + place for q in range(0, 32, 8) for place in range(4)])
DEPTHWISE_ORDER = np.concatenate([_LOW, _LOW + 4])


def depthwise_starts(channels: int) -> list[int]:
    """The beginnings of blocks of 32 channels; the last one may overlap the one before."""
    whole = list(range(0, channels - 31, 32))
    return whole if channels % 32 == 0 or channels < 32 else [*whole, channels - 32]


def pack_depthwise(weights: NDArray[np.int8]) -> NDArray[np.int16]:
    """Weights (taps, 32 channels) of a block as (pairs of taps, 32 lanes, 2)."""
    taps = weights.shape[0]
    padded = np.zeros((-(-taps // 2) * 2, 32), np.int16)
    padded[:taps] = weights
    pairs = padded.reshape(-1, 2, 32)[:, :, DEPTHWISE_ORDER]
    return np.ascontiguousarray(pairs.transpose(0, 2, 1))


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


def pack_blocks(weights: Array, input_bytes: int, group: int = 1) -> Blocks:
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
    """Rounds in which each of 16 channels has one block; the rounds of a group of channels are
    adjacent.

    offsets  bytes from the first input to the window of blocks in a round
    places   (rounds, 16): the positions of the blocks in the window
    weights  (rounds, 16, 4)
    begins   the first round of each group, and the end of the last group
    """

    offsets: NDArray[np.uint32]
    places: NDArray[np.uint8]
    weights: NDArray[np.int8]
    begins: NDArray[np.int64]


def pack_rounds(weights: NDArray[np.int8]) -> Rounds:
    """Of weights (channels, inputs); the last group of channels overlaps the one before.

    A window begins at the first block that any channel has left. Each channel takes the first one
    that it has left, if it is in the window, and otherwise a block of zeros.
    """
    channels, inputs = map(int, weights.shape)
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
    """The blocks of each channel that are not zero, by place, followed by a place past the end."""
    is_kept: NDArray[np.bool_] = np.any(blocks, axis=2)
    end = int(blocks.shape[1])
    places = np.sort(np.where(is_kept, np.arange(end), end), axis=1)
    most = int(is_kept.sum(axis=1).max(initial=0))
    return np.concatenate([places[:, :most], np.full((len(places), 1), end)], axis=1)
