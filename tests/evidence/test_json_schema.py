"""Schemas say of a type what the codec reads and writes of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, NotRequired, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from litesmith.evidence.codec import Count, Key, Malformed, Mark, Omitted, Share, decode, encode
from litesmith.evidence.json_schema import make_schema


class Place(NamedTuple):
    row: Count
    share: Share


@dataclass(frozen=True)
class Inner:
    name: str
    score: float | None


@dataclass(frozen=True)
class Outer:
    """What a test keeps."""

    kind: Annotated[Literal["a", "b"], Key("class")]
    places: tuple[Place, ...]
    pair: tuple[int, bool]
    inner: Annotated[Inner, Mark.FLAT]
    sizes: Mapping[str, int]
    note: Omitted[str] = None


SCHEMA = make_schema(Outer, "a test")
VALIDATOR = Draft202012Validator(SCHEMA)

numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)
outers = st.builds(
    Outer,
    st.sampled_from(["a", "b"]),
    st.lists(st.builds(Place, st.integers(0, 9), st.floats(0, 1))).map(tuple),
    st.tuples(st.integers(-5, 5), st.booleans()),
    st.builds(Inner, st.text(), st.none() | numbers),
    st.dictionaries(st.text(max_size=3), st.integers(0, 9)),
    st.none() | st.text(),
)


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["title"] == "a test"


@given(outers)
def test_what_is_written_is_valid(value: Outer) -> None:
    assert VALIDATOR.is_valid(encode(value))


GOOD = {
    "class": "a",
    "places": [[1, 0.5]],
    "pair": [1, True],
    "name": "x",
    "score": None,
    "sizes": {"n": 1},
}
GOOD["places"] = [{"row": 1, "share": 0.5}]
BROKEN = [
    {"class": "c"},
    {"places": [{"row": -1, "share": 0.5}]},
    {"places": [{"row": 1, "share": 1.5}]},
    {"pair": [1]},
    {"pair": [1, True, 2]},
    {"name": 3},
    {"sizes": {"n": "one"}},
    {"unknown": 1},
]


def test_what_is_good_is_good_to_both() -> None:
    assert VALIDATOR.is_valid(GOOD)
    assert decode(Outer, GOOD).kind == "a"


@pytest.mark.parametrize("change", BROKEN, ids=str)
def test_what_is_broken_is_broken_to_both(change: dict[str, object]) -> None:
    assert not VALIDATOR.is_valid(GOOD | change)
    with pytest.raises(Malformed):
        decode(Outer, GOOD | change)


@pytest.mark.parametrize("key", GOOD)
def test_every_key_is_needed(key: str) -> None:
    assert not VALIDATOR.is_valid({name: value for name, value in GOOD.items() if name != key})


class Told(TypedDict):
    text: str
    more: NotRequired[list[Inner]]


def test_objects_of_code_and_records_in_them() -> None:
    validator = Draft202012Validator(make_schema(Told, "told"))
    assert validator.is_valid({"text": "x"})
    assert validator.is_valid({"text": "x", "more": [{"name": "n", "score": 1.5}]})
    assert not validator.is_valid({"text": "x", "more": [{"name": "n"}]})
    assert not validator.is_valid({})


def test_files_keep_sentences_as_templates() -> None:
    shown = {"name": {"text": "{n} ops", "values": {"n": 3}}, "score": None}
    assert Draft202012Validator(make_schema(Inner, "file", is_file=True)).is_valid(shown)
    assert not Draft202012Validator(make_schema(Inner, "printed")).is_valid(shown)
