"""`quantize`: weights, and where asked what flows between the ops, as small numbers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from litesmith.errors import BadInput, CannotApply
from litesmith.ir.edit import called_graphs, with_main
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Model, Op, Tensor, constant_numbers
from litesmith.numeric.arrays import ACTIVATIONS
from litesmith.numeric.ranges import ESTIMATORS, Seen, estimate
from litesmith.passes.core.layers import layer_of, layers_of, unpacked_constants
from litesmith.passes.core.lstm import CELL, lstm_of
from litesmith.passes.core.schemes import SCHEMES, Names, Scheme, chosen, roles
from litesmith.passes.core.step import Change, Context, Skip, Tools
from litesmith.passes.quantizing import integer_lstm
from litesmith.passes.quantizing.attention_range import (
    attention_scores,
    lowest_peaks,
    raise_lows,
)
from litesmith.passes.quantizing.integer_graph import IntegerGraph, conversions, integer_tensors
from litesmith.passes.quantizing.scales import FLOAT, Range, covered, form_of, real_tensors
from litesmith.passes.quantizing.stored_weights import store_weights
from litesmith.passes.tidy.fold import Fold
from litesmith.phrases import phrase
from litesmith.units import plain

_IO = ("float", "int8", "uint8", "int16")
_STEPS = {"int8": 255, "int16": 65534}

# Each widening of one output may make that of the next layer too fine.
_MOST_WIDENINGS = 100


@dataclass(frozen=True)
class Quantize:
    """Store weights, and compute, in small numbers.

    to           float16, dynamic, dynamic-int4, weight-int8, weight-int4: float data between the
                 ops; int8, int16x8, w4a8: integers, with scales taken from data
    io           the model's own inputs and outputs: float, or int8, uint8, int16
    keep, only   ops to leave as they are, or the only ones to change: a number, a kind, or a
                 pattern for the name of what an op writes
    ranges       how a range is taken from what was seen: minmax, percentile or mse
    per_channel  a scale for each output channel of a weight, or one for all of it
    block        int4 weights of fully connected layers: a scale for each so many inputs
    """

    to: str = "int8"
    io: str = "float"
    keep: Names = ()
    only: Names = ()
    ranges: str = "minmax"
    per_channel: bool = True
    block: int = 0

    def apply(self, model: Model, context: Context) -> Change:
        scheme = self._checked()
        named = {t for op in chosen(model.graphs, self.keep, self.only) for t in op.outputs}
        model = Fold(float16=True).apply(model, context).model
        ops = {op for _, _, op in model.ops() if named.intersection(op.outputs)}
        if scheme.is_integer:
            return self._integer(model, scheme, ops, context)
        change = store_weights(model, scheme, ops, per_channel=self.per_channel, block=self.block)
        if not change.touched:
            raise CannotApply(self._nothing_to_do(model, ops, change.skipped))
        return change

    def _checked(self) -> Scheme:
        _refuse_unknown("to", self.to, SCHEMES)
        _refuse_unknown("io", self.io, _IO)
        _refuse_unknown("ranges", self.ranges, ESTIMATORS)
        scheme = SCHEMES[self.to]
        if self.io != "float" and not scheme.is_integer:
            raise BadInput(
                "quantize(to={to}): inputs and outputs stay float; leave out io", self.to
            )
        if self.io != "float" and (self.io == "int16") != (scheme.data == "int16"):
            raise BadInput(
                "quantize(to={to}, io={io}): int16 goes with int16x8 alone", self.to, self.io
            )
        if self.block < 0 or (self.block and self.to != "dynamic-int4"):
            raise BadInput("quantize(to={to}): block is for to=dynamic-int4 only", self.to)
        return scheme

    def _nothing_to_do(self, model: Model, ops: set[Op], skipped: Sequence[Skip]) -> str:
        is_float = not integer_tensors(model)
        if self.keep and is_float and any(op not in ops for op in layers_of(model.main)):
            return phrase(
                "quantize(to={to}): no layer of the model is left to change beside those that are "
                "kept; keep fewer ops, or use the file as it is",
                self.to,
            )
        return _nothing_to_do(model, self.to, skipped)

    def _integer(self, model: Model, scheme: Scheme, ops: set[Op], context: Context) -> Change:
        """Integers in the main graph; graphs that control flow runs stay float."""
        unpacked = unpacked_constants(model.main)
        reasons = {op: _why_not(op, scheme, unpacked) for op in model.main.ops}
        integer = [op for op in model.main.ops if op in ops and not reasons[op]]
        skipped = [Skip(op_name(op), why) for op, why in reasons.items() if op in ops and why]
        skipped = [skip for skip in skipped if skip.why != _NO_NUMBERS]
        if not (integer if self.only else any(layer_of(op) or lstm_of(op) for op in integer)):
            raise CannotApply(self._nothing_to_do(model, ops, skipped))
        _refuse_spoiled(integer, self.to)
        skipped += _other_graphs(model)
        ranges = self._ranges(model, integer, context)
        risky = [op for op in integer if _may_divide_by_zero(op, ranges)]
        skipped += [Skip(op_name(op), _BOTH_SIGNS) for op in risky]
        integer = [op for op in integer if op not in risky]
        if not integer:
            raise CannotApply(self._nothing_to_do(model, ops, skipped))
        work = self._work(model.main, integer, scheme, ranges)
        for _ in range(_MOST_WIDENINGS):
            wider = work.widened()
            if not wider:
                break
            ranges |= wider
            work = self._work(model.main, integer, scheme, ranges)
        graph = work.graph()
        replaced = with_main(model, graph, work.boundary)
        return Change(replaced, tuple(work.touched), (*skipped, *work.skipped))

    def _work(
        self, graph: Graph, ops: Sequence[Op], scheme: Scheme, ranges: Mapping[Tensor, Range]
    ) -> IntegerGraph:
        return IntegerGraph(
            graph, ops, scheme=scheme, ranges=ranges, per_channel=self.per_channel, io=self.io
        )

    def _ranges(self, model: Model, ops: Sequence[Op], context: Context) -> dict[Tensor, Range]:
        """The real numbers that each tensor of the integer ops takes."""
        tensors = dict.fromkeys(t for op in ops for t in (*real_tensors(op), *_cells(op)))
        computed = [t for t in tensors if not t.is_const]
        spans = {t: _span(t) for t in tensors if t.is_const}
        there = conversions(model.main).forms
        spans |= {t: covered(form) for t, form in there}
        data = SCHEMES[self.to].data
        wider = {t: stored for (t, form), stored in there.items() if form[0] != data}
        tools = context.need_tools(f"quantize(to={self.to})")
        what = frozenset({"range"} if self.ranges == "minmax" else {"range", "histogram"})
        bounds = _bounds(model.main)
        ends = _ends(model.main)
        # What was quantized before, in the same recipe, must not decide the ranges of the rest.
        for source in filter(None, (context.reference, model)):
            known = set(source.main.tensors)
            wanted = [t for t in computed if t in known and t not in spans]
            if wanted:
                seen = tools.observe(source, wanted, what)
                spans |= {t: self._range(seen[t], bounds.get(t), t in ends) for t in wanted}
                scores = [t for t in attention_scores(source) if t in set(wanted)]
                peaks = lowest_peaks(source, scores, tools.observe)
                spans |= raise_lows(spans, peaks, data)
        if context.reference is not None and wider:
            spans |= self._own_ranges(context.reference, wider, spans, tools)
        return spans

    def _own_ranges(
        self,
        reference: Model,
        wider: Mapping[Tensor, Tensor],
        spans: Mapping[Tensor, Range],
        tools: Tools,
    ) -> dict[Tensor, Range]:
        """The ranges of what another scheme holds in forms of its own, such as int16 around zero:
        those of the float model, which may lie to one side, within what the form reaches."""
        float_named = Counter(t.name for t in reference.main.tensors)
        origins = {
            t.name: t
            for t in reference.main.tensors
            if float_named[t.name] == 1 and form_of(t) == FLOAT and not t.is_const
        }
        found = {t: origins[s.name] for t, s in wider.items() if s.name in origins}
        seen = tools.observe(reference, list(dict.fromkeys(found.values())), frozenset({"range"}))
        own = {t: self._range(seen[origin], None, is_exact=True) for t, origin in found.items()}
        return {
            t: (max(low, spans[t][0]), min(high, spans[t][1]))
            for t, (low, high) in own.items()
            if low < high
        }

    def _range(self, seen: Seen, bounds: Range | None, is_exact: bool) -> Range:
        """Inputs and scores are never clipped: the largest decides, however rare it is."""
        how = "minmax" if is_exact else self.ranges
        steps = _STEPS[SCHEMES[self.to].data]
        return estimate(how, seen, steps, bounds or ACTIVATIONS["NONE"])


_NO_NUMBERS = phrase("it has no real numbers")


def why_float(model: Model, to: str) -> dict[int, str]:
    """The ops of the main graph that a scheme of integers leaves float, and why, by their numbers
    in the file."""
    folded = Fold(float16=True).apply(model, Context()).model
    unpacked = unpacked_constants(folded.main)
    by_outputs = {op.outputs: _why_not(op, SCHEMES[to], unpacked) for op in folded.main.ops}
    told = ((n, by_outputs.get(op.outputs, "")) for n, op in enumerate(model.main.ops))
    return {number: why for number, why in told if why and why != _NO_NUMBERS}


def _why_not(op: Op, scheme: Scheme, unpacked: Mapping[Tensor, Op]) -> str:
    """Why an op cannot compute in integers; "" where it can."""
    row = OPS[op.kind]
    if not real_tensors(op) or row.rescales:
        return _NO_NUMBERS
    if scheme.data not in row.versions:
        return phrase(
            "there is no {data} kernel for it; it stays float between two conversions", scheme.data
        )
    lstm = lstm_of(op)
    if lstm is not None:
        return integer_lstm.why_float(lstm)
    words = roles(op)
    if "v" in words or any(t.variable for t in op.inputs if t is not None):
        return phrase("it keeps a state between runs, which stays float")
    activation = op.option("fused_activation_function")
    if activation is not None and activation not in ACTIVATIONS:
        return phrase("its fused activation {activation} has no integer form", activation)
    if "w" in words and row.scale != "same":
        layer = layer_of(op)
        if layer is None:
            return phrase("its weights or bias are computed, or it has several; it stays float")
        if layer.weight.dtype != "float32" or layer.weight.quant is not None:
            return phrase("its weights are {dtype} already", layer.weight.dtype)
    if any(t in unpacked or (t.is_const and t.quant is not None) for t in op.inputs if t):
        return phrase("its constants are stored in small numbers already")
    if any(t.sparsity for t in op.inputs if t is not None):
        return phrase("its weights are stored sparse")
    return ""


def _cells(op: Op) -> list[Tensor]:
    """The states of an op that its integer kernel wants the range of."""
    lstm = lstm_of(op)
    return [] if lstm is None else [lstm.need(CELL)]


_BOTH_SIGNS = phrase("its divisor takes both signs, and the integer kernel ends the run at 0")


def _may_divide_by_zero(op: Op, ranges: Mapping[Tensor, Range]) -> bool:
    divisor = op.inputs[1] if OPS[op.kind].arithmetic == "/" and len(op.inputs) > 1 else None
    return divisor is not None and not divisor.is_const and ranges[divisor][0] < 0


def _refuse_spoiled(ops: Sequence[Op], to: str) -> None:
    """Raises where a constant that an op computes with is no number."""
    for op in ops:
        for tensor in _computed_with(op):
            values = tensor.values()
            # What only moves values may have an infinite bound: the largest code stands for it.
            is_bound = OPS[op.kind].scale == "same" and not np.isnan(values).any()
            if not is_bound and not np.isfinite(values).all():
                raise CannotApply(
                    "quantize(to={to}): {name!r} of {op_name} holds numbers that are "
                    "infinite or not numbers; keep that op, or mend the model",
                    to,
                    plain(tensor.name),
                    op_name(op),
                )


def _computed_with(op: Op) -> list[Tensor]:
    """The constants that stand for real numbers: weights, a bias, data."""
    layer = layer_of(op)
    weights = [] if layer is None else [layer.weight, layer.bias]
    if lstm_of(op) is not None:
        weights = [t for t in op.inputs if t is not None and t.dtype == "float32"]
    return [t for t in (*weights, *real_tensors(op)) if t is not None and t.is_const]


def _other_graphs(model: Model) -> list[Skip]:
    """The graphs that stay float: those of control flow, and of further signatures."""
    called = {number for _, _, op in model.ops() for number in called_graphs(op)}
    return [
        Skip(
            phrase("graph {name!r}", graph.name),
            phrase("it is run by control flow; only the main graph computes in integers")
            if number in called
            else phrase("only the main graph computes in integers"),
        )
        for number, graph in enumerate(model.graphs)
        if number
    ]


def _bounds(graph: Graph) -> Mapping[Tensor, Range]:
    """What a fused activation lets through."""
    bounds: dict[Tensor, Range] = {}
    for op in graph.ops:
        activation = op.option("fused_activation_function")
        name = activation if isinstance(activation, str) else op.kind
        if name in ACTIVATIONS and name != "NONE":
            bounds |= dict.fromkeys(op.outputs, ACTIVATIONS[name])
    return bounds


def _ends(graph: Graph) -> set[Tensor | None]:
    """The graph's inputs, its outputs, and the scores that a softmax turns into them."""
    ends: set[Tensor | None] = {*graph.inputs, *graph.outputs}
    for op in reversed(graph.ops):
        moves = OPS[op.kind].scale == "same" and not ends.isdisjoint(op.outputs)
        if moves or OPS[op.kind].is_softmax:
            ends.update(op.inputs)
    return ends


def _span(tensor: Tensor) -> Range:
    numbers = constant_numbers(tensor)
    if numbers is None or not numbers.size:
        return 0.0, 0.0
    return float(numbers.min()), float(numbers.max())


def _nothing_to_do(model: Model, to: str, skipped: Sequence[Skip]) -> str:
    held = integer_tensors(model)
    if held:
        return phrase(
            "quantize(to={to}): the model is quantized already ({held}), and no float layer "
            "is left to change; start from the float model, or upgrade a uint8 one",
            to,
            held,
        )
    if skipped:
        return phrase(
            "quantize(to={to}): no layer of the model can be changed ({where}: {why}); use another "
            "scheme, or the file as it is",
            to,
            skipped[0].where,
            skipped[0].why,
        )
    kinds = sorted({op.label for op in model.main.ops})
    return phrase(
        "quantize(to={to}): no layer of the model can be changed: its ops ({kinds}) have no "
        "weights; use the file as it is",
        to,
        ", ".join(map(plain, kinds[:6])),
    )


def _refuse_unknown(setting: str, value: str, known: Mapping[str, object] | Sequence[str]) -> None:
    if value not in known:
        raise BadInput(
            "quantize({setting}={value}): there are {known}", setting, value, ", ".join(known)
        )
