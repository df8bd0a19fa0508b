"""Tables of the most important ops, which are also printed, and the samples that differ."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from litesmith.graph_view.gather_view import GraphView
from litesmith.graph_view.op_facts import OpFacts
from litesmith.graph_view.op_measures import ErrorFact, TimeFact
from litesmith.graph_view.row_order import OP
from litesmith.lang.language import say
from litesmith.pages.drawing.markup import Html, as_is, join_html, table_html, tag
from litesmith.pages.sections.disagreements import show_item
from litesmith.phrases import join, phrase
from litesmith.run.core.placement import PREDICTED
from litesmith.units import score_text, time_text, total_text

_MOST = 10
_MOST_LETTERS = 44


class RowFacts(NamedTuple):
    """A row of the main graph: the op of each model, their times, and the error of the second
    model.
    """

    a: OpFacts | None
    b: OpFacts | None
    a_us: float | None
    b_us: float | None
    error: ErrorFact | None
    change: str

    @property
    def op(self) -> OpFacts:
        found = self.b or self.a
        assert found is not None
        return found

    @property
    def saved_us(self) -> float:
        return (self.b_us or 0.0) - (self.a_us or 0.0)


def list_rows(view: GraphView) -> Iterator[RowFacts]:
    """Every op of the main graph, from the inputs to the outputs."""
    graph = view.graphs[0]
    for row, change in zip(graph.rows, graph.changes, strict=True):
        if row.kind != OP:
            continue
        places = (row.a, row.b)[: len(view.models)]
        ops = [
            None if n is None else model.ops[0, n]
            for n, model in zip(places, view.models, strict=True)
        ]
        times = [
            None if n is None else _us(model.timing.ops.get((0, n)))
            for n, model in zip(places, view.models, strict=True)
        ]
        if len(view.models) == 1:
            yield RowFacts(ops[0], None, times[0], None, None, "")
        else:
            error = None if row.b is None else view.errors.ops.get(row.b)
            yield RowFacts(ops[0], ops[1], times[0], times[1], error, change)


def _us(time: TimeFact | None) -> float | None:
    return None if time is None else time.us


def slowest_table(view: GraphView) -> Html | None:
    """The ops that take longest, or whose time changed most between two models."""
    rows = [row for row in list_rows(view) if row.a_us or row.b_us]
    if not rows:
        return None
    if not view.is_pair:
        chosen = sorted(rows, key=lambda row: -(row.a_us or 0.0))[:_MOST]
        titles = (phrase("Op"), phrase("Time"))
        return _table(view, titles, chosen, lambda row: (_time(view, 0, row.a_us),))
    chosen = sorted(rows, key=lambda row: -abs(row.saved_us))[:_MOST]
    titles = (phrase("Op"), phrase("Its counterpart"), "A", "B", phrase("Change"))
    return _table(
        view,
        titles,
        chosen,
        lambda row: (
            row.change,
            _time(view, 0, row.a_us),
            _time(view, 1, row.b_us),
            _signed(row.saved_us),
        ),
    )


def error_table(view: GraphView) -> Html | None:
    """The ops that add most error by themselves."""
    rows = [row for row in list_rows(view) if row.error and row.error.alone_db is not None]
    chosen = sorted(rows, key=lambda row: (row.error and row.error.alone_db) or 0.0)[:_MOST]
    if not chosen:
        return None
    titles = (phrase("Op"), phrase("Error of the op alone"), phrase("Error up to here"))
    return join_html(
        tag("p", _data_words(view), class_="hint"),
        _table(view, titles, chosen, lambda row: _decibels(row.error)),
    )


def _data_words(view: GraphView) -> str:
    count = total_text(view.errors.samples)
    seen = phrase("on {count} samples", count)
    if view.errors.is_random:
        seen = phrase("on {count} random inputs, which are not like real ones", count)
    return phrase(
        "Signal of A over the error of B, {seen}: 20 dB is an error of a tenth, 40 dB of a "
        "hundredth.",
        seen,
    )


def path_list(view: GraphView) -> Html | None:
    """The origin of the largest loss: the op that adds most of it, and the path to the output."""
    if view.worst is None:
        return None
    model = view.models[-1]
    worst, last = (model.ops[0, place] for place in (view.worst, view.path[-1]))
    sentence = phrase(
        "Of all ops on the way to the output with the largest error, op {op} adds most: "
        "{before} before it, {after} after it, {end} at the end (op {last}).",
        _spell(worst),
        _before(view, view.worst),
        _total(view, view.worst),
        _total(view, view.path[-1]),
        _spell(last),
    )
    return tag("p", sentence, " ", _pointer(worst), class_="graph-table")


def _before(view: GraphView, place: int) -> str:
    """The error of the nearest earlier op of the path that has one."""
    earlier = view.path[: view.path.index(place)]
    known = [view.errors.ops[n] for n in earlier if n in view.errors.ops]
    return _db(known[-1].total_db) if known else phrase("no error")


def _total(view: GraphView, place: int) -> str:
    on_path = [n for n in view.path[: view.path.index(place) + 1] if n in view.errors.ops]
    return _db(view.errors.ops[on_path[-1]].total_db) if on_path else phrase("no error")


def _db(value: float | None) -> str:
    return "–" if value is None else score_text(value, "dB")


def _decibels(error: ErrorFact | None) -> tuple[str, str]:
    return ("–", "–") if error is None else (_db(error.alone_db), _db(error.total_db))


def _table(
    view: GraphView,
    titles: Sequence[str],
    rows: Sequence[RowFacts],
    cells: Callable[[RowFacts], Sequence[str]],
) -> Html:
    body: list[Html] = []
    for row in rows:
        named = _pointer(row.op) if _is_shown(view, row) else as_is(_spell(row.op))
        pairs = zip(cells(row), titles[1:], strict=True)
        shown = (tag("td", cell, class_="number", data_label=title) for cell, title in pairs)
        body.append(tag("tr", tag("th", named, scope="row"), *shown))
    made = table_html(titles, body, "plain cards graph-table", scope="col")
    return tag("div", made, class_="scroll", tabindex="0", role="group", aria_label=titles[0])


def _is_shown(view: GraphView, row: RowFacts) -> bool:
    """Whether the drawing can show the op: buttons name ops of the last model."""
    return not view.is_pair or row.b is not None


def _pointer(op: OpFacts) -> Html:
    """A button that shows an op in the drawing."""
    label = as_is(_spell(op))
    place, name = str(op.index), as_is(op.name)
    return tag("button", label, type="button", data_graph_op=place, title=name)


def _spell(op: OpFacts) -> str:
    """An op by its number, its kind and the end of its name, without the module of a class."""
    *_, last = op.name.split(";")[0].rstrip("/").split("/")
    last = last.rpartition(".")[2] or last
    short = last if len(last) <= _MOST_LETTERS else f"…{last[-_MOST_LETTERS:]}"
    return f"{op.index} {op.kind} {short}".strip()


def _time(view: GraphView, side: int, us: float | None) -> str:
    if us is None:
        return "–"
    is_predicted = view.models[side].timing.how == PREDICTED
    return phrase("≈ {time}", time_text(us)) if is_predicted else time_text(us)


def _signed(us: float) -> str:
    sign = "+" if us > 0 else "−" if us < 0 else ""
    return join((sign, time_text(abs(us))), "")


def sample_items(view: GraphView) -> Html | None:
    """Samples that the models answer differently, each with the layer where they part."""
    if not view.samples:
        return None
    hint = phrase(
        "Among the samples compared, those on which A and B differ most, each with the op that "
        "adds most to the difference. Click an op to see it in the graph."
    )
    items = [show_item(one.row, ("A", "B"), "", _parting(view, one.place)) for one in view.samples]
    return join_html(tag("p", hint, class_="hint"), tag("ul", *items, class_="pairs"))


def _parting(view: GraphView, place: int | None) -> Html | None:
    if place is None:
        return None
    op = view.models[-1].ops[0, place]
    return tag("p", say(phrase("They diverge most at")), " ", _pointer(op), class_="graph-table")
