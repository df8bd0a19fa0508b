"""The core values, from Record to Model. All are frozen: an edit makes new ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from litesmith import schema
from litesmith.errors import BadModel
from litesmith.ir.dtype import DTYPES, Array, stored_bytes, unpack, unpack_strings
from litesmith.phrases import phrase

# The value of a field. An enum is given by its name, or by its number where the name is not known.
Value: TypeAlias = "bool | int | float | str | bytes | Array | Record | tuple[Value, ...] | None"
Fields = Mapping[str, Value]

NONE_SET: Fields = MappingProxyType({})


def none_set() -> Fields:
    return NONE_SET


@dataclass(frozen=True, eq=False, slots=True)
class Record:
    """One table of the file format as a value: the fields that are set; others have a default."""

    table: str
    fields: Fields = field(default_factory=none_set)

    def __getitem__(self, name: str) -> Value:
        if name in self.fields:
            return self.fields[name]
        known = schema.TABLES[self.table]
        if name not in known:
            raise KeyError(
                phrase(
                    "{table} has no field {name!r}; it has {known}",
                    self.table,
                    name,
                    ", ".join(known),
                )
            )
        unset = known[name]
        if unset.is_offset:
            return None
        if unset.kind == "enum":
            return schema.ENUMS[unset.type].names[int(unset.default)]
        return unset.default

    def __contains__(self, name: str) -> bool:
        return name in schema.TABLES[self.table]

    def integer(self, name: str) -> int:
        value = self[name]
        if not isinstance(value, int):
            raise BadModel(
                "{table}.{name} is {value!r} where an integer belongs", self.table, name, value
            )
        return value

    def number(self, name: str) -> float:
        value = self[name]
        if not isinstance(value, (int, float)):
            raise BadModel(
                "{table}.{name} is {value!r} where a number belongs", self.table, name, value
            )
        return float(value)

    def word(self, name: str) -> str:
        """An enum's name, or a text."""
        value = self[name]
        if not isinstance(value, str):
            raise BadModel(
                "{table}.{name} is {value!r}, a value this version does not know",
                self.table,
                name,
                value,
            )
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        """A vector of integers; empty where the field is not set."""
        value = self[name]
        return tuple(map(int, value)) if isinstance(value, (tuple, np.ndarray)) else ()  # pyright: ignore

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record) or self.table != other.table:
            return False
        names = self.fields.keys() | other.fields.keys()
        return all(_equal(self[name], other[name]) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def set(self, **changes: Value) -> Record:
        """A copy with some fields changed."""
        for name in changes:
            self[name]  # raises where there is no such field
        return Record(self.table, MappingProxyType({**self.fields, **changes}))


def _equal(a: Value, b: Value) -> bool:
    """Arrays, bytes and tuples with equal contents are equal."""
    if a is None or b is None:
        return a is b
    if isinstance(a, Record | str) or isinstance(b, Record | str):
        return a == b
    if isinstance(a, tuple) and any(isinstance(item, Record) for item in a):
        return a == b
    return np.array_equal(_as_array(a), _as_array(b))


def _as_array(value: Value) -> Array:
    return np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value)


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """Blockwise scales: tensors that hold a scale (and zero point) for each block of values."""

    scales: Tensor
    zero_points: Tensor | None
    rest: Record  # the details table as read; tensor indices in it are replaced on writing


@dataclass(frozen=True, eq=False, slots=True)
class Quant:
    """How stored integers stand for real numbers: real = scale × (stored − zero_point).

    >>> tensor = litesmith.load("int8.tflite").main.ops[0].outputs[0]
    >>> tensor.quant.per_channel
    False

    One scale for the whole tensor, or one for each index along `axis`. With `block`, the scales
    are in tensors of their own and `scale` is empty.
    """

    scale: NDArray[np.float32]
    zero_point: NDArray[np.int64]
    axis: int = 0
    block: Block | None = None
    rest: Fields = field(default_factory=none_set)  # recorded min and max, custom details

    @staticmethod
    def of(scale: float | Array, zero_point: int | Array = 0, axis: int = 0) -> Quant:
        """Makes a `Quant` from numbers or arrays; a single zero point serves every scale."""
        scales = np.atleast_1d(np.asarray(scale, np.float32))
        points = np.broadcast_to(np.asarray(zero_point, np.int64), scales.shape)
        return Quant(scales, points, axis)

    @property
    def per_channel(self) -> bool:
        return self.scale.size > 1


