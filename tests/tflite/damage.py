"""Damage of a file's structure: what stays is a flatbuffer, but says something else.

Each sort of damage picks a field first and one of its places then, so that a single option of a
rare op is hit as often as the thousand shapes.
"""

import struct
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from litesmith.schema import SCALARS
from tests.tflite.places import Place, Places, number, places

Damage = Callable[[bytearray, Places, np.random.Generator], None]

_INTEGERS = (0, 1, -1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 63, 127, 128, 255, 1000, 65535, 2**31 - 1)
_LARGE = (-(2**31), 2**32 - 1, 2**62, -(2**63))
_FLOATS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1e-45,
    1e-30,
    1e30,
    3.4e38,
    *map(float, ("nan", "inf", "-inf")),
)


def numbers(data: bytearray, known: Places, random: np.random.Generator) -> None:
    """An option, an index, a type or a version becomes another."""
    if place := _picked(known.numbers, random):
        _set(data, place, _other(number(data, place), place, random))


def elements(data: bytearray, known: Places, random: np.random.Generator) -> None:
    """A dimension, an input of an op, a scale or a zero point becomes another."""
    if place := _picked(known.vectors, random):
        one = _element(place, int(random.integers(place.length)))
        _set(data, one, _other(number(data, one), one, random))


def longer_or_shorter(data: bytearray, known: Places, random: np.random.Generator) -> None:
    """A shape gets another rank, an op another count of inputs, a tensor of scales."""
    picked = _picked(known.vectors, random)
    ways = known.offsets[picked.what] if picked else []
    if not ways:
        return
    way = ways[random.integers(len(ways))]
    start = way.at + int(number(data, way))
    form = SCALARS[picked.form] if picked else SCALARS["int32"]
    length = min(struct.unpack_from("<I", data, start)[0], 64)
    values = [form.unpack_from(data, start + 4 + form.size * i)[0] for i in range(length)]
    where = int(random.integers(len(values) + 1))
    change = random.integers(4)
    if change == 0:
        values.insert(where, values[where - 1] if values else 1)
    elif change == 1:
        values.insert(where, 1)
    elif change == 2:
        del values[where : where + 1]
    else:
        random.shuffle(values)
    _append(data, way, struct.pack("<I", len(values)) + b"".join(map(form.pack, values)))


def offsets(data: bytearray, known: Places, random: np.random.Generator) -> None:
    """A way leads to another table or vector of the same field: shared, swapped, circular."""
    first = _picked(known.offsets, random)
    if first is None:
        return
    among = known.offsets[first.what]
    if random.random() < 0.2:  # or of any field
        among = known.offsets[sorted(known.offsets)[random.integers(len(known.offsets))]]
    second = among[random.integers(len(among))]
    target = second.at + int(number(data, second))
    _set(data, first, target - first.at)


def fields_lost(data: bytearray, known: Places, random: np.random.Generator) -> None:
    """A field is absent, or lies where another does; tables that share the list lose it too."""
    if place := _picked(known.slots, random):
        other = _picked(known.slots, random)
        lost = random.random() < 0.7 or other is None
        _set(data, place, 0 if lost else number(data, other or place))


def counts(data: bytearray, known: Places, random: np.random.Generator) -> None:
    """A vector is longer or shorter than what lies behind its length."""
    if place := _picked(known.counts, random):
        length = int(number(data, place))
        around = (
            0,
            1,
            length - 1,
            length + 1,
            length // 2,
            2 * length,
            len(data),
            2**31,
            2**32 - 1,
        )
        _set(data, place, around[random.integers(len(around))])


