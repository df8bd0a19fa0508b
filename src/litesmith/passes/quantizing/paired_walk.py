"""A quantized model beside the float one it stands for, layer by layer over the data.

Each layer may be changed when its turn comes, on the values that the layers before it, already
changed, really give it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import CannotApply
from litesmith.ir.edit import with_ops
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Graph, Model, Op, Quant, Tensor
from litesmith.ir.window import NoWindow, slides
from litesmith.numeric.kernels import evaluate
from litesmith.numeric.patches import mean_window
from litesmith.passes.core.layers import Layer, layers_of, real_bias, real_values, rebuilt
from litesmith.passes.core.step import Context, Skip, Tools
from litesmith.passes.quantizing.float_side import FloatSide, Given, Inputs
from litesmith.passes.quantizing.track import Track
from litesmith.passes.tidy.fold import Fold
from litesmith.phrases import phrase
from litesmith.units import plain

Float64s = NDArray[np.float64]

# Places, over all samples, at which outputs of both models are compared.
ROWS = 2048


@dataclass(frozen=True, eq=False)
class Visit:
    """The layer whose turn it is.

    layer      the layer of the quantized model
    reference  the same layer of the float model
    given      the float model's values there
    values     its input in the quantized model for every sample: stored numbers, or real ones
    quant      the quantization of stored numbers; None for real ones
    wanted     its input in the float model for every sample; None where the walk did not ask
    """

    layer: Layer
    reference: Layer
    given: Given
    values: Array
    quant: Quant | None
    wanted: Array | None

    @property
    def pairs(self) -> tuple[Array, Array]:
        """The layer's inputs in the quantized and in the float model."""
        assert self.wanted is not None
        return self.values, self.wanted

    @property
    def affine(self) -> tuple[float, int]:
        """The scale and zero point of the layer's input."""
        if self.quant is None:
            return 1.0, 0
        return float(self.quant.scale[0]), int(self.quant.zero_point[0])

    @property
    def reached_mean(self) -> Float64s:
        """The mean of its input in the quantized model."""
        exact = np.int64 if self.values.dtype.kind in "iu" else np.float64
        mean = self.values.sum(axis=0, dtype=exact) / len(self.values)
        if self.quant is None:
            return mean
        return (mean - self.quant.zero_point[0]) * float(self.quant.scale[0])


# The weight of codes that a layer is given; one that it raises CannotApply for stays as it is.
Edit = Callable[[Visit], Tensor]


class Walked(NamedTuple):
    """The model after a walk, the layers that were changed, and those that were not."""

    model: Model
    layers: list[Layer]
    skipped: list[Skip]


def walk(
    model: Model, context: Context, step: str, edit: Edit, *, samples: int, paired: bool = False
) -> Walked:
    """Applies `edit` to every layer in order and corrects each bias for the new weight, on at most
    this many samples. With `paired`, the inputs of the float model's layers are kept too."""
    try:
        return _walk(model, context, step, edit, samples, paired)
    except NoWindow as error:
        raise CannotApply(
            "{step}: {error}; give the model sizes with resize", step, error
        ) from None


