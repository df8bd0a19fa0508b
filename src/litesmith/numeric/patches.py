"""What the weights of a layer are multiplied with, row by row, and the moments of these rows."""

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.types import Array
from litesmith.ir.window import Slide, pads, slid_size

# Sums of so many products of two int8 numbers are below 2**24, where float32 holds every integer:
# they are exact, whatever the order in which a matrix product adds.
_EXACT_ROWS = 1024


def some_places(count: int, most: int) -> NDArray[np.int64]:
    """At most so many of a number of places, spread evenly, ascending; always the same ones.

    Steps of the golden ratio do not fall in with the rows of an image, as equal steps may.
    """
    if count <= most:
        return np.arange(count)
    step = round(count * 0.6180339887)
    while gcd(step, count) != 1:
        step += 1
    return np.sort(np.arange(most) * step % count)


def patches(
    x: Array, moves: Sequence[Slide], padding: str, *, fill: float = 0, most: int | None = None
) -> Array:
    """The windows a convolution reads: (N, H, W, C) -> (N × places, height × width × C).

    A row is in the order of a filter (height, width, C). `fill` is what the padding holds: in
    stored numbers, the zero point. `most` limits the places in each image.
    """
    sizes = x.shape[1:3]
    high, wide = (slid_size(padding, n, move) for n, move in zip(sizes, moves, strict=True))
    places = some_places(high * wide, high * wide if most is None else most)
    rows, columns = (
        place[:, None] * move.stride + np.arange(move.window) * move.dilation - before
        for place, move, (before, _) in zip(
            np.divmod(places, wide),
            moves,
            (pads(padding, n, move) for n, move in zip(sizes, moves, strict=True)),
            strict=True,
        )
    )
    inside = [(line >= 0) & (line < n) for line, n in zip((rows, columns), sizes, strict=True)]
    rows, columns = (
        np.clip(line, 0, n - 1) for line, n in zip((rows, columns), sizes, strict=True)
    )
    windows = x[:, rows[:, :, None], columns[:, None, :]]
    windows[:, ~(inside[0][:, :, None] & inside[1][:, None, :])] = fill
    return windows.reshape(x.shape[0] * places.size, -1)


def depthwise_patches(
    x: Array, moves: Sequence[Slide], padding: str, *, fill: float = 0, most: int | None = None
) -> Array:
    """The windows of each channel: (N, H, W, C) -> (C, N × places, height × width)."""
    rows = patches(x, moves, padding, fill=fill, most=most)
    channels = x.shape[-1]
    return np.ascontiguousarray(rows.reshape(len(rows), -1, channels).transpose(2, 0, 1))


def mean_window(x: Array, moves: Sequence[Slide], padding: str) -> NDArray[np.float64]:
    """The mean of all windows a convolution reads: (N, H, W, C) -> (height, width, C)."""
    sizes = x.shape[1:3]
    amounts = [pads(padding, size, move) for size, move in zip(sizes, moves, strict=True)]
    padded = np.pad(x.astype(np.float64), [(0, 0), *amounts, (0, 0)])
    counts = [slid_size(padding, size, move) for size, move in zip(sizes, moves, strict=True)]
    mean = np.empty((moves[0].window, moves[1].window, x.shape[-1]))
    for row, column in np.ndindex(mean.shape[:2]):
        rows, columns = (
            slice(place * move.dilation, place * move.dilation + count * move.stride, move.stride)
            for place, move, count in zip((row, column), moves, counts, strict=True)
        )
        mean[row, column] = padded[:, rows, columns][:, : counts[0], : counts[1]].mean((0, 1, 2))
    return mean


class Moments(NamedTuple):
    """What is summed over rows of k numbers: how many, their sum and that of their products."""

    rows: int
    total: NDArray[np.float64]  # (k,) or (channels, k)
    second: NDArray[np.float64]  # (k, k) or (channels, k, k)


def moments(rows: Array) -> Moments:
    """The moments of rows (R, k) or (channels, R, k); exact for int8, in float64 for others."""
    wide = np.float32 if rows.dtype == np.int8 else np.float64
    count = rows.shape[-2]
    second = np.zeros((*rows.shape[:-2], rows.shape[-1], rows.shape[-1]))
    for start in range(0, count, _EXACT_ROWS):
        chunk = rows[..., start : start + _EXACT_ROWS, :].astype(wide)
        second += np.swapaxes(chunk, -1, -2) @ chunk
    return Moments(count, rows.sum(axis=-2, dtype=np.float64), second)


class Cross(NamedTuple):
    """What is summed over pairs of rows: how many, the sums of both, and that of their products."""

    rows: int
    total: NDArray[np.float64]
    other: NDArray[np.float64]
    product: NDArray[np.float64]  # (k, k) or (channels, k, k): [i, j] of row i and other row j


def cross_moments(rows: Array, others: Array) -> Cross:
    """The moments of pairs of rows, each (R, k) or (channels, R, k)."""
    ours, theirs = rows.astype(np.float64), others.astype(np.float64)
    product = np.swapaxes(ours, -1, -2) @ theirs
    return Cross(rows.shape[-2], ours.sum(axis=-2), theirs.sum(axis=-2), product)


def paired_added(a: Cross, b: Cross) -> Cross:
    """The moments of the pairs of both."""
    return Cross(a.rows + b.rows, a.total + b.total, a.other + b.other, a.product + b.product)


def cross_covariance(sums: Cross) -> NDArray[np.float64]:
    """E[xyᵀ] − E[x]E[y]ᵀ."""
    count = max(sums.rows, 1)
    means = sums.total / count, sums.other / count
    return sums.product / count - means[0][..., :, None] * means[1][..., None, :]


def added(a: Moments, b: Moments) -> Moments:
    """The moments of the rows of both."""
    return Moments(a.rows + b.rows, a.total + b.total, a.second + b.second)


def covariance(sums: Moments) -> NDArray[np.float64]:
    """E[xxᵀ] − E[x]E[x]ᵀ: the part of an error in weights that a bias cannot make up for."""
    count = max(sums.rows, 1)
    mean = sums.total / count
    return sums.second / count - mean[..., :, None] * mean[..., None, :]
