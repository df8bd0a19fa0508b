"""Weights in the order in which tiles read them, cut where sums of 32 bits could overflow."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.types import Array

# The sum of magnitudes of weights that no int16 inputs can make overflow: 65,535 × 32,768 < 2³¹.
MOST = 65_535


class Packed(NamedTuple):
    """Weights of a product: panels of channels, each (pairs, vectors, 16 channels, 2)."""

    weights: Array  # int16, or int8
    panels: int
    panel_bytes: int
    cuts: NDArray[np.int64]  # (panels, 1 + most chunks): how many chunks, and the pairs of each


def packed(weights: NDArray[np.int8], vectors: int, *, narrow: bool) -> Packed:
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
    """How many pairs each chunk has: (vectors, 16, pairs) -> counts whose sums cannot overflow."""
    running = np.cumsum(magnitudes.reshape(-1, magnitudes.shape[-1]), axis=1)
    cuts, start = [], 0
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
    """Where blocks of 32 channels begin; the last one overlaps the one before if it must."""
    whole = list(range(0, channels - 31, 32))
    return whole if channels % 32 == 0 or channels < 32 else [*whole, channels - 32]


def depthwise_packed(weights: NDArray[np.int8]) -> NDArray[np.int16]:
    """Weights (taps, 32 channels) of a block as (pairs of taps, 32 lanes, 2)."""
    taps = weights.shape[0]
    padded = np.zeros((-(-taps // 2) * 2, 32), np.int16)
    padded[:taps] = weights
    pairs = padded.reshape(-1, 2, 32)[:, :, DEPTHWISE_ORDER]
    return np.ascontiguousarray(pairs.transpose(0, 2, 1))
