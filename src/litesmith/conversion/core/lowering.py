"""From nodes to LiteRT ops: the walk over a source graph, and the tools of its rules.

A rule is a function `rule(lower, node)` that adds ops for one node and returns its outputs. Rules
think in the order of the source (channels first) and insert a TRANSPOSE wherever an op of LiteRT
wants another one; `relayout` then solves the order over the whole graph. Values that depend on
constants alone are computed at once, so shapes that a graph computes are numbers by the time a rule
reads them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from litesmith.conversion.core.source import Node, SourceGraph
from litesmith.errors import LitesmithError
from litesmith.ir.build import Argument, Builder
from litesmith.ir.dtype import DTYPES, Array
from litesmith.ir.edit import needed_ops, rewrite
from litesmith.ir.ops import is_repeatable
from litesmith.ir.types import Graph, Op, Quant, Tensor, Value, constant_numbers
from litesmith.numeric.kernels import KERNELS, evaluate
from litesmith.phrases import Phrase, phrase
from litesmith.units import bytes_text

Rule: TypeAlias = "Callable[[Lowering, Node], Tensor | Sequence[Tensor]]"

# The types to compute in, where the runtime has no kernel for the source's type.
COMPUTED_AS = {"float16": "float32", "bfloat16": "float32", "float64": "float32"}

_INTEGERS = "int32 int64"
_NUMBERS = f"float32 {_INTEGERS}"

# The element types of LiteRT's kernels; others are computed in the first type that holds them.
_TYPES = {
    "ABS": "float32 int32",
    "ADD": _NUMBERS,
    "CEIL": "float32",
    "CUMSUM": _NUMBERS,
    "DIV": "float32 int32",
    "ELU": "float32",
    "EQUAL": f"bool {_NUMBERS} int8 uint8",
    "EXP": "float32",
    "FLOOR": "float32",
    "FLOOR_DIV": "float32 int32",
    "FLOOR_MOD": _NUMBERS,
    "GREATER": _NUMBERS,
    "GREATER_EQUAL": _NUMBERS,
    "LESS": _NUMBERS,
    "LESS_EQUAL": _NUMBERS,
    "MAXIMUM": _NUMBERS,
    "MAX_POOL_2D": "float32",
    "MEAN": _NUMBERS,
    "MINIMUM": _NUMBERS,
    "MUL": _NUMBERS,
    "NEG": _NUMBERS,
    "NOT_EQUAL": f"bool {_NUMBERS} int8 uint8",
    "POW": "float32 int32",
    "REDUCE_MAX": _NUMBERS,
    "REDUCE_MIN": _NUMBERS,
    "REDUCE_PROD": _NUMBERS,
    "RELU": "float32",
    "ROUND": "float32",
    "SIGN": "float32 int32",
    "SQUARED_DIFFERENCE": "float32 int32",
    "SUB": _NUMBERS,
    "SUM": _NUMBERS,
    "TOPK_V2": "float32 int32 int64",
}

# The versions of ops whose first versions the runtime has dropped.
_LEAST_VERSION = {"BROADCAST_TO": 2}

# The exceptions that a rule meets where a node makes no sense.
_SENSELESS = (ValueError, LookupError, ArithmeticError, TypeError, AssertionError, MemoryError)

# The limit of ops for one node, and for one tensor: more is a mistake in the file, or no model for
# a device.
_MOST_OPS = 10_000
_MOST_VALUES = 1 << 30

# A file of some bytes may ask for constants that fill a disk. Those that are computed may add this
# much to those of the file, and this many times as much: int4 weights become float32.
_MOST_ADDED, _MOST_TIMES = 1 << 30, 8


class Unsupported(LitesmithError):
    """A node without a form in LiteRT; the message says why, and what to do."""


class Left(NamedTuple):
    """A node that could not be converted."""

    kind: str
    place: str
    why: str


def _unknown(node: Node) -> str:
    """Why a node without a rule is unsupported, and what to do."""
    if node.domain == "com.microsoft":
        return phrase(
            "onnxruntime's optimizer made it of other operators; convert the file from before that"
        )
    return node.word("why") or phrase(
        "LiteRT has no form for it; a custom op in Python can stand for it (docs/custom-ops.md)"
    )


@dataclass(eq=False)
class Spare:
    """The number of bytes that computed constants may still add."""

    size: int = _MOST_ADDED


@dataclass(eq=False)
class Lowering:
    """One graph under construction: the values that are known so far, by their names."""

    rules: Mapping[str, Rule]
    opset: int
    builder: Builder = field(default_factory=Builder)
    values: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    left: list[Left] = field(default_factory=list[Left])
    names: dict[Tensor, str] = field(default_factory=dict[Tensor, str])
    graphs: list[Graph] = field(default_factory=list[Graph])  # of IF and WHILE, numbered from 1
    notes: dict[Phrase, None] = field(default_factory=dict[Phrase, None])
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    wanted: dict[str, None] = field(default_factory=dict[str, None])  # inputs to be fixed
    quants: dict[Tensor, Quant] = field(default_factory=dict[Tensor, Quant])  # what codes mean
    rounded: dict[Tensor, Tensor] = field(default_factory=dict[Tensor, Tensor])  # see `as_integers`
    room: int = _MOST_OPS  # how many ops there may be after this node
    spare: Spare = field(default_factory=Spare)

    @property
    def is_inner(self) -> bool:
        """True for a graph that an op of another one runs: its inputs are not the model's."""
        return self.builder.name != "main"

    # The walk

    def walk(self, graph: SourceGraph) -> None:
        """Adds the ops of all nodes; unsupported nodes are collected in `left`."""
        for name, array in graph.constants.items():
            held = _held_bytes(array)
            self.spare.size += _MOST_TIMES * held
            self.count_made(array.nbytes, held)
            self.values[name] = self.const(array, name)
        for node in graph.nodes:
            if any(name and name not in self.values for name in node.inputs):
                self._miss(node)
                continue
            try:
                self.call(node)
            except LitesmithError as error:
                self.left.append(Left(node.kind, node.place, str(error)))
            except _SENSELESS as error:
                why = phrase("its inputs and attributes do not fit together: {error}", error)
                self.left.append(Left(node.kind, node.place, why))

    def call(self, node: Node) -> None:
        """Adds the ops of one node."""
        rule = self._rule(node)
        if rule is None:
            raise Unsupported(_unknown(node))
        self.room = len(self.builder.ops) + _MOST_OPS
        made = rule(self, node)
        outputs = (made,) if isinstance(made, Tensor) else tuple(made)
        for name, tensor in zip(node.outputs, outputs, strict=False):
            if name:
                self.values[name] = tensor
                if not tensor.is_const and tensor not in self.names:
                    self.names[tensor] = name

    def _rule(self, node: Node) -> "Rule | None":
        return self.rules.get(f"{node.domain}.{node.kind}" if node.domain else node.kind)

    def _miss(self, node: Node) -> None:
        """Skips a node whose inputs are missing because another node is unsupported; it is reported
        only where no rule knows its kind."""
        known = self._rule(node) is not None
        missing = [n for n in node.inputs if n and n not in self.values]
        made = {left.place for left in self.left}
        if not known:
            self.left.append(Left(node.kind, node.place, _unknown(node)))
        elif not made:
            self.left.append(
                Left(
                    node.kind,
                    node.place,
                    phrase("its input {name!r} is made by no node", missing[0]),
                )
            )

    # What a rule asks

    def inputs(self, node: Node, count: int = 0) -> list[Tensor | None]:
        """The tensors of a node's inputs, None for one left out, at least `count` entries."""
        found = [self.values[name] if name else None for name in node.inputs]
        return found + [None] * (count - len(found))

    def first(self, node: Node) -> Tensor:
        """The tensor of the first input."""
        return self.need(self.inputs(node, 1)[0])

    def need(self, tensor: Tensor | None) -> Tensor:
        if tensor is None:
            raise Unsupported("an input that it needs is left out; the file is damaged")
        return tensor

    def known(self, tensor: Tensor | None, what: str) -> Array:
        """The values of a constant, or Unsupported."""
        values = constant_numbers(tensor)
        if values is not None:
            return values
        if tensor is not None and not tensor.elements:
            return np.zeros(tensor.shape, tensor.dtype)
        names = [] if tensor is None else self.origins(tensor)
        if not names:
            raise Unsupported("its {what} are missing; export the model again", what)
        self.wanted.update(dict.fromkeys(names))
        raise Unsupported(
            "its {what} come from input {name!r}, and LiteRT wants them constant; fix the input: "
            "--fix {name}=VALUE",
            what,
            ", ".join(names),
        )

    def origins(self, tensor: Tensor) -> list[str]:
        """The names of the inputs that a tensor is computed from."""
        needed = {tensor}
        for op in reversed(self.builder.ops):
            if any(t in needed for t in op.outputs):
                needed.update(t for t in op.inputs if t is not None)
        return [t.name for t in self.builder.inputs if t in needed]

    def is_computed(self, node: Node, place: int) -> bool:
        """True for an input that is there, and is no constant."""
        tensor = self.inputs(node, place + 1)[place]
        return tensor is not None and not tensor.is_const and tensor.elements > 0

    def told(self, node: Node, place: int = 0) -> tuple[int, ...] | None:
        """The shape that the source declares for an output of the node; None where it is free."""
        return self.shapes.get(node.outputs[place]) if place < len(node.outputs) else None

    def integers(self, tensor: Tensor | None, what: str) -> tuple[int, ...]:
        return tuple(int(v) for v in self.known(tensor, what).reshape(-1))

    def setting(
        self, node: Node, name: str, place: int, default: Sequence[int] | None = None
    ) -> tuple[int, ...] | None:
        """Integers that older opsets have as an attribute and newer ones as an input."""
        if name in node.settings:
            return node.integers(name)
        tensor = self.inputs(node, place + 1)[place]
        if tensor is None:
            return None if default is None else tuple(default)
        return self.integers(tensor, name)

    # What a rule adds

    def const(
        self,
        values: Array | float | Sequence[int] | Sequence[float],
        name: str = "",
        dtype: str = "",
    ) -> Tensor:
        """Adds a constant; types in which the runtime does not compute become float32."""
        array = np.asarray(values)
        if not isinstance(values, np.ndarray | np.generic):
            array = array.astype(
                {"i": np.int32, "f": np.float32}.get(array.dtype.kind, array.dtype)
            )
        wanted = dtype or COMPUTED_AS.get(str(array.dtype), "")
        if wanted and array.dtype.kind not in "OSU":
            array = array.astype(wanted)
        if array.dtype.kind in "OSU":
            return self.builder.const(
                np.array([bytes(t) for t in array.reshape(-1)]).reshape(array.shape), name, "string"
            )
        array = np.ascontiguousarray(array).reshape(array.shape)
        array.setflags(write=False)
        return Tensor(name or self.builder.next_name("const"), array.shape, str(array.dtype), array)

    def op(
        self, kind: str, *inputs: Argument, shape: Sequence[int] | None = None, **options: Value
    ) -> Tensor:
        """Adds an op with one output that is read."""
        return self.ops(kind, *inputs, shapes=None if shape is None else [tuple(shape)], **options)[
            0
        ]

    def ops(
        self,
        kind: str,
        *inputs: Argument,
        shapes: Sequence[Sequence[int]] | None = None,
        **options: Value,
    ) -> tuple[Tensor, ...]:
        """Adds an op; computes it at once where all it reads is constant."""
        if len(self.builder.ops) >= self.room:
            raise Unsupported(
                "written out it would be more than {most} ops; export it for smaller sizes",
                _MOST_OPS,
            )
        tensors = [self._argument(given) for given in inputs]
        told = _TYPES.get(kind)
        wide = _computing_type(tensors, told.split()) if told else ""
        if wide:
            back = next(t.dtype for t in tensors if t is not None)
            results = self.ops(
                kind, *(t and self.cast(t, wide) for t in tensors), shapes=shapes, **options
            )
            return tuple(self.cast(r, back) if r.dtype == wide else r for r in results)
        version = _LEAST_VERSION.get(kind, 1)
        self.builder.op(kind, *tensors, shape=shapes, version=version, **options)  # type: ignore[arg-type]
        arrays = self._computed(self.builder.last)
        if arrays is None:
            return self.builder.last.outputs
        self.builder.ops.pop()
        return tuple(self.const(a) for a in arrays)

    def count_made(self, made: int, read: int = 0) -> None:
        """Counts bytes of constants that were computed from others; raises where the total is too
        large."""
        self.spare.size -= max(made - read, 0)
        if self.spare.size < 0:
            raise Unsupported(
                "with it, constants that are computed would add over {size} to the file; give "
                "smaller sizes: --shape",
                bytes_text(_MOST_ADDED),
            )

    def _computed(self, op: Op) -> tuple[Array, ...] | None:
        """The results of an op that reads constants alone; None for other ops, or without a
        kernel."""
        if not op.inputs or not all(t is None or t.is_const for t in op.inputs):
            return None
        values = [constant_numbers(t) for t in op.inputs]
        readable = all((v is None) == (t is None) for v, t in zip(values, op.inputs, strict=True))
        if op.kind not in KERNELS or not readable or not is_repeatable(op):
            return None
        read = sum(t.nbytes for t in op.inputs if t is not None)
        self.count_made(sum(t.nbytes for t in op.outputs), read)
        try:
            return evaluate(op, values)
        except ValueError:
            return None

    def _argument(self, given: Argument) -> Tensor | None:
        """An input of an op; numbers become constants."""
        return given if isinstance(given, Tensor) or given is None else self.const(given)  # type: ignore[arg-type]

    def cast(self, x: Tensor, dtype: str) -> Tensor:
        if x.dtype == dtype:
            return x
        if dtype not in DTYPES:
            raise Unsupported("LiteRT does not compute with {dtype}; export without it", dtype)
        values = constant_numbers(x)
        if values is not None:
            with np.errstate(invalid="ignore"):
                return self.const(values.astype(dtype))
        if dtype == "float32" and x in self.rounded:
            return self.rounded[x]
        return self.op("CAST", x, in_data_type=x.dtype.upper(), out_data_type=dtype.upper())

    def as_integers(self, x: Tensor, dtype: str) -> Tensor:
        """Float numbers without digits behind the point as integers; as float they are known."""
        made = self.cast(x, dtype)
        self.rounded[made] = x
        return made

    def transpose(self, x: Tensor, order: Sequence[int]) -> Tensor:
        if list(order) == list(range(len(x.shape))):
            return x
        values = constant_numbers(x)
        if values is not None:
            moved = self.const(values.transpose(tuple(order)))
            return replace(moved, quant=x.quant and _turned(x.quant, order))
        return self.op("TRANSPOSE", x, np.array(order, np.int32))

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        if tuple(shape) == x.shape:
            return x
        values = constant_numbers(x)
        if values is not None:
            moved = self.const(values.reshape(tuple(shape)))
            return replace(moved, quant=x.quant and _reshaped(x.quant, x.shape, moved.shape))
        return self.op(
            "RESHAPE", x, np.array(shape, np.int32), new_shape=tuple(int(d) for d in shape)
        )

    def channels_last(self, x: Tensor) -> Tensor:
        """N, C, spatial … as N, spatial …, C."""
        rank = len(x.shape)
        return self.transpose(x, (0, *range(2, rank), 1))

    def channels_first(self, x: Tensor) -> Tensor:
        rank = len(x.shape)
        return self.transpose(x, (0, rank - 1, *range(1, rank - 1)))

    # The end

    def graph(self, outputs: Sequence[tuple[str, Tensor]]) -> Graph:
        """The finished graph: every value has the name that it had in the source."""
        ready = [self._own_output(name, tensor) for name, tensor in outputs]
        self.builder.ops = needed_ops(self.builder.ops, ready)
        return self.told_graph(ready)

    def told_graph(self, outputs: Sequence[Tensor]) -> Graph:
        """The graph with everything found out about its tensors: names, and the meaning of
        codes."""
        told = {
            t: replace(t, name=self.names.get(t, t.name), quant=self.quants.get(t, t.quant))
            for t in (*self.names, *self.quants)
        }
        return rewrite(self.builder.graph(*outputs), tensors=told)

    def _own_output(self, name: str, tensor: Tensor) -> Tensor:
        """A tensor that an op makes for this output alone."""
        taken = self.names.get(tensor, name)
        made = any(tensor in op.outputs for op in self.builder.ops)
        if (made and taken in (name, "")) or (made and tensor not in self.names):
            self.names[tensor] = name
            return tensor
        copy = self.builder.op(
            "RESHAPE", tensor, np.array(tensor.shape, np.int32), new_shape=tensor.shape
        )
        self.names[copy] = name
        return copy


