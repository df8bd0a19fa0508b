"""`correct`: the mean of every channel, and its gain, back to where the float model has them."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.model_text import op_name
from litesmith.ir.types import Model, Quant, Tensor
from litesmith.numeric.affine import rows_of
from litesmith.passes.core.layers import layers_of, real_values
from litesmith.passes.core.step import Change, Context
from litesmith.passes.quantizing.paired_walk import (
    Float64s,
    Visit,
    paired_rows,
    walk,
    why_no_rows,
)
from litesmith.phrases import phrase

# Rows of inputs that gains are taken from, and that are multiplied at once.
_ROWS, _GROUP = 4096, 512

# A gain beyond this is no rounding error.
MOST_GAIN = 1.1

# Samples that gains are taken from: beyond, they change by under a thousandth.
_SAMPLES = 64


@dataclass(frozen=True)
class Correct:
    """Put back what rounding has moved: into each bias the mean of its channel, and into the scale
    of each channel's weights its gain.

    Layer by layer over the data, each on what the corrected layers before it give; before the
    activation. Goes after `quantize`, or on a quantized file beside its float model.

    gain  also correct the gain, where a weight has a scale for each channel
    """

    gain: bool = True

    def apply(self, model: Model, context: Context) -> Change:
        users = Counter(layer.weight for layer in layers_of(model.main).values())

        def edit(visit: Visit) -> Tensor:
            weight = visit.layer.weight
            return with_gain(visit, weight) if self.gain and users[weight] == 1 else weight

        walked = walk(model, context, "correct", edit, paired=_SAMPLES if self.gain else 0)
        touched = tuple(phrase("corrected {op_name}", op_name(layer.op)) for layer in walked.layers)
        return Change(walked.model, touched, tuple(walked.skipped))


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
    scale, zero = visit.affine
    constants = weight, visit.reference.weight
    weights = [rows_of(real_values(constant), visit.layer.axis) for constant in constants]
    most = -(-_ROWS // len(visit.places))
    group = max(1, _GROUP // most)
    sums = np.zeros((5, visit.layer.channels))
    layers = visit.layer, visit.reference
    for rows, theirs in paired_rows(layers, visit.pairs, zero=zero, most=most, group=group):
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
