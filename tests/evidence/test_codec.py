"""JSON by annotations: what is written is read again; what is odd is named, or has a reason."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.evidence.codec import (
    Count,
    Key,
    Malformed,
    Mark,
    Omitted,
    Positive,
    decode,
    dump,
    encode,
    parse,
    salvage,
)
from litesmith.phrases import Phrase, phrase
from litesmith.units import time_text


class Point(NamedTuple):
    x: float
    y: float = 0.0


@dataclass(frozen=True)
class Ends:
    low: float
    high: float | None


@dataclass(frozen=True)
class Thing:
    schema: Literal[1]
    name: str
    first: Annotated[str, Key("class")]
    size: Count
    us: Positive | None
    ends: Annotated[Ends | None, Mark.FLAT]
    points: tuple[Point, ...]
    pair: tuple[float, float | None]
    by_name: Mapping[str, int | str]
    colour: Literal["red"]
    worst: Annotated[float, Mark.NAMED]
    maker: Annotated[Point | None, Mark.EMPTY]
    note: Omitted[str] = None
    is_new: Annotated[bool, Mark.OMITTED] = False
    extra: Annotated[Mapping[str, float], Mark.OMITTED] = field(default_factory=dict[str, float])


THING = Thing(
    1,
    "a",
    "b",
    3,
    None,
    Ends(0.5, None),
    (Point(1.0), Point(2.0, 3.0)),
    (1.0, None),
    {"x": 1, "y": "z"},
    "red",
    math.inf,
    None,
)
SHOWN = {
    "schema": 1,
    "name": "a",
    "class": "b",
    "size": 3,
    "us": None,
    "low": 0.5,
    "high": None,
    "points": [{"x": 1.0, "y": 0.0}, {"x": 2.0, "y": 3.0}],
    "pair": [1.0, None],
    "by_name": {"x": 1, "y": "z"},
    "colour": "red",
    "worst": "inf",
    "maker": {},
}


def test_a_key_is_the_name_of_a_field() -> None:
    assert encode(THING) == SHOWN
    assert decode(Thing, json.loads(dump(THING))) == THING


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"schema": 2}, "schema: is 2, not 1"),
        ({"colour": "blue"}, "colour: is 'blue', not 'red'"),
        ({"size": -1}, "size: is -1, which it cannot be"),
        ({"size": 1.5}, "size: is 1.5, not a whole number"),
        ({"size": True}, "size: is true, not a number"),
        ({"us": 0}, "us: is 0, which it cannot be"),
        ({"us": math.nan}, "us: is nan, which it cannot be"),
        ({"name": None}, "name: is null, not a text"),
        ({"points": [{"x": 1.0}]}, 'points[0]: has no "y"'),
        ({"pair": [1.0]}, "pair: has 1 values, not 2"),
        ({"by_name": {"x": []}}, "by_name.x: is a list, not a text"),
        ({"low": "few"}, "low: is 'few', not a number"),
        ({"hue": 1}, '"hue" is unknown to this version'),
    ],
    ids=str,
)
def test_what_was_written_is_read_strictly(change: dict[str, object], told: str) -> None:
    with pytest.raises(Malformed) as no:
        decode(Thing, {**SHOWN, **change})
    assert str(no.value) == told


@pytest.mark.parametrize("key", SHOWN)
def test_every_key_has_to_be_there(key: str) -> None:
    with pytest.raises(Malformed, match=f'has no "{key}"'):
        decode(Thing, {name: value for name, value in SHOWN.items() if name != key})


def test_what_is_handed_over_is_read_as_far_as_it_goes() -> None:
    odd = {**SHOWN, "size": "x", "points": [{"x": 1}, 7], "by_name": {"x": 1, "y": []}, "low": {}}
    del odd["name"]
    found, losses = salvage(Thing, {**odd, "hue": 1})
    assert found.size == 0 and found.points == (Point(1.0),) and found.by_name == {"x": 1}
    assert found.ends is None and found.name == ""
    assert losses == (
        "size: is 'x', not a number",
        "low: is an object, not a number",
        "points[0]: has no y",
        "points[1]: is 7, not an object",
        "by_name.y: is a list, not a text",
        "has no name",
    )


def test_a_number_that_nothing_can_stand_for_is_not_made_up() -> None:
    with pytest.raises(Malformed, match="x: is not there"):
        salvage(Point, {})


LOST = ("all of it",)  # where nothing can be salvaged
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@given(st.sampled_from(sorted(SHOWN)), JSON)
def test_any_value_may_be_odd(key: str, value: object) -> None:
    shown = {**SHOWN, key: value}
    losses = LOST
    try:
        found, losses = salvage(Thing, shown)
        again = salvage(Thing, json.loads(dump(found)))
        assert again.value == found
    except Malformed as error:
        assert str(error)
    if losses:
        with pytest.raises(Malformed):
            decode(Thing, shown)


def test_numbers_without_a_word_in_json_are_null_where_that_is_allowed() -> None:
    assert encode(Ends(1.0, math.inf)) == {"low": 1.0, "high": None}
    with pytest.raises(ValueError, match="JSON has no word for nan"):
        encode(Ends(math.nan, 1.0))


def test_what_is_no_json_is_said() -> None:
    for content in (b"{", b"", b"[" * 100_000):
        with pytest.raises(Malformed, match="it is not JSON"):
            parse(content)


@dataclass(frozen=True)
class Told:
    text: str


def test_a_phrase_keeps_its_template_and_values() -> None:
    inner = phrase("{n} ops", 3)
    told = Told(phrase("{what} took {time}, of {name}", inner, time_text(12.0), "a"))
    assert encode(told) == {"text": "3 ops took 12.0 µs, of a"}
    shown = json.loads(dump(told))
    assert shown["text"]["text"] == "{what} took {time}, of {name}"
    found = decode(Told, shown)
    assert found == told and isinstance(found.text, Phrase)
    assert found.text.values == told.text.values  # pyright: ignore[reportAttributeAccessIssue]
    assert [type(value) for value in found.text.values.values()] == [
        type(value)
        for value in told.text.values.values()  # pyright: ignore[reportAttributeAccessIssue]
    ]
    assert json.loads(dump(Told(phrase("no values")))) == {"text": "no values"}


@pytest.mark.parametrize(
    "text",
    [
        {"text": "{a", "values": {"a": 1}},
        {"text": "{a:999999999}", "values": {"a": 1}},
        {"text": "{a.__class__}", "values": {"a": 1}},
        {"text": "{a}", "values": {"a": []}},
        {"text": "{a}"},
        {"words": 1},
    ],
    ids=str,
)
def test_a_template_that_cannot_be_filled_is_refused(text: dict[str, object]) -> None:
    with pytest.raises(Malformed, match="text: "):
        decode(Told, {"text": text})
    assert salvage(Told, {"text": text}).value == Told("")
