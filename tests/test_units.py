"""Numbers and names as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.units import bytes_text, change_text, count_text, percent_text, plain


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


@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_any_name_can_be_printed(name: str) -> None:
    shown = plain(name)
    shown.encode("utf-8")
    assert shown.isprintable()


def test_printable_names_stay() -> None:
    assert plain("conv/重み:0") == "conv/重み:0"
    assert plain("\x1b[31mred") == "\\x1b[31mred"
