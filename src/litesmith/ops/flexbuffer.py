"""Options of a custom op as a FlexBuffer, the form in which TensorFlow's converter writes them.

A value is written before what refers to it, and is referred to by its distance; the last three
bytes are the root: its place or value, its packed type, its width.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

from litesmith.errors import BadInput, BadModel
from litesmith.phrases import phrase

_Leaf: TypeAlias = bool | int | float | str | bytes | None
Option: TypeAlias = "_Leaf | list[Option] | tuple[Option, ...] | dict[str, Option]"

_NULL, _INT, _UINT, _FLOAT, _KEY, _STRING = 0, 1, 2, 3, 4, 5
_INDIRECT = {6: _INT, 7: _UINT, 8: _FLOAT}
_MAP, _VECTOR, _BLOB, _BOOL = 9, 10, 25, 26
# Vectors whose elements are all of one type: with a count before them, and of a fixed count.
_TYPED = {11: _INT, 12: _UINT, 13: _FLOAT, 14: _KEY, 15: _STRING, 36: _BOOL}
_FIXED = {16 + n: ((_INT, _UINT, _FLOAT)[n % 3], n // 3 + 2) for n in range(9)}
_INLINE = frozenset({_NULL, _INT, _UINT, _FLOAT, _BOOL})

_WIDE = 8  # bytes of every number that is written
_WIDTH_BITS = 3
_DEEPEST, _MOST = 32, 100_000
_INTEGERS = {1: "b", 2: "<h", 4: "<i", 8: "<q"}
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}


def encode(options: dict[str, Option]) -> bytes:
    """A map as bytes; numbers take 8 bytes each.

    >>> decode(encode({"factor": 2.5, "sizes": [1, 2]}))
    {'factor': 2.5, 'sizes': [1, 2]}
    """
    writer = _FlexWriter()
    kind, value = writer.put(options)
    writer.align()
    where = len(writer.out) - struct.unpack("<q", value)[0]
    return bytes(writer.out + where.to_bytes(_WIDE, "little") + bytes((kind << 2 | 3, _WIDE)))


class _FlexWriter:
    """Puts values one behind the other; what `put` gives is their type and how to refer to them."""

    def __init__(self) -> None:
        self.out = bytearray()

    def align(self) -> None:
        self.out += bytes(-len(self.out) % _WIDE)

    def put(self, value: Option) -> tuple[int, bytes]:
        """The type, and 8 bytes: the value itself, or the place where it begins."""
        match value:
            case None:
                return _NULL, bytes(_WIDE)
            case bool():
                return _BOOL, struct.pack("<q", value)
            case int():
                return _integer(value)
            case float():
                return _FLOAT, struct.pack("<d", value)
            case str():
                return self.text(_STRING, value.encode())
            case bytes():
                return self.text(_BLOB, value, b"")
            case list() | tuple():
                return self.list(value)
            case dict():
                return self.map(value)
            case _:
                raise BadInput(
                    "an option of an op is {name}; there are numbers, texts, bytes, lists and "
                    "dictionaries of them",
                    type(value).__name__,
                )

    def text(self, kind: int, content: bytes, end: bytes = b"\0") -> tuple[int, bytes]:
        self.align()
        if kind != _KEY:
            self.out += len(content).to_bytes(_WIDE, "little")
        place = len(self.out)
        self.out += content + end
        return kind, struct.pack("<q", place)

    def items(self, found: list[tuple[int, bytes]], *, types: bool = True) -> int:
        """A vector; the place of its first element."""
        self.align()
        self.out += len(found).to_bytes(_WIDE, "little")
        place = len(self.out)
        for kind, value in found:
            if kind not in _INLINE:
                value = struct.pack("<q", len(self.out) - struct.unpack("<q", value)[0])
            self.out += value
        if types:
            self.out += bytes(kind << 2 | 3 for kind, _ in found)
        return place

    def list(self, value: Sequence[Option]) -> tuple[int, bytes]:
        return _VECTOR, struct.pack("<q", self.items([self.put(item) for item in value]))

    def map(self, value: dict[str, Option]) -> tuple[int, bytes]:
        names = sorted(value, key=str.encode)
        if any("\0" in name for name in names):
            raise BadInput("the name of an option has a zero byte in it")
        values = [self.put(value[name]) for name in names]
        keys = [self.text(_KEY, name.encode()) for name in names]
        first = self.items(keys, types=False)
        self.align()
        self.out += (len(self.out) - first).to_bytes(_WIDE, "little")
        self.out += _WIDE.to_bytes(_WIDE, "little")
        return _MAP, struct.pack("<q", self.items(values))


def _integer(value: int) -> tuple[int, bytes]:
    if -(2**63) <= value < 2**63:
        return _INT, struct.pack("<q", value)
    if 0 <= value < 2**64:
        return _UINT, struct.pack("<Q", value)
    raise BadInput("option {value} of an op does not fit into 64 bits", value)


def decode(content: bytes) -> dict[str, Option]:
    """The map that the bytes hold; none where there are no bytes."""
    if not content:
        return {}
    try:
        found = _FlexReader(content).root()
    except (IndexError, RecursionError, UnicodeDecodeError, ValueError, struct.error) as error:
        raise BadModel("the options of a custom op are no FlexBuffer: {error}", error) from None
    if not isinstance(found, dict):
        raise BadModel("the options of a custom op are a FlexBuffer, but no map of names")
    return found


class _FlexReader:
    """Reads values by their places; trusts none of them."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._left = _MOST

    def root(self) -> Option:
        if len(self._content) < 3:
            raise ValueError(phrase("it is too short"))
        kind, width = self._content[-2], self._content[-1]
        return self._value(len(self._content) - 2 - width, width, kind, 0)

    def _bytes(self, place: int, count: int) -> bytes:
        if place < 0 or count < 0 or place + count > len(self._content):
            raise ValueError(phrase("it points outside itself, at {place}", place))
        return self._content[place : place + count]

    def _unsigned(self, place: int, width: int) -> int:
        if width not in _INTEGERS:
            raise ValueError(phrase("a number of {width} bytes", width))
        return int.from_bytes(self._bytes(place, width), "little")

    def _referred(self, place: int, width: int) -> int:
        return place - self._unsigned(place, width)

    def _value(self, place: int, width: int, packed: int, depth: int) -> Option:
        """A value of the packed type, whose own bytes, or whose distance, are at a place."""
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            raise ValueError(phrase("it is too deep or too long"))
        kind, child = packed >> 2, 1 << (packed & 3)
        if kind in _INLINE:
            return self._number(place, width, kind)
        at = self._referred(place, width)
        if kind in _INDIRECT:
            return self._number(at, child, _INDIRECT[kind])
        if kind == _KEY:
            return self._key(at)
        if kind in (_STRING, _BLOB):
            content = self._bytes(at, self._unsigned(at - child, child))
            return content.decode() if kind == _STRING else content
        if kind in _FIXED:
            element, count = _FIXED[kind]
            return [self._number(at + i * child, child, element) for i in range(count)]
        return self._collection(at, child, kind, depth)

    def _collection(self, at: int, width: int, kind: int, depth: int) -> Option:
        count = self._unsigned(at - width, width)
        self._bytes(at, count * width)  # it is there
        if kind in _TYPED:
            packed = [_TYPED[kind] << 2] * count
        elif kind in (_VECTOR, _MAP):
            packed = list(self._bytes(at + count * width, count))
        else:
            raise ValueError(phrase("type {kind} is not known", kind))
        values = [
            self._value(at + i * width, width, one, depth + 1) for i, one in enumerate(packed)
        ]
        return dict(zip(self._keys(at, width), values, strict=True)) if kind == _MAP else values

    def _keys(self, at: int, width: int) -> list[str]:
        first = self._referred(at - 3 * width, width)
        own = self._unsigned(at - 2 * width, width)
        count = self._unsigned(first - own, own)
        self._bytes(first, count * own)
        return [self._key(self._referred(first + i * own, own)) for i in range(count)]

    def _key(self, at: int) -> str:
        self._bytes(at, 1)
        return self._content[at : self._content.index(b"\0", at)].decode()

    def _number(self, place: int, width: int, kind: int) -> Option:
        if kind == _NULL:
            return None
        if kind == _FLOAT:
            if width not in _FLOATS:
                raise ValueError(phrase("a float of {width} bytes", width))
            return float(struct.unpack(_FLOATS[width], self._bytes(place, width))[0])
        value = self._unsigned(place, width)
        if kind == _BOOL:
            return bool(value)
        if kind == _UINT:
            return value
        return int(struct.unpack(_INTEGERS[width], self._bytes(place, width))[0])
