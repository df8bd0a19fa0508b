"""`level`: brings the channels of a layer's output to one size; a product behind the layer restores
the size of each.

One step serves all channels of a layer's output. Where a few of them reach a hundred times as far
as the others, as in the last layer of many feed-forward blocks, int8 leaves the others no steps. A
row of weights has a scale of its own, so dividing it costs nothing; the product behind, in float or
int16, costs one op and none of the layer's own work.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from litesmith.blocks.wiring import Wiring, data_of
from litesmith.errors import BadInput
from litesmith.ir.edit import regraph, with_main
from litesmith.ir.model_text import op_name
from litesmith.ir.types import Model, Op, Record, Tensor, frozen
from litesmith.numeric.ranges import Seen
from litesmith.passes.core.layers import Layer, layer_of
from litesmith.passes.core.schemes import Names, chosen
from litesmith.passes.core.step import Change, Context, Skip
from litesmith.phrases import phrase
from litesmith.units import number_text

Reals = NDArray[np.float64]

# Factors are multiples of this part of the largest one, which int16 stores exactly.
_CODES = 32767

# A channel that hardly ever moves counts as one that reaches this part of the farthest.
_LEAST = 1 / 4096

_NO_DATA = phrase("how far channels reach is seen from data; give some")
_NO_LAYER = phrase("it is no layer with float weights of its own")
_BOUND = phrase("its activation is no straight line, so its channels have no factors")


@dataclass(frozen=True)
class Level:
    """Bring the channels of a layer's output to one size, with a product behind the layer.

    far   layers that a sum reads are changed where their largest channel reaches this many times as
          far as half of the channels
    only  the layers to change, however far they reach: a number, a kind, or a pattern for the name
          of an op's output
    """

    far: float = 4.0
    only: Names = ()

    def apply(self, model: Model, context: Context) -> Change:
        if not self.far > 1:
            raise BadInput("level: far={far}; it is above 1", self.far)
        wiring = Wiring.of(model.main)
        named = chosen(model.graphs, (), self.only) if self.only else set[Op]()
        layers = [op for op in wiring.graph.ops if op in named] or list(_adding(wiring))
        skipped = [Skip(op_name(op), why) for op in layers if (why := _why_not(wiring, op))]
        layers = [op for op in layers if not _why_not(wiring, op)]
        if layers and context.tools is None:
            return Change(model, skipped=(*skipped, Skip(op_name(layers[0]), _NO_DATA)))
        if not layers or context.tools is None:
            return Change(model, skipped=tuple(skipped))
        wanted = [op.outputs[0] for op in layers]
        seen = context.tools.observe(model, wanted, frozenset({"channels"}))
        factors = {
            op: levels
            for op in layers
            if (levels := self._levels(seen[op.outputs[0]], is_named=op in named)) is not None
        }
        if not factors:
            return Change(model, skipped=tuple(skipped))
        graph = regraph(model.main, ops=list(_leveled(model.main.ops, factors)))
        touched = tuple(
            phrase(
                "brought the channels of {op_name} to one size; the largest reached {factor} "
                "times as far as half of them",
                op_name(op),
                number_text(round(reach(seen[op.outputs[0]]))),
            )
            for op in factors
        )
        return Change(with_main(model, graph), touched, tuple(skipped))

    def _levels(self, seen: Seen, *, is_named: bool) -> Reals | None:
        """The divisor of each channel; None where the channels are even enough."""
        peaks = channel_peaks(seen)
        if peaks is None or not peaks.max(initial=0) > 0:
            return None
        if not is_named and reach(seen) < self.far:
            return None
        floored = np.maximum(peaks, _LEAST * peaks.max())
        sizes = floored / np.exp(np.log(floored).mean())
        step = sizes.max() / _CODES
        return np.maximum(np.rint(sizes / step), 1) * step


def channel_peaks(seen: Seen) -> Reals | None:
    """How far each channel reaches, to either side; None where that was not observed."""
    if seen.channel_low is None or seen.channel_high is None or seen.spoiled:
        return None
    return np.maximum(-seen.channel_low, seen.channel_high).astype(np.float64)


def reach(seen: Seen) -> float:
    """How many times as far as half of the channels the largest reaches; 0 where none was
    observed."""
    peaks = channel_peaks(seen)
    middle = 0.0 if peaks is None else float(np.median(peaks))
    return float(peaks.max()) / middle if peaks is not None and middle > 0 else 0.0


def _adding(wiring: Wiring) -> Iterator[Op]:
    """The layers whose result is added to another computed value."""
    for op in wiring.graph.ops:
        if layer_of(op) is None:
            continue
        users = list(wiring.users(op.outputs[0]))
        if users and all(user.kind == "ADD" and len(data_of(user)) == 2 for user in users):
            yield op


def _why_not(wiring: Wiring, op: Op) -> str:
    """Why a layer's channels have no factors; "" where they can."""
    layer = layer_of(op)
    if layer is None or layer.weight.dtype != "float32" or layer.weight.quant is not None:
        return _NO_LAYER
    parts = [t for t in (layer.weight, layer.bias) if t is not None]
    if any(len(wiring.readers[t]) > 1 for t in parts) or op.outputs[0].shape[-1:] != (
        layer.channels,
    ):
        return _NO_LAYER
    return "" if op.option("fused_activation_function") in (None, "NONE") else _BOUND


def _leveled(ops: Sequence[Op], factors: Mapping[Op, Reals]) -> Iterator[Op]:
    for op in ops:
        layer = layer_of(op) if op in factors else None
        if layer is None:
            yield op
            continue
        output = op.outputs[0]
        even = replace(output, name=f"{output.name}/level")
        yield replace(_divided(layer, factors[op]), outputs=(even,))
        sizes = factors[op].astype(np.float32)
        sizes = Tensor(f"{output.name}/sizes", sizes.shape, "float32", frozen(sizes))
        options = Record("MulOptions", {"fused_activation_function": "NONE"})
        yield Op("MUL", (even, sizes), (output,), options)


def _divided(layer: Layer, factors: Reals) -> Op:
    """The layer with rows of weights, and a bias, that are divided."""
    shape = [1] * len(layer.weight.shape)
    shape[layer.axis] = layer.channels
    weight = layer.weight.values() / factors.reshape(shape)
    made = replace(layer.weight, data=frozen(weight.astype(np.float32)))
    bias = layer.bias
    if bias is not None:
        values = bias.values().reshape(-1) / factors
        bias = replace(bias, data=frozen(values.astype(np.float32).reshape(bias.shape)))
    return layer.with_parts(made, bias)
