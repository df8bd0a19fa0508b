"""Where everything lies in the bytes of a .tflite: what damage of a file's structure aims at."""

import struct
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from litesmith import schema
from litesmith.schema import SCALARS, Field


class Place(NamedTuple):
    """One word of a file that means something.

    what    its field, as in `Tensor.shape`
    at      its first byte
    form    the scalar that stores it, or one element of the vector at `at`
    length  elements of a vector of numbers or of a text; 0 for a single number
    """

    what: str
    at: int
    form: str
    length: int = 0


class Places(NamedTuple):
    """The words of a file by what they are; within a sort by field, so that rare ones count.

    numbers  single numbers: options, indices, types, versions, kinds of unions
    vectors  vectors of numbers: shapes, inputs, scales
    texts    names
    content  the constants
    offsets  the ways to tables, vectors and texts
    counts   the lengths of vectors
    slots    the entries of field lists: where in its table a field lies
    """

    numbers: dict[str, list[Place]]
    vectors: dict[str, list[Place]]
    texts: dict[str, list[Place]]
    content: dict[str, list[Place]]
    offsets: dict[str, list[Place]]
    counts: dict[str, list[Place]]
    slots: dict[str, list[Place]]


@lru_cache(maxsize=256)
def places(data: bytes) -> Places:
    """The places of a file that is not damaged yet."""
    found = Places(*(defaultdict[str, list[Place]](list) for _ in Places._fields))
    _walk(data, _follow(data, 0), "Model", found)
    return Places(*(dict(sort) for sort in found))


def _follow(data: bytes, at: int) -> int:
    return at + struct.unpack_from("<I", data, at)[0]


def _walk(data: bytes, at: int, table: str, found: Places) -> None:
    for name, field, place, slot in _fields(data, at, table):
        found.slots[name].append(Place(name, slot, "uint16"))
        if not field.is_offset:
            found.numbers[name].append(Place(name, place, field.stored))
            continue
        found.offsets[name].append(Place(name, place, "uint32"))
        target = _follow(data, place)
        if field.vector or field.kind == "string":
            _walk_vector(data, target, name, field, found)
        elif field.kind == "table":
            _walk(data, target, field.type, found)
        else:
            kind = at + struct.unpack_from("<H", data, slot - 2)[0]
            found.numbers[f"{name}_type"].append(Place(f"{name}_type", kind, "uint8"))
            if 0 < data[kind] <= len(schema.UNIONS[field.type]):
                _walk(data, target, schema.UNIONS[field.type][data[kind] - 1], found)


def _fields(data: bytes, at: int, table: str) -> Iterator[tuple[str, Field, int, int]]:
    """Name, field, place and place in the field list of every field that a table has set."""
    vtable = at - struct.unpack_from("<i", data, at)[0]
    slots = struct.unpack_from("<H", data, vtable)[0] // 2 - 2
    for field in schema.TABLES[table].values():
        slot = vtable + 4 + 2 * field.slot
        if field.slot < slots and (offset := struct.unpack_from("<H", data, slot)[0]):
            yield f"{table}.{field.name}", field, at + offset, slot


def _walk_vector(data: bytes, at: int, name: str, field: Field, found: Places) -> None:
    length = struct.unpack_from("<I", data, at)[0]
    found.counts[name].append(Place(name, at, "uint32"))
    if field.kind == "table":
        for entry in range(at + 4, at + 4 + 4 * length, 4):
            found.offsets[name].append(Place(name, entry, "uint32"))
            _walk(data, _follow(data, entry), field.type, found)
    elif length and field.kind == "string":
        found.texts[name].append(Place(name, at + 4, "uint8", length))
    elif length:
        sort = found.content if name == "Buffer.data" else found.vectors
        sort[name].append(Place(name, at + 4, field.stored, length))


def number(data: bytes | bytearray, place: Place) -> int | float:
    return SCALARS[place.form].unpack_from(data, place.at)[0]
