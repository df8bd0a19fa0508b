"""Rounds weights to codes so that a layer's outputs, not its weights, come out closest.

The error of a layer's output is (w − q) H (w − q)ᵀ for each output channel; H, the Hessian, is the
covariance of the inputs that the weights multiply. Rounding weights in turn, each so that it
compensates the errors of those rounded before, keeps the error far smaller than rounding each to
its nearest code: Frantar et al., GPTQ, 2022, here in the form of Babai's nearest plane, which needs
no inverse. Codes of few bits are then moved one at a time as long as that helps: Behdin et al.,
QuantEase, 2023.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.numeric.affine import Ends
from litesmith.phrases import phrase

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Maps scales (out, groups) to the nearest ones that the file and its kernel can represent.
Storable = Callable[[Matrix], Matrix]

_BLOCK = 128

# Added to the diagonal, as a share of its mean, so that chance is not taken for covariance: a third
# of this does worse on unseen samples after few samples, three times as much after many.
_DAMPING = 0.03

# The share of covariances off the diagonal that counts as chance: at least this much with many
# rows, at most the second number with few.
_LEAST_SHRUNK, _MOST_SHRUNK = 0.1, 0.5

# How strongly weights are held to their original values, as a share of the mean of the Hessian's
# diagonal: a fifth of this fits chance, ten times as much leaves errors to later layers.
_HOLD = 0.5

# The limit of steps when solving for weights under a mask, and the tolerance.
_MOST_STEPS, _NEAR = 500, 1e-9

# The factors of a scale that are tried.
_PARTS = (0.75, 0.8, 0.85, 0.9, 0.95, 1.05, 1.1, 1.15)

# The rounds over all codes of a row, and how often its scale is refitted.
_SWEEPS, _REFITS = 4, 2


def round_weights(weights: Matrix, hessian: Matrix, scales: Matrix, ends: Ends) -> NDArray[np.int8]:
    """Codes between the ends: weights (out, k), hessian (k, k) or (out, k, k), scales (out, groups)
    of equally many columns each.

    No row's error is larger than with the nearest codes, and a weight of 0 gets the code 0.
    """
    steps = spread(scales, weights.shape[1])
    return _round(weights, _triangle(hessian), steps, ends).astype(np.int8)


def spread(scales: Matrix, columns: int) -> Matrix:
    """The scale of each weight, from those of groups of columns: (out, groups) -> (out, k)."""
    return np.repeat(scales, columns // scales.shape[1], axis=1)


def fit_codes_and_scales(
    weights: Matrix, hessian: Matrix, scales: Matrix, ends: Ends, storable: Storable
) -> tuple[NDArray[np.int8], Matrix]:
    """Codes and scales: for each row the best of several scales near the given one; each code is
    then moved as long as that helps.

    Ten times the work of `round_weights`; at 4 bits the error on unseen samples falls by a tenth.
    """
    triangle, columns = _triangle(hessian), weights.shape[1]
    chosen = storable(scales)
    codes = _round(weights, triangle, spread(chosen, columns), ends)
    best = weighted_error(weights - codes * spread(chosen, columns), hessian)

    def keep_better(tried_codes: Matrix, tried: Matrix) -> None:
        nonlocal codes, chosen, best
        error = weighted_error(weights - tried_codes * spread(tried, columns), hessian)
        better = (error < best)[:, None]
        codes = np.where(better, tried_codes, codes)
        chosen, best = np.where(better, tried, chosen), np.minimum(error, best)

    for part in _PARTS:
        tried = storable(part * scales)
        keep_better(_round(weights, triangle, spread(tried, columns), ends), tried)
    for _ in range(_REFITS):
        steps = spread(chosen, columns)
        keep_better(_descend(weights, codes, steps, triangle.damped, ends), chosen)
        keep_better(codes, storable(_refit_scales(weights, codes, chosen, hessian)))
    return codes.astype(np.int8), chosen


def _refit_scales(weights: Matrix, codes: Matrix, scales: Matrix, hessian: Matrix) -> Matrix:
    """Refits the scales of each row, one after the other, to these codes; a scale stays where no
    better one is positive.
    """
    found, (rows, groups) = scales.copy(), scales.shape
    parts = codes.reshape(rows, groups, -1)
    size = parts.shape[2]
    missed = times(weights - codes * spread(scales, weights.shape[1]), hessian)
    for group in range(groups):
        inside = slice(group * size, (group + 1) * size)
        moved = times(parts[:, group], hessian[..., inside, :])
        power = (moved[:, inside] * parts[:, group]).sum(axis=1)
        shared = (missed[:, inside] * parts[:, group]).sum(axis=1)
        step = np.where(power > 0, shared / np.where(power > 0, power, 1.0), 0.0)
        step = np.where(found[:, group] + step > 0, step, 0.0)
        found[:, group] += step
        missed -= step[:, None] * moved
    return found


def _descend(weights: Matrix, codes: Matrix, steps: Matrix, damped: Matrix, ends: Ends) -> Matrix:
    """Moves codes one at a time, each to the value that compensates best for all others of its
    row.
    """
    codes = codes.copy()
    power = np.broadcast_to(_diagonal(damped), codes.shape) * steps
    movable = (weights != 0) & (power > 0)
    slope = times(weights - codes * steps, damped)
    for _ in range(_SWEEPS):
        before = codes.copy()
        for column in range(codes.shape[1]):
            rows = np.flatnonzero(movable[:, column])
            wanted = codes[rows, column] + np.rint(slope[rows, column] / power[rows, column])
            move = np.clip(wanted, *ends) - codes[rows, column]
            rows, move = rows[move != 0], move[move != 0]
            codes[rows, column] += move
            along = damped[column] if damped.ndim == 2 else damped[rows, column]
            slope[rows] -= (move * steps[rows, column])[:, None] * along
        if np.array_equal(codes, before):
            break
    return codes


def shrink(hessian: Matrix, rows: int) -> Matrix:
    """A Hessian shrunk towards its diagonal, the more so the fewer rows of inputs are behind it:
    with 300 rows for 1,024 inputs, the error on unseen rows falls by 2 dB, with 50 times as many
    rows by 0.1 dB.
    """
    size = hessian.shape[-1]
    part = _LEAST_SHRUNK + _MOST_SHRUNK * size / (size + rows)
    return hessian * (1 - part * (1 - np.eye(size)))


def weighted_error(errors: Matrix, hessian: Matrix) -> Matrix:
    """The output's mean squared error for each row of weight errors (out, k): -> (out,)."""
    return (times(errors, hessian) * errors).sum(axis=1)


