"""The facts of each op in a file without running it, and the histogram of its weights."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from litesmith.anatomy.footprint import op_constant_bytes, op_macs
from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import called_graphs
from litesmith.ir.model_text import options_text, type_text
from litesmith.ir.types import Array, Model, Op, Tensor
from litesmith.passes.core.layers import Layer, real_values
from litesmith.phrases import phrase
from litesmith.units import number_text, plain

# The number of weights behind a histogram, evenly spread over the tensor, and the number of bars.
_MOST_WEIGHTS, BARS = 1 << 16, 32

Place = tuple[int, int]  # the number of a graph, and of an op in it


class TensorFacts(NamedTuple):
    """A tensor as it is shown; `quant` is "" for one without a scale."""

    name: str
    type: str
    quant: str
    is_const: bool


@dataclass(frozen=True)
class OpFacts:
    """One op of a file.

    name   the name of its first output
    form   the element type in which it computes, with that of the weights where it differs
    bytes  the bytes of its constants
    calls  the graphs that it runs
    """

    graph: int
    index: int
    kind: str
    name: str
    inputs: tuple[TensorFacts | None, ...]
    outputs: tuple[TensorFacts, ...]
    options: str
    form: str
    macs: int
    bytes: int
    calls: tuple[int, ...] = ()


def op_facts(model: Model) -> dict[Place, OpFacts]:
    """Every op of every graph, by its place."""
    known: dict[Tensor, TensorFacts] = {}

    def tell(tensor: Tensor) -> TensorFacts:
        if tensor not in known:
            known[tensor] = tensor_facts(tensor)
        return known[tensor]

    found: dict[Place, OpFacts] = {}
    for number, graph in enumerate(model.graphs):
        for index, op in enumerate(graph.ops):
            found[number, index] = OpFacts(
                graph=number,
                index=index,
                kind=plain(op.label),
                name=plain(op.outputs[0].name) if op.outputs else "",
                inputs=tuple(None if t is None else tell(t) for t in op.inputs),
                outputs=tuple(map(tell, op.outputs)),
                options=plain(options_text(op.options)),
                form=form_of(op),
                macs=op_macs(op),
                bytes=op_constant_bytes(op),
                calls=called_graphs(op),
            )
    return found


def tensor_facts(tensor: Tensor) -> TensorFacts:
    return TensorFacts(plain(tensor.name), type_text(tensor), _quant_text(tensor), tensor.is_const)


def _quant_text(tensor: Tensor) -> str:
    quant = tensor.quant
    if quant is None:
        return ""
    if quant.block is not None:
        return phrase("a scale for each block of values")
    if not quant.scale.size:
        return ""
    if not quant.per_channel:
        zero = int(quant.zero_point[0])
        return phrase("scale {scale}, zero {zero}", number_text(float(quant.scale[0])), zero)
    low, high = float(quant.scale.min()), float(quant.scale.max())
    return phrase(
        "{count} scales along axis {axis}, {low} to {high}",
        quant.scale.size,
        quant.axis,
        number_text(low),
        number_text(high),
    )


def form_of(op: Op) -> str:
    """`int8`, or `float32, int8 weights`; "" for an op that writes nothing."""
    if not op.outputs:
        return ""
    own = op.outputs[0].dtype
    weights = {t.dtype for t in op.inputs[1:] if t is not None and t.is_const and t.quant}
    others = sorted(weights - {own, "int32", "int64"})
    if DTYPES[own].is_float and others:
        return f"{own}, {'/'.join(others)} weights"
    return own


@dataclass(frozen=True)
class WeightBars:
    """The histogram of an op's weights from `low` to `high`: the share of all weights in
    each bar."""

    low: float
    high: float
    bars: tuple[float, ...]


def weight_bars(*layers: Layer | None) -> tuple[WeightBars | None, ...]:
    """The histograms of some layers' weights on one axis; None for a layer without numbers."""
    values = [None if layer is None else _weights(layer) for layer in layers]
    seen = [array for array in values if array is not None and array.size]
    if not seen:
        return (None,) * len(layers)
    low = min(float(array.min()) for array in seen)
    high = max(float(array.max()) for array in seen)
    if not low < high:
        low, high = low - 0.5, high + 0.5
    return tuple(_bars(array, low, high) for array in values)


def _bars(values: Array | None, low: float, high: float) -> WeightBars | None:
    if values is None or not values.size:
        return None
    counts, _ = np.histogram(values, BARS, (low, high))
    return WeightBars(low, high, tuple((counts / values.size).tolist()))


def _weights(layer: Layer) -> Array | None:
    """The finite values that the stored weights stand for; None where the weights are no plain
    numbers."""
    tensor = layer.weight
    is_plain = tensor.data is not None and tensor.sparsity is None and DTYPES[tensor.dtype].bits
    if not is_plain or (tensor.quant is not None and tensor.quant.block is not None):
        return None
    flat = real_values(tensor).reshape(-1).astype(np.float64)
    flat = flat[:: max(1, flat.size // _MOST_WEIGHTS)]
    return flat[np.isfinite(flat)]
