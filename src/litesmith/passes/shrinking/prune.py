"""`prune`: weights that matter least become zero."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from litesmith.errors import BadInput, CannotApply
from litesmith.ir.edit import consumers, rewrite, with_main
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS, op_macs
from litesmith.ir.types import Array, Model, Op, Tensor, frozen
from litesmith.numeric.affine import from_rows, rows_of
from litesmith.numeric.sparse import (
    MULTIPLES,
    UNITS,
    Curve,
    allocate,
    error_curve,
    fit_curve,
    importance,
    keep_mask,
)
from litesmith.passes.core.layers import Layer, layers_of, shared_by
from litesmith.passes.core.schemes import Names, chosen, roles
from litesmith.passes.core.step import Change, Context, Masks, Skip, Tools, Tuned
from litesmith.passes.core.weight_structure import codebook_of
from litesmith.passes.shrinking.prune_sensitivity import (
    Judge,
    Picked,
    input_sizes,
    picked,
    weight_sizes,
)
from litesmith.passes.shrinking.restore import restored
from litesmith.passes.tidy.fold import Fold
from litesmith.phrases import phrase
from litesmith.units import percent_text, plain

_BLOCKS = (*UNITS, "channels")
_SCHEDULES = ("constant", "gradual")

# Fewer weights than this are worth more than their zeros.
_LEAST_WEIGHTS = 256

# A layer on the model's own input with so few channels is the eye of the model.
_FEW_CHANNELS = 4

# The number of samples for measuring errors, the shares of zeros to measure at, the number of
# models to open, and the work limit; where these do not suffice, fewer shares are measured.
_SAMPLES = 32
_SHARES = (0.5, 0.8, 0.9, 0.65, 0.3)
_MOST_OPENED = 100
_MOST_MACS = 1_000_000_000_000

# Nothing can be this many times as fast.
_MOST_SPEEDUP = 100

# The number of samples by which losses are restored.
_RESTORING = 256

# However little a layer seems to matter, it keeps this share of what layers keep on average.
_LEAST_KEPT = 0.25


@dataclass(frozen=True)
class Prune:
    """Make the weights zero that matter least, each layer by how much it can stand.

    With data, what a layer can stand is measured by the model's results, and the remaining weights
    and biases are solved to make up for the missing ones; without data, the weights alone decide.

    sparsity    the share of zeros among all weights that are pruned
    block       1x1: single weights; 1x4: four neighbouring inputs of an output, which a runtime can
                skip; 2:4: two of each four; channels: whole ones, which are removed from the model
    speedup     for channels, in place of sparsity: how many times as fast a run should be. Widths
                are chosen by the time of every layer at each width, measured on the target
    on          the target of speedup
    schedule    constant: all zeros come before the tuning, and the rest is solved to make up for
                them; gradual: they come during the tuning, which has to be a long one
    keep, only  ops to leave alone, or the only ones to prune, as for `quantize`
    tune        tune the remaining weights: true, false, or where it can be done
    """

    sparsity: float = 0.5
    block: str = "1x1"
    schedule: str = "constant"
    keep: Names = ()
    only: Names = ()
    tune: bool | None = None
    speedup: float = 0.0
    on: str = "cpu:1"

    def apply(self, model: Model, context: Context) -> Change:
        self._check()
        tunes = context.may_tune("prune", self.tune)
        model, ops = _float_model(model, chosen(model.graphs, self.keep, self.only))
        if self.block == "channels":
            return self._channels(model, ops, context)
        parts, skipped = self._parts(model, ops)
        if not parts:
            why = phrase(" ({where}: {why})", skipped[0].where, skipped[0].why) if skipped else ""
            raise CannotApply("prune: no layer of the model can be pruned{why}", why)
        is_gradual = tunes and self.schedule == "gradual"
        if is_gradual:
            _refuse_clustered(parts)
        tools = context.tools
        data = picked(tools, model, _RESTORING, _SAMPLES) if tools is not None else None
        parts = _planned(_Given(model, tools, data), parts, self)
        if is_gradual:
            found = context.tuned(model, _masks(parts))
        else:
            result, left = _one_shot(_Given(model, tools, data), parts)
            skipped += left
            found = context.tuned(result) if tunes else Tuned(result)
        skipped += context.why_not_tuned("prune", self.tune)
        lines = _lines(model, found.model, parts)
        return Change(found.model, lines, tuple(skipped), found.notes, found.steps)

    def _check(self) -> None:
        if not 0 <= self.sparsity < 1:
            raise BadInput(
                "prune(sparsity={sparsity}): a share of zeros from 0 to below 1 is needed",
                self.sparsity,
            )
        for name, value, known in (
            ("block", self.block, _BLOCKS),
            ("schedule", self.schedule, _SCHEDULES),
        ):
            if value not in known:
                raise BadInput(
                    "prune({name}={value}): there are {known}", name, plain(value), ", ".join(known)
                )
        refuse_slower(self.speedup or None)
        if self.speedup and (self.block != "channels" or self.sparsity != Prune.sparsity):
            raise BadInput(
                "prune(speedup={speedup}): channels go for it, and no sparsity is given; take "
                "block=channels without sparsity",
                self.speedup,
            )
        if self.block == "2:4" and self.sparsity != 0.5:
            raise BadInput(
                "prune(sparsity={sparsity}, block=2:4): two of four are half of them; leave "
                "out sparsity, or take block=1x1",
                self.sparsity,
            )

    def _channels(self, model: Model, ops: set[Op], context: Context) -> Change:
        from litesmith.passes.shrinking.remove_channels import SpeedGoal, remove_channels

        tunes = context.may_tune("prune", self.tune)
        given = context if tunes else replace(context, tune=None)
        wanted = SpeedGoal(self.speedup, self.on) if self.speedup else self.sparsity
        change = remove_channels(model, wanted, given, ops)
        if not tunes:
            left = context.why_not_tuned("prune", self.tune)
            return replace(change, skipped=(*change.skipped, *left))
        found = context.tuned(change.model)
        return Change(found.model, change.touched, change.skipped, found.notes, found.steps)

    def _parts(self, model: Model, ops: set[Op]) -> tuple[list["Prunable"], list[Skip]]:
        """The weights to prune, each once, and the layers that stay."""
        layers = layers_of(model.main)
        readers = consumers(model.main)
        parts: list[Prunable] = []
        skipped = [
            Skip(op_name(op), why)
            for op in model.main.ops
            if op in ops and (why := _why_no_layer(op, layers))
        ]
        users = shared_by([layer for op, layer in layers.items() if op in ops])
        for weight, sharing in users.items():
            layer = sharing[0]
            why = _why_not(layer, model, self.block, named=bool(self.only))
            if len(readers[weight]) > len(sharing):
                why = phrase("other ops use its weights too")
            if why:
                skipped += [Skip(op_name(user.op), why) for user in sharing]
            else:
                parts.append(Prunable(layer, self.block))
        order: dict[str, int] = {op_name(op): n for n, op in enumerate(model.main.ops)}
        return parts, sorted(skipped, key=lambda skip: order[skip.where])


def refuse_slower(speedup: float | None) -> None:
    """Raises where a speed is asked for that is none."""
    if speedup is not None and not 1 < speedup < _MOST_SPEEDUP:
        raise BadInput(
            "prune: speedup={speedup}; it is how many times as fast a run is to be, above 1, "
            "such as 1.5",
            speedup,
        )


class Prunable(NamedTuple):
    """A weight to prune: by a layer that has it, the size of its inputs, and how much is to go."""

    layer: Layer
    block: str
    sizes: Array | None = None
    removed: int = 0

    @property
    def weight(self) -> Tensor:
        return self.layer.weight

    @property
    def units(self) -> int:
        return self.weight.elements // UNITS[self.block]

    def rows(self, weight: Array) -> Array:
        return rows_of(importance(weight, self.sizes), self.layer.axis)

    def mask(self, weight: Array, removed: int) -> Array:
        importances = self.rows(weight)
        peaks = _peaks(self.layer)
        if peaks is not None:
            importances = np.where(peaks, np.inf, importances)
        rows = keep_mask(importances, self.block, removed)
        return from_rows(rows, self.weight.shape, self.layer.axis)

    def pruned(self, removed: int | None = None) -> Tensor:
        values = self.weight.values()
        mask = self.mask(values, self.removed if removed is None else removed)
        return replace(self.weight, data=frozen(np.where(mask, values, np.float32(0))))


def _peaks(layer: Layer) -> Array | None:
    """The largest weight of all that share a scale, among the rows of a clustered weight: without
    it the scale would be another, and the others no codes. None where there is no book."""
    values = layer.weight.values()
    rows = rows_of(np.abs(values), layer.axis)
    if codebook_of(values, layer.axis) is None:
        if codebook_of(values, None) is None:
            return None
        rows = rows.reshape(1, -1)
    peaks = np.zeros(rows.shape, bool)
    np.put_along_axis(peaks, rows.argmax(axis=1)[:, None], True, axis=1)
    return peaks.reshape(layer.channels, -1)


def _refuse_clustered(parts: Sequence[Prunable]) -> None:
    for part in parts:
        if _peaks(part.layer) is not None:
            raise CannotApply(
                "prune(schedule=gradual): {op_name} is clustered; prune first, then cluster",
                op_name(part.layer.op),
            )


def _float_model(model: Model, ops: set[Op]) -> tuple[Model, set[Op]]:
    """The model with float16 weights as float32, and the ops that these are there; raises where it
    is quantized."""
    named = {t for op in ops for t in op.outputs}
    model = Fold(float16=True).apply(model, Context()).model
    for op, layer in layers_of(model.main).items():
        if any(t.quant is not None for t in (layer.weight, layer.data)):
            raise CannotApply(
                "prune: {op_name} is quantized; prune the float model, then quantize it",
                op_name(op),
            )
    return model, {op for op in model.main.ops if not named.isdisjoint(op.outputs)}


def _why_no_layer(op: Op, layers: Mapping[Op, Layer]) -> str:
    is_one = op in layers or "w" not in roles(op) or "x" not in roles(op)
    return "" if is_one else phrase("its weights are computed, or it has several")


def _why_not(layer: Layer, model: Model, block: str, *, named: bool) -> str:
    """Why a layer's weights stay as they are; "" where they need not."""
    weight, row = layer.weight, OPS[layer.op.kind]
    inputs = weight.elements // layer.channels
    if weight.dtype != "float32" or not np.isfinite(weight.values()).all():
        return phrase("its weights are no float32 numbers, or not all of them are finite")
    if inputs % MULTIPLES[block]:
        return phrase(
            "each of its outputs has {inputs} inputs, no multiple of {multiples}",
            inputs,
            MULTIPLES[block],
        )
    if weight in model.main.outputs:
        return phrase("its weights are an output of the model")
    if named:
        return ""
    if row.is_depthwise:
        return phrase(
            "depthwise weights are few, and each matters; name it in only= to prune it too"
        )
    if weight.elements < _LEAST_WEIGHTS:
        return phrase("it has {elements} weights, too few to gain anything", weight.elements)
    few = weight.shape[-1] <= _FEW_CHANNELS and not row.is_dense
    if few and layer.data in model.main.inputs:
        return phrase(
            "it is the first layer, on {shape} channels; name it in only=", weight.shape[-1]
        )
    return ""


