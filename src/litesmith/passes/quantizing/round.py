"""`round`: codes chosen so that a layer's outputs, not its weights, come out closest."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import CannotApply
from litesmith.installing import install_command
from litesmith.ir.dtype import DTYPES
from litesmith.ir.model_text import op_name
from litesmith.ir.types import Array, Model, Tensor
from litesmith.numeric.affine import Ends, from_rows, largest_code, rows_of, weight_scales
from litesmith.numeric.patches import covariances
from litesmith.numeric.rounding import (
    Storable,
    excess,
    fit_codes_and_scales,
    refit,
    round_weights,
    search_scales,
    shrink,
    spread,
    times,
)
from litesmith.passes.core.layers import (
    LEAST_RATIO,
    Layer,
    half_scales,
    layers_of,
    most_bias,
    real_bias,
    real_values,
    scale_rows,
    stored_weight,
    with_scale_rows,
)
from litesmith.passes.core.step import Change, Context, Skip
from litesmith.passes.core.weight_structure import codebook_of, kept
from litesmith.passes.quantizing.correct import MOST_GAIN, with_gain
from litesmith.passes.quantizing.layer_rows import paired_rows, why_no_rows
from litesmith.passes.quantizing.paired_walk import Visit, walk
from litesmith.passes.tidy.fold import Fold
from litesmith.phrases import phrase

# Rows of inputs that second moments are taken from, for each input of a layer; and at least.
_ROWS, _LEAST_ROWS = 32, 4096

# Rows that are multiplied at once.
_GROUP = 4096

# A second-moment matrix of more inputs than this takes minutes, and gigabytes.
_MOST_INPUTS = 6_000

_FINE = phrase("its weights have more bits than asked for")
_TORCH = install_command("train")
_BOOK = phrase("its weights are codes of a book, which stay")


Float64s = NDArray[np.float64]


@dataclass(frozen=True)
class Round:
    """Round each weight so that it makes up for the others, on the data, and correct the bias.

    Goes layer by layer as `correct` does, after `quantize`; essential for int4 weights.

    bits     only weights of at most this many bits; the other layers' biases are corrected
    search   also choose the scales of weights with less than 8 bits
    samples  the largest number of samples to look at
    learn    then learn the codes of weights of 4 bits by gradients, block by block, against the
             float model's outputs; needs torch, and without it says so and goes on
    """

    bits: int = 8
    search: bool = True
    samples: int = 1024
    learn: bool = False

    def apply(self, model: Model, context: Context) -> Change:
        users = Counter(layer.weight for layer in layers_of(model.main).values())
        skipped: list[Skip] = []

        def edit(visit: Visit) -> Tensor:
            why = _why_not(visit.layer, users, self.bits)
            weight = visit.layer.weight
            if not why and _is_clustered(visit):
                why, weight = _BOOK, with_gain(visit, weight)
            if not why:
                weight = with_gain(visit, self._rounded(visit))
            elif why != _FINE:
                skipped.append(
                    Skip(op_name(visit.layer.op), phrase("{why}; its bias was corrected", why))
                )
            return weight

        walked = walk(model, context, "round", edit, samples=self.samples, paired=True)
        touched = tuple(phrase("rounded {op_name}", op_name(layer.op)) for layer in walked.layers)
        change = Change(walked.model, touched, (*skipped, *walked.skipped))
        return self._learned(change, context) if self.learn else change

    def _learned(self, change: Change, context: Context) -> Change:
        """The change with codes learned from there on."""
        if context.learn is None:
            why = phrase("no rounding was learned: that needs torch; {install}", _TORCH)
            return replace(change, skipped=(*change.skipped, Skip("round", why)))
        assert context.reference is not None
        reference = Fold(float16=True).apply(context.reference, context).model
        found = context.learn(change.model, reference, context.need_tools("round"))
        return Change(found.model, found.touched, found.skipped).after(change)

    def _rounded(self, visit: Visit) -> Tensor:
        """The weight with other codes. Rows keep their codes where these suit them better, and
        zeros of a pruned weight stay zeros."""
        layer, quant = visit.layer, visit.layer.weight.quant
        assert quant is not None
        original = rows_of(real_values(visit.reference.weight), layer.axis)
        mask = kept(original)
        hessian, cross, rows = _covariances(visit)
        if not all(np.isfinite(array).all() for array in (original, hessian, cross)):
            raise CannotApply("its weights or its inputs are infinite or not numbers")
        weights = refit(original, hessian, cross, mask)
        codes, scales = self._codes(visit, weights, shrink(hessian, rows))
        held, held_scales = rows_of(layer.weight.values(), layer.axis), scale_rows(layer)
        wanted = times(original, cross)
        most_gain = MOST_GAIN if quant.per_channel else 1.0

        def missed(codes: Array, scales: Float64s) -> Float64s:
            steps = spread(scales, codes.shape[1])
            return excess(codes * steps, hessian, wanted, most_gain)

        worse = (missed(codes, scales) > missed(held, held_scales))[:, None]
        numbers = from_rows(np.where(worse, held, codes), layer.weight.shape, layer.axis)
        chosen = np.where(worse, held_scales, scales)
        return stored_weight(
            layer.weight, numbers, layer.weight.dtype, with_scale_rows(quant, chosen)
        )

    def _codes(
        self, visit: Visit, weights: Float64s, hessian: Float64s
    ) -> tuple[NDArray[np.int8], Float64s]:
        """Codes and scales that come near to weights (channels, k) where their inputs vary."""
        weight = visit.layer.weight
        assert weight.quant is not None
        bits = DTYPES[weight.dtype].bits
        ends = _ends(visit.layer, bits)
        held = scale_rows(visit.layer)
        if not weight.quant.per_channel and weight.quant.block is None:
            return round_weights(weights, hessian, held, ends), held
        storable = _storable(visit)
        if not self.search or bits == 8:
            scales = storable(weight_scales(weights, 0, bits)[:, None])
            return round_weights(weights, hessian, scales, ends), scales
        diagonal = np.diagonal(hessian, axis1=-2, axis2=-1)
        scales = search_scales(weights, diagonal, ends, storable, held.shape[1])
        return fit_codes_and_scales(weights, hessian, scales, ends, storable)


def _ends(layer: Layer, bits: int) -> Ends:
    """The codes that a weight may have. The least code of int4 has no counterpart, and costs
    nothing where weights are unpacked to int8; with float inputs, the builtin FULLY_CONNECTED
    kernel takes two products of it for an overflow, and its sums are wrong."""
    most = largest_code(bits)
    return (-most - (bits == 4 and layer.data.dtype == "int8"), most)


def _why_not(layer: Layer, users: Counter[Tensor], most_bits: int) -> str:
    """Why a layer's weights stay as they are; "" where they need not."""
    quant = layer.weight.quant
    if quant is None or DTYPES[layer.weight.dtype].bits > most_bits:
        return _FINE
    if users[layer.weight] > 1:
        return phrase("its weights are shared by several layers")
    why = why_no_rows(layer)
    if why:
        return why
    inputs = layer.weight.elements // layer.channels
    if inputs > _MOST_INPUTS:
        return phrase(
            "each of its outputs has {inputs} inputs, more than {most_inputs}", inputs, _MOST_INPUTS
        )
    return ""