def _walk(
    model: Model, context: Context, step: str, edit: Edit, samples: int, paired: bool
) -> Walked:
    tools = context.need_tools(step)
    if context.reference is None:
        raise CannotApply(
            "{step}: needs the float model to compare with; put it after quantize", step
        )
    reference = Fold(float16=True).apply(context.reference, context).model
    counterparts = _counterparts(model.main, reference.main, step)
    if not any(layer.weight.quant or layer.data.quant for layer in layers_of(model.main).values()):
        raise CannotApply(
            "{step}: the model is float, there is nothing to {step}; quantize first", step
        )
    for layer in counterparts:
        if not layer.data.elements:
            raise CannotApply(
                "{name!r} has no elements; nothing can be seen of it", plain(layer.data.name)
            )
    own = _chosen(model, tools, samples)
    real = own if _takes_alike(model, reference) else _chosen(model, tools, samples, reference)
    ours = Track(model, tools, own)
    theirs = Track(reference, tools, real) if paired else None
    beside = FloatSide(reference, counterparts, tools, real, -(-ROWS // len(own)))
    replaced: dict[Op, Op] = {}
    skipped: list[Skip] = []
    ours.run(0, replaced)
    if theirs:
        theirs.run(0, {})
    for number, layer in enumerate(ours.layers, 1):
        counterpart = counterparts[number - 1]
        wanted = theirs.values(counterpart.data)[0] if theirs else None
        given = beside.at(number - 1)
        visit = Visit(layer, counterpart, given, *ours.values(layer.data), wanted)
        try:
            weight = edit(visit)
            bias = _corrected_bias(visit, weight)
        except CannotApply as error:
            skipped.append(Skip(op_name(layer.op), phrase("it cannot be computed: {error}", error)))
        else:
            replaced |= rebuilt(layer, weight, bias)
            if layer.unpack is not None:
                ours.unpack(layer.unpack.outputs[0], weight)
        ours.run(number, replaced)
        if theirs:
            theirs.run(number, {})
    changed = [layer for layer in ours.layers if layer.op in replaced]
    return Walked(with_ops(model, replaced), changed, skipped)


def _takes_alike(model: Model, other: Model) -> bool:
    """Whether two models take the same numbers for a sample."""
    forms = [[(t.dtype, t.quant) for t in one.main.inputs] for one in (model, other)]
    return forms[0] == forms[1]


def _chosen(model: Model, tools: Tools, most: int, wanted: Model | None = None) -> list[Inputs]:
    """At most `most` samples in the form of a model, or of another that is wanted. The contents of
    the samples decide the choice and the order, so their own order does not matter."""
    held: dict[bytes, Inputs] = {}
    others = tools.samples(wanted) if wanted is not None else None
    pairs = zip(tools.samples(model), others or repeat(None), strict=False)
    for number, (own, other) in enumerate(pairs):
        content = sha256(b"".join(array.tobytes() for array in own)).digest()
        held[content + number.to_bytes(8, "big")] = own if other is None else other
        if len(held) > most:
            del held[max(held)]
    return [held[key] for key in sorted(held)]


def _corrected_bias(visit: Visit, weight: Tensor) -> Float64s:
    """The bias that brings the mean of every channel to where the float model has it."""
    ours, theirs = visit.layer, visit.reference
    wanted = mean_output(theirs, visit.given.mean, real_values(theirs.weight), real_bias(theirs))
    bias = real_bias(ours)
    reached = mean_output(ours, visit.reached_mean, real_values(weight), bias)
    return bias + wanted - reached


def mean_output(layer: Layer, mean: Float64s, weight: Float64s, bias: Float64s) -> Float64s:
    """The mean of each channel before the activation: of a linear op, its output of the mean."""
    row, options = OPS[layer.op.kind], layer.op.options
    if row.is_dense:
        return mean.reshape(-1, weight.shape[-1]).mean(axis=0) @ weight.T + bias
    if not row.is_layer or options is None:
        return _evaluated_mean(layer, mean, weight, bias)
    window = mean_window(mean, slides(options, weight.shape[1:3]), options.word("padding"))
    if row.is_depthwise:
        repeated = np.repeat(window, weight.shape[-1] // window.shape[-1], axis=-1)
        return (weight[0] * repeated).sum(axis=(0, 1)) + bias
    groups = window.shape[-1] // weight.shape[-1]
    parts = zip(np.split(weight, groups), np.split(window, groups, axis=-1), strict=True)
    return np.concatenate([w.reshape(len(w), -1) @ x.reshape(-1) for w, x in parts]) + bias


def _evaluated_mean(layer: Layer, mean: Float64s, weight: Float64s, bias: Float64s) -> Float64s:
    """The mean by the reference kernel, in float32; raises CannotApply where the kernel does not
    take the op."""
    op = layer.op
    if op.options is not None and "fused_activation_function" in op.options:
        op = replace(op, options=op.options.set(fused_activation_function="NONE"))
    arrays: list[Array | None] = [None if t is None else _constant(t) for t in op.inputs]
    arrays[layer.data_at] = mean.astype(np.float32)
    arrays[layer.weight_at] = weight.astype(np.float32)
    arrays[layer.bias_at : layer.bias_at + 1] = [bias.astype(np.float32)]
    inputs = tuple(None if a is None else Tensor("", a.shape, str(a.dtype)) for a in arrays)
    outputs = tuple(replace(t, dtype="float32", quant=None) for t in op.outputs)
    try:
        (result,) = evaluate(replace(op, inputs=inputs, outputs=outputs), arrays)
    except ValueError as error:
        raise CannotApply(str(error)) from None
    return result.astype(np.float64).reshape(-1, result.shape[-1]).mean(axis=0)


def _constant(tensor: Tensor) -> Array | None:
    return tensor.values() if tensor.is_const else None


def _counterparts(graph: Graph, reference: Graph, step: str) -> list[Layer]:
    """The float model's layers, which must be the same in the same order."""
    ours, theirs = (list(layers_of(g).values()) for g in (graph, reference))
    if [_sort(layer) for layer in ours] != [_sort(layer) for layer in theirs]:
        raise CannotApply(
            "{step}: the model's {count} layers are not the {count2} of the float model in "
            "kind, shape and order; give the one it was made from",
            step,
            len(ours),
            len(theirs),
        )
    return theirs


def _sort(layer: Layer) -> tuple[str, tuple[int, ...]]:
    return layer.op.kind, layer.weight.shape