def _held_bytes(array: Array) -> int:
    """The memory that an array is a view on, where one number may stand for many."""
    if not array.size:
        return 0
    reach = sum((n - 1) * abs(step) for n, step in zip(array.shape, array.strides, strict=True))
    return min(reach + array.itemsize, array.nbytes)


def refuse_size(shape: Sequence[int]) -> None:
    """Raises on a tensor that no device could hold."""
    if prod(shape) > _MOST_VALUES or min(shape, default=0) < 0:
        raise Unsupported(
            "a tensor of the shape {shape} is larger than LiteRT can hold; give smaller sizes: "
            "--shape",
            tuple(shape),
        )


def _turned(quant: Quant, order: Sequence[int]) -> Quant:
    """The scales of a constant after a permutation of its axes."""
    return replace(quant, axis=list(order).index(quant.axis)) if quant.per_channel else quant


def _reshaped(quant: Quant, old: Sequence[int], new: Sequence[int]) -> Quant | None:
    """The scales of a constant in another shape; None where none of its axes is theirs."""
    if not quant.per_channel:
        return quant
    before, size = prod(old[: quant.axis]), old[quant.axis]
    axes = [i for i, d in enumerate(new) if d == size and prod(new[:i]) == before]
    return replace(quant, axis=axes[0]) if axes else None


def _computing_type(tensors: Sequence[Tensor | None], known: Sequence[str]) -> str:
    """The type to compute in where a kernel does not take the tensors' own; "" where it does."""
    dtype = next((t.dtype for t in tensors if t is not None), "")
    if dtype in known or not dtype:
        return ""
    for wider in known:
        if wider != "bool" and (np.can_cast(dtype, wider) or wider == known[-1]):
            return wider
    return ""