def _is_clustered(visit: Visit) -> bool:
    """True where the float weight is codes of a book, and the stored ones are those codes."""
    quant = visit.layer.weight.quant
    if quant is None or DTYPES[visit.layer.weight.dtype].bits != 8:
        return False
    axis = visit.layer.axis if quant.per_channel else None
    return codebook_of(real_values(visit.reference.weight), axis) is not None


def _storable(visit: Visit) -> Storable:
    """What the weight can have in place of some scales: none that is too fine for the kernel, and
    of blocks those that float16 holds."""
    quant, floor = visit.layer.weight.quant, _floor(visit)[:, None]
    is_half = quant is not None and quant.block is not None

    def nearest(scales: Float64s) -> Float64s:
        found = np.maximum(scales, floor)
        return half_scales(found).astype(np.float64) if is_half else found

    return nearest


def _floor(visit: Visit) -> Float64s:
    """The scales below which a kernel would lose the bias."""
    layer, data = visit.layer, visit.layer.data.quant
    if data is None:
        return np.full(layer.channels, float(np.finfo(np.float32).tiny))
    scale = float(data.scale[0])
    if layer.data.dtype == "int16":
        output = layer.op.outputs[0].quant
        assert output is not None
        return np.full(layer.channels, LEAST_RATIO * float(output.scale[0]) / scale)
    return np.abs(real_bias(layer)) / (scale * most_bias(layer.weight.dtype))


def _covariances(visit: Visit) -> tuple[Float64s, Float64s, int]:
    """The covariance of the weights' inputs, their covariance with the float model's inputs, and
    the number of rows behind both."""
    scale, zero = visit.affine
    inputs = visit.layer.weight.elements // visit.layer.channels
    most = -(-max(_ROWS * inputs, _LEAST_ROWS) // len(visit.values))
    pairs = paired_rows(
        (visit.layer, visit.reference),
        visit.pairs,
        zero=zero,
        most=most,
        group=max(1, _GROUP // most),
    )
    own, cross, rows = covariances(pairs)
    return scale**2 * own, scale * cross, rows
