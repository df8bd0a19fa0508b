"""How view prints."""

from litesmith.cli.text import printing as show
from litesmith.front.view import Viewed
from litesmith.phrases import phrase


def print_view(result: Viewed) -> None:
    """What became of the ops, and where the page is."""
    show.line(result.sentence, "bold")
    show.line(phrase("page: {out}", result.out))
