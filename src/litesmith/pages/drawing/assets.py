"""The styles and scripts of pages: files of this package, written into the page as they are."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from litesmith.pages.drawing.markup import Html

STYLES = ("page.css", "retrained.css", "graph/graph.css")
_GRAPH = ("layout.js", "colours.js", "canvas.js", "panel.js", "start.js")


@cache
def asset(name: str) -> Html:
    """A file of `pages/`; it holds no `</`."""
    return Html(files("litesmith.pages").joinpath(name).read_text(encoding="utf-8"))


@cache
def graph_script() -> Html:
    """The script that draws a graph, invisible to other scripts of the page."""
    parts = "\n".join(asset(f"graph/{name}").text for name in _GRAPH)
    return Html(f'"use strict";\n{{\n{parts}}}\n')


def script_rule() -> str:
    """The scripts that a browser may run, by their hashes."""
    return f"script-src {_hash(asset('page.js'))} {_hash(graph_script())}"


def style_rule() -> str:
    """The style elements that a browser may apply, by their hashes."""
    return f"style-src-elem {' '.join(_hash(asset(name)) for name in STYLES)}"


def _hash(content: Html) -> str:
    return f"'sha256-{b64encode(sha256(content.text.encode()).digest()).decode()}'"
