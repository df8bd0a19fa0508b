"""Numbers and names as text, and texts as numbers."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.units import (
    bytes_text,
    change_text,
    count_text,
    factor_text,
    growth_text,
    number_text,
    percent_text,
    plain,
    spread_text,
    time_text,
    typed_bytes,
    typed_decibels,
    typed_number,
    typed_share,
    typed_time,
)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 KB"),
        (99_960, "100 KB"),
        (999_999, "1.00 MB"),
        (16_900_960, "16.9 MB"),
        (3 * 10**21, "3000 EB"),
    ],
)
def test_bytes(count: int, text: str) -> None:
    assert bytes_text(count) == text


def test_counts_shares_and_changes() -> None:
    assert count_text(569_000_000) == "569 M"
    assert percent_text(0.931) == "93.1 %"
    assert percent_text(0.0001) == "<0.1 %"
    assert change_text(1000, 900) == "−100 B (−10.0 %)"
    assert change_text(1000, 1000) == "+0 B (+0.0 %)"
    assert change_text(0, 10) == "+10 B"
    assert growth_text(1.115, 1.1, 0.99949) == "+11.5 % [+10.0, −0.1]"
    assert growth_text(0.99951) == "0.0 %"
    assert growth_text(1.0, 0.0, float("inf")) == "0.0 % [−100.0, ?]"


def test_factors() -> None:
    assert factor_text(2.3149, "faster", 2.25, 2.37) == "2.31 × faster [2.25, 2.37]"
    assert factor_text(0.99549, "the time") == "0.995 × the time"
    assert factor_text(0.9996, "x", 12.34, 1234.5) == "1.00 × x [12.3, 1234]"


@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_any_name_can_be_printed(name: str) -> None:
    shown = plain(name)
    shown.encode("utf-8")
    assert shown.isprintable()


def test_printable_names_stay() -> None:
    assert plain("conv/重み:0") == "conv/重み:0"
    assert plain("\x1b[31mred") == "\\x1b[31mred"


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (typed_bytes, "4MB", 4_000_000),
        (typed_bytes, " 500 kb ", 500_000),
        (typed_bytes, "1.5MiB", 1_572_864),
        (typed_bytes, "0.5B", 0),
        (typed_time, "10ms", 10_000),
        (typed_time, "800us", 800),
        (typed_time, "800 µs", 800),
        (typed_time, "800μs", 800),
        (typed_time, "1.2s", 1_200_000),
        (typed_time, "50ns", 0.05),
        (typed_share, "98%", 0.98),
        (typed_share, "1.1 %", 0.011),
        (typed_share, ".98", 0.98),
        (typed_share, "1", 1),
        (typed_decibels, "20dB", 20),
        (typed_decibels, "−3", -3),
    ],
)
def test_typed_quantities(read: Callable[[str], float | None], text: str, value: float) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    "text", ["", "MB", "4", "4 MBit", "1,5MB", "nan", "1e999GB", "１MB", "4MB4"]
)
def test_what_is_no_quantity(text: str) -> None:
    assert typed_bytes(text) is None


@pytest.mark.parametrize("text", ["98", "101%", "-1%", "1.01", "inf", "nan%", "98 pt"])
def test_what_is_no_share(text: str) -> None:
    assert typed_share(text) is None


@given(st.integers(0, 10**15))
def test_printed_bytes_can_be_typed(count: int) -> None:
    read = typed_bytes(bytes_text(count))
    assert read is not None and abs(read - count) <= 0.006 * count


@given(st.floats(1e-3, 1e9))
def test_printed_times_can_be_typed(us: float) -> None:
    read = typed_time(time_text(us))
    half = 0.0005 * (1 + 1e-9)  # of a nanosecond, which 62.5 ns are off by, and by float rounding
    assert read is not None and abs(read - us) <= max(0.006 * us, half)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_printed_numbers_can_be_typed(value: float) -> None:
    read = typed_number(number_text(value), {"": 1})
    assert read == float(number_text(value)) or (read is None and abs(value) > 1e308)


@given(st.text(max_size=20))
def test_any_text_is_read_or_not(text: str) -> None:
    for read in (typed_bytes, typed_time, typed_share, typed_decibels):
        value = read(text)
        assert value is None or abs(value) < float("inf")


@given(st.text(st.characters(), max_size=20))
def test_half_a_character_can_be_printed(name: str) -> None:
    """Halves of characters too, which a damaged record may hold."""
    shown = plain(name + "\ud800")
    assert shown.isprintable() and shown.endswith("\\ud800")
    shown.encode()


@pytest.mark.parametrize(
    ("value", "unit", "ends", "text"),
    [
        (0.6915, "share", (0.67, 0.71), "69.2 ±2.0 %"),
        (0.25, "", (0.2, 0.3), "0.25 ±0.05"),
        (23.4, "dB", (23.0, 24.0), "23.4 ±0.5 dB"),
    ],
)
def test_a_score_with_half_its_interval(
    value: float, unit: str, ends: tuple[float, float], text: str
) -> None:
    assert spread_text(value, unit, *ends) == text
