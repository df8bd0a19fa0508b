"""Float ops between DEQUANTIZE and QUANTIZE, computed on the integers at the scales of the source.

A source states which numbers its integers stand for, and leaves the arithmetic to its runtime. Ops
with a LiteRT kernel are computed on int8; uint8 is int8 with the zero point moved by 128. Other ops
stay float, with conversions around them, and the reason is reported.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litesmith import schema
from litesmith.conversion.coded_constants import (
    Stays,
    Weight,
    bias_codes,
    holds,
    nearest_codes,
    operand_codes,
    shifted_codes,
    weight_of,
)
from litesmith.conversion.rules.quantized import same_quant
from litesmith.ir.edit import consumers, regraph, substitute
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Op, Quant, Record, Tensor, frozen
from litesmith.phrases import Phrase, phrase

# XNNPACK does not open a model in which a step of the products is 256 steps of the output.
_MOST_RATIO = 255
_LEAST_RATIO = 2.0**-31
# An intermediate step coarser than the result's by more than this factor would lose digits.
_COARSER = 1.05
# Smaller constants are not worth an op of their own.
_WORTH_STORING = 1024

_ACTIVATIONS = schema.ENUMS["ActivationFunctionType"].names


def integer_islands(graph: Graph) -> tuple[Graph, tuple[Phrase, ...]]:
    """The graph with its islands on integers, and what stays float inside it, with the reason."""
    walk = _Walk(_told_codes(graph))
    made = walk.graph()
    notes = [
        phrase("{count} {kind} stay float between integers: {why}", count, kind, why)
        for (kind, why), count in walk.left.items()
    ]
    return made, tuple(notes)


def _is_coded(tensor: Tensor) -> bool:
    return (
        tensor.dtype in ("int8", "uint8")
        and tensor.quant is not None
        and not tensor.quant.per_channel
        and not tensor.is_const
    )


def _as_int8(tensor: Tensor, name: str = "") -> Tensor:
    """The same numbers in int8."""
    if tensor.dtype == "int8":
        return tensor
    assert tensor.quant is not None
    quant = replace(tensor.quant, zero_point=tensor.quant.zero_point - 128)
    return replace(tensor, name=name or tensor.name, dtype="int8", quant=quant)


def _step(tensor: Tensor) -> float:
    assert tensor.quant is not None
    return float(tensor.quant.scale[0])


def _picks(op: Op) -> bool:
    """True where each result is one of the values, or the nearest that its codes have."""
    row = OPS[op.kind]
    moves = row.scale == "same" and not row.interpolates and not row.averages
    return (moves or row.clamps is not None) and "int8" in row.versions and row.data is not None


def _code_places(op: Op) -> list[int]:
    """The inputs of an op that moves codes, which all have one scale; () for any other op."""
    row = OPS[op.kind]
    words = row.inputs.split()
    words += words[-1:] * (len(op.inputs) - len(words))
    places = [i for i, t in enumerate(op.inputs) if t is not None and words[i][0] == "x"]
    tensors = [t for i in places if (t := op.inputs[i]) is not None]
    coded = [t for t in tensors if not t.is_const]
    moves = _picks(op) and row.clamps is None and not row.is_commutative
    if not moves or not coded or not all(map(_is_coded, coded)):
        return []
    same = all(t.dtype == coded[0].dtype for t in tensors)
    return places if same and all(same_quant(t.quant, coded[0].quant) for t in coded) else []


def _told_codes(graph: Graph) -> Graph:
    """The graph in which codes that were only moved state their meaning, too."""
    swap: dict[Tensor, Tensor] = {}
    ops: list[Op] = []
    for op in graph.ops:
        op = substitute(op, swap)
        places = _code_places(op)
        source = op.inputs[places[0]] if places else None
        if source is not None:
            quant = next(t.quant for i in places if (t := op.inputs[i]) and not t.is_const)
            fresh = {
                t: replace(t, quant=quant)
                for t in op.outputs
                if t.quant is None and t.dtype == source.dtype
            }
            swap |= fresh
            op = _explicit_frame(substitute(op, fresh))
        ops.append(op)
    return regraph(graph, ops=ops, outputs=[swap.get(t, t) for t in graph.outputs])


def _explicit_frame(op: Op) -> Op:
    """A frame of code 0 made explicit: where there is a scale, the runtime would take the zero
    point instead."""
    source = op.inputs[0]
    if (
        op.kind != "PAD"
        or source is None
        or source.quant is None
        or not any(source.quant.zero_point)
    ):
        return op
    filling = Tensor(
        f"{op.outputs[0].name}/frame", (), source.dtype, frozen(np.zeros((), source.dtype))
    )
    return replace(op, kind="PADV2", inputs=(*op.inputs, filling), options=Record("PadV2Options"))


def _data_places(op: Op) -> list[int]:
    """The places of the inputs that hold data, in float."""
    words = OPS[op.kind].inputs.split()
    words += words[-1:] * (len(op.inputs) - len(words))
    return [
        place
        for place, (word, tensor) in enumerate(zip(words, op.inputs, strict=False))
        if word[0] == "x" and tensor is not None and tensor.dtype == "float32"
    ]


class _Walk:
    """A graph on its way: the float tensors that exist as codes, and the ops so far."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._readers = consumers(graph)
        self._ends = {*graph.outputs}
        self._wanted = self._wishes()
        self._twins: dict[Tensor, Tensor] = {}  # of float tensors: their codes
        self._codes: dict[Tensor, Tensor] = {}  # of codes in the source: those in int8
        self._real = {t for t in graph.inputs if t.dtype == "float32"}
        self._stored: dict[Tensor, Tensor] = {}
        self._wide: set[Tensor] = set()  # float tensors that are made of 16 bits
        self._done: set[Op] = set()
        self._ops: list[Op] = []
        self.left: Counter[tuple[str, str]] = Counter()

    def graph(self) -> Graph:
        for op in self._graph.ops:
            if op in self._done:
                continue
            if op.kind == "DEQUANTIZE" and op.inputs[0] is not None and _is_coded(op.inputs[0]):
                self._twins[op.outputs[0]] = self._code(op.inputs[0])
            elif op.kind == "QUANTIZE" and _is_coded(op.outputs[0]):
                self._quantize(op)
            elif not self._on_codes(op) and not self._on_integers(op):
                self._leave(op)
                if op.kind == "DEQUANTIZE":
                    self._wide.update(op.outputs)
        for tensor in self._graph.outputs:
            self._have(tensor)
        return regraph(self._graph, ops=self._ops)

    # What is asked for

    def _wishes(self) -> dict[Tensor, Tensor]:
        """Float tensors of which only the codes are read, each with the int8 tensor of
        these codes."""
        wanted: dict[Tensor, Tensor] = {}
        for op in reversed(self._graph.ops):
            if op.kind == "QUANTIZE" and _is_coded(op.outputs[0]) and op.inputs[0] is not None:
                self._wish(wanted, op.inputs[0], _as_int8(op.outputs[0]))
            elif _picks(op) and len(op.outputs) == 1 and op.outputs[0] in wanted:
                quant = wanted[op.outputs[0]].quant
                for place in _data_places(op):
                    tensor = op.inputs[place]
                    assert tensor is not None
                    self._wish(wanted, tensor, replace(tensor, dtype="int8", quant=quant))
        return wanted

    def _wish(self, wanted: dict[Tensor, Tensor], tensor: Tensor, codes: Tensor) -> None:
        if tensor.is_const or tensor in self._ends or tensor in self._graph.inputs:
            return
        readers = self._readers[tensor]
        same = all(
            r.kind == "QUANTIZE"
            and _is_coded(r.outputs[0])
            and same_quant(_as_int8(r.outputs[0]).quant, codes.quant)
            for r in readers
        )
        if same or len(readers) == 1:
            wanted.setdefault(tensor, codes)

    # Conversions

    def _code(self, tensor: Tensor) -> Tensor:
        """Codes of the source in int8."""
        if tensor not in self._codes:
            self._codes[tensor] = _as_int8(tensor, f"{tensor.name}/int8")
            if tensor.dtype != "int8":
                self._convert(tensor, self._codes[tensor])
        return self._codes[tensor]

    def _convert(self, source: Tensor, target: Tensor) -> None:
        kind = "DEQUANTIZE" if target.dtype == "float32" else "QUANTIZE"
        version = 2 if kind == "DEQUANTIZE" else 1
        self._ops.append(Op(kind, (source,), (target,), version=version))

    def _quantize(self, op: Op) -> None:
        source, target = op.inputs[0], op.outputs[0]
        assert source is not None
        codes, wanted = self._twins.get(source), _as_int8(target, f"{target.name}/int8")
        if codes is not None and same_quant(codes.quant, wanted.quant):
            self._codes[target] = codes
        elif codes is None and target in self._ends and target not in self._readers:
            self._ops.append(replace(op, inputs=(self._have(source),)))
        else:
            self._convert(self._have(source) if codes is None else codes, wanted)
            self._codes[target] = wanted

    def _have(self, tensor: Tensor) -> Tensor:
        """A tensor as the source has it, converted where it does not exist so yet."""
        if tensor.is_const:
            return self._constant(tensor)
        codes = self._twins.get(tensor) or self._codes.get(tensor)
        if codes is not None and codes is not tensor and tensor not in self._real:
            self._convert(codes, tensor)
            self._real.add(tensor)
        return tensor

    def _constant(self, tensor: Tensor) -> Tensor:
        """A float constant that comes from integers, stored as such where that pays."""
        if tensor.dtype != "float32" or tensor.quant is None:
            return tensor
        if tensor not in self._stored:
            self._stored[tensor] = replace(tensor, quant=None)
            weight = weight_of(tensor) if tensor.elements >= _WORTH_STORING else None
            if weight is not None:
                stored = weight.tensor(replace(tensor, name=f"{tensor.name}/int8"))
                made = replace(tensor, data=None, quant=None)
                version = 5 if weight.scale.size > 1 else 2
                self._ops.append(Op("DEQUANTIZE", (stored,), (made,), version=version))
                self._stored[tensor] = made
        return self._stored[tensor]

    # Ops

    def _leave(self, op: Op) -> None:
        inputs = tuple(None if t is None else self._have(t) for t in op.inputs)
        self._real.update(t for t in op.outputs if t.dtype == "float32")
        self._ops.append(op if inputs == op.inputs else replace(op, inputs=inputs))

    def _on_codes(self, op: Op) -> bool:
        """An op that moves codes as the source has them: moved in int8."""
        places = _code_places(op)
        quants = [t.quant for t in op.outputs if _is_coded(t)]
        if not places or len(quants) != len(op.outputs):
            return False
        for tensor in op.outputs:
            self._codes[tensor] = _as_int8(tensor)
        form = self._codes[op.outputs[0]].quant
        inputs = list(op.inputs)
        for place in places:
            tensor = op.inputs[place]
            assert tensor is not None
            inputs[place] = shifted_codes(tensor, form) if tensor.is_const else self._code(tensor)
        version = max(op.version, OPS[op.kind].versions["int8"])
        outputs = tuple(self._codes[t] for t in op.outputs)
        self._ops.append(replace(op, inputs=tuple(inputs), outputs=outputs, version=version))
        return True

    def _on_integers(self, op: Op) -> bool:
        """The op on integers, where all that it reads and makes is known as such."""
        places = _data_places(op)
        if not any(op.inputs[place] in self._twins for place in places):
            if op.kind != "QUANTIZE" and any(op.inputs[place] in self._wide for place in places):
                why = phrase("its data has 16 bits, where LiteRT's kernels are slower than float")
                self.left[op.kind, why] += 1
            return False
        try:
            self._move(op, places)
        except Stays as error:
            self.left[op.kind, str(error)] += 1
            return False
        return True

    def _move(self, op: Op, places: Sequence[int]) -> None:
        row = OPS[op.kind]
        if "int8" not in row.versions:
            raise Stays(phrase("LiteRT has no integer kernel for it"))
        for place in places:
            tensor = op.inputs[place]
            assert tensor is not None
            if tensor not in self._twins and not tensor.is_const:
                raise Stays(phrase("an input of it is float"))
        floats = [t for t in op.outputs if t.dtype == "float32"]
        wish = self._wanted.get(floats[0]) if len(floats) == 1 else None
        if row.weight is not None:
            self._move_layer(op, places, wish)
        elif row.scale == "free" and (wish is not None or row.clamps is None):
            inputs = self._own_forms(op, places)
            _refuse_scales(op, [*inputs.values()], self._need(wish))
            self._emit(op, inputs, self._need(wish))
        elif row.scale == "fixed":
            self._move_fixed(op, places, self._need(wish))
        elif row.interpolates or row.averages:
            self._move_same(op, places, self._need(wish))
        elif _picks(op):
            self._pick(op, places, wish)
        elif not floats:
            self._emit(op, self._own_forms(op, places), None)
        else:
            raise Stays(phrase("LiteRT has no integer kernel for it"))

    def _need(self, wish: Tensor | None) -> Tensor:
        if wish is None:
            raise Stays(phrase("its result has no scale in the source"))
        return wish

    def _emit(self, op: Op, inputs: dict[int, Tensor], result: Tensor | None) -> None:
        """Adds the op on integers; an activation that follows it comes into it."""
        row = OPS[op.kind]
        options = op.options
        if options is not None and "pot_scale_int16" in options:
            options = options.set(pot_scale_int16=False)
        ends = list(op.outputs)
        if result is not None:
            follower = self._activation(op, result)
            if follower is not None and options is not None:
                options = options.set(fused_activation_function=follower.kind)
                self._done.add(follower)
                self._twins[follower.outputs[0]] = result
            floats = [t for t in op.outputs if t.dtype == "float32"]
            self._twins[floats[0]] = result
            ends = [result if t is floats[0] else t for t in op.outputs]
        read = tuple(
            inputs[place] if place in inputs else t and self._have(t)
            for place, t in enumerate(op.inputs)
        )
        version = max(op.version, row.versions["int8"])
        self._ops.append(
            replace(op, inputs=read, outputs=tuple(ends), options=options, version=version)
        )

    def _activation(self, op: Op, result: Tensor) -> Op | None:
        """The activation that is the only reader of the op's output, where the op can apply it."""
        readers = self._readers.get(op.outputs[0], [])
        if not OPS[op.kind].fuses_activation or len(readers) != 1:
            return None
        (reader,) = readers
        wish = self._wanted.get(reader.outputs[0]) if reader.outputs else None
        fits = (
            OPS[reader.kind].clamps is not None
            and reader.kind in _ACTIVATIONS
            and op.option("fused_activation_function") == "NONE"
            and wish is not None
            and same_quant(wish.quant, result.quant)
        )
        return reader if fits else None

    def _own_forms(self, op: Op, places: Sequence[int]) -> dict[int, Tensor]:
        """The data of an op, each in the form that it has."""
        found: dict[int, Tensor] = {}
        for place in places:
            tensor = op.inputs[place]
            assert tensor is not None
            found[place] = self._twins[tensor] if tensor in self._twins else operand_codes(tensor)
        return found

    def _pick(self, op: Op, places: Sequence[int], wish: Tensor | None) -> None:
        """Handles an op whose results are some of its values: all at one scale."""
        known = [self._twins[t] for p in places if (t := op.inputs[p]) in self._twins]
        form = known[0].quant
        constants = [t for p in places if (t := op.inputs[p]) and t.is_const]
        if any(not same_quant(t.quant, form) for t in known):
            form = self._need(wish).quant
        elif wish is not None and any(not self._has_codes(op, t, form) for t in constants):
            form = wish.quant
        assert form is not None
        inputs: dict[int, Tensor] = {}
        for place in places:
            tensor = op.inputs[place]
            assert tensor is not None
            rounded = wish is not None and same_quant(wish.quant, form)
            inputs[place] = self._at_scale(op, tensor, form, rounded)
        bounds = OPS[op.kind].clamps
        if bounds is not None and any(np.isfinite(b) and not holds(form, b) for b in bounds):
            raise Stays(phrase("its bounds are none of the codes"))
        outputs = list(op.outputs)
        for place, tensor in enumerate(op.outputs):
            if tensor.dtype == "float32":
                fits = wish is not None and same_quant(wish.quant, form)
                made = wish if fits and wish else replace(tensor, dtype="int8", quant=form)
                outputs[place] = self._twins[tensor] = made
        self._emit(replace(op, outputs=tuple(outputs)), inputs, None)

    def _has_codes(self, op: Op, tensor: Tensor, form: Quant | None) -> bool:
        """True where codes stand for a constant among values that are picked."""
        assert form is not None
        row, readers = OPS[op.kind], self._readers.get(op.outputs[0], [])
        # Of two values the larger or smaller, or the frame of a window that picks the largest.
        windows = (
            row.pads and readers and all(OPS[r.kind].has_window and _picks(r) for r in readers)
        )
        codes, places = nearest_codes(tensor, form)
        beyond = (places < -128) | (places > 127)
        exact = np.abs(places - codes) <= 1e-3
        return bool(np.all(exact | beyond if row.is_commutative or windows else exact))

    def _at_scale(self, op: Op, tensor: Tensor, form: Quant, rounded: bool) -> Tensor:
        """A tensor at a scale; what is finally rounded to it can be rounded now."""
        if tensor.is_const:
            if not rounded and not self._has_codes(op, tensor, form):
                raise Stays(phrase("a constant of it is none of the codes"))
            codes, _ = nearest_codes(tensor, form)
            return replace(tensor, dtype="int8", data=frozen(codes.astype(np.int8)), quant=form)
        codes = self._twins[tensor]
        if same_quant(codes.quant, form):
            return codes
        moved = replace(codes, name=f"{codes.name}/rescaled", quant=form)
        self._convert(codes, moved)
        return moved

    def _move_same(self, op: Op, places: Sequence[int], wish: Tensor) -> None:
        """Handles an op whose kernel keeps the scale of its data."""
        source = self._own_forms(op, places)[places[0]]
        if same_quant(source.quant, wish.quant):
            self._emit(op, {places[0]: source}, wish)
            return
        if OPS[op.kind].averages and _stays_inside(op, source):
            self._emit(*_as_depthwise(op, source), wish)
            return
        if _step(source) > _COARSER * _step(wish):
            raise Stays(
                phrase("its result has a finer scale, and its kernel keeps that of its data")
            )
        self._emit(
            op, {places[0]: source}, replace(wish, name=f"{wish.name}/own", quant=source.quant)
        )

    def _move_fixed(self, op: Op, places: Sequence[int], wish: Tensor) -> None:
        """Handles an op whose kernel dictates the scale of its result."""
        scale, zero = OPS[op.kind].fixed["int8"]
        if scale > _COARSER * _step(wish):
            raise Stays(phrase("its result has a finer scale than its kernel makes"))
        form = Quant.of(scale, zero)
        own = wish if same_quant(form, wish.quant) else replace(wish, quant=form)
        self._emit(op, self._own_forms(op, places), own)

    def _move_layer(self, op: Op, places: Sequence[int], wish: Tensor | None) -> None:
        row, result = OPS[op.kind], self._need(wish)
        assert row.weight is not None and row.bias is not None
        inputs = self._own_forms(op, places)
        data, kept = inputs[places[0]], op.inputs[row.weight]
        weight = None if kept is None else weight_of(kept)
        if weight is None or kept is None:
            raise Stays(phrase("its weights are float, or no int8 around zero holds them"))
        if weight.scale.size > 1 and weight.axis != row.axis:
            raise Stays(
                phrase("its weights have a scale for each of something else than its results")
            )
        steps = np.float32(_step(data)) * weight.scale.astype(np.float32)
        if float(steps.max()) >= _MOST_RATIO * _step(result):
            raise Stays(phrase("the scale of its result is too fine for XNNPACK"))
        if float(steps.min()) <= _LEAST_RATIO * _step(result):
            raise Stays(phrase("the scale of its result is too coarse for XNNPACK"))
        inputs[row.weight] = weight.tensor(kept)
        bias = op.inputs[row.bias] if row.bias < len(op.inputs) else None
        if bias is not None:
            inputs[row.bias] = bias_codes(bias, steps)
        self._emit(op, inputs, result)


