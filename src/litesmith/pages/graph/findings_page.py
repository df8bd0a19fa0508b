"""The pages of `doctor` and `compare`: what was found, then the graphs that it was found in."""

from collections.abc import Sequence

from litesmith._version import VERSION
from litesmith.diagnosis.slowness import Diagnosis
from litesmith.graph_view.gather_view import GraphView
from litesmith.pages.drawing.markup import Html, bullets, join_html, tag
from litesmith.pages.drawing.page import Page, list_parts, page_text
from litesmith.pages.graph.graph_page import graph_parts
from litesmith.phrases import phrase


def findings_text(
    heading: str, sentence: str, findings: Sequence[Diagnosis], view: GraphView
) -> str:
    """A page: the sentence, each finding with the command that acts on it, and the graph."""
    parts = list_parts(
        ("verdict", phrase("Verdict"), _verdict(sentence)),
        ("findings", phrase("What was found"), _list(findings)),
        *((part.name, part.title, part.body) for part in graph_parts(view)),
        ("notes", phrase("About these numbers"), bullets(view.notes)),
    )
    return page_text(Page(heading, phrase("findings"), VERSION, parts))


def _verdict(sentence: str) -> Html:
    return tag("div", tag("p", sentence, class_="sentence"), class_="verdict graph-summary")


def _list(findings: Sequence[Diagnosis]) -> Html | None:
    return join_html(*map(_finding, findings)) if findings else None


def _finding(one: Diagnosis) -> Html:
    return join_html(
        tag("h3", one.what),
        tag("p", one.where),
        tag("p", one.why, class_="hint"),
        tag("p", one.costs) if one.costs else None,
        tag("pre", tag("code", one.command), tabindex="0") if one.command else None,
    )
