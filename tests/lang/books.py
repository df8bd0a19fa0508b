"""A language for tests, in which every message has a translation: the message in other brackets."""

import sys
from functools import cache
from pathlib import Path

import pytest

from litesmith.lang.book import Book
from litesmith.lang.numbers import Form
from litesmith.lang.template import holes

TOOLS = Path(__file__).parents[2] / "tools"
SPANISH = Form(",", ".", "; ", "a")

pytest.importorskip("babel", reason="the messages are kept with Babel")
sys.path.insert(0, str(TOOLS))

import messages  # noqa: E402  # pyright: ignore[reportMissingImports]


@cache
def msgids() -> tuple[str, ...]:
    """Every message, as the template has it."""
    with messages.TEMPLATE.open("rb") as file:
        return tuple(one.id for one in messages.read_po(file) if one.id)


def turned(message: str) -> str:
    """A translation that can be told from its message: its values come in the other order."""
    return f"⟦{message}⟧"


@cache
def strange() -> Book:
    return Book("es", {message: turned(message) for message in msgids()}, SPANISH)


def fresh() -> Book:
    """The same, with nothing missed yet."""
    return Book("es", {message: turned(message) for message in msgids()}, SPANISH)


__all__ = ["SPANISH", "fresh", "holes", "messages", "msgids", "strange", "turned"]
