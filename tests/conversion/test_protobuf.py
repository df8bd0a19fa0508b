"""Laws of the wire format's reader: it reads what is written, and refuses the rest in one way."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.conversion.onnx_file import SCHEMA
from litesmith.conversion.protobuf import read_message
from litesmith.errors import BadModel
from tests.draws import draws

_INT64 = st.integers(-(2**63), 2**63 - 1)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def block(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


@draws(200)
@given(values=st.lists(_INT64, max_size=20), packed=st.booleans())
def test_integers_are_read_packed_and_one_by_one(values: list[int], packed: bool) -> None:
    if packed:
        data = block(1, b"".join(map(varint, values)))
    else:
        data = b"".join(varint(1 << 3) + varint(value) for value in values)
    assert read_message(memoryview(data), "Tensor", SCHEMA).integers("dims") == values


@draws(100)
@given(values=st.lists(st.floats(width=32, allow_nan=False), max_size=20))
def test_floats_are_read_packed_and_one_by_one(values: list[float]) -> None:
    packed = block(4, struct.pack(f"<{len(values)}f", *values))
    single = b"".join(varint(4 << 3 | 5) + struct.pack("<f", value) for value in values)
    for data in (packed, single):
        found = read_message(memoryview(data), "Tensor", SCHEMA).numbers("float_data")
        np.testing.assert_array_equal(found, values)


@draws(100)
@given(name=st.text(max_size=30), number=st.integers(100, 5000), rest=st.binary(max_size=30))
def test_fields_that_are_not_known_are_passed_over(name: str, number: int, rest: bytes) -> None:
    data = block(number, rest) + block(8, name.encode()) + block(number + 1, rest)
    assert read_message(memoryview(data), "Tensor", SCHEMA).text("name") == name


@draws(400)
@given(data=st.binary(max_size=200), kind=st.sampled_from(sorted(SCHEMA)))
def test_any_bytes_are_read_or_refused(data: bytes, kind: str) -> None:
    try:
        found = read_message(memoryview(data), kind, SCHEMA)
    except BadModel as error:
        assert "\n" not in str(error)
    else:
        assert set(found.fields) <= {name for name, _ in SCHEMA[kind].values()}


def test_messages_inside_each_other_without_end_are_refused() -> None:
    data = b""
    for _ in range(200):
        data = block(5, block(6, block(1, data)))
    with pytest.raises(BadModel, match="inside each other"):
        read_message(memoryview(data), "Node", SCHEMA)
