"""Packing: what is stored comes back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith import schema
from litesmith.ir.dtype import (
    DTYPES,
    pack,
    pack_strings,
    stored_bytes,
    unpack,
    unpack_strings,
)


def test_every_type_of_the_schema_has_a_row() -> None:
    assert {name.lower() for name in schema.ENUMS["TensorType"].names} == set(DTYPES)


@pytest.mark.parametrize("dtype", ["int4", "int2", "uint4"])
@given(data=st.data())
def test_packed_values_come_back(dtype: str, data: st.DataObject) -> None:
    row = DTYPES[dtype]
    low = -(1 << (row.bits - 1)) if row.is_signed else 0
    high = low + (1 << row.bits) - 1
    values = np.array(data.draw(st.lists(st.integers(low, high))), np.int64)
    stored = pack(values, dtype)
    assert stored.nbytes == stored_bytes(dtype, values.size)
    np.testing.assert_array_equal(unpack(stored, dtype, values.size), values)


def test_the_low_bits_come_first() -> None:
    assert pack(np.array([1, -2]), "int4").tolist() == [0xE1]


@given(st.lists(st.binary(max_size=20)))
def test_strings_come_back(texts: list[bytes]) -> None:
    assert unpack_strings(pack_strings(texts)) == texts


def unpacked(raw: bytes) -> list[bytes] | ValueError:
    try:
        return unpack_strings(np.frombuffer(raw, np.uint8))
    except ValueError as error:
        return error


@given(st.binary(max_size=60))
def test_strings_are_inside_the_bytes_or_refused(raw: bytes) -> None:
    texts = unpacked(raw)
    assert isinstance(texts, ValueError) or sum(map(len, texts)) <= len(raw)


@pytest.mark.parametrize("raw", [b"\1", b"\2\0\0\0\x0c\0\0\0", b"\1\0\0\0" + b"\xff" * 8])
def test_broken_strings_are_refused(raw: bytes) -> None:
    assert isinstance(unpacked(raw), ValueError)
