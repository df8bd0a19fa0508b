"""`upgrade`: a legacy uint8 model becomes an int8 one, which is what today's fast kernels take.

An activation moves by 128 and means the same number. A weight loses its zero point, which int8
kernels do not have: stored − zero_point fits int8 exactly where its magnitude stays within 127,
and a channel where it does not is given a scale of its own.
"""

from dataclasses import dataclass, replace

import numpy as np

from litesmith.errors import CannotApply
from litesmith.ir.edit import called_graphs, regraph, with_graphs
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS, Row
from litesmith.ir.types import Graph, Model, Op, Quant, Tensor, constant_numbers, op_tensors
from litesmith.numeric.arrays import along
from litesmith.passes.core.step import Change, Context, Skip
from litesmith.passes.tidy.moves import same_quant
from litesmith.phrases import phrase
from litesmith.units import plain

# Ops whose uint8 kernel brings its inputs to the output's scale, which its int8 kernel does not.
_RESCALING = frozenset({"CONCATENATION"})
_SHIFT = 128
_MOST = 127


@dataclass(frozen=True)
class Upgrade:
    """Turn a uint8 quantized model into an int8 one.

    io  what the model's own inputs and outputs are: uint8 as before (each is converted by one
        op), or int8
    """

    io: str = "uint8"

    def apply(self, model: Model, context: Context) -> Change:
        if self.io not in ("int8", "uint8"):
            raise CannotApply(
                "upgrade: io={io!r} is no type for inputs; use uint8 or int8", self.io
            )
        if not legacy_tensors(model, self.io):
            raise CannotApply(
                "upgrade: no op of the model computes in uint8; there is nothing to do"
            )
        if any(
            _is_legacy(t) and "external_buffer" in t.rest for g in model.graphs for t in g.tensors
        ):
            raise CannotApply("upgrade: weights lie in another file; put them into this one first")
        called = {number for _, _, op in model.ops() for number in called_graphs(op)}
        graphs: list[Graph] = []
        moved: dict[Tensor, Tensor] = {}
        touched: list[str] = []
        skipped: list[Skip] = []
        for number, graph in enumerate(model.graphs):
            work = _Upgrading(graph, keep_io=self.io == "uint8" or number in called)
            graphs.append(work.graph())
            moved |= work.boundary
            touched += work.touched
            skipped += work.skipped
        return Change(with_graphs(model, graphs, moved), tuple(touched), tuple(skipped))


def _is_legacy(tensor: Tensor | None) -> bool:
    """True for a quantized uint8 value; a state that is kept between runs stays what it is."""
    if tensor is None or tensor.variable:
        return False
    return tensor.dtype == "uint8" and tensor.quant is not None


def legacy_tensors(model: Model, io: str = "uint8") -> list[Tensor]:
    """The quantized uint8 values that `upgrade` moves to int8."""
    return [
        tensor
        for graph in model.graphs
        for kept in (_only_converted(graph, keep_io=io == "uint8"),)
        for tensor in graph.tensors
        if _is_legacy(tensor) and tensor not in kept
    ]


def _only_converted(graph: Graph, *, keep_io: bool) -> set[Tensor]:
    """Tensors that conversions alone read and write: nothing is computed in uint8."""
    ends = {*graph.inputs, *graph.outputs}
    computed = {t for op in graph.ops if not OPS[op.kind].rescales for t in op_tensors(op)}
    through = set(graph.inputs) & set(graph.outputs)
    return {t for t in graph.tensors if keep_io or t not in ends} - computed - through


