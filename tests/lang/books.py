"""A language for tests, in which every message has a translation: the message in other brackets."""

import sys
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

from litesmith.lang.language import Language
from litesmith.lang.numbers import Form

TOOLS = Path(__file__).parents[2] / "tools"
SPANISH = Form(",", ".", "; ", "a")

pytest.importorskip("babel", reason="the messages are kept with Babel")
sys.path.insert(0, str(TOOLS))

import messages  # noqa: E402  # pyright: ignore[reportMissingImports]


@cache
def msgids() -> frozenset[str]:
    """Every message of the source."""
    return frozenset(messages.ids(messages.extract()))


def strange() -> Language:
    """A language that puts the words of every message of ours into brackets, and nothing else: what
    a message is filled with stays outside, and has its own brackets where it is a message too."""
    return Language("es", lambda text: _bracketed(text) if text in msgids() else text, SPANISH)


@cache
def _bracketed(template: str) -> str:
    try:
        parts = list(Formatter().parse(template))
    except ValueError:  # braces that are no fields, in a text without values
        return f"⟦{template}⟧"
    return "".join(map(_part, parts))


def _part(part: tuple[str, str | None, str | None, str | None]) -> str:
    literal, name, spec, conversion = part
    shown = literal.replace("{", "{{").replace("}", "}}")
    words = f"⟦{shown}⟧" if any(map(str.isalpha, literal)) else shown
    if name is None:
        return words
    return f"{words}{{{name}{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}}}"


__all__ = ["SPANISH", "messages", "msgids", "strange"]
