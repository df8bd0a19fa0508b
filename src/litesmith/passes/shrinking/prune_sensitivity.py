"""What the data says about losing weights: the size of each layer's inputs, and the error at the
model's results when one layer alone is changed."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import BadInput
from litesmith.ir.edit import exposing, rewrite, with_main
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Graph, Model, Tensor
from litesmith.numeric.arrays import along
from litesmith.passes.core.layers import Layer, layers_of
from litesmith.passes.core.step import Tools

Floats = NDArray[np.float64]
Sample = tuple[Array, ...]


class Picked(NamedTuple):
    """Some samples, chosen and sorted by their contents, so that the given order does not matter:
    the places of all of them, and the numbers of the first few."""

    places: list[int]
    samples: list[Sample]


def picked(tools: Tools, model: Model, most: int, held: int = 0) -> Picked:
    """At most `most` samples, the first `held` of them with their numbers."""
    ranks: list[tuple[bytes, int]] = []
    first: dict[tuple[bytes, int], Sample] = {}
    for place, arrays in enumerate(tools.samples(model)):
        if any(array.dtype.kind == "f" and not np.isfinite(array).all() for array in arrays):
            raise BadInput("sample {place} holds numbers that are infinite or not numbers", place)
        rank = sha256(b"".join(array.tobytes() for array in arrays)).digest(), place
        ranks.append(rank)
        first[rank] = tuple(np.array(array) for array in arrays)
        if len(first) > held:
            del first[max(first)]
    if not ranks:
        raise BadInput("the data holds no samples")
    return Picked([place for _, place in sorted(ranks)[:most]], [first[r] for r in sorted(first)])


def input_sizes(
    model: Model, layers: Sequence[Layer], tools: Tools, samples: Sequence[Sample]
) -> dict[Tensor, Floats]:
    """The root of the mean square of each layer's input, one for each of its channels."""
    tensors = list(dict.fromkeys(layer.data for layer in layers))
    totals: dict[Tensor, Floats] = {}
    for values in _results(model, tensors, tools, samples):
        for tensor, array in zip(tensors, values, strict=True):
            squares = np.square(array.astype(np.float64)).reshape(-1, array.shape[-1]).mean(axis=0)
            totals[tensor] = totals.get(tensor, 0.0) + squares
    return {tensor: np.sqrt(total / len(samples)) for tensor, total in totals.items()}


def weight_sizes(layer: Layer, sizes: Floats | None) -> Array | None:
    """The size of each weight's input, to broadcast with the weight; None where it is unknown."""
    shape, row = layer.weight.shape, OPS[layer.op.kind]
    if sizes is None or not np.isfinite(sizes).all():
        return None
    if row.is_depthwise and shape[-1] % sizes.size == 0:
        return np.repeat(sizes, shape[-1] // sizes.size)
    if row.depth is not None and sizes.size == shape[row.depth]:
        return along(sizes, len(shape), row.depth)
    return None


class Judge:
    """The error at the model's results when some of its tensors are replaced."""

    def __init__(self, model: Model, tools: Tools, samples: Sequence[Sample]) -> None:
        self._model, self._tools, self._samples = model, tools, samples
        self._ends = _ends(model.main)
        self._wanted = self._run(model)

    def error(self, replaced: Mapping[Tensor, Tensor]) -> float:
        """The mean square of the error relative to that of the results; the worst output counts."""
        graph = rewrite(self._model.main, tensors=replaced)
        got = self._run(with_main(self._model, graph))
        return max(map(_noise, self._wanted, got), default=0.0)

    def _run(self, model: Model) -> list[Floats]:
        rows = list(_results(model, self._ends, self._tools, self._samples))
        return [
            np.concatenate([array.reshape(-1).astype(np.float64) for array in column])
            for column in zip(*rows, strict=True)
        ]


def _noise(wanted: Floats, got: Floats) -> float:
    if wanted.shape != got.shape or not np.isfinite(got).all():
        return 1e30
    signal = float(np.square(wanted).mean()) if wanted.size else 0.0
    return float(np.square(wanted - got).mean()) / signal if signal > 0 else 0.0


def _ends(graph: Graph) -> list[Tensor]:
    """The real numbers that a model ends with, before they are squeezed."""
    makers = {t: op for op in graph.ops for t in op.outputs}
    found: dict[Tensor, None] = {}
    for tensor in graph.outputs:
        op = makers.get(tensor)
        source = op.inputs[0] if op is not None and OPS[op.kind].makes_probabilities else tensor
        if op is not None and source is not None and source.dtype == "float32":
            found[source] = None
    if not found:
        found = dict.fromkeys(layer.op.outputs[0] for layer in layers_of(graph).values())
    return [t for t in found if t in makers]


def _results(
    model: Model, tensors: Sequence[Tensor], tools: Tools, samples: Sequence[Sample]
) -> Iterator[list[Array]]:
    """The values of some tensors of the main graph, sample by sample."""
    inputs = model.main.inputs
    computed = [t for t in tensors if t not in inputs and not t.is_const]
    fixed = {t: t.values() for t in tensors if t.is_const}
    if not computed:
        for sample in samples:
            yield [{**fixed, **dict(zip(inputs, sample, strict=True))}[t] for t in tensors]
        return
    with tools.opened(exposing(model, computed)) as run:
        for sample in samples:
            known = {**fixed, **dict(zip(inputs, sample, strict=True))}
            known |= zip(computed, map(np.array, run(sample)), strict=True)
            yield [known[t] for t in tensors]
