"""What layers read of each channel: its mean, and how it varies with the others."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import BadInput
from litesmith.ir.edit import regraph, with_graphs
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Model, Op, Tensor
from litesmith.numeric.patches import some_places
from litesmith.passes.core.step import Tools
from litesmith.units import plain

Float64s = NDArray[np.float64]

# Multiply-accumulates that looking at the data may cost; models that are quick see more samples.
_MOST_WORK = 2e10
_LEAST_SAMPLES, _MOST_SAMPLES = 32, 1024
_MOST_BYTES = 64_000_000

# Of a tensor, so many places a sample are enough.
_MOST_PLACES = 1024

# Beyond so many channels, and with fewer rows a channel than that, only their own variance counts.
_MOST_CHANNELS = 2048
_ROWS_A_CHANNEL = 4

# Added to every variance, as a part of their mean: what was seen is not all there is.
_RIDGE = 1e-3


class Moments(NamedTuple):
    """The mean of each channel, and their covariance: a matrix, or only its diagonal."""

    mean: Float64s
    covariance: Float64s

    @property
    def variance(self) -> Float64s:
        return self.covariance if self.covariance.ndim == 1 else np.diagonal(self.covariance)


def macs_of(op: Op) -> int:
    count = OPS[op.kind].macs
    return count(op) if count else 0


def some_samples(model: Model, tools: Tools) -> list[tuple[Array, ...]]:
    """Samples that are chosen and ordered by what they hold."""
    work = max(sum(map(macs_of, model.main.ops)), 1)
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
    """Of some tensors of the main graph, each as rows of so many values."""
    tensors = [t for t in wanted if not t.is_const and t not in model.main.inputs]
    exposed = with_graphs(model, (regraph(model.main, outputs=tensors), *model.graphs[1:]))
    sums = {t: _Sums(wanted[t]) for t in tensors}
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


class _Sums:
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
