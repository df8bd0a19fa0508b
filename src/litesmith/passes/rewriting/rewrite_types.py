"""Rewrites of types: indices and sizes in int32, weights in float."""

from dataclasses import replace

import numpy as np

from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import regraph, rewrite
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS, has_effect, kinds_where
from litesmith.ir.types import Array, Graph, Op, Record, Tensor, constant_numbers, frozen
from litesmith.numeric.affine import dequantize
from litesmith.passes.core.step import Skip
from litesmith.phrases import phrase

_LIMITS = np.iinfo(np.int32)
_UNKNOWN = 2**63

# Kinds whose results are places or sizes of their input. No free dimension is taken to be longer
# than this.
_SMALL = frozenset({"ARG_MAX", "ARG_MIN", "SHAPE"})
_MOST_PLACES = 2**30

# Kinds that read places. A place that does not fit int32 cannot exist.
_PICKING = frozenset({"GATHER", "GATHER_ND"})

# Kinds that take int32 as they take int64, and whose results are no larger than their inputs.
_KEEPING = (
    "CAST CONCATENATION EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL MAXIMUM MINIMUM NOT_EQUAL "
    "ONE_HOT PACK SELECT_V2 SLICE SPLIT STRIDED_SLICE TILE UNPACK"
)
_PASSING = kinds_where(lambda row: row.reshapes or row.transposes) | set(_KEEPING.split())

# The largest number of a type, with or without its sign.
_LARGEST = {"bool": 1, "int16": 2**15, "int32": 2**31, "int8": 2**7, "uint8": 2**8}


