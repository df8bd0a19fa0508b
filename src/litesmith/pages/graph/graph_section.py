"""The graph as a section of any page: the controls, the canvas, and the panel with the facts about
an op.
"""

from litesmith.graph_view.gather_view import GraphView
from litesmith.pages.drawing.assets import asset, graph_script
from litesmith.pages.drawing.markup import Html, join_html, tag
from litesmith.pages.graph.graph_json import data_element
from litesmith.phrases import phrase

_KEYS = phrase(
    "Drag or use the arrow keys to move, Ctrl and the wheel or + and − to zoom; n and p go from op "
    "to op, Enter opens, f folds, / searches, 0 goes back to the top."
)


def graph_section(view: GraphView) -> Html:
    """The drawing with its style, its script and its data; it needs nothing else of a page."""
    return join_html(
        tag("style", asset("graph/graph.css")),
        tag(
            "div",
            _toolbar(view),
            tag("ul", class_="graph-legend", aria_label=phrase("Legend")),
            tag("div", _stage(), _panel(), class_="graph-columns"),
            tag("p", _KEYS, class_="hint", id="graph-keys"),
            data_element(view),
            class_="graph-view",
        ),
        tag("script", graph_script()),
        tag("p", phrase("The graph is not printed."), class_="graph-unprinted"),
    )


def _toolbar(view: GraphView) -> Html:
    return tag(
        "div",
        tag("label", phrase("Colour by"), tag("select", class_="graph-colours")),
        _sides() if view.is_pair else None,
        tag("label", phrase("Graph"), tag("select", class_="graph-graphs")),
        tag("label", phrase("Search"), _search()),
        tag(
            "span",
            _button("in", "+", phrase("Zoom in")),
            _button("out", "−", phrase("Zoom out")),
            _button("fit", phrase("Whole graph")),
            _button("open", phrase("Open all")),
            _button("close", phrase("Fold all")),
            class_="graph-buttons",
        ),
        _path() if view.path else None,
        tag("span", class_="graph-status", role="status"),
        class_="graph-toolbar",
    )


def _button(act: str, words: str, label: str | None = None) -> Html:
    return tag(
        "button", words, type="button", class_="graph-button", data_act=act, aria_label=label
    )


def _search() -> Html:
    made = tag(
        "input", type="search", class_="graph-search", autocomplete="off", spellcheck="false"
    )
    return Html(made.text.removesuffix("</input>"))


def _sides() -> Html:
    choices = (("both", phrase("both")), ("0", "A"), ("1", "B"))
    options = [tag("option", words, value=value) for value, words in choices]
    return tag("label", phrase("Show"), tag("select", *options, class_="graph-sides"))


def _path() -> Html:
    box = tag("input", type="checkbox", class_="graph-path")
    return tag("label", Html(box.text.removesuffix("</input>")), phrase("path of the largest loss"))


def _stage() -> Html:
    return tag(
        "div",
        tag(
            "canvas",
            class_="graph-canvas",
            tabindex="0",
            role="application",
            aria_label=phrase("The graph"),
            aria_describedby="graph-keys",
        ),
        tag("canvas", class_="graph-map", aria_hidden="true"),
        class_="graph-stage",
    )


def _panel() -> Html:
    return tag("aside", class_="graph-panel", aria_label=phrase("Details of the op"), tabindex="0")
