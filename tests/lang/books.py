"""A language for tests, in which every message has a translation: the message in other brackets."""

import sys
from functools import cache
from pathlib import Path

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
    return frozenset(one.id for one in messages.extract() if one.id)


def strange() -> Language:
    """A language that puts every message of ours into brackets, and nothing else."""
    return Language("es", lambda text: f"⟦{text}⟧" if text in msgids() else text, SPANISH)


__all__ = ["SPANISH", "messages", "msgids", "strange"]
