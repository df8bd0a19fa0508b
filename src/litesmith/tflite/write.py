"""Model to bytes: one canonical file for each model, so that equal models give equal bytes.

Tables are packed by the schema, as a stream: constants are never collected in memory.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from litesmith import schema
from litesmith.errors import CannotApply
from litesmith.ir.types import (
    Array,
    Graph,
    Model,
    Op,
    Quant,
    Record,
    Signature,
    Tensor,
    Value,
    memory_place,
)
from litesmith.schema import SCALARS, Field
from litesmith.tflite.label_archive import attach

# The schema asks that a buffer's content lie on a multiple of 16 bytes (force_align), so that
# vector loads can be aligned. For small content the gaps would outweigh the gain; the format's
# own converter leaves those, too, on any multiple of their element's width.
_ALIGNMENT, _SMALL_ALIGNMENT, _SMALL_BYTES = 16, 8, 1024


class Tail(NamedTuple):
    """Bytes for the end of the file; the field that holds a `Tail` gets their place."""

    content: Array


class Node(NamedTuple):
    """A table to be written; unlike a Record's, its fields may hold nodes and tails."""

    table: str
    fields: "Mapping[str, Content]"


Content: TypeAlias = "Value | Tail | Node | Sequence[Node]"


class _Slot(NamedTuple):
    """One field to be written: its slot, width, stored type ("" for an offset) and content."""

    slot: int
    width: int
    scalar: str
    field: Field
    content: Content


