"""FlexBuffers: those of the format's own library are read, and it reads ours."""

import pytest
from flatbuffers import flexbuffers
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput, BadModel
from litesmith.ops.flexbuffer import decode, encode

NAMES = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=6)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, width=32) | st.booleans()
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
VALUES = st.recursive(
    st.none() | NUMBERS | TEXTS | st.binary(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
MAPS = st.dictionaries(NAMES, VALUES, max_size=5)


@given(MAPS)
def test_what_is_written_is_read(value: dict) -> None:
    assert decode(encode(value)) == value


@given(MAPS)
def test_the_library_reads_ours(value: dict) -> None:
    assert flexbuffers.Loads(encode(value)) == value


@given(MAPS)
def test_the_library_writes_what_is_read(value: dict) -> None:
    assert decode(bytes(flexbuffers.Dumps(value))) == value


def test_vectors_of_one_type_are_read() -> None:
    b = flexbuffers.Builder()
    with b.Map():
        b.Key("many")
        b.TypedVectorFromElements([1, 2, 300])
        b.Key("three")
        b.FixedTypedVectorFromElements([1.5, 2.5, 3.5])
        b.Key("far")
        b.IndirectFloat(2.25)
    assert decode(bytes(b.Finish())) == {"many": [1, 2, 300], "three": [1.5, 2.5, 3.5], "far": 2.25}


@given(st.binary(max_size=60), MAPS, st.data())
def test_damage_is_an_error_of_ours_or_another_map(
    noise: bytes, value: dict, data: st.DataObject
) -> None:
    whole = encode(value)
    place = data.draw(st.integers(0, len(whole)))
    for content in (noise, whole[:place], whole[:place] + noise + whole[place + len(noise) :]):
        try:
            assert isinstance(decode(content), dict)
        except BadModel as error:
            assert "\n" not in str(error)


def test_what_has_no_place_in_it_is_refused() -> None:
    with pytest.raises(BadInput, match="an option of an op is object"):
        encode({"a": object()})  # type: ignore[dict-item]
    with pytest.raises(BadInput, match="does not fit into 64 bits"):
        encode({"a": 2**64})
    with pytest.raises(BadModel, match="no map of names"):
        decode(bytes(flexbuffers.Dumps([1, 2])))