class _Upgrading:
    """One graph on its way: which tensors have an int8 twin, and the ops so far."""

    def __init__(self, graph: Graph, keep_io: bool) -> None:
        self._graph = graph
        self._twins: dict[Tensor, Tensor] = {}
        self._weights: dict[tuple[Tensor, Tensor | None], tuple[Tensor, Tensor | None]] = {}
        self._old_values: set[Tensor] = set()  # uint8 tensors whose values exist in the new graph
        self._ops: list[Op] = []
        self.touched: list[str] = []
        self.skipped: list[Skip] = []
        self.boundary: dict[Tensor, Tensor] = {}
        ends = (*graph.inputs, *graph.outputs)
        self._kept = _only_converted(graph, keep_io=keep_io)
        if not keep_io:
            self.boundary = {t: self._twin(t) for t in ends if _is_legacy(t)}

    def graph(self) -> Graph:
        for tensor in dict.fromkeys(filter(self._moves, self._graph.inputs)):
            if tensor not in self.boundary:
                self._ops.append(_convert(tensor, self._twin(tensor)))
                self._old_values.add(tensor)
        for op in self._graph.ops:
            if not any(self._moves(t) for t in (*op.inputs, *op.outputs)):
                self._ops.append(op)
            elif why := _why_left(op):
                self._leave(op, why)
            else:
                self._move(op)
        for tensor in self._graph.outputs:
            if self._moves(tensor) and tensor not in self.boundary and not tensor.is_const:
                self._restore(tensor)
        return regraph(
            self._graph,
            ops=self._ops,
            inputs=[self.boundary.get(t, t) for t in self._graph.inputs],
            outputs=[self.boundary.get(t, t) for t in self._graph.outputs],
        )

    def _moves(self, tensor: Tensor | None) -> bool:
        return tensor not in self._kept and _is_legacy(tensor)

    def _move(self, op: Op) -> None:
        """The op on int8 tensors, each input brought to the scale that the kernel wants."""
        row = OPS[op.kind]
        inputs = [self._twin(t) if t is not None and self._moves(t) else t for t in op.inputs]
        if row.weight is not None:
            assert row.bias is not None
            self._take_weights(op, inputs, row.weight, row.bias)
        outputs = tuple(self._twin(t) if self._moves(t) else t for t in op.outputs)
        if op.kind in _RESCALING:
            inputs = [self._rescaled(t, outputs[0]) if t is not None else None for t in inputs]
        version = max(op.version, row.versions["int8"])
        self._ops.append(replace(op, inputs=tuple(inputs), outputs=outputs, version=version))
        self.touched.append(phrase("moved {op_name} to int8", op_name(op)))

    def _leave(self, op: Op, why: str) -> None:
        """The op as it was, its uint8 inputs made for it and its uint8 outputs taken from it."""
        self.skipped.append(Skip(op_name(op), why))
        for tensor in op.inputs:
            if tensor is not None and self._moves(tensor) and not tensor.is_const:
                self._restore(tensor)
        self._ops.append(op)
        for tensor in filter(self._moves, op.outputs):
            self._old_values.add(tensor)
            self._ops.append(_convert(tensor, self._twin(tensor)))

    def _restore(self, tensor: Tensor) -> None:
        """Makes the uint8 tensor's value exist, from its twin, once."""
        if tensor not in self._old_values:
            self._old_values.add(tensor)
            self._ops.append(_convert(self._twin(tensor), tensor))

    def _twin(self, tensor: Tensor) -> Tensor:
        """The int8 tensor with the same numbers."""
        if tensor not in self._twins:
            assert tensor.quant is not None
            data = None if tensor.data is None else (tensor.data ^ np.uint8(_SHIFT)).view(np.int8)
            quant = replace(tensor.quant, zero_point=tensor.quant.zero_point - _SHIFT)
            self._twins[tensor] = replace(tensor, dtype="int8", data=data, quant=quant)
        return self._twins[tensor]

    def _rescaled(self, tensor: Tensor, like: Tensor) -> Tensor:
        """The tensor, or where its scale is not the output's, a converted copy: int8 kernels that
        only move values do not convert them."""
        if tensor.quant is None or like.quant is None or same_quant(tensor.quant, like.quant):
            return tensor
        copy = Tensor(f"{tensor.name}/rescaled", tensor.shape, "int8", quant=like.quant)
        self._ops.append(_convert(tensor, copy))
        return copy

    def _take_weights(self, op: Op, inputs: list[Tensor | None], weight: int, bias: int) -> None:
        old_weight = op.inputs[weight]
        old_bias = op.inputs[bias] if bias < len(op.inputs) else None
        assert old_weight is not None
        key = (old_weight, old_bias)
        if key not in self._weights:
            axis = OPS[op.kind].axis
            assert axis is not None
            self._weights[key], rescaled = _symmetric(old_weight, old_bias, axis)
            if rescaled:
                self.touched.append(_rescaled_text(old_weight, rescaled, axis))
        inputs[weight], new_bias = self._weights[key]
        if new_bias is not None:
            inputs[bias] = new_bias


