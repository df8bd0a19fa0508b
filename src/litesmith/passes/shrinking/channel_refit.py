"""Layers of a model without some channels, fitted to their former outputs.

Each layer in turn gets the weights that best reproduce, from its present inputs, the outputs of the
same layer in the whole model, using all inputs that its filters see at once. Where an activation
cuts off outputs, two values that are both cut off are equal.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.edit import exposing, with_ops
from litesmith.ir.ops import OPS, op_macs
from litesmith.ir.types import Array, Graph, Model, Op, Tensor
from litesmith.ir.window import slides
from litesmith.numeric.patches import patches, some_places
from litesmith.passes.core.layers import Layer, layers_of, real_bias, real_values, shared_by
from litesmith.passes.core.step import Run, Tools
from litesmith.passes.shrinking.channel_loss import is_sparse, with_weights

Samples = Sequence[tuple[Array, ...]]
Float32s = NDArray[np.float32]

# Multiply-accumulates that the runs may cost, and the most parts that layers are fitted in.
_MOST_WORK = 2.5e12
_LEAST_SAMPLES, _MOST_SAMPLES = 16, 2048
_MOST_PARTS = 12

# A few places of many images tell more than many places of few (ResNet-8 at 1.3 times the speed:
# 5.8 pt are lost with 32 of 1,024, 7.1 with 128 of 512); all of them take at most this many bytes.
# Nothing certain can be said of a layer with more weights per filter than the third number, or with
# fewer rows per weight than the fourth.
_MOST_PLACES, _MOST_BYTES = 32, 400_000_000
_MOST_WEIGHTS = 1152
_ROWS_A_WEIGHT = 8

_RIDGE = 1e-3

# How often a layer is refitted to what its activation lets through; and the range of no activation.
_ROUNDS, _ALL = 6, (-inf, inf)


@dataclass(frozen=True, eq=False)
class _Fit:
    """A layer of the whole model that can be fitted.

    beside  where its output is only added to something: the place of the adding op, and of the
            other term among its inputs. The layer makes up for errors of that term too
    clamps  the range that the activation lets through
    """

    place: int
    layer: Layer
    beside: tuple[int, int] | None
    clamps: tuple[float, float]

    def read(self, ops: Sequence[Op]) -> list[Tensor]:
        """The tensors to observe for the layer, in the whole model or in what is left of it."""
        place, at = self.beside or (self.place, self.layer.data_at)
        tensors = ops[self.place].inputs[self.layer.data_at], ops[place].inputs[at]
        return [t for t in tensors if t is not None]


class Refit:
    """The outputs of a model's layers on some samples, to which other layers can be fitted."""

    def __init__(
        self, model: Model, may_fit: Callable[[Layer], bool], samples: Samples, tools: Tools
    ) -> None:
        graph = model.main
        places = {op: place for place, op in enumerate(graph.ops)}
        users = shared_by(list(layers_of(graph).values()))
        self._fits = [
            _Fit(places[op], layer, _beside(graph, op), _clamps(graph, op))
            for op, layer in layers_of(graph).items()
            if may_fit(layer) and _can_fit(layer, graph) and len(users[layer.weight]) == 1
        ]
        parts = min(len(self._fits), _MOST_PARTS)
        work = max(sum(map(op_macs, graph.ops)), 1) * max(parts, 1)
        count = int(np.clip(_MOST_WORK / work, _LEAST_SAMPLES, _MOST_SAMPLES))
        self._tools, self._samples = tools, samples[:count]
        values = sum(one.layer.channels for one in self._fits) * max(len(self._samples), 1)
        self._most = int(np.clip(_MOST_BYTES / 4 / max(values, 1), 16, _MOST_PLACES))
        ends = [len(self._fits) * part // parts for part in range(parts + 1)] if parts else [0]
        self._parts = list(pairwise(ends))
        self._wanted = self._given_by(model) if parts else []

    def _given_by(self, model: Model) -> list[Float32s]:
        """The output of each layer in the whole model before its activation: rows of channels."""
        found: list[list[Float32s]] = [[] for _ in self._fits]
        tensors = [t for one in self._fits for t in one.read(model.main.ops)]
        with _giving(model, tensors, self._tools) as run:
            for arrays in self._samples:
                seen = run(arrays)
                for place, one in enumerate(self._fits):
                    rows = _rows(one.layer, seen[2 * place], self._most)
                    bias = real_bias(one.layer).astype(np.float32)
                    given = rows @ _matrix(one.layer).T + bias
                    found[place].append(given + self._added(one, seen[2 * place + 1]))
        return [np.concatenate(rows) for rows in found]

    def _added(self, one: _Fit, values: Array) -> Float32s:
        """The other term of the addition, in the places that are observed."""
        if one.beside is None:
            return np.zeros((1, 1), np.float32)
        rows = values.reshape(-1, values.shape[-1])
        return rows[some_places(len(rows), self._most)].astype(np.float32)

    def fitted(self, small: Model, kept: Callable[[Layer], Array]) -> Model:
        """A model without channels, its layers fitted; `kept` says which filters are left of a
        layer of the whole model."""
        for first, end in self._parts:
            layers = layers_of(small.main)
            some = self._fits[first:end]
            left = [layers[small.main.ops[one.place]] for one in some]
            changed: dict[Op, Op] = {}
            for place, (rows, added) in enumerate(self._read(small, some, left)):
                one = some[place]
                wanted = self._wanted[first + place][:, kept(one.layer)]
                changed |= _solved(left[place], rows, wanted - added, added, one.clamps)
            small = with_ops(small, changed)
        return small

    def _read(
        self, small: Model, some: Sequence[_Fit], left: Sequence[Layer]
    ) -> list[tuple[Float32s, Float32s]]:
        """The present input of each of some layers, and the other term of the addition
        behind it."""
        rows: list[list[Float32s]] = [[] for _ in some]
        added: list[list[Float32s]] = [[] for _ in some]
        tensors = [t for one in some for t in one.read(small.main.ops)]
        with _giving(small, tensors, self._tools) as run:
            for arrays in self._samples:
                seen = run(arrays)
                for place, one in enumerate(some):
                    rows[place].append(_rows(left[place], seen[2 * place], self._most))
                    added[place].append(self._added(one, seen[2 * place + 1]))
        return [
            (
                np.concatenate(ours),
                np.concatenate(beside) if one.beside else np.zeros((1, 1), np.float32),
            )
            for ours, beside, one in zip(rows, added, some, strict=True)
        ]


def _can_fit(layer: Layer, graph: Graph) -> bool:
    """True where data can determine a layer's weights, and its input may have changed."""
    weights, data = real_values(layer.weight), layer.data
    if data.is_const or data in graph.inputs or is_sparse(weights):
        return False
    row = OPS[layer.op.kind]
    known = row.is_layer and row.mixes_channels and not layer.in_groups
    return known and prod(weights.shape[1:]) <= _MOST_WEIGHTS


def _solved(
    left: Layer, rows: Float32s, wanted: Float32s, added: Float32s, clamps: tuple[float, float]
) -> dict[Op, Op]:
    """The layer with the weights that best reproduce the wanted outputs of such rows, together with
    the term that is added before values are cut off."""
    if len(rows) < _ROWS_A_WEIGHT * rows.shape[1] or not np.isfinite(rows).all():
        return {}
    bias = real_bias(left).astype(np.float32)
    now = np.concatenate([_matrix(left), bias[:, None]], axis=1).T
    low, high = (np.float32(end) - added for end in clamps)
    with np.errstate(over="ignore", invalid="ignore"):  # numbers whose squares float32 cannot hold
        found = _stepped(now, rows, wanted, (low, high), _ROUNDS if clamps != _ALL else 1)
    if not np.isfinite(found).all():
        return {}
    weight = found[:-1].T.reshape(left.weight.shape).astype(np.float64)
    return with_weights(left, weight, found[-1].astype(np.float64))


def _stepped(
    now: Float32s,
    rows: Float32s,
    wanted: Float32s,
    ends: tuple[Float32s, Float32s],
    rounds: int,
) -> Float32s:
    """The weights, and below them the bias, after so many least-squares steps towards the wanted
    outputs, each by what lies between the ends by then."""
    ones = np.concatenate([rows, np.ones((len(rows), 1), np.float32)], axis=1)
    squares = (ones.T @ ones).astype(np.float64)
    ridge = np.full(len(squares), _RIDGE * np.diagonal(squares)[:-1].mean() + 1e-12)
    ridge[-1] = 0
    inverse = np.linalg.inv(squares + np.diag(ridge))
    (low, high), aim = ends, wanted
    for _ in range(rounds):
        given = ones @ now
        step = inverse @ (ones.T @ (aim - given)).astype(np.float64)
        now = (now + step).astype(np.float32)
        given = ones @ now  # what both cut off is right as it is
        aim = np.where(wanted <= low, np.minimum(given, low), wanted)
        aim = np.where(wanted >= high, np.maximum(given, high), aim)
    return now


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
    """The place of an op that adds the layer's output to an earlier value, and of that value among
    its inputs."""
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


def _clamps(graph: Graph, op: Op) -> tuple[float, float]:
    """The range that passes the activation of a layer, or of the addition behind it."""
    beside = _beside(graph, op)
    last = op if beside is None else graph.ops[beside[0]]
    name = last.option("fused_activation_function")
    return (OPS[name].clamps if isinstance(name, str) and name in OPS else None) or _ALL


def _matrix(layer: Layer) -> Float32s:
    return real_values(layer.weight).reshape(layer.channels, -1).astype(np.float32)


def _rows(layer: Layer, values: Array, most: int) -> Float32s:
    """The inputs behind each output of a layer."""
    options = layer.op.options
    if OPS[layer.op.kind].is_dense or options is None:
        return values.reshape(-1, layer.weight.shape[-1]).astype(np.float32)
    moves = slides(options, layer.weight.shape[1:3])
    found = patches(values, moves, options.word("padding"), most=most)
    return found.astype(np.float32)
