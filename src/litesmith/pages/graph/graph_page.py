"""The page of `view`: the models, their graphs, and the facts that matter most about them."""

from collections.abc import Sequence

from litesmith._version import VERSION
from litesmith.graph_view.gather_view import GraphView
from litesmith.pages.drawing.markup import Html, bullets, join_html, tag
from litesmith.pages.drawing.page import Page, PageSection, list_parts, page_text
from litesmith.pages.graph.graph_section import graph_section
from litesmith.pages.graph.graph_tables import (
    error_table,
    path_list,
    sample_items,
    slowest_table,
)
from litesmith.phrases import join, phrase
from litesmith.run.core.placement import PREDICTED
from litesmith.units import (
    bytes_text,
    change_text,
    count_text,
    score_text,
    time_text,
    total_text,
)


def view_text(view: GraphView) -> str:
    """The whole page."""
    return page_text(view_page(view))


def view_page(view: GraphView) -> Page:
    """The page of a view: its heading, sections and notes."""
    names = [model.name for model in view.models]
    heading = phrase("{a} and {b}", names[0], names[1]) if view.is_pair else names[0]
    parts = list_parts(
        ("verdict", phrase("Summary"), _summary(view)),
        *((part.name, part.title, part.body) for part in graph_parts(view)),
        ("notes", phrase("About these numbers"), bullets(_notes(view))),
    )
    return Page(heading, phrase("graph"), VERSION, parts)


def graph_parts(view: GraphView) -> tuple[PageSection, ...]:
    """The sections that show a view, for any page."""
    slowest = phrase("Where the time changed most") if view.is_pair else phrase("The slowest ops")
    return list_parts(
        ("graph", phrase("The graph"), graph_section(view)),
        ("slowest", slowest, slowest_table(view)),
        ("errors", phrase("Where the error comes from"), _errors(view)),
        ("apart", phrase("Samples that A and B answer differently"), sample_items(view)),
    )


def _errors(view: GraphView) -> Html | None:
    table = error_table(view)
    return None if table is None else join_html(path_list(view), table)


def view_sentence(view: GraphView) -> str:
    """Describes the models, or how the ops of the first changed."""
    if not view.is_pair:
        model = view.models[0]
        return phrase("{name}: {count} ops", model.name, total_text(len(model.ops)))
    counted = [
        phrase("{count} {change}", total_text(count), phrase(change))
        for change, count in view.count_changes().items()
    ]
    changes = join(counted, ", ") if counted else phrase("no ops")
    first, second = view.models
    return phrase("{a} → {b}: {changes}", first.name, second.name, changes)


def _summary(view: GraphView) -> Html:
    tiles = [
        tag(
            "div",
            tag("span", title, class_="label"),
            tag("strong", value),
            tag("span", below, class_="change") if below else None,
            class_="tile",
        )
        for title, value, below in _tiles(view)
    ]
    return tag(
        "div",
        tag(
            "div",
            tag("p", view_sentence(view), class_="sentence"),
            tag("p", _meaning(view), class_="meaning"),
        ),
        tag("div", *tiles, class_="tiles"),
        class_="verdict graph-summary",
    )


def _meaning(view: GraphView) -> str:
    if all(model.timing.how == PREDICTED for model in view.models):
        return phrase("Nothing was timed: times are predicted from the kinds and sizes of the ops.")
    if not view.is_pair:
        return phrase("Ops were timed on {target}.", view.target)
    return phrase(
        "Ops were timed on {target}, each model by itself; litesmith compare times two models in "
        "turns.",
        view.target,
    )


def _tiles(view: GraphView) -> list[tuple[str, str, str]]:
    """Titles, values, and the words below them."""
    counts = [total_text(len(model.ops)) for model in view.models]
    sizes = [model.bytes for model in view.models]
    macs = [sum(op.macs for op in model.ops.values()) for model in view.models]
    found: list[tuple[str, str, str]] = [
        (phrase("Ops"), _arrow(counts), ""),
        (
            phrase("File"),
            bytes_text(sizes[-1]),
            phrase("{change} from {size}", change_text(*sizes), bytes_text(sizes[0]))
            if view.is_pair
            else "",
        ),
        (phrase("MACs"), _arrow([count_text(count) for count in macs]), ""),
    ]
    time = _time_tile(view)
    if time is not None:
        found.insert(1, time)
    ends = [view.errors.ops[place].total_db for place in view.path if place in view.errors.ops]
    if ends and ends[-1] is not None:
        words = phrase("random inputs") if view.errors.is_random else ""
        found.append((phrase("Output against A"), score_text(ends[-1], "dB"), words))
    return found


def _time_tile(view: GraphView) -> tuple[str, str, str] | None:
    known = [model.timing.run_us for model in view.models if model.timing.run_us]
    if len(known) < len(view.models):
        return None
    below = phrase("from {time}", time_text(known[0])) if view.is_pair else ""
    return phrase("Time of a run"), time_text(known[-1]), below


def _arrow(values: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(values))
    return join(distinct, " → ")


def _notes(view: GraphView) -> list[str]:
    return list(view.notes)