def texts(data: bytearray, known: Places, random: np.random.Generator) -> None:
    """A name is another's, or no text at all."""
    place, other = _picked(known.texts, random), _picked(known.texts, random)
    if place is None or other is None:
        return
    strange = (b"", b"\xff\xfe", b"\x1b[2J\n\r", b"../../x", b"{x!r}%s", b"\0", b"\xed\xa0\x80")
    text = strange[random.integers(len(strange))]
    if random.random() < 0.4:
        text = bytes(data[other.at : other.at + other.length])
    if random.random() < 0.5:
        data[place.at : place.at + place.length] = (text or b" ").ljust(place.length, b"x")[
            : place.length
        ]
        return
    ways = [
        way for way in known.offsets[place.what] if way.at + int(number(data, way)) == place.at - 4
    ]
    if ways:
        _append(data, ways[0], struct.pack("<I", len(text)) + text + b"\0")


def constants(data: bytearray, known: Places, random: np.random.Generator) -> None:
    """Bytes of a constant: axes, shapes, indices, weights of another kind."""
    place = _picked(known.content, random)
    if place is None:
        return
    size = int(min(place.length, (4, 8, 64, place.length)[random.integers(4)]))
    start = place.at + int(random.integers((place.length - size) // 4 + 1)) * 4
    size = min(size, place.at + place.length - start)
    words = [
        SCALARS["int32"].pack(int(_INTEGERS[random.integers(len(_INTEGERS))])),
        SCALARS["float32"].pack(_FLOATS[random.integers(len(_FLOATS))]),
        bytes(4),
        random.bytes(4),
    ]
    data[start : start + size] = (words[random.integers(4)] * (size // 4 + 1))[:size]


def cut_at_a_border(data: bytearray, known: Places, random: np.random.Generator) -> None:
    """The file ends where a part of it begins."""
    if place := _picked(known.counts, random):
        del data[place.at + int(random.integers(9)) :]


DAMAGES: tuple[Damage, ...] = (
    numbers,
    elements,
    longer_or_shorter,
    offsets,
    fields_lost,
    counts,
    texts,
    constants,
    cut_at_a_border,
)


def damaged(data: bytes, which: int, random: np.random.Generator) -> bytes:
    """The file with one sort of damage; every third time with more of any sort."""
    known, spoiled = places(data), bytearray(data)
    DAMAGES[which](spoiled, known, random)
    more = int(random.integers(1, 4)) if random.random() < 1 / 3 else 0
    while more and _is_done(DAMAGES[random.integers(len(DAMAGES) - 1)], spoiled, known, random):
        more -= 1
    return bytes(spoiled)


def _is_done(damage: Damage, data: bytearray, known: Places, random: np.random.Generator) -> bool:
    """False where what was done before leads out of the file."""
    try:
        damage(data, known, random)
        return True
    except struct.error:
        return False


def _picked(sort: Mapping[str, Sequence[Place]], random: np.random.Generator) -> Place | None:
    if not sort:
        return None
    among = sort[sorted(sort)[random.integers(len(sort))]]
    return among[random.integers(len(among))]


def _element(place: Place, index: int) -> Place:
    return place._replace(at=place.at + index * SCALARS[place.form].size, length=0)


def _other(value: int | float, place: Place, random: np.random.Generator) -> int | float:
    """A number near the old one, a strange one, or an enormous one."""
    if place.form == "float32":
        return (*_FLOATS, -value, 2 * value)[random.integers(len(_FLOATS) + 2)]
    near = (value - 1, value + 1, -value, 2 * value)
    many = _INTEGERS if random.random() < 0.9 else _LARGE
    return (*near, *many)[random.integers(len(near) + len(many))]


def _set(data: bytearray, place: Place, value: int | float) -> None:
    form = SCALARS[place.form]
    if place.form in ("float32", "bool"):
        form.pack_into(data, place.at, value)
        return
    low = int(value) & (1 << 8 * form.size) - 1  # as the bits come
    data[place.at : place.at + form.size] = low.to_bytes(form.size, "little")


def _append(data: bytearray, way: Place, what: bytes) -> None:
    """Puts something at the end of the file, and leads a way there."""
    data += bytes(-len(data) % 8 + 4)
    _set(data, way, len(data) - way.at)
    data += what
