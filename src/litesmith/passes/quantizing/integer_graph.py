"""A graph on integers: conversions stand where a float op and an integer one meet, only there."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from litesmith.errors import CannotApply
from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import regraph
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Model, Op, Record, Tensor, frozen
from litesmith.numeric.affine import keep_bias_inside, quantize, weight_scales
from litesmith.passes.core.layers import (
    LEAST_RATIO,
    MOST_RATIO,
    Layer,
    coded_bias,
    coded_weight,
    layer_of,
    most_bias,
    real_bias,
    shared_by,
    stored_weight,
)
from litesmith.passes.core.lstm import CELL, lstm_of
from litesmith.passes.core.schemes import Scheme, data_places
from litesmith.passes.core.step import Skip
from litesmith.passes.quantizing.integer_lstm import integer_lstm, output_form
from litesmith.passes.quantizing.scales import (
    FLOAT,
    Form,
    Range,
    Scales,
    covered,
    form_of,
    quant_of,
)
from litesmith.phrases import phrase

# The finest step of a result for the widest of what an op reads. LiteRT's kernels end the process,
# or do not open, where it is finer: add.cc, sub.cc (twice the step of what is added is below 2**20
# steps of the sum, for int16 2**15), squared_difference.cc, activations.cc.
_FINEST: Mapping[str, Callable[[float], float]] = {
    "ADD": lambda step: step / 512,
    "HARD_SWISH": lambda step: step / 100,
    "SQUARED_DIFFERENCE": lambda step: step**2 / 1024,
    "SUB": lambda step: step / 512,
}

# A divisor that comes below this part of its largest value may be 0 on other data.
_NEAR_ZERO = 1 / 16

# A scale is stored in float32.
_MOST_RANGE = float(np.finfo(np.float32).max)


def integer_tensors(model: Model) -> str:
    """Which quantized types a model holds, in words; "" for a float model."""
    kinds = Counter(
        t.dtype for g in model.graphs for t in g.tensors if t.quant is not None and _is_small(t)
    )
    return ", ".join(
        phrase("{count} {dtype} tensors", count, dtype) for dtype, count in sorted(kinds.items())
    )


def computes_in_float(model: Model) -> bool:
    """True of a float model; also where integers are only what callers give and take, and every op
    that meets one turns it into float, or float into it."""
    return not any(
        t is not None and t.quant is not None and _is_small(t)
        for g in model.graphs
        for op in g.ops
        if not OPS[op.kind].rescales or any(t is not None and t.is_const for t in op.inputs)
        for t in (*op.inputs, *op.outputs)
    )


def _is_small(tensor: Tensor) -> bool:
    return not DTYPES[tensor.dtype].is_float and DTYPES[tensor.dtype].bits <= 16


class Conversions(NamedTuple):
    """The conversions between float and integers that a graph has.

    ops    the conversions
    forms  float tensor and form -> the tensor that holds the same values in that form
    made   what QUANTIZE gives -> the float tensor and the form that it has of it
    """

    ops: set[Op]
    forms: dict[tuple[Tensor, Form], Tensor]
    made: dict[Tensor, tuple[Tensor, Form]]


def conversions(graph: Graph) -> Conversions:
    """Every op that only turns float into integers or back."""
    found = Conversions(set(), {}, {})
    for op in graph.ops:
        source = op.inputs[0] if OPS[op.kind].rescales else None
        if source is None or source.is_const:
            continue
        real, stored = (op.outputs[0], source)[:: -1 if op.kind == "QUANTIZE" else 1]
        form = form_of(stored)
        if form_of(real) != FLOAT or form is None or form == FLOAT:
            continue
        found.ops.add(op)
        found.forms.setdefault((real, form), stored)
        if op.kind == "QUANTIZE":
            found.made[stored] = real, form
    return found


class IntegerGraph:
    """One graph on its way to integers: the forms in which each tensor exists, and the ops so far.

    Conversions that the graph already has are taken out and made again where they are needed, so
    that parts quantized earlier, by another scheme, join without detours.
    """

    def __init__(
        self,
        graph: Graph,
        integer: Sequence[Op],
        *,
        scheme: Scheme,
        ranges: Mapping[Tensor, Range],
        per_channel: bool,
        io: str,
    ) -> None:
        self._graph, self._scheme, self._io = graph, scheme, io
        self._ranges = ranges
        self._integer = set(integer)
        self._ops: list[Op] = []
        self._made: dict[Tensor, dict[Form, Tensor]] = {}
        self._there = conversions(graph)
        self.boundary: dict[Tensor, Tensor] = {}
        self.touched: list[str] = []
        self.skipped: list[Skip] = []
        pinned = {
            tensor: form
            for tensor, form in self._there.forms
            if form[0] == scheme.data and ranges.get(tensor, covered(form)) == covered(form)
        }
        for lstm in filter(None, map(lstm_of, integer)):
            pinned |= output_form(lstm, ranges)
        others = (t for op in graph.ops if op not in self._integer for t in op.inputs)
        self._scales = Scales(integer, scheme.data, ranges, pinned, {*graph.outputs, *others})
        self._layers = [layer for op in integer if (layer := layer_of(op))]
        self._weights = self._coded_weights(per_channel)

    # Writing the new graph.

    def graph(self) -> Graph:
        for tensor in self._graph.inputs:
            self._take_input(tensor)
        for op in self._graph.ops:
            if op in self._there.ops:
                self._cross(op)
            elif op in self._integer:
                self._move(op)
            else:
                self._leave(op)
        outputs = [self._output(tensor) for tensor in self._graph.outputs]
        inputs = [self.boundary.get(t, t) for t in self._graph.inputs]
        return regraph(self._graph, ops=self._ops, inputs=inputs, outputs=outputs)

    def _take_input(self, tensor: Tensor) -> None:
        if form_of(tensor) != FLOAT:
            self._note_end("input", tensor, phrase("it is {dtype}", tensor.dtype))
            return
        is_read = any(tensor in op.inputs for op in self._integer)
        if self._io == "float" or not is_read:
            self._made[tensor] = {FLOAT: tensor}
            self._note_end("input", tensor, phrase("no integer op reads it"))
            return
        form = _as_io(self._scales.produced(tensor), self._io)
        self.boundary[tensor] = replace(tensor, dtype=form[0], quant=quant_of(form))
        self._made[tensor] = {form: self.boundary[tensor]}

    def _output(self, tensor: Tensor) -> Tensor:
        if tensor in self.boundary:  # an input that is passed on
            return self.boundary[tensor]
        if form_of(tensor) != FLOAT:
            self._note_end("output", tensor, phrase("it is {dtype}", tensor.dtype))
            return self._read(tensor)
        if tensor.is_const:
            self._note_end("output", tensor, phrase("it is a constant"))
            return tensor
        form = next(iter(self._made[tensor]))
        if self._io == "float" or form[0] != self._scheme.data:
            self._note_end("output", tensor, phrase("it is made in {form}", form[0]))
            return self._have(tensor, FLOAT)
        self.boundary[tensor] = self._have(tensor, _as_io(form, self._io))
        return self.boundary[tensor]

    def _note_end(self, side: str, tensor: Tensor, why: str) -> None:
        """Takes note of an input or output that does not become what was asked for."""
        if self._io not in ("float", tensor.dtype):
            self.skipped.append(
                Skip(
                    f"{side} {tensor.name!r}", phrase("{why}; it stays {dtype}", why, tensor.dtype)
                )
            )

    def _cross(self, op: Op) -> None:
        """A conversion: what it makes exists in the form of what it reads, until someone asks."""
        source, target = op.inputs[0], op.outputs[0]
        assert source is not None
        if op.kind == "DEQUANTIZE":
            form = form_of(source)
            assert form is not None
            self._made[target] = {form: self._read(source)}

    def _move(self, op: Op) -> None:
        """The op on integers, each input in the form that its kernel wants."""
        inputs: list[Tensor | None] = []
        places = data_places(op)
        for place, tensor in enumerate(op.inputs):
            if tensor is not None and place in places and tensor.dtype == "float32":
                inputs.append(self._have(tensor, self._scales.wanted(op, tensor)))
            else:
                inputs.append(None if tensor is None else self._read(tensor))
        if OPS[op.kind].arithmetic == "/":
            inputs[1] = self._never_zero(op.inputs[1], inputs[1])
        outputs = tuple(self._written(op, t) for t in op.outputs)
        moved = _with_options(replace(op, inputs=tuple(inputs), outputs=outputs))
        key = self._scheme.data
        layer = layer_of(op)
        if layer is not None:
            weight = self._weights[layer.weight]
            moved = self._with_weights(layer, moved, weight)
            key = self._scheme.kernel if weight.dtype == self._scheme.weights else key
        lstm = lstm_of(op)
        if lstm is not None and moved.inputs[0] is not None:
            cell = self._ranges[lstm.need(CELL)]
            moved = integer_lstm(lstm, moved.inputs[0], moved.outputs[0], cell)
        version = max(op.version, OPS[op.kind].versions[key])
        self._ops.append(replace(moved, version=version))
        self.touched.append(phrase("moved {op_name} to {key}", op_name(op), key))

    def _never_zero(self, divisor: Tensor | None, stored: Tensor | None) -> Tensor | None:
        """A divisor of positive numbers whose code is never that of 0, where other data than was
        seen could make it so: the kernel ends the run then."""
        if divisor is None or stored is None or divisor.is_const or stored.quant is None:
            return stored
        low, high = self._ranges[divisor]
        if low < 0 or low >= _NEAR_ZERO * high or stored.dtype not in OPS["MAXIMUM"].versions:
            return stored
        code = np.array([stored.quant.zero_point[0] + 1], stored.dtype)
        least = replace(stored, name=f"{divisor.name}/least", shape=(1,), data=frozen(code))
        raised = replace(stored, name=f"{divisor.name}/above_zero")
        options = Record("MaximumMinimumOptions", {})
        version = OPS["MAXIMUM"].versions[stored.dtype]
        self._ops.append(Op("MAXIMUM", (stored, least), (raised,), options, version))
        return raised

    def _written(self, op: Op, tensor: Tensor) -> Tensor:
        """What an integer op writes in place of a tensor."""
        if tensor.dtype != "float32":
            return tensor
        is_dictated = OPS[op.kind].scale in ("same", "free", "fixed")
        form = self._scales.produced(tensor) if is_dictated else FLOAT
        made = self._tensor(tensor, form, is_produced=True)
        self._made[tensor] = {form: made}
        return made

    def _leave(self, op: Op) -> None:
        inputs = tuple(None if t is None else self._read(t, op) for t in op.inputs)
        for tensor in op.outputs:
            if form_of(tensor) == FLOAT:
                self._made[tensor] = {FLOAT: tensor}
        self._ops.append(op if inputs == op.inputs else replace(op, inputs=inputs))

    def _read(self, tensor: Tensor, reader: Op | None = None) -> Tensor:
        """A tensor as an op reads it that stays as it is."""
        if tensor in self._there.made:
            return self._have(*self._there.made[tensor])
        if tensor not in self._made:
            return tensor
        if reader is not None and OPS[reader.kind].reads_shape_only:
            return next(iter(self._made[tensor].values()))
        return self._have(tensor, FLOAT)

    def _have(self, tensor: Tensor, form: Form) -> Tensor:
        """The tensor in a form; converted once, where it does not exist in it yet."""
        if tensor.is_const:
            forms = self._made.setdefault(tensor, {FLOAT: tensor})
            if form not in forms:
                numbers = quantize(tensor.values(), *form)
                quant = quant_of(form)
                assert quant is not None
                forms[form] = stored_weight(tensor, numbers, form[0], quant)
            return forms[form]
        forms = self._made[tensor]
        if form not in forms:
            source_form, source = next(iter(forms.items()))
            forms[form] = self._tensor(tensor, form)
            self._ops.append(_conversion(source, forms[form], source_form, form))
        return forms[form]

    def _tensor(self, tensor: Tensor, form: Form, is_produced: bool = False) -> Tensor:
        if (tensor, form) in self._there.forms:
            return self._there.forms[tensor, form]
        is_outside = tensor in self._graph.outputs or tensor in self._graph.inputs
        if form == FLOAT and (is_outside or is_produced):
            return tensor
        keeps_name = is_produced and (not is_outside or self._io == form[0])
        name = tensor.name if keeps_name else f"{tensor.name}/{form[0]}"
        return replace(tensor, name=name, dtype=form[0], quant=quant_of(form))

    # Weights.

    def widened(self) -> dict[Tensor, Range]:
        """The outputs whose steps are too fine for the products that make them, made wider.

        XNNPACK does not open a model in which a step of the products is 256 steps of the output.
        """
        wider: dict[Tensor, Range] = {}
        for layer in self._layers:
            quant = self._weights[layer.weight].quant
            assert quant is not None
            step = self._scales.wanted(layer.op, layer.data)[1] * float(quant.scale.max())
            form = self._scales.produced(layer.op.outputs[0])
            if form[0] == "int8" and step >= MOST_RATIO * form[1]:
                factor = step / (MOST_RATIO * form[1]) * 1.01
                low, high = (factor * end for end in covered(form))
                if not high - low < _MOST_RANGE:
                    raise CannotApply(
                        "{op_name}: its weights are so large that its results have no scale; "
                        "keep that op, or mend the model",
                        op_name(layer.op),
                    )
                wider[layer.op.outputs[0]] = low, high
        return wider | self._widened_results()

    def _widened_results(self) -> dict[Tensor, Range]:
        """Results of other ops whose steps are finer than their kernels take, made wider: there is
        nothing in such steps but noise."""
        wider: dict[Tensor, Range] = {}
        for op in self._graph.ops:
            if op not in self._integer or op.kind not in _FINEST:
                continue
            given = [t for place in data_places(op) if (t := op.inputs[place]) is not None]
            step = max(self._scales.wanted(op, tensor)[1] for tensor in given)
            form = self._scales.produced(op.outputs[0])
            factor = _FINEST[op.kind](step) / form[1]
            if factor > 1:
                low, high = covered(form)
                wider[op.outputs[0]] = low * factor * 1.01, high * factor * 1.01
        return wider

    def _coded_weights(self, per_channel: bool) -> dict[Tensor, Tensor]:
        coded: dict[Tensor, Tensor] = {}
        for weight, users in shared_by(self._layers).items():
            kernel = OPS[users[0].op.kind].versions
            dtype = self._scheme.weights if self._scheme.kernel in kernel else "int8"
            if dtype != self._scheme.weights:
                name = op_name(users[0].op)
                self.skipped.append(
                    Skip(name, phrase("there is no {weights} kernel; int8", self._scheme.weights))
                )
            coded[weight] = self._coded_weight(weight, users, dtype, per_channel)
        return coded

    def _coded_weight(
        self, weight: Tensor, users: Sequence[Layer], dtype: str, per_channel: bool
    ) -> Tensor:
        """One weight for all the layers that share it, its scales wide enough for every bias."""
        axis = users[0].axis
        scales = weight_scales(weight.values(), axis if per_channel else None, DTYPES[dtype].bits)
        for layer in users:
            input_scale = self._scales.wanted(layer.op, layer.data)[1]
            if self._scheme.data == "int8":
                scales = keep_bias_inside(scales, real_bias(layer), input_scale, most_bias(dtype))
            else:  # a bias of 64 bits always fits, but a finer step of the products counts as none
                output_scale = self._scales.produced(layer.op.outputs[0])[1]
                scales = np.maximum(scales, LEAST_RATIO * output_scale / input_scale)
        return coded_weight(weight, dtype, scales, axis)

    def _with_weights(self, layer: Layer, moved: Op, weight: Tensor) -> Op:
        assert weight.quant is not None
        bias = layer.bias
        if bias is not None:
            scale = self._scales.wanted(layer.op, layer.data)[1]
            dtype = "int64" if self._scheme.data == "int16" else "int32"
            bias = coded_bias(layer, real_bias(layer), scale, weight.quant, dtype)
        return layer._replace(op=moved).with_parts(weight, bias)


def _conversion(source: Tensor, target: Tensor, source_form: Form, form: Form) -> Op:
    kind = "DEQUANTIZE" if form == FLOAT else "QUANTIZE"
    stored = source_form if form == FLOAT else form
    version = OPS[kind].versions.get(stored[0], 1)
    return Op(kind, (source,), (target,), version=version)


def _as_io(form: Form, io: str) -> Form:
    """A form as the model's interface has it: uint8 counts from 0 where int8 counts from −128."""
    if io == "uint8":
        return "uint8", form[1], form[2] + 128
    return form


def _with_options(op: Op) -> Op:
    """Integer sums and differences scale freely, not by powers of two."""
    if op.options is not None and "pot_scale_int16" in op.options:
        return replace(op, options=op.options.set(pot_scale_int16=False))
    return op
