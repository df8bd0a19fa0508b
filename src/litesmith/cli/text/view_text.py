"""Prints the result of `view`."""

from litesmith.cli.text import printing as show
from litesmith.front.view import Viewed
from litesmith.phrases import phrase


def print_view(result: Viewed) -> None:
    """Prints how the ops changed, and the path of the page."""
    show.line(result.sentence, "bold")
    show.line(phrase("page: {out}", result.out))
