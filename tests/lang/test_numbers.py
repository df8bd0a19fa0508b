"""Numbers in the form of a language are the same numbers; what is none is left alone."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.lang.numbers import ENGLISH, in_form, is_number
from litesmith.units import (
    bytes_text,
    change_text,
    gain_text,
    percent_text,
    ratio_text,
    score_text,
    time_interval_text,
    time_text,
    total_text,
)
from tests.lang.books import SPANISH

REAL = st.floats(min_value=1e-3, max_value=1e9)
WHOLE = st.integers(0, 10**15)
PHRASES = st.one_of(
    st.builds(bytes_text, WHOLE),
    st.builds(total_text, WHOLE),
    st.builds(time_text, REAL),
    st.builds(percent_text, st.floats(0, 1)),
    st.builds(change_text, st.integers(1, 10**9), WHOLE),
    st.builds(time_interval_text, REAL, REAL, REAL),
    st.builds(ratio_text, REAL, REAL, REAL),
    st.builds(score_text, st.floats(0, 1), st.just("share"), st.floats(0, 1), st.floats(0, 1)),
    st.builds(gain_text, st.floats(-1, 1), st.just("share"), st.floats(-1, 1), st.floats(-1, 1)),
)


def _numbers(text: str, decimal: str, thousands: str) -> list[float]:
    found = re.findall(rf"\d[\d{re.escape(decimal + thousands)}]*", text)
    return [float(one.replace(thousands, "").replace(decimal, ".")) for one in found]


@given(PHRASES)
def test_the_numbers_are_the_same(text: str) -> None:
    assert is_number(text)
    shown = in_form(text, SPANISH)
    english = [one.rstrip(",") for one in re.findall(r"\d[\d.,]*", text)]
    spanish = [one.rstrip(".") for one in re.findall(r"\d[\d.,]*", shown)]
    assert [float(one.replace(",", "")) for one in english] == [
        float(one.replace(".", "").replace(",", ".")) for one in spanish
    ]


@given(PHRASES)
def test_english_stays(text: str) -> None:
    assert in_form(text, ENGLISH) == text


@pytest.mark.parametrize(
    ("english", "spanish"),
    [
        ("69.15 % [67.09, 71.14]", "69,15 % [67,09; 71,14]"),
        ("11.3 ms (11.2–11.4)", "11,3 ms (11,2–11,4)"),
        ("1,234", "1.234"),
        ("0.537× (0.530 to 0.541)", "0,537× (0,530 a 0,541)"),
        ("10.4 ms → 4.1 ms", "10,4 ms → 4,1 ms"),
        ("5 min 12 s", "5 min 12 s"),
    ],
)
def test_forms(english: str, spanish: str) -> None:
    assert is_number(english)
    assert in_form(english, SPANISH) == spanish


@pytest.mark.parametrize(
    "text",
    [
        "cpu:1",
        "2.3.0",
        "mobilenet_v1_0.25",
        "[1,224,224,3]",
        "(1,224)",
        "0.25@160",
        "",
        "ms",
        "v1.2",
    ],
)
def test_what_is_no_number(text: str) -> None:
    assert not is_number(text)