class Packer:
    """Appends tables to one growing head; `chunks` gives the finished file."""

    def __init__(self, identifier: bytes) -> None:
        self.head = bytearray(4) + identifier
        self._vtables: dict[bytes, int] = {}
        self._tails: list[tuple[int, Field, Array]] = []

    def root(self, node: Node) -> None:
        """Writes the root table and everything below it."""
        self._point(0, self._table(node))

    def _table(self, node: Node | Record) -> int:
        """Writes a table and what it refers to; returns its position."""
        slots = _slots(node)
        offsets, size, alignment = _layout(slots)
        vtable = self._vtable(offsets, size)
        at = self._pad(alignment)
        self.head += bytes(size)
        struct.pack_into("<i", self.head, at, at - vtable)
        children: list[tuple[int, _Slot]] = []
        for slot in slots:
            place = at + offsets[slot.slot]
            if slot.scalar and not isinstance(slot.content, Tail):
                SCALARS[slot.scalar].pack_into(self.head, place, slot.content)
            else:
                children.append((place, slot))
        for place, slot in children:
            self._child(place, slot)
        return at

    def chunks(self) -> Iterator[memoryview]:
        """The file, piece by piece: the head with every tail's place filled in, then the tails."""
        end = len(self.head)
        starts: list[int] = []
        for _, field, content in self._tails:
            prefix = 4 if field.vector else 0
            alignment = _SMALL_ALIGNMENT if content.nbytes < _SMALL_BYTES else _ALIGNMENT
            start = -(-(end + prefix) // alignment) * alignment
            starts.append(start)
            end = start + content.nbytes
        for (place, field, _), start in zip(self._tails, starts, strict=True):
            if field.vector:
                self._point(place, start - 4)
            else:
                SCALARS[field.type].pack_into(self.head, place, start)
        yield memoryview(self.head)
        end = len(self.head)
        for (_, field, content), start in zip(self._tails, starts, strict=True):
            length = struct.pack("<I", content.nbytes) if field.vector else b""
            yield memoryview(bytes(start - end - len(length)) + length)
            yield content.reshape(-1).view(np.uint8).data
            end = start + content.nbytes

    def _child(self, place: int, slot: _Slot) -> None:
        """Writes the target of an offset field, or records the field's place for the end."""
        field, content = slot.field, slot.content
        if isinstance(content, Tail):
            self._tails.append((place, field, content.content))
        elif isinstance(content, Node | Record):
            self._point(place, self._table(content))
        elif isinstance(content, str):
            self._point(place, self._text(content.encode("utf-8", "surrogateescape")))
        elif field.kind == "table":
            self._tables(place, cast(Sequence[Node | Record], content))
        else:
            array = np.asarray(content if not isinstance(content, bytes) else bytearray(content))
            self._point(place, self._numbers(array, field.stored))

    def _tables(self, place: int, nodes: Sequence[Node | Record]) -> None:
        at = self._pad(4)
        self._point(place, at)
        self.head += struct.pack("<I", len(nodes)) + bytes(4 * len(nodes))
        for index, node in enumerate(nodes):
            self._point(at + 4 + 4 * index, self._table(node))

    def _numbers(self, array: Array, scalar: str) -> int:
        """A vector of numbers: the elements lie on a multiple of their width."""
        data = array.astype(np.dtype(scalar).newbyteorder("<"), copy=False)
        at = self._pad(max(4, data.dtype.itemsize), ahead=4)
        self.head += struct.pack("<I", data.size)
        self.head += data.tobytes()
        return at

    def _text(self, text: bytes) -> int:
        """A string: its length does not count the NUL that ends it."""
        at = self._pad(4)
        self.head += struct.pack("<I", len(text)) + text + b"\0"
        return at

    def _vtable(self, offsets: dict[int, int], size: int) -> int:
        count = max(offsets, default=-1) + 1
        words = [4 + 2 * count, size, *(offsets.get(slot, 0) for slot in range(count))]
        packed = struct.pack(f"<{len(words)}H", *words)
        if packed not in self._vtables:
            self._vtables[packed] = self._pad(2)
            self.head += packed
        return self._vtables[packed]

    def _pad(self, alignment: int, ahead: int = 0) -> int:
        """Writes zeros until the position `ahead` bytes later is aligned; returns the position."""
        self.head += bytes(-(len(self.head) + ahead) % alignment)
        return len(self.head)

    def _point(self, place: int, target: int) -> None:
        struct.pack_into("<I", self.head, place, target - place)


def _slots(node: Node | Record) -> list[_Slot]:
    """The fields of a table to write: those that are set and differ from their default."""
    slots: list[_Slot] = []
    for name, content in node.fields.items():
        field = schema.TABLES[node.table][name]
        if content is None:
            continue
        if field.is_offset:
            slots.append(_Slot(field.slot, 4, "", field, content))
            if field.kind == "union":
                number = schema.UNIONS[field.type].index(cast(Record, content).table) + 1
                slots.append(_Slot(field.slot - 1, 1, "uint8", field, number))
            continue
        scalar = field.stored
        if isinstance(content, str):
            content = schema.ENUMS[field.type].numbers[content]
        if isinstance(content, Tail) or content != field.default:
            slots.append(_Slot(field.slot, SCALARS[scalar].size, scalar, field, content))
    return sorted(slots, key=lambda slot: slot.slot)


def _layout(slots: list[_Slot]) -> tuple[dict[int, int], int, int]:
    """The place of each slot in its table, the table's size and its alignment, with wide fields
    first.
    """
    offsets: dict[int, int] = {}
    alignment = 4
    end = 4
    for slot in sorted(slots, key=lambda s: -s.width):
        alignment = max(alignment, slot.width)
        end += -end % slot.width
        offsets[slot.slot] = end
        end += slot.width
    return offsets, end, alignment


# A flatbuffer holds less than 2 GiB; larger models keep their constants behind it.
ROOT_LIMIT = 2**31 - 2**26

# Ops whose compiled code the runtime finds by its place in the file, which a copy would change.
_BOUND_TO_THE_FILE = "DISPATCH_OP"

# Custom options beyond this many bytes go to the tail of the file, like constants.
_INLINE_BYTES = 4096

_UNIONS = {
    table: union
    for union in ("BuiltinOptions", "BuiltinOptions2")
    for table in schema.UNIONS[union]
}
_OPTION_FIELDS = {"BuiltinOptions": "builtin_options", "BuiltinOptions2": "builtin_options_2"}


def chunks(model: Model, root_limit: int = ROOT_LIMIT) -> Iterator[memoryview]:
    """The file piece by piece; constants are not copied."""
    written = 0
    for chunk in _ModelTables(model, root_limit).packer.chunks():
        written += len(chunk)
        yield chunk
    if model.attached:
        yield memoryview(attach(model.attached, written))


def to_bytes(model: Model, root_limit: int = ROOT_LIMIT) -> bytes:
    """The file as one bytes object."""
    return b"".join(chunks(model, root_limit))


class _ModelTables:
    """Numbers buffers and operator codes while the tables are laid out."""

    def __init__(self, model: Model, root_limit: int) -> None:
        _refuse_what_would_be_lost(model)
        self._outside = _content_bytes(model) > root_limit
        self._buffers: list[Array] = []
        self._buffer_numbers: dict[tuple[int, int], int] = {}
        self._codes: dict[tuple[str, str, int], int] = {}
        self.packer = Packer(schema.FILE_IDENTIFIER)
        self.packer.root(self._model(model))

    def _model(self, model: Model) -> Node:
        fields: dict[str, Content] = dict(model.rest)
        fields["subgraphs"] = [self._graph(graph) for graph in model.graphs]
        fields["operator_codes"] = [_code(*code) for code in self._codes]
        listed = model.rest.get("metadata_buffer")
        if isinstance(listed, tuple):
            fields["metadata_buffer"] = tuple(self._buffer(b) for b in listed)  # type: ignore[arg-type]
        fields["metadata"] = [
            Node("Metadata", {"name": name, "buffer": self._buffer(content)})
            for name, content in model.metadata
        ] or None
        for content in model.spare:
            self._buffer(content)
        numbers = [{t: i for i, t in enumerate(graph.tensors)} for graph in model.graphs]
        signatures = [_signature(s, numbers[s.graph]) for s in model.signatures]
        fields["signature_defs"] = signatures or None
        fields["buffers"] = [Node("Buffer", {}), *map(self._buffer_node, self._buffers)]
        fields["description"] = model.description or None
        fields["version"] = 3
        return Node("Model", fields)

    def _graph(self, graph: Graph) -> Node:
        numbers = {tensor: i for i, tensor in enumerate(graph.tensors)}
        fields: dict[str, Content] = dict(graph.rest)
        fields["tensors"] = [self._tensor(tensor, numbers) for tensor in graph.tensors]
        fields["inputs"] = tuple(numbers[t] for t in graph.inputs)
        fields["outputs"] = tuple(numbers[t] for t in graph.outputs)
        fields["operators"] = [self._op(op, numbers) for op in graph.ops]
        fields["name"] = graph.name or None
        return Node("SubGraph", fields)

    def _tensor(self, tensor: Tensor, numbers: Mapping[Tensor, int]) -> Node:
        fields: dict[str, Content] = dict(tensor.rest)
        fields["shape"] = tensor.shape
        fields["type"] = tensor.dtype.upper()
        fields["buffer"] = self._buffer(tensor.data) if tensor.data is not None else 0
        fields["name"] = tensor.name
        fields["is_variable"] = tensor.variable
        fields["sparsity"] = tensor.sparsity
        fields["shape_signature"] = tensor.dynamic
        if tensor.quant is not None:
            fields["quantization"] = _quant(tensor.quant, numbers)
        return Node("Tensor", fields)

    def _op(self, op: Op, numbers: Mapping[Tensor, int]) -> Node:
        fields: dict[str, Content] = dict(op.rest)
        code = (op.kind, op.custom, op.version)
        fields["opcode_index"] = self._codes.setdefault(code, len(self._codes))
        fields["inputs"] = tuple(-1 if t is None else numbers[t] for t in op.inputs)
        fields["outputs"] = tuple(numbers[t] for t in op.outputs)
        fields["intermediates"] = tuple(numbers[t] for t in op.intermediates) or None
        if op.options is not None:
            fields[_OPTION_FIELDS[_UNIONS[op.options.table]]] = op.options
        custom = _as_array(op.rest.get("custom_options"))
        if custom is not None and custom.nbytes > _INLINE_BYTES:
            fields["custom_options"] = None if self._outside else Tail(custom)
            if self._outside:
                fields["large_custom_options_offset"] = Tail(custom)
                fields["large_custom_options_size"] = custom.nbytes
        return Node("Operator", fields)

    def _buffer(self, content: Array) -> int:
        """The number of the buffer with this content; views on the same memory share one."""
        if content.nbytes == 0:
            return 0
        dense = np.ascontiguousarray(content)
        key = memory_place(dense)
        if key not in self._buffer_numbers:
            self._buffers.append(dense)  # keeps the memory, and so the key, alive
            self._buffer_numbers[key] = len(self._buffers)
        return self._buffer_numbers[key]

    def _buffer_node(self, content: Array) -> Node:
        if self._outside:
            return Node("Buffer", {"offset": Tail(content), "size": content.nbytes})
        return Node("Buffer", {"data": Tail(content)})


def _refuse_what_would_be_lost(model: Model) -> None:
    if model.lost:
        raise CannotApply(
            "the model uses {lost}, newer than the schema this version knows, and a copy "
            "would lose it; upgrade litesmith",
            ", ".join(model.lost),
        )
    if any(op.custom == _BOUND_TO_THE_FILE for _, _, op in model.ops()):
        raise CannotApply(
            "the model is compiled for an accelerator and refers to places in its own file; "
            "start from the model before compilation"
        )


def _content_bytes(model: Model) -> int:
    constants = (t.data.nbytes for g in model.graphs for t in g.tensors if t.data is not None)
    custom = (_as_array(op.rest.get("custom_options")) for _, _, op in model.ops())
    return sum(constants) + sum(c.nbytes for c in custom if c is not None)


def _as_array(content: Content) -> Array | None:
    if isinstance(content, bytes):
        return np.frombuffer(content, np.uint8)
    return content if isinstance(content, np.ndarray) else None


def _code(kind: str, custom: str, version: int) -> Node:
    number = schema.ENUMS["BuiltinOperator"].numbers[kind]
    fields: dict[str, Content] = {
        "deprecated_builtin_code": min(number, 127),
        "builtin_code": kind,
        "custom_code": custom or None,
        "version": version,
    }
    return Node("OperatorCode", fields)


def _quant(quant: Quant, numbers: Mapping[Tensor, int]) -> Node:
    fields: dict[str, Content] = dict(quant.rest)
    fields["scale"] = quant.scale if quant.scale.size else None
    fields["zero_point"] = quant.zero_point if quant.zero_point.size else None
    fields["quantized_dimension"] = quant.axis
    if quant.block is not None:
        details = quant.block.rest.set(scales=numbers[quant.block.scales])
        if quant.block.zero_points is not None:
            details = details.set(zero_points=numbers[quant.block.zero_points])
        fields["details"] = details
    return Node("QuantizationParameters", fields)


def _signature(signature: Signature, numbers: Mapping[Tensor, int]) -> Node:
    fields: dict[str, Content] = dict(signature.rest)
    fields["inputs"] = [_argument(name, numbers[t]) for name, t in signature.inputs]
    fields["outputs"] = [_argument(name, numbers[t]) for name, t in signature.outputs]
    fields["signature_key"] = signature.key
    fields["subgraph_index"] = signature.graph
    return Node("SignatureDef", fields)


def _argument(name: str, number: int) -> Node:
    return Node("TensorMap", {"name": name, "tensor_index": number})