def _why_left(op: Op) -> str:
    """Why an op stays uint8; "" where it need not."""
    if "int8" not in OPS[op.kind].versions:
        return phrase("there is no int8 kernel for it; it stays uint8 between two conversions")
    row = OPS[op.kind]
    if any(t is not None and t.variable for t in (*op.inputs, *op.outputs)):
        return phrase("it keeps a state in uint8")
    if row.scale == "same" and op.kind not in _RESCALING and not _keeps_scale(op):
        return phrase("its input and output have other scales, which an int8 kernel does not take")
    if row.weight is not None and not _has_plain_weights(op, row):
        return phrase("its weights or bias are computed, or have no scale; it stays uint8")
    fixed = row.fixed.get("int8")
    quant = op.outputs[0].quant
    if fixed and quant is not None and not same_quant(quant, Quant.of(fixed[0], fixed[1] + _SHIFT)):
        return phrase("an int8 kernel gives scale {fixed:g} only; it stays uint8", fixed[0])
    return ""


def _keeps_scale(op: Op) -> bool:
    scaled = [t.quant for t in (*op.inputs, *op.outputs) if _is_legacy(t) and t is not None]
    return all(same_quant(scaled[0], quant) for quant in scaled[1:])


def _has_plain_weights(op: Op, row: Row) -> bool:
    """True where weight and bias are constants with scales that fit each other."""
    assert row.weight is not None and row.axis is not None
    if row.bias is None:
        return False  # the op hands its weights on at their own scale
    weight = op.inputs[row.weight]
    bias = op.inputs[row.bias] if row.bias < len(op.inputs) else None
    if weight is None or not _is_legacy(weight) or len(weight.shape) <= row.axis:
        return False
    if not _is_legacy(op.inputs[0]) or not _is_legacy(op.outputs[0]):
        return False  # float data with uint8 weights
    if constant_numbers(weight) is None or not weight.elements:
        return False
    if bias is None:
        return True
    plain_bias = (
        bias.dtype == "int32" and bias.quant is not None and constant_numbers(bias) is not None
    )
    return plain_bias and bias.elements == weight.shape[row.axis]


def _convert(source: Tensor, target: Tensor) -> Op:
    return Op("QUANTIZE", (source,), (target,))


def _symmetric(
    weight: Tensor, bias: Tensor | None, axis: int
) -> tuple[tuple[Tensor, Tensor | None], list[int]]:
    """The weight as int8 with no zero point, the bias at its scale, and the rescaled channels."""
    assert weight.quant is not None
    stored = weight.values().astype(np.int64)
    centred = stored - along(weight.quant.zero_point, stored.ndim, axis)
    others = tuple(place for place in range(stored.ndim) if place != axis)
    peaks = np.abs(centred).max(axis=others)
    rescaled = np.flatnonzero(peaks > _MOST).tolist()
    stretch = np.maximum(peaks / _MOST, 1.0)
    old_scale = np.broadcast_to(weight.quant.scale.astype(np.float64), peaks.shape)
    codes = np.rint(centred / along(stretch, stored.ndim, axis)).astype(np.int8)
    scale = (
        (old_scale * stretch).astype(np.float32)
        if rescaled or weight.quant.per_channel
        else weight.quant.scale
    )
    quant = Quant.of(scale, 0, axis)
    new_weight = replace(weight, dtype="int8", data=codes, quant=quant)
    if bias is None or not rescaled:
        return (new_weight, bias), rescaled
    assert bias.quant is not None
    new_bias = np.rint(bias.values() / stretch).astype(np.int32)
    bias_scale = bias.quant.scale.astype(np.float64) * stretch
    return (new_weight, replace(bias, data=new_bias, quant=Quant.of(bias_scale, 0, 0))), rescaled


def _rescaled_text(weight: Tensor, channels: list[int], axis: int) -> str:
    shown = ", ".join(map(str, channels[:8])) + (", …" if len(channels) > 8 else "")
    count = weight.shape[axis]
    return phrase(
        "rescaled {count} of {count2} channels of {name!r}: {shown}",
        len(channels),
        count,
        plain(weight.name),
        shown,
    )
