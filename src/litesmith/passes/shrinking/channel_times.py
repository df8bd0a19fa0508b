"""The time of a model's run at other widths: every op at each width, measured on a target.

Models without some channels are profiled as a whole, so that each op runs where it will run. Units
that an op reads or writes together are narrowed in turns, then all at once: this separates an op's
time by the width of its input, of its output, and of both.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from litesmith.ir.types import Model, Tensor
from litesmith.passes.shrinking.channel_cut import without
from litesmith.passes.shrinking.channel_loss import Float64s
from litesmith.passes.shrinking.channel_rules import Channels
from litesmith.passes.shrinking.channel_units import Unit

# The microseconds of every op of a model's main graph, and last of a run outside them.
OpTimes = Callable[[Model], Sequence[float]]

# The number of widths at which a unit is measured, below its own; between them time grows evenly.
_WIDTHS = 15

# Narrowing both widths of an op may save at most this many times less, or more, than the two
# savings suggest.
_MOST_JOINT = 4.0


class _Timed(NamedTuple):
    """The times of ops in the whole model and, beside it, in a model with narrower units."""

    whole: Float64s
    narrow: Float64s


class WidthTimes:
    """The time of a run by the level of every unit, in microseconds."""

    def __init__(
        self, model: Model, channels: Channels, units: Sequence[Unit], measured: OpTimes
    ) -> None:
        self._units = units
        self._touched = _touched(model, channels, units)
        self._levels = [_measured_levels(unit) for unit in units]
        colours = _colours(self._touched, len(units))
        groups = [[u for u, c in enumerate(colours) if c == one] for one in sorted({*colours})]
        everything = list(range(len(units)))

        def timed(group: Sequence[int]) -> list[_Timed]:
            """With these units alone narrower, at each of the widths; each beside the whole model,
            so that a machine that others slow down slows both."""
            found: list[_Timed] = []
            for step in range(1, 1 + max(len(self._levels[u]) - 1 for u in group)):
                gone = [one for u in group for one in units[u].gone(self._level_at(u, step))]
                narrow = measured(without(model, channels, gone))
                found.append(_Timed(np.array(measured(model)), np.array(narrow)))
            return found

        runs = [timed(group) for group in groups]
        joint = timed(everything) if len(groups) > 1 else runs[0]
        whole = [one.whole for group in (*runs, joint) for one in group]
        self._base = np.median(np.array(whole, np.float64), axis=0)
        tables = [self._table(group) for group in runs]
        self._alone = {u: rows for group, rows in zip(groups, tables, strict=True) for u in group}
        self._all = self._table(joint)
        self._readers: dict[int, list[int]] = {u: [] for u in everything}
        for op, some in enumerate(self._touched):
            for u in some:
                self._readers[u].append(op)

    @property
    def whole(self) -> float:
        return float(self._base.sum())

    def of(self, levels: Sequence[int]) -> float:
        """The time of a run with these levels."""
        ops = (self._op(op, levels) for op, some in enumerate(self._touched) if some)
        fixed = [not some for some in self._touched] + [True]
        return float(self._base[fixed].sum()) + sum(float(one[0]) for one in ops)

    def along(self, levels: Sequence[int], unit: int) -> Float64s:
        """The times of a run with each level of one unit, the others unchanged."""
        return self.of(levels) - self.saved(levels, unit)

    def saved(self, levels: Sequence[int], unit: int) -> Float64s:
        """The time that each level of one unit saves, the others unchanged."""
        every = np.arange(len(self._units[unit].levels), dtype=np.float64)
        saved = np.zeros(len(every))
        for op in self._readers[unit]:
            saved = saved + float(self._op(op, levels)[0]) - self._op(op, levels, unit, every)
        return saved

    def beside(self, unit: int) -> frozenset[int]:
        """The units whose savings depend on the level of one: those that share an op with it."""
        return frozenset(other for op in self._readers[unit] for other in self._touched[op])

    def _table(self, runs: "Sequence[_Timed]") -> Float64s:
        """A row for each width: the times of ops, scaled to the machine's usual speed. Less work
        never takes longer: where it seems to, that is chance."""
        usual = float(self._base.sum())
        rows = [one.narrow * (usual / max(float(one.whole.sum()), 1e-9)) for one in runs]
        return np.minimum.accumulate(np.array([self._base, *rows]), axis=0)

    def _level_at(self, unit: int, step: int) -> int:
        known = self._levels[unit]
        return known[min(step, len(known) - 1)]

    def _op(
        self,
        op: int,
        levels: Sequence[int],
        moving: int | None = None,
        every: Float64s | None = None,
    ) -> Float64s:
        """The time of an op; where a unit moves, at each of its levels."""
        base = max(float(self._base[op]), 1e-9)
        time: Float64s = np.full(1, base)
        nearest: Float64s = np.full(1, np.inf)
        for unit in self._touched[op]:
            at = np.array(every if unit == moving else [levels[unit]], np.float64)
            step = np.interp(at, self._levels[unit], np.arange(len(self._levels[unit])))
            rows = self._alone[unit][:, op]
            time = time * np.interp(step, np.arange(len(rows)), rows) / base
            nearest = np.minimum(nearest, step)
        if len(self._touched[op]) > 1:
            time = time * np.interp(nearest, np.arange(len(self._all)), self._joint(op, base))
        return time

    def _joint(self, op: int, base: float) -> Float64s:
        """The saving of all units of an op together, relative to the sum of their separate
        savings."""
        found = self._all[:, op] / base
        for unit in self._touched[op]:
            rows = self._alone[unit][:, op] / base
            steps = np.minimum(np.arange(len(found)), len(rows) - 1)
            found = found / np.maximum(rows[steps], 1e-3)
        return np.clip(found, 1 / _MOST_JOINT, _MOST_JOINT)


def _touched(model: Model, channels: Channels, units: Sequence[Unit]) -> list[tuple[int, ...]]:
    """The units that each op reads or writes channels of."""
    unit_of = {one: place for place, unit in enumerate(units) for one in unit.order}
    tensors: dict[Tensor, frozenset[int]] = {
        tensor: frozenset(unit_of[one] for axis in axes for one in axis.tolist() if one in unit_of)
        for tensor, axes in channels.places.items()
    }
    return [
        tuple(
            sorted(set[int]().union(*(tensors.get(t, ()) for t in _all_of(op.inputs, op.outputs))))
        )
        for op in model.main.ops
    ]


def _all_of(*groups: Iterable[Tensor | None]) -> Iterable[Tensor]:
    return (tensor for group in groups for tensor in group if tensor is not None)


def _colours(touched: Sequence[tuple[int, ...]], count: int) -> list[int]:
    """A colour for each unit; units of one op have different colours."""
    beside: Mapping[int, set[int]] = {unit: set() for unit in range(count)}
    for some in touched:
        for unit in some:
            beside[unit].update(some)
    colours: dict[int, int] = {}
    for unit in range(count):
        taken = {colours[other] for other in beside[unit] if other in colours}
        colours[unit] = next(n for n in range(count + 1) if n not in taken)
    return [colours[unit] for unit in range(count)]


def _measured_levels(unit: Unit) -> list[int]:
    last = len(unit.levels) - 1
    return sorted({round(x) for x in np.linspace(0, last, min(last, _WIDTHS) + 1).tolist()})
