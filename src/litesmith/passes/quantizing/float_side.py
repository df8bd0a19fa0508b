"""The float model's values at each of its layers, on some samples: the mean of each input, and the
outputs at some places. They are gathered for several layers in one pass over the samples, as many
as memory should hold."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import CannotApply
from litesmith.ir.edit import needed_ops, regraph
from litesmith.ir.types import Array, Model, Tensor
from litesmith.numeric.affine import rows_of
from litesmith.passes.core.layers import Layer, real_values
from litesmith.passes.core.step import Tools
from litesmith.passes.quantizing.layer_rows import products, rows_of_layer, why_no_rows
from litesmith.units import plain

Float64s = NDArray[np.float64]
Inputs = tuple[Array, ...]

# The memory for the values gathered in one pass, in bytes.
_AT_ONCE = 48_000_000


class Given(NamedTuple):
    """The float model's values at one layer.

    mean     the mean of the layer's input
    outputs  (places, channels) without bias and activation; None where they cannot be computed
    """

    mean: Float64s
    outputs: NDArray[np.float32] | None


class FloatSide:
    """The float model's layers in order, looked at a few at a time."""

    def __init__(
        self,
        model: Model,
        layers: Sequence[Layer],
        tools: Tools,
        samples: Sequence[Inputs],
        most: int,
    ) -> None:
        """`most` is how many places of a sample outputs are computed at; 0 for none."""
        self._model, self._layers, self._tools = model, layers, tools
        self._samples, self._most = samples, most
        self._known: dict[int, Given] = {}

    def at(self, number: int) -> Given:
        """The values at this layer; layers must be asked for in order."""
        if number not in self._known:
            self._known = dict(self._gather(number, self._end(number)))
        return self._known[number]

    def _end(self, start: int) -> int:
        total, end = 0, start
        while end < len(self._layers) and (total <= _AT_ONCE or end == start):
            layer = self._layers[end]
            rows = len(self._samples) * min(
                self._most, layer.op.outputs[0].elements // layer.channels
            )
            total += 4 * rows * layer.channels + 8 * layer.data.elements
            end += 1
        return max(start + 1, end - (total > _AT_ONCE))

    def _gather(self, start: int, end: int) -> Iterator[tuple[int, Given]]:
        layers = self._layers[start:end]
        tensors = list(dict.fromkeys(layer.data for layer in layers if not layer.data.is_const))
        sums = {tensor: np.zeros(tensor.shape) for tensor in tensors}
        rows: list[list[NDArray[np.float32]]] = [[] for _ in layers]
        weights = [
            rows_of(real_values(layer.weight), layer.axis).astype(np.float32)
            if self._most and not why_no_rows(layer)
            else None
            for layer in layers
        ]
        for values in self._values(tensors):
            for tensor, value in values.items():
                sums[tensor] += value
            for own, layer, weight in zip(rows, layers, weights, strict=True):
                if weight is not None and layer.data in values:
                    read = rows_of_layer(layer, values[layer.data][None], 0, self._most)
                    own.append(products(read, weight))
        for number, (own, layer) in enumerate(zip(rows, layers, strict=True), start):
            mean = (
                sums[layer.data] / len(self._samples)
                if layer.data in sums
                else real_values(layer.data)
            )
            yield number, Given(mean, np.concatenate(own) if own else None)

    def _values(self, tensors: Sequence[Tensor]) -> Iterator[dict[Tensor, Array]]:
        """The values of some tensors, sample by sample."""
        main = self._model.main
        computed = [tensor for tensor in tensors if tensor not in main.inputs]
        fed = {tensor: place for place, tensor in enumerate(main.inputs) if tensor in tensors}
        if not computed:
            for sample in self._samples:
                yield {tensor: sample[place] for tensor, place in fed.items()}
            return
        graph = regraph(main, ops=needed_ops(main.ops, computed), outputs=computed)
        model = replace(
            self._model, graphs=(graph, *self._model.graphs[1:]), signatures=(), metadata=()
        )
        with self._tools.opened(model) as run:
            for sample in self._samples:
                found = {tensor: sample[place] for tensor, place in fed.items()}
                found |= zip(computed, run(sample), strict=True)
                for tensor, value in found.items():
                    if value.shape != tensor.shape:
                        raise CannotApply(
                            "layers are compared at one size; the size of {name!r} depends on "
                            "values, or the data",
                            plain(tensor.name),
                        )
                yield found
