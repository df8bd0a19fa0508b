"""Numbers as a language writes them; other texts stay unchanged."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Form(NamedTuple):
    """How a language writes numbers and signs, and how it joins words.

    between  the text between the ends of an interval in brackets
    to       the word between two ends
    stop     the full stop
    wide     signs that are written as wide as a letter beside one of the language's letters
    merged   adjoining words that are merged: `de el` is `del`
    """

    decimal: str
    thousands: str
    between: str
    to: str
    stop: str = "."
    wide: Mapping[str, str] = MappingProxyType({})
    merged: Mapping[str, str] = MappingProxyType({})


ENGLISH = Form(".", ",", ", ", "to")

_UNITS = (
    "GMAC/s|MACs|min|pt|dB|mJ|ns|µs|ms|KB|MB|GB|TB|PB|EB|[sBJKMGTPEh](?![A-Za-z])"  # longest first
)
_NUMBER = re.compile(
    r"(?<![\w.:@-])(?P<sign>[+−±~<≈-]*)(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?P<power>e[+-]?\d+)?(?![.,:@]?\d)(?!_)"
)
_PHRASE = re.compile(
    rf"(?:{_NUMBER.pattern}|∞|\b(?:{_UNITS})|\bto\b|->|[\s\[\](),;–→×%/+−±·])+".replace(
        "?P<sign>", "?:"
    )
    .replace("?P<digits>", "?:")
    .replace("?P<power>", "?:")
)
_SHAPE = re.compile(r"[\[(]\d+(?:,\d+)*,?[\])]")


def is_number(text: str) -> bool:
    """True for `69.15 % [67.09, 71.14]`; False for a version, a name, or the shape of a tensor."""
    return (
        any(letter.isdigit() for letter in text)
        and _PHRASE.fullmatch(text) is not None
        and _SHAPE.search(text) is None
    )


def in_form(text: str, form: Form) -> str:
    """A text that is a number, as a language writes it."""
    if form == ENGLISH:
        return text
    if "." in text:  # a list of whole numbers is no interval
        text = re.sub(r"([\[(][^\])]*?), ([^\])]*[\])])", rf"\1{form.between}\2", text)
    text = re.sub(r"\bto\b", form.to, text)
    return _NUMBER.sub(lambda found: _write_number(found, form), text)


def _write_number(found: re.Match[str], form: Form) -> str:
    whole, point, rest = found["digits"].partition(".")
    shown = whole.replace(",", form.thousands) + (form.decimal + rest if point else "")
    return f"{found['sign']}{shown}{found['power'] or ''}"
