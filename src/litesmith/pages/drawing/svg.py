"""A trade-off graph as SVG; colours are the page's, by class."""

from collections.abc import Iterable, Sequence

from litesmith.lang.language import say
from litesmith.pages.drawing.markup import Child, Html, as_is, join_html, tag
from litesmith.pages.drawing.plot import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Point, outline
from litesmith.pages.drawing.tradeoff import PlotMark, TradeoffGraph
from litesmith.pages.records.record_words import (
    difference_words,
    score_words,
    size_words,
    speed_words,
    time_words,
)
from litesmith.pages.records.tune_folder import Entry
from litesmith.phrases import join, phrase

# Which way is better, at the title of each axis; the title of the vertical axis is turned.
LEFT_IS_BETTER, UP_IS_BETTER = phrase("← better"), phrase("better →")

# The meaning of each shape, in the order of the legend.
LEGEND = {
    "star": phrase("to ship"),
    "square": phrase("float model"),
    "circle": phrase("fits"),
    "cross": phrase("misses"),
    "below": phrase("far below"),
    "beyond": phrase("far to the right"),
    "hollow": phrase("published, not measured"),
}


def svg(graph: TradeoffGraph) -> Html:
    """The drawing; `page.js` makes its points answer."""
    return tag(
        "svg",
        tag("title", graph.title),
        *_frame(graph),
        *_lines(graph),
        *(_mark(mark, place) for place, mark in enumerate(graph.marks)),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="group",
        class_="graph tips",
        data_graph=graph.name,
    )


def figures(drawn: Sequence[TradeoffGraph], hint: str) -> Html | None:
    """Graphs side by side under a hint on reading them; None where there are none."""
    if not drawn:
        return None
    shown = [
        tag(
            "figure",
            tag("figcaption", graph.title),
            svg(graph),
            legend(graph),
            tag("p", graph.samples, class_="hint") if graph.samples else None,
        )
        for graph in drawn
    ]
    return join_html(tag("p", hint, class_="hint"), tag("div", *shown, class_="figures"))


def legend(graph: TradeoffGraph) -> Html:
    """The meaning of the shapes and lines of a graph."""
    items = [tag("li", _key(shape), words) for shape, words in shape_words(graph)]
    if graph.front:
        items.append(tag("li", tag("i", class_="key front"), "Pareto front"))
    if graph.budget:
        items.append(tag("li", tag("i", class_="key budget"), "budget"))
    if graph.limit:
        items.append(tag("li", tag("i", class_="key limit"), "limit"))
    return tag("ul", *items, class_="legend")


def shape_words(graph: TradeoffGraph) -> Iterable[tuple[str, str]]:
    """The shapes of a graph, each with its meaning."""
    used = {mark.shape for mark in graph.marks}
    return (
        (shape, words) for shape, words in (LEGEND | {**graph.meanings}).items() if shape in used
    )


def tip_lines(entry: Entry) -> tuple[str, ...]:
    """The tooltip of a point, name first."""
    score, speed = entry.score or entry.proof, entry.speed
    facts = (
        ("", phrase(entry.status)),
        (phrase(score.title) if score else "", score_words(score)),
        (phrase("from float"), difference_words(score)),
        (phrase("held-out"), difference_words(entry.proof)),
        (speed.target if speed else "", time_words(speed.p50_us) if speed else ""),
        (phrase("against float"), speed_words(speed)),
        (phrase("file"), size_words(entry.bytes)),
        (phrase("recipe"), entry.recipe),
    )
    lines = (
        phrase("{name}: {value}", name, value) if name else value for name, value in facts if value
    )
    return entry.name, *lines


def _frame(graph: TradeoffGraph) -> Iterable[Html]:
    for tick in graph.y_ticks:
        yield _line((LEFT, tick.place), (RIGHT, tick.place), "grid")
        yield _text(LEFT - 6, tick.place + 4, tick.text, "end")
    for tick in graph.x_ticks:
        yield _line((tick.place, TOP), (tick.place, BOTTOM), "grid")
        yield _text(tick.place, BOTTOM + 17, tick.text, "middle")
    yield _line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis")
    yield _line((LEFT, TOP), (LEFT, BOTTOM), "axis")
    yield tag(
        "text",
        tag("tspan", LEFT_IS_BETTER, class_="better"),
        tag("tspan", graph.x_title, dx=10),
        x=(LEFT + RIGHT) / 2,
        y=HEIGHT - 10,
        text_anchor="middle",
        class_="axis-title",
    )
    yield tag(
        "text",
        graph.y_title,
        tag("tspan", UP_IS_BETTER, dx=10, class_="better"),
        x=-(TOP + BOTTOM) / 2,
        y=13,
        transform="rotate(-90)",
        text_anchor="middle",
        class_="axis-title",
    )


def _lines(graph: TradeoffGraph) -> Iterable[Html]:
    if graph.budget:
        y = graph.budget.place
        depth = round(BOTTOM - y, 2)
        if depth > 0:
            yield tag("rect", x=LEFT, y=y, width=RIGHT - LEFT, height=depth, class_="outside")
        yield _line((LEFT, y), (RIGHT, y), "budget")
    if graph.limit:
        x = graph.limit.place
        yield _line((x, TOP), (x, BOTTOM), "limit")
    for note in graph.notes:
        yield _text(note.x, note.y, as_is(note.text), note.anchor, "note")
    if graph.front:
        yield tag("polyline", points=_points(graph.front), class_="front")


def _mark(mark: PlotMark, place: int) -> Html:
    left, upper, right, lower = mark.bars
    ring = tag("circle", cx=mark.x, cy=mark.y, r=12, class_="ring") if mark.on_front else None
    label = mark.label
    name, *facts = tip_lines(mark.entry)
    return tag(
        "g",
        _line((left, mark.y), (right, mark.y), "bar") if right - left > 1 else None,
        _line((mark.x, upper), (mark.x, lower), "bar") if lower - upper > 1 else None,
        ring,
        tag("polygon", points=_points(outline(mark.shape, mark.x, mark.y)), class_="shape"),
        _text(label.x, label.y, as_is(label.text), label.anchor, "name") if label else None,
        class_=f"point {mark.shape}{' outlined' if mark.is_outlined else ''}",
        tabindex=-1 if place else 0,
        role="img",
        aria_label=as_is(", ".join((name, *map(say, facts)))),
        data_trial=name,
        data_tip=join(facts, "\n"),
        data_front=mark.on_front,
        data_x=mark.x,
        data_y=mark.y,
    )


def _key(shape: str) -> Html:
    drawn = tag("polygon", points=_points(outline(shape, 12, 12)), class_="shape")
    return tag("svg", drawn, viewBox="0 0 24 24", class_=f"key point {shape}", aria_hidden="true")


def _line(start: Point, end: Point, kind: str) -> Html:
    return tag("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], class_=kind)


def _text(x: float, y: float, words: Child, anchor: str, kind: str = "tick") -> Html:
    place = {"x": round(x, 2), "y": round(y, 2)}
    return tag("text", words, **place, text_anchor=anchor, class_=kind)


def _points(points: Iterable[Point]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)
