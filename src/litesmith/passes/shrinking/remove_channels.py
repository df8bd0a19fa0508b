"""Whole channels removed: smaller tensors, fewer multiply-accumulates.

Channels are removed where they cost the model least for the work that they save. The loss of a
layer is computed from its inputs; the effect on the model is measured at its outputs.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from litesmith.errors import BadInput, CannotApply
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import op_macs
from litesmith.ir.types import Array, Graph, Model, Op, Tensor
from litesmith.passes.core.layers import Layer
from litesmith.passes.core.step import Change, Clock, Context, Skip, Tools
from litesmith.passes.shrinking.channel_choice import ChosenLevels, Judge, choose_levels
from litesmith.passes.shrinking.channel_cut import without
from litesmith.passes.shrinking.channel_loss import (
    Float64s,
    guessed,
    made_up,
    moments,
    reader,
    readers_of,
    some_samples,
)
from litesmith.passes.shrinking.channel_refit import Refit
from litesmith.passes.shrinking.channel_rules import Channels, channel_ids
from litesmith.passes.shrinking.channel_times import WidthTimes
from litesmith.passes.shrinking.channel_units import LAYERS, Unit, Work, find_units, weights_gone
from litesmith.passes.tidy.fold import Fold
from litesmith.phrases import phrase
from litesmith.units import factor_text, percent_text, plain

# Multiply-accumulates that measuring at the outputs may cost.
_MOST_WORK = 4e10
_LEAST_SAMPLES, _MOST_SAMPLES = 4, 64

# The shares of each unit that are removed for the measurements.
_PROBED = (0.25, 0.5, 0.75)

# The largest factor between the computed and the measured effect on the model.
_MOST_SCALE = 8.0

# Where training follows, the remaining capacity counts more than the immediate loss, by this power.
# ResNet-8 at 60 % of its work, after ten epochs: 82.0 % right without, 83.2 % with.
_TO_LEARN_WITH = 0.75

# So many other widths are tried by what the outputs mind, at so many multiply-accumulates in all.
# Models of no more are fitted for each try, on some samples; all are judged by the last samples,
# others where there are enough. Widths of ResNet-8 that lose 41 pt before they are fitted lose 8 pt
# afterwards, others 23 and 13: what is not fitted says little.
_MOST_TRIES, _MOST_TRIED_WORK = 100, 4e12
_MOST_TO_FIT = 50_000_000
_TRIED_SAMPLES, _MOST_JUDGING = 512, 1024


class SpeedGoal(NamedTuple):
    """The wanted speed-up of a run, and its target."""

    times: float
    on: str


def remove_channels(
    model: Model,
    wanted: float | SpeedGoal,
    context: Context,
    ops: set[Op],
) -> Change:
    """The model without at least this share of its multiply-accumulates, or with this speed-up, and
    little more.

    Channels that layers outside of `ops` write stay. With data, the remaining layers are fitted to
    their former outputs.
    """
    _check(wanted, context)
    _refuse_quantized(model)
    fixed = {t for op in model.main.ops if op not in ops for t in op.outputs}
    folded = Fold().apply(model, context)
    model = folded.model
    channels = _held(channel_ids(model.main), model.main, fixed)
    seen = Knowledge(model, channels, context.tools, fixed)
    finely = isinstance(wanted, SpeedGoal)
    units = find_units(model.main, channels, seen.readers, finely=finely)
    if not units:
        raise CannotApply("prune: no channel can go: {a_pin}", _a_pin(model.main, channels))
    costs = seen.costs(units, fitted=context.tune is None)
    if context.tune is not None:
        costs = _blended(costs, [weights_gone(u, model.main, channels) for u in units])
    said: tuple[str, ...] = ()
    if isinstance(wanted, SpeedGoal):
        found = _faster(seen, units, costs, wanted, context)
        levels = found.levels
        said = (
            phrase(
                "{factor} on {target}, measured in turns",
                factor_text(found.times_as_fast, phrase("faster")),
                wanted.on,
            ),
        )
    else:
        levels = _chosen(units, costs, Work(model, channels), wanted)
    touched = (*folded.touched, *_told(units, levels), *said)
    gone = all_gone(units, levels)
    return Change(seen.fitted(gone), touched, tuple(_left_alone(model.main, channels)))


def _blended(costs: Sequence[Float64s], weights: Sequence[Float64s]) -> list[Float64s]:
    """Costs that include the loss of weights."""
    return [
        cost ** (1 - _TO_LEARN_WITH) * weight**_TO_LEARN_WITH
        for cost, weight in zip(costs, weights, strict=True)
    ]


def _check(wanted: float | SpeedGoal, context: Context) -> None:
    if not isinstance(wanted, SpeedGoal):
        if not 0 < wanted < 1:
            raise BadInput("prune: sparsity={sparsity}; it is between 0 and 1", wanted)
    elif context.clock is None:
        raise CannotApply("prune(speedup={speedup}): nothing here measures time", wanted.times)


def all_gone(units: Sequence[Unit], levels: Sequence[int]) -> list[int]:
    """The classes that go with these levels."""
    return [one for unit, level in zip(units, levels, strict=True) for one in unit.gone(level)]


def _faster(
    seen: "Knowledge",
    units: Sequence[Unit],
    costs: Sequence[Float64s],
    wanted: SpeedGoal,
    context: Context,
) -> ChosenLevels:
    """Levels that are measured to reach a speed; where nothing is trained afterwards, those of many
    that the outputs mind least."""
    clock: Clock | None = context.clock
    assert clock is not None
    model, channels = seen.model, seen.channels

    def proof(levels: Sequence[int]) -> float:
        small = without(model, channels, all_gone(units, levels))
        return clock.times_as_fast(model, small, wanted.on)

    def ops(one: Model) -> Sequence[float]:
        return clock.op_times(one, wanted.on)

    times = WidthTimes(model, channels, units, ops)
    judge, tries = (None, 0) if context.tune is not None else seen.judge(units)
    return choose_levels(costs, times, wanted.times, proof, judge, tries)


def _refuse_quantized(model: Model) -> None:
    for tensor in (t for graph in model.graphs for t in graph.tensors):
        if tensor.quant is not None and tensor.dtype != "float32":
            raise CannotApply(
                "prune: {name!r} is quantized, and channels go from float models only; "
                "prune the float model, then quantize",
                plain(tensor.name),
            )


def _held(channels: Channels, graph: Graph, fixed: Collection[Tensor]) -> Channels:
    """The channels with the outputs of some layers pinned."""
    pins = dict(channels.pinned)
    for op in graph.ops:
        if op.kind in LAYERS and op.outputs[0] in fixed and op.outputs[0].shape:
            for one in channels.last(op.outputs[0]).tolist():
                pins.setdefault(one, f"{op_name(op)} is to stay as it is")
    return replace(channels, pinned=pins)


def _layers_pinned(graph: Graph, channels: Channels) -> Iterable[tuple[Op, str]]:
    """The layers without a removable channel, and why."""
    for op in graph.ops:
        if op.kind in LAYERS and op.outputs[0].shape:
            written = channels.last(op.outputs[0]).tolist()
            if written and channels.pinned.keys() >= set(written):
                yield op, channels.pinned[written[0]]


def _left_alone(graph: Graph, channels: Channels) -> Iterable[Skip]:
    return (
        Skip(op_name(op), phrase("its channels stay: {why}", why))
        for op, why in _layers_pinned(graph, channels)
    )


def _a_pin(graph: Graph, channels: Channels) -> str:
    """Why the channels of the layer that writes most of them must stay."""
    pinned = list(_layers_pinned(graph, channels))
    if not pinned:
        return phrase("no layer writes more than one")
    op, why = max(pinned, key=lambda pair: op_macs(pair[0]))
    return phrase("of {op_name}, {why}", op_name(op), why)


def _told(units: Sequence[Unit], levels: Sequence[int]) -> Iterable[str]:
    for unit, level in zip(units, levels, strict=True):
        if level:
            count = len(unit.order) + unit.staying
            yield phrase(
                "removed {levels} of {count} channels of {name}",
                unit.levels[level],
                count,
                unit.name,
            )


class Knowledge:
    """What is known of a model: from some samples of the data, or from its weights alone."""

    def __init__(
        self, model: Model, channels: Channels, tools: Tools | None, fixed: Collection[Tensor]
    ) -> None:
        self.model, self.channels, self._tools, self._fixed = model, channels, tools, fixed
        self._samples = some_samples(model, tools) if tools else []
        self._whole: Refit | None = None
        self._quick: Refit | None = None
        layers = readers_of(model.main, channels)
        if tools and self._samples:
            wanted = {layer.data: layer.weight.shape[-1] for layer in layers}
            seen = moments(model, wanted, self._samples, tools)
        else:
            seen = guessed(model.main, channels, layers)
        self.readers = [reader(layer, channels, seen[layer.data]) for layer in layers]

    def without(self, gone: Collection[int]) -> Model:
        """The model without some classes; the remaining inputs of its layers make up for them."""
        small = without(self.model, self.channels, gone)
        if not self._samples:
            return small
        return made_up(self.model, small, self.readers, gone)

    def fitted(self, gone: Sequence[int]) -> Model:
        """The same, with every layer fitted to its former outputs."""
        if self._whole is None:
            self._whole = self._fit(self._samples)
        return self._fitted(gone, self._whole)

    def _fit(self, samples: Sequence[tuple[Array, ...]]) -> Refit | None:
        if not self._tools or not samples:
            return None

        def may_fit(layer: Layer) -> bool:
            return layer.op.outputs[0] not in self._fixed

        return Refit(self.model, may_fit, samples, self._tools)

    def _fitted(self, gone: Sequence[int], fit: Refit | None) -> Model:
        def kept(layer: Layer) -> Array:
            return ~np.isin(self.channels.places[layer.weight][0], gone)

        small = self.without(gone)
        return small if fit is None else fit.fitted(small, kept)

    def tried(self, gone: Sequence[int]) -> Model:
        """The same at a cost that allows many tries: fitted only where that is quick."""
        if sum(map(op_macs, self.model.main.ops)) > _MOST_TO_FIT:
            return self.without(gone)
        if self._quick is None:
            self._quick = self._fit(self._samples[:_TRIED_SAMPLES])
        return self._fitted(gone, self._quick)

    def judge(self, units: Sequence[Unit]) -> tuple[Judge | None, int]:
        """A judge of the loss in the outputs with some levels, and the number of tries that it
        affords."""
        if not self._tools or not self._samples:
            return None, 0
        tools = self._tools
        some, work = self._judging()
        wanted = _outputs(self.model, some, tools)

        def judge(levels: Sequence[int]) -> float:
            made = self.tried(all_gone(units, levels))
            return _error(_outputs(made, some, tools), wanted)

        return judge, int(min(_MOST_TRIES, _MOST_TRIED_WORK / work / len(some)))

    def costs(self, units: Sequence[Unit], *, fitted: bool = True) -> list[Float64s]:
        """The cost of each level of a unit: the losses of layers, weighted by the effect on the
        model's outputs. Where training follows, before anything is fitted: what is hard to replace
        matters then."""
        losses = [np.array([u.lost(level) for level in range(len(u.levels))]) for u in units]
        if not self._tools or not self._samples:
            return losses
        work = max(sum(map(op_macs, self.model.main.ops)), 1) * len(units) * len(_PROBED)
        some = self._samples[-int(np.clip(_MOST_WORK / work, _LEAST_SAMPLES, _MOST_SAMPLES)) :]
        wanted = _outputs(self.model, some, self._tools)
        costs: list[Float64s] = []
        for unit, lost in zip(units, losses, strict=True):
            levels = sorted({max(round(part * (len(lost) - 1)), 1) for part in _PROBED})
            tried = self.tried if fitted else self.without
            minded = [
                _error(_outputs(tried(unit.gone(level)), some, self._tools), wanted)
                for level in levels
            ]
            scales = np.array(minded) / np.maximum(lost[levels], 1e-12)
            known = np.clip(scales, 1 / _MOST_SCALE, _MOST_SCALE)
            costs.append(lost * np.interp(np.arange(len(lost)), levels, known))
        return costs

    def _judging(self) -> tuple[list[tuple[Array, ...]], int]:
        """The samples that judge, and the work of one: the last ones, which trials see least of."""
        work = max(sum(map(op_macs, self.model.main.ops)), 1)
        most = int(_MOST_TRIED_WORK / work / _MOST_TRIES)
        half = max(len(self._samples) // 2, 2 * _LEAST_SAMPLES)
        count = int(np.clip(most, 2 * _LEAST_SAMPLES, min(_MOST_JUDGING, half)))
        return self._samples[-count:], work


def _outputs(model: Model, samples: Sequence[tuple[Array, ...]], tools: Tools) -> list[Float64s]:
    with tools.opened(model) as run:
        rows = [[np.array(a, np.float64) for a in run(arrays)] for arrays in samples]
    return [np.stack(column) for column in zip(*rows, strict=True)]


def _error(got: Sequence[Float64s], wanted: Sequence[Float64s]) -> float:
    """Squared errors as a part of all that the outputs vary from sample to sample."""
    parts: list[float] = []
    for ours, theirs in zip(got, wanted, strict=True):
        spread = float(((theirs - theirs.mean(axis=0)) ** 2).sum())
        parts.append(float(((ours - theirs) ** 2).sum()) / max(spread, 1e-12))
    return float(np.mean(parts))


def _chosen(
    units: Sequence[Unit], costs: Sequence[Float64s], work: Work, sparsity: float
) -> list[int]:
    """The level of each unit that reaches the target at the least cost."""
    target = (1 - sparsity) * work.all
    levels = [0] * len(units)

    def left(changed: Mapping[int, int]) -> int:
        new = (changed.get(place, level) for place, level in enumerate(levels))
        return work.without([o for u, level in zip(units, new, strict=True) for o in u.gone(level)])

    now = work.all
    while now > target:
        steps: list[tuple[float, float, int, int]] = []
        for place, unit in enumerate(units):
            level = levels[place]
            if level + 1 < len(unit.levels):
                after = left({place: level + 1})
                cost = float(costs[place][level + 1] - costs[place][level])
                steps.append((cost / max(now - after, 1), cost, place, after))
        if not steps:
            raise CannotApply(
                "prune: at most {share} of the multiply-accumulates can go with channels; "
                "ask for a lower sparsity",
                percent_text(1 - now / work.all),
            )
        if min(steps)[3] <= target:  # the last step: what it saves beyond the target is no gain
            steps = [
                (cost, cost, place, after) for _, cost, place, after in steps if after <= target
            ]
        _, _, place, now = min(steps)
        levels[place] += 1
    for place in sorted(range(len(units)), key=lambda p: -float(costs[p][levels[p]])):
        while levels[place] and left({place: levels[place] - 1}) <= target:
            levels[place] -= 1
    return levels
