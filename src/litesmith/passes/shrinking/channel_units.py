"""The channels that layers write side by side, in the order in which they may go."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS, op_macs
from litesmith.ir.types import Graph, Model
from litesmith.passes.core.layers import layers_of
from litesmith.passes.shrinking.channel_loss import Float64s, Loss, Reader
from litesmith.passes.shrinking.channel_rules import RULES, Channels, Numbers

# The layers that lose channels; the rules tell what else goes with these.
LAYERS = frozenset(kind for kind in RULES if OPS[kind].channel_axes)

# How often the remaining channels of a unit are reordered while channels are removed.
_ROUNDS = 64


@dataclass(frozen=True, eq=False)
class Unit:
    """Channels that layers write side by side.

    order   the classes in the order of removal; `staying` further ones are never removed
    losses  the total loss after each removal
    levels  the possible numbers of removed classes: multiples of what kernels process at once
            remain
    """

    name: str
    order: tuple[int, ...]
    staying: int
    losses: Float64s
    levels: tuple[int, ...]

    def gone(self, level: int) -> tuple[int, ...]:
        return self.order[: self.levels[level]]

    def lost(self, level: int) -> float:
        return float(self.losses[self.levels[level]])


def weights_gone(unit: Unit, graph: Graph, channels: Channels) -> Float64s:
    """The share of all the layers' weights that goes with each level of a unit."""
    weights = [layer.weight for layer in layers_of(graph).values()]
    total = sum(weight.elements for weight in weights)
    shares: list[float] = []
    for level in range(len(unit.levels)):
        gone = unit.gone(level)
        left = (
            prod(int((~np.isin(axis, gone)).sum()) for axis in channels.places[weight])
            for weight in weights
        )
        shares.append(1 - sum(left) / total)
    return np.array(shares)


class Work:
    """The multiply-accumulates of a model without some classes of channels."""

    def __init__(self, model: Model, channels: Channels) -> None:
        self._fixed = 0
        axes = (axis for axes in channels.places.values() for axis in axes)
        self._classes = 1 + max((int(axis.max(initial=0)) for axis in axes), default=0)
        self._terms: list[tuple[int, tuple[Numbers, ...]]] = []
        for graph, _, op in model.ops():
            macs = op_macs(op)
            axes = OPS[op.kind].channel_axes if graph is model.main and op.kind in LAYERS else ()
            weight = op.inputs[1] if axes else None
            if not macs or weight is None:
                self._fixed += macs
                continue
            parts = tuple(channels.places[weight][axis] for axis in axes)
            self._terms.append((macs // prod(map(len, parts)), parts))
        self.all = self.without(())

    def without(self, gone: Collection[int]) -> int:
        kept = np.ones(self._classes, np.bool_)
        kept[list(gone)] = False
        return self._fixed + sum(
            base * prod(int(kept[part].sum()) for part in parts) for base, parts in self._terms
        )


def find_units(
    graph: Graph, channels: Channels, readers: Sequence[Reader], *, finely: bool = False
) -> list[Unit]:
    """Every set of channels some of which may be removed; `finely` where measured times show the
    gain, otherwise so that the rest suits the kernels."""
    axes, grain = _free_axes(channels), _fine_grain if finely else _grain
    found = (_unit(one, axes, readers, grain(one.width)) for one in _together(graph, channels))
    return [unit for unit in found if len(unit.levels) > 1]


@dataclass(frozen=True, eq=False)
class _Set:
    """Classes that some layers write; the first of these, and how wide its output is.

    is_even  whether all of them write the same classes
    """

    name: str
    width: int
    classes: frozenset[int]
    is_even: bool = True


def _together(graph: Graph, channels: Channels) -> list[_Set]:
    """The classes that may go, those of layers that share any together."""
    sets: list[_Set] = []
    for op in graph.ops:
        if op.kind not in LAYERS or not op.outputs[0].shape:
            continue
        written = channels.last(op.outputs[0]).tolist()
        free = frozenset(written) - channels.pinned.keys()
        one = _Set(op_name(op), len(written), free)
        sharing = [other for other in sets if other.classes & one.classes]
        sets = [other for other in sets if other not in sharing]
        for other in sharing:
            even = other.is_even and other.classes == one.classes
            one = _Set(other.name, other.width, other.classes | one.classes, even)
        if one.classes:
            sets.append(one)
    return sets


def _free_axes(channels: Channels) -> list[frozenset[int]]:
    """Each set of classes along an axis of which at least one must stay."""
    unique = {frozenset(axis.tolist()) for axes in channels.places.values() for axis in axes}
    return [one for one in unique if one and not one & channels.pinned.keys()]


def _unit(of: _Set, axes: Sequence[frozenset[int]], readers: Sequence[Reader], grain: int) -> Unit:
    """Puts classes in order: those first with which the layers that read them lose least."""
    narrowing = [set(axis) for axis in axes if axis <= of.classes]
    states = [Loss(r) for r in readers if not of.classes.isdisjoint(r.classes.tolist())]
    left = np.array(sorted(of.classes))
    order: list[int] = []
    losses = [0.0]
    while len(left):
        each = sum((state.of_each(left) for state in states), np.zeros(len(left)))
        batch = _next(left, each, narrowing, max(len(of.classes) // _ROUNDS, 1))
        if not batch:
            break
        for state in states:
            state.remove([int(left[place]) for place in batch])
        order += [int(left[place]) for place in batch]
        losses += (losses[-1] + np.cumsum(each[batch])).tolist()
        left = np.delete(left, batch)
    grain = round(grain * len(of.classes) / of.width) if of.is_even else 1
    levels = _levels(len(order), len(left), max(grain, 1))
    return Unit(of.name, tuple(order), len(left), np.array(losses), levels)


def _next(left: Numbers, each: Float64s, axes: Sequence[set[int]], most: int) -> list[int]:
    """The places of the classes that are lost most easily; no axis loses its last."""
    batch: list[int] = []
    for place in np.argsort(each, kind="stable").tolist():
        one = int(left[place])
        if len(batch) < most and not any(axis == {one} for axis in axes):
            batch.append(place)
            for axis in axes:
                axis.discard(one)
    return batch


def _levels(movable: int, staying: int, grain: int) -> tuple[int, ...]:
    """The possible numbers of removed classes, from none on."""
    count = movable + staying
    gone = {count - kept for kept in range(grain, count, grain)} | {0}
    return tuple(sorted(g for g in gone if g <= movable))


def _grain(width: int) -> int:
    """The number of remaining channels is a multiple of this.

    Kernels compute 16 outputs at once where registers are wide, 8 elsewhere: 36 take as long as 48.
    A layer of few channels would have no choice then, and its readers gain by every single one.
    """
    return 16 if width >= 64 else 8 if width >= 32 else 4 if width >= 16 else 2 if width >= 8 else 1


def _fine_grain(width: int) -> int:
    """A finer grain, a power of 2 up to 16, of which 16 or more fit: the writer of fewer channels
    gains at some of these widths only, but their readers gain at each."""
    return 1 << min(max(width // 16, 1).bit_length() - 1, 4)
