"""Text in columns of a terminal, where a Chinese character takes two and may end a line."""

import re
from collections.abc import Sequence
from unicodedata import east_asian_width

import click

# A word with the space after it, or one wide character with the marks that may not begin a line.
_PIECES = re.compile(
    r"[\u2e80-\u9fff\uff00-\uffef][，。；：、）！？]*|[^\s\u2e80-\u9fff\uff00-\uffef]+\s*|\s+"
)


def cells(text: str) -> int:
    """The number of columns that a text takes."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def wrap(text: str, width: int) -> list[str]:
    """The lines of a text, each at most `width` columns wide unless a single word is wider."""
    lines = [""]
    for piece in _PIECES.findall(text):
        if lines[-1] and cells(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def clip(text: str, width: int) -> str:
    """The beginning of a text, at most `width` columns wide."""
    while cells(text) > width:
        text = text[:-1]
    return text


def write_rows(
    formatter: click.HelpFormatter, rows: Sequence[tuple[str, str]], left: int = 0
) -> None:
    """Writes two columns: words to type, and their meaning beside them, or below where the words
    are long.
    """
    left = left or max(cells(words) for words, _ in rows)
    margin = " " * formatter.current_indent
    room = max(20, formatter.width - len(margin) - left - 2)
    for words, meaning in rows:
        first, *more = wrap(meaning, room)
        if cells(words) > left:
            formatter.write(f"{margin}{words}\n")
            words = ""
        gap = " " * (left - cells(words) + 2)
        formatter.write(f"{margin}{words}{gap}{first}\n")
        for line in more:
            formatter.write(f"{margin}{'':{left}}  {line}\n")
