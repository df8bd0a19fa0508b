"""Writing flatbuffer tables by the schema, as a stream.

A parent is written before its children, so every offset points forward and the constants, which
are nearly all of a model, can be the tail of the file: they go from where they are to where they
belong without being gathered in memory.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from litesmith import schema
from litesmith.ir.types import Array, Record, Value
from litesmith.schema import SCALARS, Field

# The schema asks that a buffer's content lie on a multiple of 16 bytes (force_align), so that
# vector loads can be aligned. For small content the gaps would outweigh the gain; the format's
# own converter leaves those, too, on any multiple of their element's width.
_ALIGNMENT, _SMALL_ALIGNMENT, _SMALL_BYTES = 16, 8, 1024


class Tail(NamedTuple):
    """Bytes that belong at the end of the file; the field that holds this gets their place."""

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
        """Writes what an offset field refers to, or notes its place for the end."""
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
        """Zeros until what comes `ahead` bytes later is aligned; returns the position."""
        self.head += bytes(-(len(self.head) + ahead) % alignment)
        return len(self.head)

    def _point(self, place: int, target: int) -> None:
        struct.pack_into("<I", self.head, place, target - place)


def _slots(node: Node | Record) -> list[_Slot]:
    """What has to be written of a table: fields that are set and differ from their default."""
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
    """Place of each slot in its table, the table's size and its alignment: wide fields first."""
    offsets: dict[int, int] = {}
    alignment = 4
    end = 4
    for slot in sorted(slots, key=lambda s: -s.width):
        alignment = max(alignment, slot.width)
        end += -end % slot.width
        offsets[slot.slot] = end
        end += slot.width
    return offsets, end, alignment
