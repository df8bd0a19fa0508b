"""Layers of a model without channels, fitted to what they gave before.

Each layer in turn is given the weights that make of its inputs, as they are by then, most of what
the same layer gave in the whole model: of all inputs that its filters see at once.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

import numpy as np

from litesmith.ir.edit import exposing, with_ops
from litesmith.ir.ops import OPS, op_macs
from litesmith.ir.types import Array, Graph, Model, Op, Tensor
from litesmith.ir.window import slides
from litesmith.numeric.patches import patches, some_places
from litesmith.passes.core.layers import Layer, layers_of, real_bias, real_values, shared_by
from litesmith.passes.core.step import Run, Tools
from litesmith.passes.shrinking.channel_loss import Float64s, is_sparse, with_weights

Samples = Sequence[tuple[Array, ...]]

# Multiply-accumulates that the runs may cost, and the most parts that layers are fitted in.
_MOST_WORK = 1e11
_LEAST_SAMPLES = 16
_MOST_PARTS = 12

# Of an image, so many places are enough; of a layer with more weights a filter, or with fewer rows
# a weight, nothing sure can be said.
_MOST_PLACES = 128
_MOST_WEIGHTS = 1152
_ROWS_A_WEIGHT = 16

_RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class _Pair:
    """A layer of the whole model, and which of its filters are left.

    beside  where its output is only added to something: the place of the op that adds, and of what
            is added among its inputs. The layer is to make up for what is wrong with that too
    """

    place: int
    layer: Layer
    rows: Array
    beside: tuple[int, int] | None

    def read(self, ops: Sequence[Op]) -> list[Tensor]:
        """What is to be seen of it, in the whole model or in what is left."""
        place, at = self.beside or (self.place, self.layer.data_at)
        tensors = ops[self.place].inputs[self.layer.data_at], ops[place].inputs[at]
        return [t for t in tensors if t is not None]


def refitted(
    model: Model,
    small: Model,
    filters: Callable[[Layer], Array | None],
    samples: Samples,
    tools: Tools,
) -> Model:
    """A model without channels, its layers fitted.

    `filters` says which are left of a layer; None where it is not to be touched.
    """
    places = {op: place for place, op in enumerate(model.main.ops)}
    users = shared_by(list(layers_of(model.main).values()))
    pairs: list[_Pair] = []
    for op, layer in layers_of(model.main).items():
        rows = filters(layer)
        if rows is not None and _can_fit(layer, model.main) and len(users[layer.weight]) == 1:
            pairs.append(_Pair(places[op], layer, rows, _beside(model.main, op)))
    parts = min(len(pairs), _MOST_PARTS)
    work = max(sum(map(op_macs, model.main.ops)), 1) * max(parts, 1)
    some = samples[: max(int(_MOST_WORK / work), _LEAST_SAMPLES)]
    for part in range(parts):
        first, end = len(pairs) * part // parts, len(pairs) * (part + 1) // parts
        small = _fitted(model, small, pairs[first:end], some, tools)
    return small


def _can_fit(layer: Layer, graph: Graph) -> bool:
    """True where data can tell a layer's weights, and what it reads may have changed."""
    weights, data = real_values(layer.weight), layer.data
    if data.is_const or data in graph.inputs or is_sparse(weights):
        return False
    row = OPS[layer.op.kind]
    known = row.is_layer and row.mixes_channels and not layer.in_groups
    return known and prod(weights.shape[1:]) <= _MOST_WEIGHTS


def _fitted(
    model: Model, small: Model, pairs: Sequence[_Pair], samples: Samples, tools: Tools
) -> Model:
    """Some layers fitted on one pass over the samples."""
    layers = layers_of(small.main)
    left = [layers[small.main.ops[pair.place]] for pair in pairs]
    sums = [_FitSums(pair, layer) for pair, layer in zip(pairs, left, strict=True)]
    ours = [t for pair in pairs for t in pair.read(small.main.ops)]
    theirs = [t for pair in pairs for t in pair.read(model.main.ops)]
    with _giving(model, theirs, tools) as whole, _giving(small, ours, tools) as given:
        for arrays in samples:
            wanted, seen = whole(arrays), given(arrays)
            for place, one in enumerate(sums):
                span = slice(2 * place, 2 * place + 2)
                one.add(seen[span], wanted[span])
    changed: dict[Op, Op] = {}
    for one, layer in zip(sums, left, strict=True):
        changed |= one.solved(layer)
    return with_ops(small, changed)


