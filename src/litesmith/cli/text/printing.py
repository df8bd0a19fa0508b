"""How commands print: lines, headings, tables and commands to type, in the language in use."""

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

from litesmith.lang.language import say
from litesmith.units import plain

Json = dict[str, object]


class Edge(Console):
    """The terminal: foreign text is cleaned here, so that nothing in it acts on the terminal; only
    our own styles apply.
    """

    def print(self, *objects: Any, **how: Any) -> None:
        super().print(*map(_clean, objects), **how)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # this is no failure: the reader stopped reading


def _clean(shown: Any) -> Any:
    """A text without characters that act on a terminal; line breaks and other values stay."""
    text = shown.plain if isinstance(shown, Text) else shown
    if not isinstance(text, str) or text.replace("\n", "").isprintable():
        return shown
    clean = "\n".join(map(plain, text.split("\n")))
    return Text(clean, style=shown.style) if isinstance(shown, Text) else clean


console = Edge(highlight=False, soft_wrap=False)

# The least width of a name, however narrow the terminal.
LEAST_NAME = 8

# The least width of text behind a name, however narrow the terminal.
_LEAST_WIDTH = 20


class HasSentence(Protocol):
    """A result that describes itself in a sentence."""

    @property
    def sentence(self) -> str: ...


class _Rows(Table):
    """A table that translates its cells; names are `Text` and stay."""

    def add_row(
        self,
        *cells: RenderableType | None,
        style: StyleType | None = None,
        end_section: bool = False,
    ) -> None:
        told = (_clean(say(cell) if isinstance(cell, str) else cell) for cell in cells)
        super().add_row(*told, style=style, end_section=end_section)


def table(*columns: str, right: Sequence[int] = ()) -> Table:
    """A table without lines: readable in 80 columns and in a pipe."""
    made = _Rows(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for place, column in enumerate(columns):
        justify = "right" if place in right else "left"
        made.add_column(say(column), justify=justify, overflow="fold")
    return made


def shorten_names(names: Sequence[str], others: int) -> dict[str, str]:
    """Names shortened in the middle to fit beside the other columns; unchanged where two would look
    the same.
    """
    room = max(console.width - others, 2 * LEAST_NAME)
    start = (room - 1) // 2
    whole = {name: plain(name) for name in names}
    short = {
        name: shown if len(shown) <= room else f"{shown[:start]}…{shown[start + 1 - room :]}"
        for name, shown in whole.items()
    }
    seen = Counter(short.values())
    return {name: shown if seen[shown] == 1 else whole[name] for name, shown in short.items()}


def heading(text: str) -> None:
    console.print(Text(f"\n{say(text)}", style="bold"))


def localize(text: str, style: str = "") -> Text:
    """A text in the language in use; names of files are never read as markup."""
    return Text(plain(say(text)), style=style)


def line(text: str, style: str = "") -> None:
    """One line of text."""
    console.print(localize(text, style))


def print_indented(start: str, text: str, style: str = "") -> None:
    """Prints a text behind its name; further lines are indented to the start of the text."""
    width = max(console.width - cell_len(start), _LEAST_WIDTH)
    for part in localize(text, style).wrap(console, width):
        part.rstrip()
        console.print(Text(start, style) + part)
        start = " " * cell_len(start)


def path(written: os.PathLike[str]) -> None:
    """Prints the path of a file."""
    console.print(Text(plain(os.fspath(written))), soft_wrap=True)


def sentence(result: HasSentence) -> None:
    """Prints the sentence of a result."""
    line(result.sentence)


def command(text: str) -> None:
    """Prints a command to type, followed by its purpose if it is a phrase with one; never broken
    into lines, so that it can be copied.
    """
    console.print(Text(plain(say(text)), style="cyan"), soft_wrap=True)