class Narrowing:
    """Turns the places and sizes of a graph into int32: knows which int64 tensors have an int32
    twin, how large its numbers can be, and the new ops so far.

    The inputs and outputs of the graph keep their type: CAST stands at its ends.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._twins: dict[Tensor, Tensor] = {}
        self._most: dict[Tensor, int] = {}
        self._made = {*graph.inputs, *(t for t in graph.tensors if t.is_const)}
        self._ops: list[Op] = []
        self._touched: list[str] = []
        self._skipped: list[Skip] = []

    def result(self) -> tuple[Graph, list[str], list[Skip]]:
        for op in self._graph.ops:
            if not any(map(_is_wide, (*op.inputs, *op.outputs))):
                self._ops.append(op)
            elif why := self._why_not(op):
                self._leave(op, why)
            else:
                self._move(op)
        for tensor in filter(_is_wide, self._graph.outputs):
            self._restore(tensor)
        return regraph(self._graph, ops=self._ops), self._touched, self._skipped

    def _why_not(self, op: Op) -> str:
        """Why an op keeps int64; "" where it can change."""
        if has_effect(op):
            return phrase("it works on a state, or runs other graphs")
        wide = [t for t in op.inputs if t is not None and _is_wide(t)]
        if any(t.is_const and not _fits(t) for t in wide):
            return phrase("a constant of it does not fit int32")
        if self._largest(op) <= -_LIMITS.min:
            return ""
        settings = self._settings(op)
        if wide and not any(map(_is_wide, op.outputs)) and OPS[op.kind].is_full:
            data = [t for t in wide if t not in settings]
            if not data and self._are_known(settings):
                return ""
            if data:
                return phrase("{kind} is not known to take int32 there", op.kind)
        return phrase("its numbers are not known to fit int32")

    def _largest(self, op: Op) -> int:
        """An upper bound for the numbers that the op reads or makes in int64, with or without their
        sign."""
        source, wide = op.inputs[0] if op.inputs else None, [*filter(_is_wide, op.inputs)]
        sizes = [self._most_of(t) for t in wide]
        if op.kind == "CAST" and source is not None and source.dtype in _LARGEST:
            return _LARGEST[source.dtype]
        if op.kind in _SMALL and source is not None:
            return _MOST_PLACES if source.dynamic else max(source.shape, default=1)
        if op.kind in _PICKING:
            return self._most_of(source)
        if op.kind in _PASSING and wide:
            return max(sizes)
        adds = OPS[op.kind].arithmetic in ("+", "-")
        return sum(sizes) + 1 if adds and wide else _UNKNOWN

    def _most_of(self, tensor: Tensor | None) -> int:
        if tensor is None or not _is_wide(tensor):
            return 0
        held = constant_numbers(tensor)
        if held is None:
            return self._most.get(tensor, _UNKNOWN)
        return int(np.abs(held).max(initial=0))

    def _settings(self, op: Op) -> list[Tensor]:
        words = OPS[op.kind].inputs.split()
        pairs = zip(words, op.inputs, strict=False)
        return [t for word, t in pairs if word[0] == "s" and t is not None and _is_wide(t)]

    def _are_known(self, tensors: list[Tensor]) -> bool:
        return all(t.is_const or t in self._twins for t in tensors)

    def _move(self, op: Op) -> None:
        """Moves an op to int32; a CAST that only widened is dropped."""
        if op.kind == "CAST" and op.inputs[0] is not None and op.inputs[0].dtype == "int32":
            self._twins[op.outputs[0]] = op.inputs[0]
            self._most[op.outputs[0]] = self._largest(op)
            return
        inputs = tuple(self._narrow(t) if t is not None and _is_wide(t) else t for t in op.inputs)
        outputs = tuple(self._twin(t) if _is_wide(t) else t for t in op.outputs)
        self._most |= dict.fromkeys(filter(_is_wide, op.outputs), self._largest(op))
        options = op.options
        field = OPS[op.kind].type_option
        if field and any(map(_is_wide, op.outputs)):
            options = (options or Record(OPS[op.kind].options)).set(**{field: "INT32"})
        if op.kind == "CAST" and options is not None and inputs[0] is not None:
            options = options.set(in_data_type=inputs[0].dtype.upper())
        self._ops.append(replace(op, inputs=inputs, outputs=outputs, options=options))
        self._touched.append(phrase("moved {op_name} from int64 to int32", op_name(op)))

    def _leave(self, op: Op, why: str) -> None:
        self._skipped.append(Skip(op_name(op), phrase("{why}; it keeps int64", why)))
        for tensor in op.inputs:
            if tensor is not None and _is_wide(tensor):
                self._restore(tensor)
        self._ops.append(op)
        self._made.update(op.outputs)

    def _twin(self, tensor: Tensor) -> Tensor:
        if tensor not in self._twins:
            self._twins[tensor] = replace(tensor, dtype="int32", data=_as_int32(tensor))
        return self._twins[tensor]

    def _narrow(self, tensor: Tensor) -> Tensor:
        """Returns the int32 twin of a tensor; a CAST makes it where only int64 exists."""
        if tensor not in self._twins and not tensor.is_const:
            self._ops.append(_cast(tensor, self._twin(tensor)))
        return self._twin(tensor)

    def _restore(self, tensor: Tensor) -> None:
        """Makes the int64 tensor from its twin, at most once."""
        if tensor not in self._made:
            self._made.add(tensor)
            self._ops.append(_cast(self._twin(tensor), tensor))


def _is_wide(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.dtype == "int64" and tensor.quant is None


def _fits(tensor: Tensor) -> bool:
    held = constant_numbers(tensor)
    if held is None:
        return False
    return not held.size or (held.min() >= _LIMITS.min and held.max() <= _LIMITS.max)


def _as_int32(tensor: Tensor) -> Array | None:
    held = constant_numbers(tensor)
    return None if held is None else frozen(held.astype(np.int32))


def _cast(source: Tensor, target: Tensor) -> Op:
    options = Record("CastOptions").set(
        in_data_type=source.dtype.upper(), out_data_type=target.dtype.upper()
    )
    return Op("CAST", (source,), (target,), options)


def unpack(graph: Graph) -> tuple[Graph, list[str], list[Skip]]:
    """Stores small-integer weights beside float data as float32."""
    float_of: dict[Tensor, Tensor] = {}
    ops: dict[Op, tuple[Op, ...]] = {}
    touched: list[str] = []
    for op in graph.ops:
        place = OPS[op.kind].weight
        weight = op.inputs[place] if place is not None and place < len(op.inputs) else None
        if op.kind == "DEQUANTIZE" and _is_packed(op.inputs[0]):
            assert op.inputs[0] is not None
            float_of[op.outputs[0]] = _unpacked(op.inputs[0])
            ops[op] = ()
            touched.append(phrase("unpacked what {op_name} unpacks in every run", op_name(op)))
        elif weight is not None and _is_packed(weight) and _flows_float(op):
            new = float_of.setdefault(weight, _unpacked(weight))
            inputs = tuple(new if t is weight else t for t in op.inputs)
            ops[op] = (replace(op, inputs=inputs, version=1, options=_plain(op)),)
            touched.append(phrase("unpacked the weights of {op_name}", op_name(op)))
    leaving = [t for t in graph.outputs if t in float_of]
    if leaving:
        return graph, [], [Skip(leaving[0].name, phrase("a weight is an output of the graph"))]
    made = {old: new for old, new in float_of.items() if not old.is_const}
    return rewrite(graph, ops=ops, tensors=made), touched, []


def _is_packed(tensor: Tensor | None) -> bool:
    """True for a constant of small integers with scales."""
    if tensor is None or tensor.quant is None or constant_numbers(tensor) is None:
        return False
    return not DTYPES[tensor.dtype].is_float and bool(tensor.quant.scale.size)


def _flows_float(op: Op) -> bool:
    return op.outputs[0].dtype == "float32"


def _plain(op: Op) -> Record | None:
    """The options without those that only quantized inputs need."""
    if op.options is not None and "asymmetric_quantize_inputs" in op.options:
        return op.options.set(asymmetric_quantize_inputs=False)
    return op.options


def _unpacked(tensor: Tensor) -> Tensor:
    assert tensor.quant is not None
    quant = tensor.quant
    values = dequantize(tensor.values(), quant.scale, quant.zero_point, quant.axis)
    return replace(tensor, dtype="float32", data=frozen(values), quant=None)