@contextmanager
def _giving(model: Model, tensors: Sequence[Tensor], tools: Tools) -> Generator[Run]:
    """A run that gives these tensors, with nothing computed that they do not need."""
    once = list(dict.fromkeys(tensors))
    with tools.opened(exposing(model, once)) as run:

        def given(arrays: Sequence[Array]) -> list[Array]:
            values = dict(zip(once, map(np.array, run(arrays)), strict=True))
            return [values[t] for t in tensors]

        yield given


def _beside(graph: Graph, op: Op) -> tuple[int, int] | None:
    """Where a layer's output is added to something that is computed before it."""
    result = op.outputs[0]
    readers = [place for place, other in enumerate(graph.ops) if result in other.inputs]
    if len(readers) != 1 or op.option("fused_activation_function") not in (None, "NONE"):
        return None
    adding = graph.ops[readers[0]]
    at = 1 if adding.inputs[0] is result else 0
    other = adding.inputs[at] if OPS[adding.kind].arithmetic == "+" else None
    before = {t for one in graph.ops[: graph.ops.index(op)] for t in one.outputs}
    fits = other in before and other.shape == result.shape if other is not None else False
    fits = fits and OPS[op.kind].is_convolution and result.shape[0] == 1
    return (readers[0], at) if fits and result not in graph.outputs else None


class _FitSums:
    """What is to be known of a layer's inputs, and of what it should have given."""

    def __init__(self, pair: _Pair, left: Layer) -> None:
        self._pair, self._left = pair, left
        self._wanted = _matrix(pair.layer, pair.rows), real_bias(pair.layer)[pair.rows]
        self._given = _matrix(left), real_bias(left)
        size = self._given[0].shape[1] + 1
        self._count = 0
        self._squares = np.zeros((size, size))
        self._products = np.zeros((size, len(self._given[0])))

    def add(self, seen: Sequence[Array], whole: Sequence[Array]) -> None:
        """Takes note of what the layer reads, and of what its output is added to."""
        ours, theirs = _rows(self._left, seen[0]), _rows(self._pair.layer, whole[0])
        missing = theirs @ self._wanted[0].T + self._wanted[1]
        missing -= ours @ self._given[0].T + self._given[1]
        if self._pair.beside is not None:
            missing += _some(whole[1])[:, self._pair.rows] - _some(seen[1])
        ones = np.concatenate([ours, np.ones((len(ours), 1))], axis=1)
        self._count += len(ours)
        self._squares += ones.T @ ones
        self._products += ones.T @ missing

    def solved(self, left: Layer) -> dict[Op, Op]:
        size = len(self._squares) - 1
        if self._count < _ROWS_A_WEIGHT * size:
            return {}
        ridge = np.full(size + 1, _RIDGE * np.diagonal(self._squares)[:-1].mean() + 1e-12)
        ridge[-1] = 0
        solution = np.linalg.solve(self._squares + np.diag(ridge), self._products)
        change = solution.T.astype(np.float64)
        weight = (self._given[0] + change[:, :-1]).reshape(left.weight.shape)
        return with_weights(left, weight, self._given[1] + change[:, -1])


def _matrix(layer: Layer, rows: Array | slice = slice(None)) -> Float64s:
    return real_values(layer.weight).reshape(layer.channels, -1)[rows]


def _rows(layer: Layer, values: Array) -> Float64s:
    """What each output of a layer is computed from."""
    options = layer.op.options
    if OPS[layer.op.kind].is_dense or options is None:
        return values.reshape(-1, layer.weight.shape[-1]).astype(np.float64)
    moves = slides(options, layer.weight.shape[1:3])
    found = patches(values, moves, options.word("padding"), most=_MOST_PLACES)
    return found.astype(np.float64)


def _some(values: Array) -> Float64s:
    """The values of an image in the places that `_rows` looks at."""
    rows = values.reshape(-1, values.shape[-1])
    return rows[some_places(len(rows), _MOST_PLACES)].astype(np.float64)
