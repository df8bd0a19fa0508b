"""The input rows that a layer's weights multiply, and the moments of these rows."""

from collections.abc import Iterable, Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.types import Array
from litesmith.ir.window import Slide, pads, slid_size

# Sums of this many products of two int8 numbers stay below 2**24, where float32 holds every
# integer: they are exact in any order of addition.
_EXACT_ROWS = 1024

# A variance below this share of the mean square is rounding error.
_CHANCE = 1e-12


def some_places(count: int, most: int) -> NDArray[np.int64]:
    """At most `most` of `count` places, evenly spread, ascending, and always the same ones.

    Steps of the golden ratio never align with the rows of an image, as equal steps may.
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

    A row is in the order of a filter (height, width, C). `fill` is the value of the padding: for
    stored integers, the zero point. `most` limits the places in each image.
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


def covariances(
    pairs: Iterable[tuple[Array, Array]],
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """The covariance of rows x, that of rows y with x, over all pairs (x, y), and the number of
    rows: E[xxᵀ] − E[x]E[x]ᵀ, which weighs the errors of weights that a bias cannot compensate, and
    E[yxᵀ] − E[y]E[x]ᵀ.

    Rows are (R, k) or (channels, R, k). The first is exact for int8, in float64 for others. A value
    that never changes has covariance 0: what the subtraction leaves is rounding error.
    """
    sums: list[Array] = []
    for rows, others in pairs:
        ours, theirs = rows.astype(np.float64), others.astype(np.float64)
        own = rows.sum(axis=-2, dtype=np.float64), _squares(rows)
        both = theirs.sum(axis=-2), ours.sum(axis=-2), np.swapaxes(theirs, -1, -2) @ ours
        found = [np.array(rows.shape[-2]), *own, *both]
        sums = [a + b for a, b in zip(sums, found, strict=True)] if sums else found
    count = np.maximum(sums[0], 1)
    mean, second, *means, product = (pair / count for pair in sums[1:])
    own = second - mean[..., :, None] * mean[..., None, :]
    cross = product - means[0][..., :, None] * means[1][..., None, :]
    varies = _diagonal(own) > _CHANCE * _diagonal(second)
    own = own * (varies[..., :, None] & varies[..., None, :])
    return own, cross * varies[..., None, :], int(count)


def _diagonal(squares: Array) -> Array:
    return np.diagonal(squares, axis1=-2, axis2=-1)


def _squares(rows: Array) -> NDArray[np.float64]:
    """The sum of xxᵀ over rows."""
    wide = np.float32 if rows.dtype == np.int8 else np.float64
    total = np.zeros((*rows.shape[:-2], rows.shape[-1], rows.shape[-1]))
    for start in range(0, rows.shape[-2], _EXACT_ROWS):
        chunk = rows[..., start : start + _EXACT_ROWS, :].astype(wide)
        total += np.swapaxes(chunk, -1, -2) @ chunk
    return total
