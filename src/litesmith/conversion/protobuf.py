"""The wire format of protobuf, read by a table: views on the bytes, nothing copied, nothing run.

A message is read as a dictionary of lists, by the names of its fields; fields that the table does
not name are skipped. Whatever does not fit is refused as a damaged file.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from litesmith.errors import BadModel
from litesmith.ir.types import Array

# More messages inside each other than any real file has.
_DEEPEST = 60

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# The content of a field: the name of a message, or one of int, float, double, text, bytes.
Schema = Mapping[str, Mapping[int, tuple[str, str]]]


@dataclass(frozen=True, eq=False, slots=True)
class Message:
    """The fields of a message that were there, each with all its values in order."""

    fields: Mapping[str, list[object]] = field(default_factory=dict[str, list[object]])

    def messages(self, name: str) -> list["Message"]:
        return [m for m in self.fields.get(name, ()) if isinstance(m, Message)]

    def message(self, name: str) -> "Message | None":
        found = self.messages(name)
        return found[-1] if found else None

    def array(self, name: str) -> Array:
        """All numbers of a field, including packed ones."""
        found = [np.atleast_1d(np.asarray(v)) for v in self.fields.get(name, ())]
        return np.concatenate(found) if found else np.zeros(0)

    def integers(self, name: str) -> list[int]:
        return [int(v) for v in self.array(name)]

    def integer(self, name: str, default: int = 0) -> int:
        found = self.integers(name)
        return found[-1] if found else default

    def numbers(self, name: str) -> list[float]:
        return [float(v) for v in self.array(name)]

    def texts(self, name: str) -> list[str]:
        return [v for v in self.fields.get(name, ()) if isinstance(v, str)]

    def text(self, name: str) -> str:
        found = self.texts(name)
        return found[-1] if found else ""

    def blobs(self, name: str) -> list[memoryview]:
        return [v for v in self.fields.get(name, ()) if isinstance(v, memoryview)]


def read_message(data: memoryview, kind: str, schema: Schema, depth: int = 0) -> Message:
    """The message of that kind in the bytes, or BadModel."""
    if depth > _DEEPEST:
        raise BadModel("messages lie deeper than {most} inside each other", _DEEPEST)
    known = schema[kind]
    fields: dict[str, list[object]] = {}
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, wire = key >> 3, key & 7
        raw, place = _raw(data, place, wire)
        if number in known:
            name, holds = known[number]
            fields.setdefault(name, []).extend(_values(raw, wire, holds, schema, depth))
    return Message(fields)


def _values(
    raw: int | memoryview, wire: int, holds: str, schema: Schema, depth: int
) -> list[object]:
    """The content of a field, by its kind; numbers may be packed, many in one field."""
    if holds in schema:
        return [read_message(_blob(raw), holds, schema, depth + 1)]
    if holds == "bytes":
        return [_blob(raw)]
    if holds == "text":
        return [bytes(_blob(raw)).decode("utf-8", "replace")]
    if holds == "int":
        return [_signed(raw) if isinstance(raw, int) else _packed_integers(raw)]
    width, sort = {"float": (4, "<f4"), "double": (8, "<f8")}[holds]
    if isinstance(raw, int):
        code = "<f" if wire == _FIXED32 else "<d"
        size = 4 if wire == _FIXED32 else 8
        return [float(struct.unpack(code, raw.to_bytes(size, "little"))[0])]
    if len(raw) % width:
        raise BadModel("{bytes} bytes hold no whole number of values", len(raw))
    return [np.frombuffer(raw, sort)]


def _blob(raw: int | memoryview) -> memoryview:
    if isinstance(raw, int):
        raise BadModel("a number stands where bytes belong")
    return raw


def _packed_integers(data: memoryview) -> Array:
    codes = np.frombuffer(data, np.uint8)
    last = np.flatnonzero(codes < 128)
    if not len(codes):
        return np.zeros(0, np.int64)
    if not len(last) or last[-1] != len(codes) - 1:
        raise BadModel("a number reaches beyond the end")
    first = np.concatenate([[0], last[:-1] + 1])
    place = np.arange(len(codes)) - np.repeat(first, last - first + 1)
    if place.max() > 9:
        raise BadModel("a number of more than 64 bits")
    parts = (codes & 127).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.bitwise_or.reduceat(parts, first).view(np.int64)


def _raw(data: memoryview, place: int, wire: int) -> tuple[int | memoryview, int]:
    """The bytes or the number at a place, and the place behind it."""
    if wire == _VARINT:
        return _varint(data, place)
    if wire == _BYTES:
        size, place = _varint(data, place)
    elif wire in (_FIXED64, _FIXED32):
        size = 8 if wire == _FIXED64 else 4
    else:
        raise BadModel("a field of the unknown sort {wire}", wire)
    end = place + size
    if end > len(data):
        raise BadModel("a field of {size} bytes reaches beyond the end", size)
    piece = data[place:end]
    return (piece if wire == _BYTES else int.from_bytes(piece, "little")), end


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise BadModel("a number reaches beyond the end")
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (1 << 64) - 1, place
        shift += 7


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
