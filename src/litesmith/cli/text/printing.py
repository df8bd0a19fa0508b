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
    """A terminal: foreign text is cleaned here, so that nothing in it acts on the terminal; styles
    are ours alone."""

    def print(self, *objects: Any, **how: Any) -> None:
        super().print(*map(_cleaned, objects), **how)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # which is no failure: the reader had enough


def _cleaned(shown: Any) -> Any:
    """A text without what acts on a terminal; lines and anything else stay."""
    text = shown.plain if isinstance(shown, Text) else shown
    if not isinstance(text, str) or text.replace("\n", "").isprintable():
        return shown
    clean = "\n".join(map(plain, text.split("\n")))
    return Text(clean, style=shown.style) if isinstance(shown, Text) else clean


console = Edge(highlight=False, soft_wrap=False)

# However narrow the terminal, a name has this many characters.
LEAST_NAME = 8

# However narrow the terminal, text behind a name has this many.
_LEAST_WIDTH = 20


class Told(Protocol):
    """A result that says what it is in a sentence."""

    @property
    def sentence(self) -> str: ...


class _Rows(Table):
    """A table that says its cells in the language in use; names come as `Text` and stay."""

    def add_row(
        self,
        *cells: RenderableType | None,
        style: StyleType | None = None,
        end_section: bool = False,
    ) -> None:
        told = (_cleaned(say(cell) if isinstance(cell, str) else cell) for cell in cells)
        super().add_row(*told, style=style, end_section=end_section)


def table(*columns: str, right: Sequence[int] = ()) -> Table:
    """A table without lines: readable in 80 columns and in a pipe."""
    made = _Rows(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for place, column in enumerate(columns):
        justify = "right" if place in right else "left"
        made.add_column(say(column), justify=justify, overflow="fold")
    return made


def shortened(names: Sequence[str], others: int) -> dict[str, str]:
    """Each name without its middle, where it has no place beside so many other columns; whole where
    two would look the same."""
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


def said(text: str, style: str = "") -> Text:
    """A text in the language in use; names of foreign files are not markup."""
    return Text(plain(say(text)), style=style)


def line(text: str, style: str = "") -> None:
    """One line of text."""
    console.print(said(text, style))


def indented(start: str, text: str, style: str = "") -> None:
    """A text behind its name; lines that follow begin where it began."""
    width = max(console.width - cell_len(start), _LEAST_WIDTH)
    for part in said(text, style).wrap(console, width):
        part.rstrip()
        console.print(Text(start, style) + part)
        start = " " * cell_len(start)


def path(written: os.PathLike[str]) -> None:
    """Where a file is."""
    console.print(Text(plain(os.fspath(written))), soft_wrap=True)


def sentence(result: Told) -> None:
    """What a result says in one sentence."""
    line(result.sentence)


def command(text: str) -> None:
    """A command to type, with its purpose behind it where it is a phrase that has one: never broken
    into lines, so that it can be copied."""
    console.print(Text(plain(say(text)), style="cyan"), soft_wrap=True)