class _Given(NamedTuple):
    """A model and the data to see it with, where there is some."""

    model: Model
    tools: Tools | None
    data: Picked | None


def _planned(seen: _Given, parts: Sequence[Prunable], step: Prune) -> list[Prunable]:
    """The parts with how much is to go from each, for the least error."""
    parts = _with_sizes(seen, parts)
    if step.block == "2:4":
        return [part._replace(removed=part.units // 2) for part in parts]
    most = 1 - _LEAST_KEPT * (1 - step.sparsity)
    curves = [error_curve(part.rows(part.weight.values()), step.block, most) for part in parts]
    if len(parts) > 1 and step.sparsity:
        curves = _measured(seen, parts, curves)
    total = round(step.sparsity * sum(part.units for part in parts))
    counts = allocate(curves, total)
    return [part._replace(removed=count) for part, count in zip(parts, counts, strict=True)]


def _with_sizes(seen: _Given, parts: Sequence[Prunable]) -> list[Prunable]:
    """The parts with the size of their inputs, where there is data."""
    model, tools, data = seen
    if tools is None or data is None:
        return list(parts)
    sizes = input_sizes(model, [part.layer for part in parts], tools, data.samples)
    return [part._replace(sizes=weight_sizes(part.layer, sizes[part.layer.data])) for part in parts]


def _measured(seen: _Given, parts: Sequence[Prunable], curves: Sequence[Curve]) -> list[Curve]:
    """The curves brought to the error at the model's results when one layer alone is pruned."""
    model, tools, data = seen
    runs = _MOST_MACS // max(sum(map(op_macs, model.main.ops)), 1)
    count = min(_SAMPLES, max(runs // len(parts), 8))
    shares = _SHARES[: min(_MOST_OPENED, runs // count) // len(parts)]
    if not shares or tools is None or data is None:
        return list(curves)
    judge = Judge(model, tools, data.samples[:count])
    found: list[Curve] = []
    for part, curve in zip(parts, curves, strict=True):
        counts = {min(round(share * part.units), int(curve.removed[-1])) for share in shares}
        errors = [(count, judge.error({part.weight: part.pruned(count)})) for count in counts]
        found.append(fit_curve(curve, errors))
    return found


def _one_shot(seen: _Given, parts: Sequence[Prunable]) -> tuple[Model, list[Skip]]:
    """The model after all removals, with the losses restored as far as the data allows."""
    model, tools, data = seen
    fewer = {part.weight: part.pruned() for part in parts}
    if all(np.array_equal(old.values(), new.values()) for old, new in fewer.items()):
        return model, []
    pruned = with_main(model, rewrite(model.main, tensors=fewer))
    if tools is None or data is None:
        return pruned, []
    return restored(model, pruned, tools, data.places)


def _masks(parts: Sequence[Prunable]) -> Masks:
    """The masks of gradual pruning: many zeros early, few late, all of them at the end."""

    def masks(progress: float, weights: Mapping[Tensor, Array]) -> Mapping[Tensor, Array]:
        share = 1 - (1 - min(max(progress, 0.0), 1.0)) ** 3
        return {
            part.weight: part.mask(weights[part.weight], round(share * part.removed))
            for part in parts
            if part.weight in weights
        }

    return masks


def _lines(model: Model, after: Model, parts: Sequence[Prunable]) -> tuple[str, ...]:
    """The outcome for each weight, counted in the result; raises where zeros are missing."""
    before, results = layers_of(model.main), list(layers_of(after.main).values())
    by_op = dict(zip(before, results, strict=True))
    lines: list[str] = []
    for part in parts:
        layer = by_op[part.layer.op]
        values = layer.weight.values()
        zeros = values.size - int(np.count_nonzero(values))
        wanted = part.removed * UNITS[part.block]
        if zeros < wanted:
            raise CannotApply(
                "prune: {op_name} has {zeros} zeros after tuning where {wanted} belong",
                op_name(layer.op),
                zeros,
                wanted,
            )
        if zeros:
            lines.append(
                phrase(
                    "pruned {op_name} to {share}",
                    op_name(layer.op),
                    percent_text(zeros / values.size),
                )
            )
    return tuple(lines)
