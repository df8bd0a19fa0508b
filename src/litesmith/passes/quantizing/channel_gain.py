"""The gain of each channel: rounding makes a layer's outputs vary a little less, or more."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.types import Quant, Tensor
from litesmith.numeric.affine import rows_of
from litesmith.passes.core.layers import real_values
from litesmith.passes.quantizing.layer_rows import affine_of, rows_of_layer, why_no_rows
from litesmith.passes.quantizing.paired_walk import Visit

# Rows of inputs that gains are taken from, and that are multiplied at once.
_ROWS, _GROUP = 4096, 512

# A gain beyond this is no rounding error.
MOST_GAIN = 1.1

Float64s = NDArray[np.float64]


def with_gain(visit: Visit, weight: Tensor) -> Tensor:
    """The weight with scales under which each channel follows the float model's most nearly.

    As it is where it has no scale for each channel.
    """
    quant = weight.quant
    if quant is None or not quant.per_channel or why_no_rows(visit.layer):
        return weight
    scales = quant.scale * _gains(visit, weight)
    return replace(weight, quant=Quant.of(scales.astype(np.float32), 0, quant.axis))


def _gains(visit: Visit, weight: Tensor) -> Float64s:
    """For each channel the factor that brings its outputs nearest to the float model's."""
    scale, zero = affine_of(visit)
    values, wanted = visit.pairs
    constants = weight, visit.reference.weight
    weights = [rows_of(real_values(constant), visit.layer.axis) for constant in constants]
    most = -(-_ROWS // len(values))
    group = max(1, _GROUP // most)
    sums = np.zeros((5, visit.layer.channels))
    for start in range(0, len(values), group):
        rows = rows_of_layer(visit.layer, values[start : start + group], zero, most)
        theirs = rows_of_layer(visit.reference, wanted[start : start + group], 0, most)
        x, y = _times((rows - float(zero)) * scale, weights[0]), _times(theirs, weights[1])
        sums += [np.full(x.shape[1], len(x)), x.sum(0), y.sum(0), (x * x).sum(0), (x * y).sum(0)]
    count, x, y, xx, xy = sums
    spread = xx / count - (x / count) ** 2
    shared = xy / count - x * y / count**2
    alive = spread > 1e-9 * (xx / count) + 1e-30
    gains = np.where(alive, shared / np.where(alive, spread, 1.0), 1.0)
    return np.clip(gains, 1 / MOST_GAIN, MOST_GAIN)


def _times(rows: NDArray[np.floating], weights: Float64s) -> Float64s:
    """Outputs (R, channels) of rows (R, k), or of each channel's own rows (channels, R, k)."""
    if rows.ndim == 2:
        return rows.astype(np.float64) @ weights.T
    return np.matmul(rows.astype(np.float64), weights[:, :, None])[..., 0].T
