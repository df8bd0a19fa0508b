"""Element types: how each one is stored, and how stored bytes become numbers."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.phrases import phrase

Array = NDArray[Any]


class DType(NamedTuple):
    """One element type. `storage` is the numpy type of `Tensor.data`.

    The data of a packed type is a flat uint8 array with several elements in a byte, lowest bits
    first. A type whose elements have no fixed size (bits = 0) also has a flat uint8 array.
    """

    name: str
    bits: int
    storage: str
    is_float: bool = False
    is_signed: bool = True

    @property
    def is_packed(self) -> bool:
        return 0 < self.bits < 8

    @property
    def is_plain(self) -> bool:
        """True where numpy can hold single elements, in the tensor's shape."""
        return self.bits >= 8


_ROWS = (
    DType("bfloat16", 16, "uint16", is_float=True),
    DType("bool", 8, "bool"),
    DType("complex128", 128, "complex128"),
    DType("complex64", 64, "complex64"),
    DType("float16", 16, "float16", is_float=True),
    DType("float32", 32, "float32", is_float=True),
    DType("float64", 64, "float64", is_float=True),
    DType("float8_e4m3fn", 8, "uint8", is_float=True),
    DType("float8_e5m2", 8, "uint8", is_float=True),
    DType("int16", 16, "int16"),
    DType("int2", 2, "uint8"),
    DType("int32", 32, "int32"),
    DType("int4", 4, "uint8"),
    DType("int64", 64, "int64"),
    DType("int8", 8, "int8"),
    DType("resource", 0, "uint8"),
    DType("string", 0, "uint8"),
    DType("uint16", 16, "uint16", is_signed=False),
    DType("uint32", 32, "uint32", is_signed=False),
    DType("uint4", 4, "uint8", is_signed=False),
    DType("uint64", 64, "uint64", is_signed=False),
    DType("uint8", 8, "uint8", is_signed=False),
    DType("variant", 0, "uint8"),
)

DTYPES = {row.name: row for row in _ROWS}


def stored_bytes(dtype: str, elements: int) -> int:
    """The bytes of this many elements in a file; 0 for a type without a fixed size."""
    return (elements * DTYPES[dtype].bits + 7) // 8


def unpack(packed: Array, dtype: str, elements: int) -> Array:
    """Sub-byte elements as int8 or uint8: uint8 of any length -> shape (elements,)."""
    row = DTYPES[dtype]
    per_byte = 8 // row.bits
    shifts = np.arange(per_byte, dtype=np.uint8) * row.bits
    fields = (packed.reshape(-1, 1) >> shifts) & ((1 << row.bits) - 1)
    flat = fields.reshape(-1)[:elements].astype(np.uint8)
    if not row.is_signed:
        return flat
    sign = 1 << (row.bits - 1)
    return ((flat ^ sign).astype(np.int16) - sign).astype(np.int8)


def pack(values: Array, dtype: str) -> Array:
    """The inverse of `unpack`: integers of any shape -> flat uint8."""
    row = DTYPES[dtype]
    per_byte = 8 // row.bits
    flat = values.reshape(-1).astype(np.int64) & ((1 << row.bits) - 1)
    padded = np.zeros(-(-flat.size // per_byte) * per_byte, np.uint8)
    padded[: flat.size] = flat
    shifts = np.arange(per_byte, dtype=np.uint8) * row.bits
    return np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1).astype(np.uint8)


def pack_strings(texts: list[bytes]) -> Array:
    """A string tensor's bytes: int32 count, count + 1 int32 offsets, then the characters."""
    start = 4 * (len(texts) + 2)
    ends = np.cumsum([start, *(len(text) for text in texts)])
    header = np.array([len(texts), *ends], np.int32).tobytes()
    return np.frombuffer(header + b"".join(texts), np.uint8)


def string_ends(raw: Array) -> Array:
    """The start of the first string, then the end of each string: bytes -> shape (count + 1,).

    Raises ValueError where the numbers do not fit the bytes.
    """
    if raw.size < 8:
        raise ValueError(phrase("a string tensor starts with a count and an offset"))
    count = int(raw[:4].view(np.int32)[0])
    start = 4 * (count + 2)
    if count < 0 or start > raw.size:
        raise ValueError(phrase("{count} strings do not fit into {size} bytes", count, raw.size))
    ends = raw[4:start].view(np.int32)
    if ends[0] != start or (np.diff(ends) < 0).any() or ends[-1] > raw.size:
        raise ValueError(phrase("the offsets of its strings are not in order"))
    return ends


def unpack_strings(raw: Array) -> list[bytes]:
    """The inverse of `pack_strings`."""
    return [raw[a:b].tobytes() for a, b in pairwise(string_ends(raw))]
