"""The expected gain of kernels that skip zeros, layer by layer, and the share of zeros at which it
begins."""

from collections.abc import Sequence
from typing import NamedTuple

from litesmith.errors import CannotApply
from litesmith.ir.types import Model, Op
from litesmith.run.litert.own_kernels import SparseLayer, find_own_kernels

# Fewer zero blocks than this are chance, not pruning.
_LEAST_ZEROS = 0.05


class Skipping(NamedTuple):
    """A layer of the main graph, by its number, with its expected gain."""

    place: int
    op: Op
    facts: SparseLayer

    @property
    def is_faster(self) -> bool:
        return self.facts.gain > 1


def skipping(model: Model) -> list[Skipping]:
    """Every layer with zeros that a kernel could skip.

    Empty where the kernels that skip zeros are not installed.
    """
    kernels = find_own_kernels()
    if kernels is None:
        return []
    found: list[Skipping] = []
    for place, op in enumerate(model.main.ops):
        try:
            facts = kernels.sparse_facts(op)
        except CannotApply:
            continue
        if facts.zeros >= _LEAST_ZEROS:
            found.append(Skipping(place, op, facts))
    return found


def expected_gain(layers: Sequence[Skipping]) -> float:
    """The expected speed-up of these layers together; layers that would lose stay dense."""
    dense = [one.facts.dense_us for one in layers]
    after = [us / max(one.facts.gain, 1) for us, one in zip(dense, layers, strict=True)]
    return sum(dense) / sum(after) if layers else 1.0
