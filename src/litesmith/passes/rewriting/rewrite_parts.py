"""The parts that rewrites share: the ops that take the place of one, and its surroundings."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from litesmith.ir.match import Reads, reads
from litesmith.ir.ops import OPS, infer_shapes, options_or_defaults, output_dtypes
from litesmith.ir.types import Array, Graph, Op, Record, Tensor, Value, constant_numbers, frozen
from litesmith.phrases import phrase

Argument = Tensor | Array | float | None


class Unfit(Exception):
    """The reason why this rewrite does not apply to an op."""


class Around(NamedTuple):
    """The surroundings of an op: the op that makes each tensor, and the ops that read it."""

    makers: Mapping[Tensor, Op]
    uses: Reads

    def maker(self, tensor: Tensor | None, *kinds: str) -> Op | None:
        """The op that makes a tensor, if it is of one of these kinds and the tensor has no other
        reader."""
        made = None if tensor is None else self.makers.get(tensor)
        if made is None or tensor is None or made.kind not in kinds:
            return None
        return made if self.uses.only_reader(tensor) is not None else None


def around(graph: Graph) -> Around:
    return Around({t: op for op in graph.ops for t in op.outputs}, reads(graph))


class Way(NamedTuple):
    """One way to express an op by others.

    make    adds the new ops; adds none where the rewrite does not suit the op
    says    which ops these are, and by how much their results may differ, if at all
    moves   True where values are only moved, so that quantized ops can be rewritten too
    at      the kind to look for, where it is not the kind that is removed
    """

    make: "Callable[[Parts, Op], None]"
    says: str
    moves: bool = False
    at: str = ""


class Parts:
    """The ops that take the place of one op, in order; `end` adds the op that writes its output."""

    def __init__(self, op: Op, near: Around) -> None:
        self._op, self.near = op, near
        self._ops: list[Op] = []

    def add(
        self, kind: str, *inputs: Argument, version: int | None = None, **options: Value
    ) -> Tensor:
        """Adds an op, named after the output of the replaced op; returns its output."""
        call = self._call(kind, inputs, version, options)
        last = self._op.outputs[0]
        shape, dtype = self._made(call)
        name = f"{last.name}/{kind.lower()}_{len(self._ops)}"
        dynamic = last.dynamic if shape == last.shape else None
        quant = last.quant if dtype == last.dtype else None
        return self._write(call, Tensor(name, shape, dtype, quant=quant, dynamic=dynamic))

    def end(
        self, kind: str, *inputs: Argument, version: int | None = None, **options: Value
    ) -> None:
        """Adds the op that writes the first output of the replaced op."""
        self._end(self._call(kind, inputs, version, options), self._op.outputs[0])

    def end_at(self, target: Tensor, kind: str, *inputs: Argument) -> None:
        """Adds the op that writes one of several outputs."""
        self._end(self._call(kind, inputs, None, {}), target)

    def again(self, *inputs: Argument, options: Record | None = None) -> None:
        """Adds the replaced op once more, with other inputs."""
        tensors = tuple(self._tensor(one, self._op.kind, n) for n, one in enumerate(inputs))
        call = replace(self._op, inputs=tensors, options=options or self._op.options)
        self._end(call, self._op.outputs[0])

    def put(self, op: Op) -> None:
        """Adds an op unchanged."""
        self._ops.append(op)

    def _end(self, call: Op, target: Tensor) -> None:
        if self._made(call) != (target.shape, target.dtype):
            raise Unfit(phrase("the file promises another shape than its inputs give"))
        self._write(call, target)

    def ops(self) -> tuple[Op, ...]:
        return tuple(self._ops)

    def _write(self, call: Op, target: Tensor) -> Tensor:
        self._ops.append(Op(call.kind, call.inputs, (target,), call.options, call.version))
        return target

    def _call(
        self,
        kind: str,
        inputs: tuple[Argument, ...],
        version: int | None,
        options: Mapping[str, Value],
    ) -> Op:
        tensors = tuple(self._tensor(argument, kind, n) for n, argument in enumerate(inputs))
        row = OPS[kind]
        record = Record(row.options, MappingProxyType({**row.defaults, **options}))
        first = next((t for t in tensors if t is not None and not t.is_const), None)
        known = row.versions.get(first.dtype, 1) if first is not None else 1
        return Op(kind, tensors, (), record if row.options else None, version or known)

    def _tensor(self, argument: Argument, kind: str, place: int) -> Tensor | None:
        if argument is None or isinstance(argument, Tensor):
            return argument
        values = np.array(argument, np.float32 if isinstance(argument, float) else None)
        values = np.atleast_1d(values) if isinstance(argument, float) else values
        name = f"{self._op.outputs[0].name}/{kind.lower()}_{len(self._ops)}_{place}"
        return Tensor(name, values.shape, str(values.dtype), frozen(values))

    def _made(self, call: Op) -> tuple[tuple[int, ...], str]:
        shapes = infer_shapes(call.kind, call.inputs, call.options)
        if shapes is None:
            raise Unfit(phrase("the shape that {kind} would make is not known", call.kind))
        return shapes[0], output_dtypes(call.kind, call.inputs, call.options, 1)[0]


def given(op: Op, place: int) -> Tensor:
    """Returns an input; raises where it is absent."""
    tensor = op.inputs[place] if place < len(op.inputs) else None
    if tensor is None:
        raise Unfit(phrase("an input of it is missing"))
    return tensor


def settings(op: Op) -> Record:
    return options_or_defaults(op.kind, op.options)


def integers(op: Op, place: int) -> list[int]:
    """The whole numbers of a constant input."""
    held = constant_numbers(given(op, place))
    if held is None:
        raise Unfit(phrase("a setting of it is computed"))
    return [int(value) for value in held.ravel()]


def floats(tensor: Tensor | None) -> Array | None:
    """The values of a float32 constant."""
    held = constant_numbers(tensor)
    return held if held is not None and held.dtype == np.float32 else None


def is_half(op: Op) -> bool:
    """True for an op that unpacks a float16 constant."""
    source = op.inputs[0] if op.kind == "DEQUANTIZE" else None
    return source is not None and source.is_const and source.dtype == "float16"


def unpacked_half(tensor: Tensor, stored: Tensor) -> Tensor:
    """The constant that DEQUANTIZE makes of a float16 constant."""
    return replace(tensor, data=frozen(stored.values().astype(np.float32)))


def int32(values: list[int] | tuple[int, ...]) -> Array:
    return np.array(values, np.int32)


def target_shape(tensor: Tensor) -> Array:
    """The shape that a reshape asks for; one free dimension stays free."""
    marks = tensor.dynamic or tensor.shape
    if sum(mark == -1 for mark in marks) > 1 or (-1 in marks and 0 in tensor.shape):
        raise Unfit(
            phrase("several dimensions are free; borders(fixed=true) takes the sizes as final")
        )
    return int32(marks)


def refuse_free(*tensors: Tensor) -> None:
    """Raises where the rewrite would have to write down a size that is free."""
    if any(-1 in (tensor.dynamic or ()) for tensor in tensors):
        raise Unfit(phrase("a dimension is free; borders(fixed=true) takes the sizes as final"))


def refuse_shapeless(*images: Tensor) -> None:
    """Raises where the file does not state the size of an image."""
    if any(len(image.shape) != 4 for image in images):
        raise Unfit(phrase("the shape of its image is not known"))


def refuse_activation(op: Op) -> None:
    fused = settings(op).fields.get("fused_activation_function", "NONE")
    if fused != "NONE":
        raise Unfit(phrase("it has a fused {fused}", fused))


def front_axis(axis: int, rank: int) -> int:
    """The axis counted from the front."""
    if not -rank <= axis < rank:
        raise Unfit(phrase("it names axis {axis} of {rank} dimensions", axis, rank))
    return axis % rank
