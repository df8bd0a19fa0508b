"""`correct`: the mean of every channel, and its gain, back to where the float model has them."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from litesmith.errors import CannotApply
from litesmith.ir.model_text import op_name
from litesmith.ir.types import Model, Quant, Tensor
from litesmith.numeric.affine import rows_of
from litesmith.numeric.one_core import on_one_core
from litesmith.passes.core.layers import keep_ratio, layers_of, real_values
from litesmith.passes.core.step import Change, Context
from litesmith.passes.quantizing.layer_rows import products, rows_of_layer
from litesmith.passes.quantizing.paired_walk import ROWS, Float64s, Visit, walk
from litesmith.phrases import phrase

# The number of samples whose rows are multiplied at once.
_GROUP = 8

# A gain beyond this is no rounding error.
MOST_GAIN = 1.1

# The usual and the least number of samples, and the memory that limits it. Both models see the same
# samples, so that few suffice.
_SAMPLES, _FEWEST, _BYTES = 64, 16, 128_000_000

# This many layers that share a weight are steps of a recurrence. A channel's bias takes this many
# bytes with its scale and zero point; together, the biases may take this share of the weight.
_STEPS, _BIAS_BYTES, _MOST_BIASES = 4, 16, 0.25


@dataclass(frozen=True)
class Correct:
    """Restore what rounding has shifted: the mean of each channel through its bias, and the gain
    through the scale of its weights.

    Goes layer by layer over the data, each layer on the outputs of the corrected layers before it,
    and before the activation. Goes after `quantize`, or on a quantized file beside its float model.

    gain  also correct the gain, where a weight has a scale for each channel
    """

    gain: bool = True

    def apply(self, model: Model, context: Context) -> Change:
        users = Counter(layer.weight for layer in layers_of(model.main).values())

        def edit(visit: Visit) -> Tensor:
            weight = visit.layer.weight
            biases = users[weight] * visit.layer.channels * _BIAS_BYTES
            if users[weight] >= _STEPS and biases > _MOST_BIASES * weight.nbytes:
                raise CannotApply("steps share its weight, and a bias for each would outgrow it")
            return with_gain(visit, weight) if self.gain and users[weight] == 1 else weight

        with on_one_core():
            walked = walk(model, context, "correct", edit, samples=_fitting(model))
        touched = tuple(phrase("corrected {op_name}", op_name(layer.op)) for layer in walked.layers)
        return Change(walked.model, touched, tuple(walked.skipped))


def _fitting(model: Model) -> int:
    """The number of samples for which memory holds the values at any place."""
    largest = max((t.nbytes for t in model.main.tensors if not t.is_const), default=1)
    return min(_SAMPLES, max(_FEWEST, _BYTES // max(1, largest)))


def with_gain(visit: Visit, weight: Tensor) -> Tensor:
    """The weight with scales under which each channel follows the float model's most closely.

    The weight stays as it is where it has no scale for each channel.
    """
    quant = weight.quant
    if quant is None or not quant.per_channel or visit.given.outputs is None:
        return weight
    scales = quant.scale * _gains(visit, weight)
    data, output = visit.layer.data, visit.layer.op.outputs[0].quant
    if data.quant is not None and output is not None:
        scales = keep_ratio(scales, data.dtype, visit.affine[0], float(output.scale[0]))
    return replace(weight, quant=Quant.of(scales.astype(np.float32), 0, quant.axis))


def _gains(visit: Visit, weight: Tensor) -> Float64s:
    """For each channel the factor that brings its outputs nearest to the float model's."""
    scale, zero = visit.affine
    weights = scale * rows_of(real_values(weight), visit.layer.axis)
    wanted = visit.given.outputs
    assert wanted is not None
    most = -(-ROWS // len(visit.values))
    sums, done = np.zeros((5, visit.layer.channels)), 0
    for start in range(0, len(visit.values), _GROUP):
        read = rows_of_layer(visit.layer, visit.values[start : start + _GROUP], zero, most)
        x = products(read - float(zero), weights)
        y = wanted[done : done + len(x)].astype(np.float64)
        sums += [np.full(x.shape[1], len(x)), x.sum(0), y.sum(0), (x * x).sum(0), (x * y).sum(0)]
        done += len(x)
    count, x, y, xx, xy = sums
    spread = xx / count - (x / count) ** 2
    shared = xy / count - x * y / count**2
    alive = spread > 1e-9 * (xx / count) + 1e-30
    gains = np.where(alive, shared / np.where(alive, spread, 1.0), 1.0)
    return np.clip(gains, 1 / MOST_GAIN, MOST_GAIN)