@dataclass(frozen=True, eq=False, slots=True)
class Tensor:
    """A value in a graph. Compared by identity: two tensors may have the same name.

    >>> tensor = litesmith.load("model.tflite").main.inputs[0]
    >>> tensor.name, tensor.dtype, tensor.shape
    ('image', 'float32', (1, 8, 8, 1))

    `data` is None for a computed tensor; for a constant it is a read-only view: in the tensor's
    shape where the type is plain, flat bytes where it is packed or text, flat elements where it is
    sparse. `dynamic` is the shape with −1 for each free dimension, where the file has it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    data: Array | None = None
    quant: Quant | None = None
    variable: bool = False
    dynamic: tuple[int, ...] | None = None
    sparsity: Record | None = None
    rest: Fields = field(default_factory=none_set)

    @property
    def is_const(self) -> bool:
        return self.data is not None

    @property
    def elements(self) -> int:
        count = 1
        for dimension in self.shape:
            count *= dimension
        return count

    @property
    def nbytes(self) -> int:
        """Bytes in memory: those of the stored constant, otherwise those that the shape needs."""
        return (
            self.data.nbytes if self.data is not None else stored_bytes(self.dtype, self.elements)
        )

    def values(self) -> Array:
        """The constant's stored numbers in the tensor's shape, one element each."""
        if self.data is None or self.sparsity is not None or not DTYPES[self.dtype].bits:
            raise ValueError(phrase("tensor {name!r} holds no array of numbers", self.name))
        if DTYPES[self.dtype].is_packed:
            return unpack(self.data, self.dtype, self.elements).reshape(self.shape)
        return self.data

    def texts(self) -> list[bytes]:
        """The strings of a constant of type string."""
        if self.data is None or self.dtype != "string":
            raise ValueError(phrase("tensor {name!r} holds no strings", self.name))
        return unpack_strings(self.data)


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """One operator call; a custom operator has kind CUSTOM and a `custom` name.

    >>> op = litesmith.load("model.tflite").main.ops[-1]
    >>> op.kind, op.outputs[0].name
    ('SOFTMAX', 'scores')
    """

    kind: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    options: Record | None = None
    version: int = 1
    custom: str = ""
    intermediates: tuple[Tensor, ...] = ()
    rest: Fields = field(
        default_factory=none_set
    )  # custom_options and other fields of the Operator table

    @property
    def is_custom(self) -> bool:
        """True for an op that the format does not know; only its kernel knows what the op does."""
        return self.kind == "CUSTOM"

    @property
    def label(self) -> str:
        return f"CUSTOM {self.custom}" if self.is_custom else self.kind

    def option(self, name: str) -> Value:
        """An option's value, or None where the op has no such option."""
        return self.options[name] if self.options is not None and name in self.options else None


@dataclass(frozen=True, eq=False, slots=True)
class Graph:
    """Ops in execution order. `tensors` lists every tensor in file order, spare ones included.

    >>> graph = litesmith.load("model.tflite").main
    >>> [tensor.name for tensor in graph.inputs]
    ['image']
    """

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...]
    rest: Fields = field(default_factory=none_set)


@dataclass(frozen=True, eq=False, slots=True)
class Signature:
    """A named entry point: argument names to tensors of graph number `graph`."""

    key: str
    graph: int
    inputs: tuple[tuple[str, Tensor], ...]
    outputs: tuple[tuple[str, Tensor], ...]
    rest: Fields = field(default_factory=none_set)


@dataclass(frozen=True, eq=False, slots=True)
class Model:
    """Everything in a .tflite file. The first graph is the one that runs without a signature.

    >>> model = litesmith.load("model.tflite")
    >>> model.main is model.graphs[0]
    True
    """

    graphs: tuple[Graph, ...]
    signatures: tuple[Signature, ...] = ()
    metadata: tuple[tuple[str, Array], ...] = ()
    description: str = ""
    attached: bytes = b""  # bytes behind the model: mostly a zip archive of label files
    spare: tuple[Array, ...] = ()  # buffers with content that nothing refers to
    rest: Fields = field(default_factory=none_set)
    # fields newer than our schema: reading skips them, copying is impossible
    lost: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()  # tensors for whose single axis the file has a wrong number

    @property
    def main(self) -> Graph:
        return self.graphs[0]

    def ops(self) -> Iterator[tuple[Graph, int, Op]]:
        """Every op of every graph with its graph and index."""
        for graph in self.graphs:
            for index, op in enumerate(graph.ops):
                yield graph, index, op


def constant_numbers(tensor: Tensor | None) -> Array | None:
    """The values of a constant that holds numbers; None for anything else."""
    if tensor is None or tensor.data is None or tensor.sparsity is not None:
        return None
    return tensor.values() if DTYPES[tensor.dtype].bits else None


def frozen(array: Array) -> Array:
    """The same array, made read-only, for the data of a constant."""
    array.setflags(write=False)
    return array


def memory_place(array: Array) -> tuple[int, int]:
    """The address and size of an array: equal for views on the same bytes."""
    return array.__array_interface__["data"][0], array.nbytes


def op_tensors(op: Op) -> Iterator[Tensor]:
    """Every tensor an op refers to, inputs first."""
    for tensor in op.inputs:
        if tensor is not None:
            yield tensor
    yield from op.outputs
    yield from op.intermediates


def quant_tensors(tensor: Tensor) -> Iterator[Tensor]:
    """The tensors that hold a blockwise tensor's scales and zero points."""
    block = tensor.quant.block if tensor.quant is not None else None
    if block is not None:
        yield block.scales
        if block.zero_points is not None:
            yield block.zero_points
