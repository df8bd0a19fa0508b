"""Positions of tensors that belong together: numbers, joined to classes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.edit import consumers
from litesmith.ir.infer import from_front
from litesmith.ir.types import Graph, Tensor
from litesmith.passes.core.layers import layers_of
from litesmith.phrases import phrase

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Channels:
    """The classes of a graph's channels.

    places  of every tensor, for each axis: the class of each position
    pinned  the classes that cannot go, and what they are pinned by
    """

    places: Mapping[Tensor, tuple[Numbers, ...]]
    pinned: Mapping[int, str]

    def last(self, tensor: Tensor) -> Numbers:
        """The classes of a tensor's channels, its last axis."""
        return self.places[tensor][-1]


class Joins:
    """Numbers of positions, and which of them were said to belong together or to be pinned."""

    def __init__(self, graph: Graph) -> None:
        self.why = ""
        self.layers = layers_of(graph)
        self.readers = consumers(graph)
        self.written = {t: op for op in graph.ops for t in op.outputs}
        self._numbers: dict[Tensor, tuple[Numbers, ...]] = {}
        self._pairs: list[tuple[Numbers, Numbers]] = []
        self._pins: list[tuple[Numbers, str]] = []
        self._pinned: set[tuple[Tensor, int]] = set()
        self._count = 0
        for tensor in graph.tensors:
            self._numbers[tensor] = tuple(map(self.fresh, tensor.shape))

    def fresh(self, count: int) -> Numbers:
        self._count += count
        return np.arange(self._count - count, self._count)

    def of(self, tensor: Tensor, axis: int = -1) -> Numbers:
        numbers = self._numbers[tensor]
        if not -len(numbers) <= axis < len(numbers):
            raise ValueError(phrase("axis {axis} of {count}", axis, len(numbers)))
        return numbers[axis]

    def join(self, a: Numbers, b: Numbers) -> None:
        if a.shape != b.shape:
            raise ValueError(phrase("{shape} positions beside {shape2}", a.shape, b.shape))
        self._pairs.append((a.reshape(-1), b.reshape(-1)))

    def pass_on(self, source: Tensor, axis: int, result: Tensor, place: int) -> None:
        """An axis of one tensor is an axis of another."""
        self.join(self.of(source, axis), self.of(result, place))
        if self.is_pinned(source, from_front(axis, len(source.shape))):
            self.pin(result, place)

    def pin(self, tensor: Tensor, *axes: int, why: str = "") -> None:
        """Pins some axes of a tensor, or all."""
        rank = len(tensor.shape)
        for axis in axes or range(rank):
            self._pinned.add((tensor, from_front(axis, rank)))
            self._pins.append((self.of(tensor, axis), why or self.why))

    def is_pinned(self, tensor: Tensor, axis: int) -> bool:
        return (tensor, axis) in self._pinned

    def solved(self) -> Channels:
        """The classes, each with the lowest of its numbers for a name."""
        names = np.arange(self._count)
        pairs = self._pairs or [(names[:0], names[:0])]
        a, b = (np.concatenate(side) for side in zip(*pairs, strict=True))
        while (names[a] != names[b]).any():
            low = np.minimum(names[a], names[b])
            np.minimum.at(names, names[a], low)
            np.minimum.at(names, names[b], low)
            while (names != names[names]).any():
                names = names[names]
        pinned: dict[int, str] = {}
        for numbers, why in self._pins:
            for name in np.unique(names[numbers]).tolist():
                pinned.setdefault(name, why)
        places = {t: tuple(names[n] for n in axes) for t, axes in self._numbers.items()}
        return Channels(places, pinned)
