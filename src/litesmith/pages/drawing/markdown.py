"""Markdown for a pull request: escaped words, tables, and pictures beside the text."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from litesmith.lang.language import say
from litesmith.phrases import phrase

# Characters that Markdown, or the HTML in it, could take for markup.
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~<>&@:-])")


@dataclass(frozen=True)
class Markdown:
    """A text, and the pictures that lie beside it, by the names of their files."""

    text: str
    pictures: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


def paragraphs(*parts: str) -> str:
    """Joins the parts that are not empty as paragraphs."""
    return "\n\n".join(part for part in parts if part) + "\n"


def escape_markdown(words: str) -> str:
    """Words in the language in use, with everything escaped that Markdown would interpret."""
    return _SPECIAL.sub(r"\\\1", say(words))


def cell(*parts: str) -> str:
    """Words side by side that form no sentence."""
    return _SPECIAL.sub(r"\\\1", " ".join(say(part) for part in parts if part))


def code(words: str) -> str:
    """Words as code; the fence is longer than any in them."""
    longest = max((len(run) for run in re.findall(r"`+", words)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {words} {fence}" if longest else f"{fence}{words}{fence}"


def repeat_line(command: str) -> str:
    """The line with the command that measures again, where it is known."""
    return f"{say(phrase('Again:'))} {code(command)}" if command else ""


def picture(title: str, name: str) -> str:
    """A picture beside the text, by the name of its file."""
    return f"![{escape_markdown(title)}]({_address(name)})"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; cells are Markdown already, titles are plain words."""
    lines = [[say(title) for title in head], ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fold(summary: str, body: str) -> str:
    """Content that appears after a click."""
    return f"<details><summary>{say(summary)}</summary>\n\n{body}\n\n</details>"


def _address(name: str) -> str:
    """A file's name as a link; special characters are percent-encoded."""
    plain = re.compile(rb"[A-Za-z0-9._-]")
    letters = (bytes([byte]) for byte in name.encode("utf-8", "surrogateescape"))
    return "".join(b.decode() if plain.match(b) else f"%{b.hex().upper()}" for b in letters)
