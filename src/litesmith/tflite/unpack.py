"""Reading flatbuffer tables by the schema, trusting no offset.

Every offset, length and vtable is checked against the file before it is followed, and every visit
is charged to a budget, so that a hostile file costs at most a few times as much as an honest one of
its size.
"""

import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np

from litesmith import schema
from litesmith.errors import BadModel
from litesmith.ir.types import NONE_SET, Array, Record, Value
from litesmith.schema import SCALARS, Field

_U16, _U32, _I32 = SCALARS["uint16"], SCALARS["uint32"], SCALARS["int32"]

# The number of slots of each table.
_SLOTS = {
    name: max((field.slot + 1 for field in fields.values()), default=0)
    for name, fields in schema.TABLES.items()
}

# The least a table occupies: its vtable offset and the offset that points to it.
_TABLE_COST = 8


class Source:
    """The bytes of a file, and the budget of bytes that may still be visited."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.array = np.frombuffer(data, np.uint8)
        self.size = len(data)
        self.budget = 2 * self.size + 65536
        self.end = 8  # the end of the last byte that was used
        self.unknown: dict[str, None] = {}
        self.mended: list[str] = []

    def visit(self, cost: int, what: str) -> None:
        self.budget -= cost
        if self.budget < 0:
            raise BadModel(
                "{what}: the same bytes are used over and over; the file is not honest", what
            )

    def scalar(self, form: struct.Struct, at: int, what: str) -> int | float | bool:
        if at < 0 or at + form.size > self.size:
            raise BadModel(
                "{what}: points to byte {at} of a file of {size}; is it truncated?",
                what,
                at,
                self.size,
            )
        return form.unpack_from(self.data, at)[0]

    def follow(self, at: int, what: str) -> int:
        """The position that the offset stored at `at` leads to."""
        return at + int(self.scalar(_U32, at, what))

    def vector(self, at: int, width: int, what: str) -> tuple[int, int]:
        """First byte and length of the vector at `at`, whose elements have `width` bytes."""
        length = int(self.scalar(_U32, at, what))
        if at + 4 + length * width > self.size:
            raise BadModel(
                "{what}: {length} elements at byte {at} do not fit into a file of {size} "
                "bytes; is it truncated?",
                what,
                length,
                at,
                self.size,
            )
        self.visit(4 + length * width, what)
        self.end = max(self.end, at + 4 + length * width)
        return at + 4, length


class Table:
    """A table at a checked position. Fields are read and checked on access."""

    __slots__ = ("at", "name", "size", "slots", "source", "vtable")

    def __init__(self, source: Source, at: int, name: str) -> None:
        source.visit(_TABLE_COST, name)
        self.source = source
        self.at = at
        self.name = name
        self.vtable = at - int(source.scalar(_I32, at, name))
        length = int(source.scalar(_U16, self.vtable, name))
        self.size = int(source.scalar(_U16, self.vtable + 2, name))
        self.slots = length // 2 - 2
        if length < 4 or length % 2 or self.vtable + length > source.size:
            raise BadModel(
                "{name}: its field list at byte {vtable} has {length} bytes",
                name,
                self.vtable,
                length,
            )
        if self.size < 4 or at + self.size > source.size:
            raise BadModel(
                "{name}: {size} bytes at {at} leave the file; is it truncated?", name, self.size, at
            )
        source.end = max(source.end, at + self.size, self.vtable + length)
        self._note_unknown()

    def __getitem__(self, name: str) -> Value:
        """A field as a value: numbers, names of enums, text, arrays of numbers, records."""
        field = schema.TABLES[self.name][name]
        at = self._place(field)
        if at is None:
            return _absent(field)
        if field.vector:
            return self._vector(field, at)
        if field.kind == "string":
            return self._text(self.source.follow(at, self._what(field)), field)
        if field.kind in ("table", "union"):
            inner = self._inner(field, at)
            return inner.record() if inner is not None else None
        number = self.source.scalar(SCALARS[field.stored], at, self._what(field))
        return _name_of_enum(field, number) if field.kind == "enum" else number

    def integer(self, name: str) -> int:
        """A number field; an enum's number."""
        field = schema.TABLES[self.name][name]
        at = self._place(field)
        if at is None:
            return int(field.default)
        return int(self.source.scalar(SCALARS[field.stored], at, self._what(field)))

    def text(self, name: str) -> str:
        value = self[name]
        return value if isinstance(value, str) else ""

    def integers(self, name: str) -> tuple[int, ...]:
        value = self[name]
        return tuple(value.tolist()) if isinstance(value, np.ndarray) else ()

    def array(self, name: str) -> Array | None:
        """A vector of numbers as a view on the file; None where it is absent."""
        value = self[name]
        return value if isinstance(value, np.ndarray) else None

    def table(self, name: str) -> "Table | None":
        """A table field, or the table that a union field holds."""
        field = schema.TABLES[self.name][name]
        at = self._place(field)
        return None if at is None else self._inner(field, at)

    def tables(self, name: str) -> Iterator["Table"]:
        """The tables of a vector field, one after the other."""
        field = schema.TABLES[self.name][name]
        at = self._place(field)
        if at is None:
            return
        what = self._what(field)
        start, length = self.source.vector(self.source.follow(at, what), 4, what)
        for place in range(start, start + 4 * length, 4):
            yield Table(self.source, self.source.follow(place, what), field.type)

    def record(self) -> Record:
        """The whole table as a value, with the fields that are set."""
        set_fields: dict[str, Value] = {}
        for name, field in schema.TABLES[self.name].items():
            if self._place(field) is not None and (value := self[name]) is not None:
                set_fields[name] = value
        return Record(self.name, MappingProxyType(set_fields) if set_fields else NONE_SET)

    def rest(self, known: str = "") -> Mapping[str, Value]:
        """The fields that are set and are not in `known`, which lists names in one text."""
        kept: dict[str, Value] = {}
        for name, field in schema.TABLES[self.name].items():
            if name not in known.split() and self._place(field) is not None:
                value = self[name]
                if value is not None and (field.vector or value != _absent(field)):
                    kept[name] = value
        return MappingProxyType(kept) if kept else NONE_SET

    def _offset(self, slot: int) -> int:
        if slot >= self.slots:
            return 0
        return _U16.unpack_from(self.source.data, self.vtable + 4 + 2 * slot)[0]

    def _place(self, field: Field) -> int | None:
        """The place of the field, or None where it is not set."""
        offset = self._offset(field.slot)
        if offset == 0:
            return None
        width = 4 if field.is_offset else SCALARS[field.stored].size
        if offset + width > self.size:
            raise BadModel(
                "{what}: lies outside its table at byte {at}", self._what(field), self.at
            )
        return self.at + offset

    def _what(self, field: Field) -> str:
        return f"{self.name}.{field.name}"

    def _text(self, at: int, field: Field) -> str:
        start, length = self.source.vector(at, 1, self._what(field))
        # Names need not be UTF-8; surrogates keep foreign bytes through a round trip.
        return bytes(self.source.data[start : start + length]).decode("utf-8", "surrogateescape")

    def _vector(self, field: Field, at: int) -> Value:
        what = self._what(field)
        if field.kind == "table":
            return tuple(table.record() for table in self.tables(field.name))
        form = SCALARS[field.stored]
        start, length = self.source.vector(self.source.follow(at, what), form.size, what)
        raw = self.source.array[start : start + length * form.size]
        return raw.view(field.stored) if length else np.zeros(0, field.stored)

    def _inner(self, field: Field, at: int) -> "Table | None":
        what = self._what(field)
        name = field.type
        if field.kind == "union":
            place = self._offset(field.slot - 1)
            if place + 1 > self.size:
                raise BadModel(
                    "{what}: its type lies outside the table at byte {at}", what, self.at
                )
            number = self.source.data[self.at + place] if place else 0
            members = schema.UNIONS[field.type]
            if number == 0:
                return None
            if number > len(members):
                self.source.unknown[f"{what} of type {number}"] = None
                return None
            name = members[number - 1]
        return Table(self.source, self.source.follow(at, what), name)

    def _note_unknown(self) -> None:
        """Records the fields beyond the schema, which cannot be copied because their types are not
        known.
        """
        known = _SLOTS[self.name]
        if self.slots <= known:
            return
        self.source.visit(2 * (self.slots - known), self.name)
        for slot in range(known, self.slots):
            if self._offset(slot):
                self.source.unknown[f"{self.name} field {slot}"] = None


def _absent(field: Field) -> Value:
    if field.is_offset:
        return None
    return _name_of_enum(field, field.default) if field.kind == "enum" else field.default


def _name_of_enum(field: Field, number: int | float | bool) -> Value:
    names = schema.ENUMS[field.type].names
    return names[int(number)] if 0 <= number < len(names) else int(number)