def excess(rows: Matrix, hessian: Matrix, wanted: Matrix, most_gain: float = 1.0) -> Matrix:
    """The mean squared error of each row's outputs, without the part that is equal for all weights:
    (out,).

    wanted     the covariance of the wanted outputs with the inputs, (out, k)
    most_gain  the largest factor by which a row may be multiplied or divided to come closest
    """
    power, shared = weighted_error(rows, hessian), (rows * wanted).sum(axis=1)
    alive = power > 1e-30
    best = np.where(alive, shared / np.where(alive, power, 1.0), 1.0)
    gain = np.clip(best, 1 / most_gain, most_gain)
    return gain**2 * power - 2 * gain * shared


def refit(weights: Matrix, hessian: Matrix, cross: Matrix, kept: Mask | None = None) -> Matrix:
    """The weights whose outputs on other inputs are closest to those of these weights on their own
    inputs: (out, k).

    hessian  the covariance of the other inputs, (k, k) or (out, k, k)
    cross    the covariance of the weights' own inputs with the others, of the same shape
    kept     False for weights that must stay 0, (out, k)

    In this way a layer compensates for the errors of the layers before it. Least squares, held to
    the original weights where the inputs do not decide.
    """
    size = hessian.shape[-1]
    mean = np.asarray(_diagonal(hessian).mean(axis=1)).reshape(*hessian.shape[:-2], 1, 1)
    held = (_HOLD * mean + 1e-30) * np.eye(size)
    wanted = times(weights, cross + held)
    if kept is not None:
        unit = _HOLD * mean + 1e-30
        return _solve(wanted / unit[..., 0], (hessian + held) / unit, kept)
    if hessian.ndim == 2:
        return np.asarray(np.linalg.solve(hessian + held, wanted.T).T, np.float64)
    return np.asarray(np.linalg.solve(hessian + held, wanted[..., None])[..., 0], np.float64)


def _solve(wanted: Matrix, equations: Matrix, kept: Mask) -> Matrix:
    """Solves for rows that give the wanted ones; entries that are not kept are 0. equations (k, k)
    or (out, k, k), positive definite. By conjugate gradients, all rows at once.
    """
    rows = np.zeros_like(wanted)
    missed = np.where(kept, wanted, 0.0)
    way, energy = missed, np.square(missed).sum(axis=1)
    enough = _NEAR**2 * energy
    for _ in range(_MOST_STEPS):
        if (energy <= enough).all():
            break
        bent = np.where(kept, times(way, equations), 0.0)
        length = _ratio(energy, (way * bent).sum(axis=1))[:, None]
        rows, missed = rows + length * way, missed - length * bent
        before, energy = energy, np.square(missed).sum(axis=1)
        way = missed + _ratio(energy, before)[:, None] * way
    return rows


def _ratio(above: Matrix, below: Matrix) -> Matrix:
    """The ratio; 0 where the divisor is 0."""
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.0)