def _refuse_scales(op: Op, inputs: Sequence[Tensor], result: Tensor) -> None:
    """Raises on scales so far apart that kernels fail."""
    steps = [_step(t) for t in inputs]
    kind = OPS[op.kind].arithmetic
    if kind == "/":
        raise Stays(phrase("LiteRT's division of integers fails where it is by zero"))
    product = kind == "*" or (len(inputs) == 2 and not kind)
    largest = steps[0] * steps[1] if product else max(steps)
    if largest >= _MOST_RATIO * _step(result):
        raise Stays(phrase("the scale of its result is too fine for XNNPACK"))


def _stays_inside(op: Op, source: Tensor) -> bool:
    """True where no window reaches beyond the data."""
    assert op.options is not None
    for axis, side in ((1, ("height", "h")), (2, ("width", "w"))):
        window, stride = (
            op.options.integer(f"{n}_{s}") for n, s in zip(("filter", "stride"), side, strict=True)
        )
        if (op.outputs[0].shape[axis] - 1) * stride + window > source.shape[axis]:
            return False
    return True


def _as_depthwise(op: Op, source: Tensor) -> tuple[Op, dict[int, Tensor]]:
    """A mean over windows as a depthwise convolution, whose kernel has a scale for its result."""
    assert op.options is not None
    sizes = [op.options.integer(name) for name in ("filter_height", "filter_width")]
    channels, count = source.shape[-1], sizes[0] * sizes[1]
    codes = np.full((1, *sizes, channels), 127)
    scale = np.full(channels, 1 / (127 * count), np.float32)
    weight = Weight(codes, scale, 3).tensor(Tensor(f"{op.outputs[0].name}/mean", codes.shape))
    zeros = Tensor(f"{op.outputs[0].name}/zero", (channels,), data=np.zeros(channels, np.float32))
    bias = bias_codes(zeros, np.float32(_step(source)) * scale)
    options = Record("DepthwiseConv2DOptions").set(
        padding="VALID",
        depth_multiplier=1,
        stride_h=op.options.integer("stride_h"),
        stride_w=op.options.integer("stride_w"),
        fused_activation_function=op.option("fused_activation_function"),
    )
    layer = replace(op, kind="DEPTHWISE_CONV_2D", inputs=(source, weight, bias), options=options)
    return layer, {0: source, 1: weight, 2: bias}
