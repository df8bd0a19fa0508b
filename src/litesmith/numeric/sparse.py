"""Masks of weights: which weights to keep, and the cost of losing the others.

Weights are rows here: (channels, inputs of a channel). They are removed in units: single weights,
or blocks of four neighbouring inputs of one channel. In 2:4, the two least of each four can be
removed.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.types import Array
from litesmith.phrases import phrase

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# The weights in a unit, and the number of which a channel's inputs must be a multiple.
UNITS = {"1x1": 1, "1x4": 4, "2:4": 1}
MULTIPLES = {"1x1": 1, "1x4": 4, "2:4": 4}

# An input that is always zero gets this much, so that its weights still have a ranking.
_LEAST_RMS = 1e-6


def importance(weights: Array, rms: Array | None = None) -> Floats:
    """The size of each weight's contribution to the output: |w|, times the size of its input if
    known.

    `rms` broadcasts to the shape of the weights.
    """
    sizes = np.abs(weights.astype(np.float64))
    if rms is None:
        return sizes
    floor = _LEAST_RMS * max(float(rms.max(initial=0)), np.finfo(np.float32).tiny)
    return sizes * np.maximum(rms.astype(np.float64), floor)


def unit_energies(rows: Array, block: str) -> Floats:
    """The energy of each unit, in order: (channels, inputs) of importances -> (units,)."""
    return np.square(rows.astype(np.float64)).reshape(-1, UNITS[block]).sum(axis=1)


def keep_mask(rows: Array, block: str, removed: int) -> Mask:
    """True for the weights that stay when exactly the `removed` least units go; ties go from the
    left.

    In 2:4 at most every second weight can go.
    """
    energies = unit_energies(rows, block)
    if block == "2:4":
        order = np.argsort(energies.reshape(-1, 4), axis=1, kind="stable")
        np.put_along_axis(energies.reshape(-1, 4), order[:, 2:], np.inf, axis=1)
    mask = np.ones(energies.size, bool)
    mask[_least(energies, removed)] = False
    return np.repeat(mask, UNITS[block]).reshape(rows.shape)


def _least(numbers: Floats, count: int) -> NDArray[np.int64]:
    """The places of the `count` least numbers."""
    if count <= 0:
        return np.zeros(0, np.int64)
    limit = np.partition(numbers, count - 1)[count - 1]
    below = np.flatnonzero(numbers < limit)
    equal = np.flatnonzero(numbers == limit)
    return np.concatenate([below, equal[: count - below.size]])


class Curve(NamedTuple):
    """The error that a layer adds, by the number of its removed units; both ascend from 0."""

    removed: NDArray[np.int64]
    error: Floats


# The number of points of a curve, besides the measured ones.
_POINTS = 48


def error_curve(rows: Array, block: str, most: float = 1.0) -> Curve:
    """The share of a layer's energy lost with each number of units, up to a share of all units."""
    energies = np.sort(unit_energies(rows, block))
    total = energies.sum()
    gone = np.concatenate([[0.0], np.cumsum(energies)]) / (total if total > 0 else 1.0)
    free = int(np.count_nonzero(energies == 0))
    last = max(int(most * energies.size), free)
    points = np.rint(np.linspace(0, last, _POINTS)).astype(np.int64)
    removed = np.union1d(points, [free])
    return Curve(removed, gone[removed])


def fit_curve(curve: Curve, seen: Sequence[tuple[int, float]]) -> Curve:
    """A curve scaled to errors that were measured at some points; between them it keeps its
    shape.
    """
    places: list[int] = []
    factors: list[float] = []
    for removed, error in sorted(seen):
        expected = float(np.interp(removed, curve.removed, curve.error))
        if expected > 0:
            places.append(removed)
            factors.append(error / expected)
    if not places:
        return curve
    error = curve.error * np.interp(curve.removed, places, factors)
    return Curve(curve.removed, np.maximum.accumulate(error))


def allocate(curves: Sequence[Curve], total: int) -> list[int]:
    """The number of units to remove from each layer, `total` in all, for the least sum of errors.

    Each curve counts as its lower convex hull, whose pieces are taken from the cheapest on.
    """
    pieces: list[tuple[float, int, int, int]] = []
    for number, curve in enumerate(curves):
        hull = _hull(curve)
        for at, (start, end) in enumerate(pairwise(hull)):
            width = int(curve.removed[end] - curve.removed[start])
            slope = float(curve.error[end] - curve.error[start]) / width
            pieces.append((slope, number, at, width))
    counts = [0] * len(curves)
    for _, number, _, width in sorted(pieces):
        taken = min(width, total - sum(counts))
        counts[number] += taken
    return counts


def _hull(curve: Curve) -> list[int]:
    """The corners of the lower convex hull of a curve."""
    corners: list[int] = []
    x, y = curve.removed.astype(np.float64), curve.error
    for place in range(x.size):
        while len(corners) > 1:
            a, b = corners[-2:]
            if (y[b] - y[a]) * (x[place] - x[a]) <= (y[place] - y[a]) * (x[b] - x[a]):
                break
            corners.pop()
        corners.append(place)
    return corners


# How strongly weights are held to their original values, as a share of the mean of the Hessian's
# diagonal.
_HOLD = 0.05


def refit_under_mask(weights: Floats, mask: Mask, hessian: Floats, cross: Floats) -> Floats:
    """The weights under a mask whose outputs are closest to those of all weights: (out, k) both.

    hessian  the covariance of the inputs under the mask, (k, k)
    cross    the covariance of the full weights' inputs with these, (k, k)

    Least squares for each output, held to the original weights where the inputs do not decide.
    """
    held = (_HOLD * float(np.diagonal(hessian).mean()) + 1e-30) * np.eye(len(hessian))
    wanted = weights @ (cross + held)
    equations = hessian + held
    result = np.zeros_like(weights)
    for row, kept in enumerate(mask):
        places = np.flatnonzero(kept)
        if places.size:
            inner = equations[places[:, None], places]
            result[row, places] = np.linalg.solve(inner, wanted[row, places])
    if not np.isfinite(result).all():
        raise ValueError(phrase("a moment of the inputs is infinite or NaN"))
    return result
