"""Bars: longer is longer, every one answers, and the axis holds them all."""

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from litesmith.pages.drawing.bars import LESS, MORE, Bar, BarChart, BarRow, bar_chart, time_chart

values = st.floats(-1e6, 1e6, allow_subnormal=False)
rows = st.lists(values, min_size=1, max_size=8)


def html(chart: BarChart) -> str:
    shown = bar_chart(chart)
    assert shown is not None
    return shown.text


def chart_of(numbers: list[float], **more: object) -> BarChart:
    listed = tuple(BarRow(f"n{i}", (Bar(value, "w"),)) for i, value in enumerate(numbers))
    return BarChart("t", "axis", listed, **more)  # type: ignore[arg-type]


def widths(page: str) -> list[tuple[float, float]]:
    found = re.findall(r'<i style="left:([\d.e-]+)%;width:([\d.e-]+)%">', page)
    return [(float(left), float(width)) for left, width in found]


@given(rows)
def test_longer_is_longer_and_nothing_leaves_the_track(numbers: list[float]) -> None:
    found = widths(html(chart_of(numbers)))
    assert len(found) == len(numbers)
    for left, width in found:
        assert left >= 0 and left + width <= 100.5
    ranked = sorted(range(len(numbers)), key=lambda place: abs(numbers[place]))
    ordered = [found[place][1] for place in ranked]
    assert all(a <= b + 0.02 for a, b in itertools.pairwise(ordered))


@given(rows, st.floats(0, 1e6))
def test_the_limit_is_on_the_axis(numbers: list[float], limit: float) -> None:
    page = html(chart_of(numbers, limit=(limit, "most")))
    (place,) = re.findall(r"--limit:([\d.]+)%", page)
    assert 0 <= float(place) <= 100 and 'class="bars tips limited"' in page


def test_every_bar_answers_and_one_is_a_stop_of_the_tab_key() -> None:
    page = html(chart_of([1.0, 2.0, 3.0]))
    assert page.count("data-tip=") == page.count("aria-label=") == 3
    assert page.count('tabindex="0"') == 1 and page.count('tabindex="-1"') == 2


def test_which_way_is_better_is_said() -> None:
    assert "← better" in html(chart_of([1.0], better=LESS))
    assert "better →" in html(chart_of([1.0], better=MORE))
    assert "better" not in html(chart_of([1.0], better=""))


def test_an_interval_is_drawn_around_its_value() -> None:
    page = html(BarChart("", "x", (BarRow("a", (Bar(5.0, "5", low=4.0, high=6.0),)),)))
    (left, width) = re.findall(r'class="ends" style="left:([\d.]+)%;width:([\d.]+)%"', page)[0]
    ((_, value),) = widths(page)
    assert float(left) < value < float(left) + float(width)


def test_no_bars_are_no_chart() -> None:
    assert bar_chart(BarChart("t", "x", (BarRow("a", ()),))) is None
    assert bar_chart(time_chart("t", ())) is None


def test_times_have_the_unit_of_the_longest() -> None:
    made = time_chart("t", (BarRow("a", (Bar(2_500.0, "2.50 ms"),)),))
    assert made.axis == "time, ms" and made.size == 1e3
