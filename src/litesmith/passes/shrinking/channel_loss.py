"""What layers lose without channels that they read, and how the others make up for it.

A removed channel is replaced by the best linear function of those that stay; its share of the
weights goes to theirs, and its constant part to the bias. How channels vary together, their
moments, is observed on samples.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import BadInput
from litesmith.ir.edit import regraph, with_main, with_ops
from litesmith.ir.ops import OPS, op_macs
from litesmith.ir.types import Array, Graph, Model, Op, Tensor, frozen
from litesmith.numeric.patches import some_places
from litesmith.passes.core.layers import (
    Layer,
    layers_of,
    real_bias,
    real_values,
    rebuilt,
    shared_by,
)
from litesmith.passes.core.step import Tools
from litesmith.passes.shrinking.channel_rules import Channels, Numbers
from litesmith.units import plain

Float64s = NDArray[np.float64]

# Multiply-accumulates that looking at the data may cost; models that are quick see more samples.
_MOST_WORK = 2e11
_LEAST_SAMPLES, _MOST_SAMPLES = 32, 2048
_MOST_BYTES = 256_000_000

# The number of places per sample that suffice for a tensor.
_MOST_PLACES = 1024

# With more channels than this, or fewer rows per channel, only the channels' own variances count.
_MOST_CHANNELS = 2048
_ROWS_A_CHANNEL = 4

# Added to every variance, relative to their mean: the samples do not show everything.
_RIDGE = 1e-3


class Moments(NamedTuple):
    """The mean of each channel, and their covariance: a matrix, or only its diagonal."""

    mean: Float64s
    covariance: Float64s

    @property
    def variance(self) -> Float64s:
        return self.covariance if self.covariance.ndim == 1 else np.diagonal(self.covariance)


def some_samples(model: Model, tools: Tools) -> list[tuple[Array, ...]]:
    """Samples chosen and ordered by their contents."""
    work = max(sum(map(op_macs, model.main.ops)), 1)
    size = max(sum(t.nbytes for t in model.main.inputs), 1)
    most = min(int(np.clip(_MOST_WORK / work, _LEAST_SAMPLES, _MOST_SAMPLES)), _MOST_BYTES // size)
    chosen: dict[bytes, tuple[Array, ...]] = {}
    for arrays in tools.samples(model):
        digest = blake2b(b"".join(a.tobytes() for a in arrays)).digest()
        chosen[digest] = tuple(np.array(a) for a in arrays)
        if len(chosen) > max(most, 1):
            del chosen[max(chosen)]
    return [chosen[digest] for digest in sorted(chosen)]


def moments(
    model: Model,
    wanted: Mapping[Tensor, int],
    samples: Sequence[tuple[Array, ...]],
    tools: Tools,
) -> dict[Tensor, Moments]:
    """The moments of some tensors of the main graph, each as rows of this many values."""
    tensors = [t for t in wanted if not t.is_const and t not in model.main.inputs]
    exposed = with_main(model, regraph(model.main, outputs=tensors))
    sums = {t: _MomentSums(wanted[t]) for t in tensors}
    with tools.opened(exposed) as run:
        for arrays in samples:
            for tensor, array in zip(tensors, run(arrays), strict=True):
                sums[tensor].add(array)
    found = {t: s.moments() for t, s in sums.items()}
    for tensor, (mean, covariance) in found.items():
        if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
            raise BadInput(
                "{name!r} is infinite or not a number on some sample; the data or its "
                "normalisation is wrong",
                plain(tensor.name),
            )
    return found


class _MomentSums:
    """Sums over rows of values."""

    def __init__(self, channels: int) -> None:
        self.channels = channels
        self.rows = 0
        self.total = np.zeros(channels)
        wide = channels > _MOST_CHANNELS
        self.squares = np.zeros(channels if wide else (channels, channels))

    def add(self, values: Array) -> None:
        rows = values.reshape(-1, self.channels)
        rows = rows[some_places(len(rows), _MOST_PLACES)].astype(np.float64)
        self.rows += len(rows)
        self.total += rows.sum(axis=0)
        self.squares += (rows**2).sum(axis=0) if self.squares.ndim == 1 else rows.T @ rows

    def moments(self) -> Moments:
        mean = self.total / self.rows
        if self.squares.ndim == 1:
            return Moments(mean, np.maximum(self.squares / self.rows - mean**2, 0))
        covariance = self.squares / self.rows - np.outer(mean, mean)
        if self.rows < _ROWS_A_CHANNEL * self.channels:
            return Moments(mean, np.maximum(np.diagonal(covariance), 0))
        return Moments(mean, covariance)


def precision(covariance: Float64s) -> Float64s:
    """The inverse of a covariance, raised a little so that there is one."""
    ridge = _RIDGE * max(float(np.diagonal(covariance).mean()), 1e-12)
    return np.linalg.inv(covariance + ridge * np.eye(len(covariance))).astype(np.float64)


# A weight has no more zeros than this by chance.
_MOST_ZEROS = 0.1


@dataclass(frozen=True, eq=False)
class Reader:
    """A layer that reads channels which may be removed.

    classes  the classes of the values that it reads
    filters  the classes that it writes
    matrix   its weights, a column for each class; rows are filters, each with all its places
    seen     the moments of its input; without data, the covariance is a guess by the weights
    share    the weight of an error in its output: one over its total variance
    """

    layer: Layer
    classes: Numbers
    filters: Numbers
    matrix: Float64s
    seen: Moments
    share: float


def readers_of(graph: Graph, channels: Channels) -> list[Layer]:
    """The layers that mix channels some of which may be removed."""
    return [
        layer
        for op, layer in layers_of(graph).items()
        if OPS[op.kind].mixes_channels
        and not channels.pinned.keys() >= set(channels.last(layer.weight).tolist())
    ]


def reader(layer: Layer, channels: Channels, seen: Moments) -> Reader:
    weights = real_values(layer.weight)
    matrix = weights.reshape(-1, weights.shape[-1])
    gram = matrix.T @ matrix
    energy = np.diagonal(gram) @ seen.variance
    if seen.covariance.ndim == 2:
        energy = (gram * seen.covariance).sum()
    filters, *_, classes = channels.places[layer.weight]
    return Reader(layer, classes, filters, matrix, seen, 1 / max(float(energy), 1e-30))


def guessed(graph: Graph, channels: Channels, layers: Sequence[Layer]) -> dict[Tensor, Moments]:
    """Without data: a channel varies as the weights that write it are large."""
    size: dict[int, float] = {}
    for op, layer in layers_of(graph).items():
        weights = np.moveaxis(real_values(layer.weight), layer.axis, 0)
        squares = (weights.reshape(len(weights), -1) ** 2).sum(axis=1)
        for one, square in zip(channels.last(op.outputs[0]).tolist(), squares, strict=True):
            size[one] = size.get(one, 0.0) + float(square)
    found: dict[Tensor, Moments] = {}
    for layer in layers:
        variance = np.array([size.get(one, 1.0) for one in channels.last(layer.weight).tolist()])
        found[layer.data] = Moments(np.zeros_like(variance), variance)
    return found


def is_sparse(weights: Float64s) -> bool:
    """True where weights were made zero on purpose; they are to stay so."""
    return float((weights == 0).mean()) > _MOST_ZEROS


class Loss:
    """The loss of one layer while channels that it reads are removed one after the other."""

    def __init__(self, of: Reader) -> None:
        self._share, self._classes = of.share, of.classes
        self._gram = of.matrix.T @ of.matrix
        full = of.seen.covariance.ndim == 2
        self._precision = precision(of.seen.covariance) if full else None
        self._variance = of.seen.variance

    def of_each(self, classes: Numbers) -> Float64s:
        """The loss without each of these classes, which are sorted."""
        places = np.searchsorted(classes, self._classes).clip(max=len(classes) - 1)
        read = classes[places] == self._classes
        left = self._variance
        if self._precision is not None:
            left = 1 / np.maximum(np.diagonal(self._precision), 1e-30)
        lost = np.maximum(np.diagonal(self._gram), 0) * left
        total = np.zeros(len(classes))
        np.add.at(total, places[read], self._share * lost[read])
        return total

    def remove(self, gone: Collection[int]) -> None:
        """Takes some classes away; the others take over their part."""
        at = np.flatnonzero(np.isin(self._classes, list(gone)))
        if not len(at):
            return
        if self._precision is not None:
            p = self._precision
            taken = np.linalg.solve(p[np.ix_(at, at)], p[at])
            self._precision = p - p[:, at] @ taken
            part = self._gram[:, at] @ taken
            inner = taken.T @ self._gram[np.ix_(at, at)] @ taken
            self._gram = self._gram - part - part.T + inner
            self._precision[at, at] = 1.0
        self._gram[at] = self._gram[:, at] = 0


def made_up(model: Model, small: Model, readers: Iterable[Reader], gone: Collection[int]) -> Model:
    """A model without channels, its layers making up for them; ops stand where they stood."""
    users = shared_by(list(layers_of(model.main).values()))
    places = {op: place for place, op in enumerate(model.main.ops)}
    layers = layers_of(small.main)
    changed: dict[Op, Op] = {}
    for one in readers:
        if len(users[one.layer.weight]) == 1 and np.isin(one.classes, list(gone)).any():
            left = layers[small.main.ops[places[one.layer.op]]]
            changed |= _changed(one, left, gone)
    return with_ops(small, changed)


def _changed(of: Reader, left: Layer, gone: Collection[int]) -> dict[Op, Op]:
    """The ops of a layer that is left, with the weights and the bias that make up for most."""
    lost, rows = np.isin(of.classes, list(gone)), ~np.isin(of.filters, list(gone))
    mean, covariance = of.seen
    mixed = np.zeros((int(lost.sum()), int((~lost).sum())))
    if covariance.ndim == 2 and not lost.all() and not is_sparse(of.matrix):
        mixed = covariance[np.ix_(lost, ~lost)] @ precision(covariance[np.ix_(~lost, ~lost)])
    matrix = of.matrix[:, ~lost] + of.matrix[:, lost] @ mixed
    constant = of.matrix[:, lost] @ (mean[lost] - mixed @ mean[~lost])
    offset = constant.reshape(len(rows), -1).sum(axis=1)[rows]
    weights = matrix.reshape(len(rows), *left.weight.shape[1:])[rows]
    return with_weights(left, weights, real_bias(left) + offset / _places(left.op))


def _places(op: Op) -> int:
    """The number of outputs over which a layer spreads the places of its filters."""
    if not OPS[op.kind].spreads or op.options is None:
        return 1
    return op.options.integer("stride_h") * op.options.integer("stride_w")


def with_weights(layer: Layer, weights: Float64s, bias: Float64s) -> dict[Op, Op]:
    """The ops of a layer, with others for them that have these weights and this bias."""
    data = frozen(np.ascontiguousarray(weights, layer.weight.dtype))
    takes_bias = layer.bias is not None or not OPS[layer.op.kind].spreads  # not in old versions
    return rebuilt(layer, replace(layer.weight, data=data), bias if takes_bias else None)
