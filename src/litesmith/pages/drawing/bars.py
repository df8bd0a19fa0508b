"""Horizontal bars over an axis: as values, and as HTML, where text can wrap, unlike in SVG."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from litesmith.lang.language import say
from litesmith.pages.drawing.markup import Html, as_is, tag
from litesmith.pages.drawing.plot import ticks
from litesmith.phrases import join, phrase
from litesmith.units import number_text

LESS, MORE = "less", "more"
_BETTER = {LESS: phrase("← better"), MORE: phrase("better →"), "": ""}

# The room beyond the longest bar, and the largest number of ticks on an axis: phones are narrow.
_ROOM, _MOST_TICKS = 1.03, 5


@dataclass(frozen=True)
class Bar:
    """A number as a bar, with its 95 % interval where that is known.

    words  the number as text
    kind   the look of the bar: a class of the page
    facts  further facts, one per line
    """

    value: float
    words: str
    kind: str = ""
    low: float | None = None
    high: float | None = None
    facts: tuple[str, ...] = ()


@dataclass(frozen=True)
class BarRow:
    """The bars of one subject; a filter searches `words`."""

    name: str
    bars: tuple[Bar, ...]
    words: str = ""


@dataclass(frozen=True)
class BarChart:
    """Bars from zero over one axis.

    axis    the measured quantity, with its unit
    better  which direction is better: LESS, MORE, or "" where neither is better
    size    the numbers' amount per unit of the axis
    limit   a number marked by a line, with its meaning
    most    the largest possible number, where there is one
    is_wide True where the words at bars contain intervals
    """

    title: str
    axis: str
    rows: tuple[BarRow, ...]
    better: str = LESS
    size: float = 1.0
    limit: tuple[float, str] | None = None
    most: float | None = None
    is_wide: bool = False


# unit -> how many microseconds it has
_TIMES = {"µs": 1.0, "ms": 1e3, "s": 1e6}


def time_chart(title: str, rows: tuple[BarRow, ...]) -> BarChart:
    """Bars of times in µs, over an axis in the unit that fits the longest."""
    longest = max((bar.value for row in rows for bar in row.bars), default=0.0)
    unit = next((one for one in reversed(_TIMES) if longest >= _TIMES[one]), "µs")
    return BarChart(title, phrase("time, {unit}", unit), rows, LESS, _TIMES[unit])


def bar_chart(chart: BarChart) -> Html | None:
    """The bars with their axis; None where there are none."""
    shown = [row for row in chart.rows if row.bars]
    if not shown:
        return None
    low, high = _ends(chart)
    marks = ticks(low / chart.size, high / chart.size, _MOST_TICKS)
    scale = _Places(low, high)
    step = scale.width((marks[1] - marks[0]) * chart.size) if len(marks) > 1 else 100.0
    start = scale.place(marks[0] * chart.size) if marks else 0.0
    start = round(start / (1 - step / 100), 3) if step < 100 else 0.0  # as CSS counts positions
    limit = chart.limit
    style = f"--step:{step}%;--start:{start}%" + (
        f";--limit:{scale.place(limit[0])}%" if limit else ""
    )
    numbers = [
        tag("span", number_text(value).replace("-", "−"), style=_left_of(scale, value * chart.size))
        for value in marks
    ]
    return tag(
        "figure",
        tag("figcaption", chart.title) if chart.title else None,
        tag("ol", *_rows(shown, scale), class_=f"bars tips{' limited' if limit else ''}"),
        tag("div", *numbers, class_="ticks", aria_hidden="true"),
        tag("p", *_axis_title(chart), class_="axis-title"),
        class_="chart wide" if chart.is_wide else "chart",
        style=style,
    )


@dataclass(frozen=True)
class _Places:
    """Numbers as places from 0 to 100."""

    low: float
    high: float

    def place(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        return round(100 * (inside - self.low) / (self.high - self.low), 2)

    def width(self, value: float) -> float:
        return round(100 * value / (self.high - self.low), 3)


def _ends(chart: BarChart) -> tuple[float, float]:
    """The first and the last number of the axis, with zero between them or at an end."""
    bars = [bar for row in chart.rows for bar in row.bars]
    known = [end for bar in bars for end in (bar.value, bar.low, bar.high) if end is not None]
    edge = [chart.limit[0]] if chart.limit else []
    high = max([0.0, *known, *edge]) * _ROOM
    low = min([0.0, *known]) * _ROOM
    if chart.most is not None:
        high = chart.most
    return low, high if high > low else low + 1.0


def _rows(rows: Sequence[BarRow], scale: _Places) -> Iterable[Html]:
    is_first = True
    for row in rows:
        bars: list[Html] = []
        for bar in row.bars:
            bars.append(_bar(row.name, bar, scale, is_first))
            is_first = False
        yield tag(
            "li",
            tag("span", row.name, class_="what"),
            tag("div", *bars),
            data_filter=as_is(row.words) if row.words else None,
        )


def _bar(name: str, bar: Bar, scale: _Places, is_first: bool) -> Html:
    zero, end = scale.place(0.0), scale.place(bar.value)
    left, width = min(zero, end), max(round(abs(end - zero), 2), 0.4)
    ends = None
    if bar.low is not None and bar.high is not None and bar.high > bar.low:
        start, stop = scale.place(bar.low), scale.place(bar.high)
        reach = f"left:{start}%;width:{round(stop - start, 2)}%"
        ends = tag("span", class_="ends", style=reach)
    facts = [fact for fact in (bar.words, *bar.facts) if fact]
    return tag(
        "div",
        tag(
            "span",
            tag("i", style=f"left:{left}%;width:{width}%"),
            ends,
            class_="track",
        ),
        tag("span", bar.words, class_="value"),
        class_=f"bar {bar.kind}".strip(),
        tabindex=0 if is_first else -1,
        role="img",
        aria_label=as_is(", ".join((say(name), *map(say, facts)))),
        data_trial=as_is(say(name)),
        data_tip=join(facts, "\n"),
    )


def _axis_title(chart: BarChart) -> list[Html | str]:
    better = tag("span", _BETTER[chart.better], class_="better") if chart.better else ""
    limit = tag("span", tag("i", class_="key limit"), chart.limit[1]) if chart.limit else ""
    words = tag("span", chart.axis)
    order = (words, better) if chart.better == MORE else (better, words)
    return [one for one in (*order, limit) if one]


def _left_of(scale: _Places, value: float) -> str:
    return f"left:{scale.place(value)}%"