def search_scales(
    weights: Matrix, diagonal: Matrix, ends: Ends, storable: Storable, groups: int = 1
) -> Matrix:
    """The best scale for each group of a row, with every weight's error weighted by the diagonal:
    -> (out, groups).

    weights (out, k), diagonal of the Hessian (k,) or (out, k).
    """
    parts = weights.reshape(len(weights), groups, -1)
    peaks = np.abs(parts).max(axis=2, initial=0)
    peaks = np.where(peaks > 0, peaks, peaks.max(initial=0) or 1.0)
    counted = diagonal + 1e-12 * diagonal.max(initial=0) + 1e-30
    counted = np.broadcast_to(counted, weights.shape).reshape(parts.shape)
    best = np.full(peaks.shape, np.inf)
    most = ends[1]
    chosen = storable(peaks / most)
    for part in np.linspace(*((0.35, 1, 40) if most < 127 else (0.7, 1, 13))):
        scales = storable(part * peaks / most)
        steps = scales[:, :, None]
        errors = (_clip(parts / steps, ends) * steps - parts) ** 2
        error = (errors * counted).sum(axis=2)
        chosen = np.where(error <= best, scales, chosen)
        best = np.minimum(error, best)
    return chosen


def _clip(in_codes: Matrix, ends: Ends) -> Matrix:
    return np.clip(np.rint(in_codes), *ends)


def _diagonal(hessian: Matrix) -> Matrix:
    """The diagonals of one Hessian or many: -> (1 or out, k)."""
    return np.atleast_2d(np.diagonal(hessian, axis1=-2, axis2=-1))


def times(rows: Matrix, hessian: Matrix) -> Matrix:
    """Each row times the Hessian, or times its own Hessian."""
    return rows @ hessian if hessian.ndim == 2 else (rows[:, None, :] @ hessian)[:, 0]


class _Triangle(NamedTuple):
    """A Hessian, its damped form, the order of its columns, and the lower triangular L with L Lᵀ =
    H in that order.
    """

    hessian: Matrix
    damped: Matrix
    order: NDArray[np.int64]
    factor: Matrix


def _triangle(hessian: Matrix) -> _Triangle:
    """Factorizes a Hessian with its columns in ascending order of the diagonal, which is raised
    until the factor exists.
    """
    if not np.isfinite(hessian).all():
        raise ValueError(phrase("a moment of the inputs is infinite or NaN"))
    peak = np.abs(hessian).max(axis=(-2, -1), keepdims=True, initial=0)
    # scaled so that no intermediate number leaves float64
    hessian = hessian / np.where(peak > 0, peak, 1.0)
    hessian = (hessian + np.swapaxes(hessian, -1, -2)) / 2
    order = np.argsort(_diagonal(hessian).mean(axis=0), kind="stable")
    ordered = hessian[..., order[:, None], order]
    mean = np.asarray(_diagonal(hessian).mean(axis=1)).reshape(*hessian.shape[:-2], 1, 1)
    unit = np.where(mean > 0, mean, 1.0) * np.eye(len(order))
    damping = _DAMPING
    while True:
        try:
            factor = np.linalg.cholesky(ordered + damping * unit)
            raised = hessian + damping * unit
            return _Triangle(hessian, raised, order, np.asarray(factor, np.float64))
        except np.linalg.LinAlgError:
            damping *= 10


def _round(weights: Matrix, triangle: _Triangle, steps: Matrix, ends: Ends) -> Matrix:
    """Rounds weights to codes, given the step of each."""
    if not np.isfinite(weights).all():
        raise ValueError(phrase("a weight is infinite or NaN"))
    hessian, _, order, factor = triangle
    nearest = _clip(weights / steps, ends)
    codes = np.empty_like(nearest)
    codes[:, order] = _planes(weights[:, order], steps[:, order], factor, ends)
    error, least = (weighted_error(weights - one * steps, hessian) for one in (codes, nearest))
    return np.where((error > least)[:, None], nearest, codes)


def _planes(weights: Matrix, steps: Matrix, factor: Matrix, ends: Ends) -> Matrix:
    """Codes from the last column to the first, each compensating those after it."""
    size = weights.shape[1]
    codes, errors = np.empty_like(weights), np.zeros_like(weights)
    for end in range(size, 0, -_BLOCK):
        start = max(end - _BLOCK, 0)
        carried = times(errors[:, end:], factor[..., end:, start:end])
        for column in range(end - 1, start - 1, -1):
            place, own = column - start, weights[:, column]
            wanted = own + carried[:, place] / factor[..., column, column]
            code = _clip(wanted / steps[:, column], ends)
            codes[:, column] = np.where(own == 0, 0.0, code)
            errors[:, column] = own - codes[:, column] * steps[:, column]
            carried[:, :place] += errors[:, column, None] * factor[..., column, start:column]
    return codes
