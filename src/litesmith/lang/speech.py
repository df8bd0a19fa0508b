"""The language that people are spoken to in. Records, JSON and commands are in none."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files

from litesmith.errors import BadInput
from litesmith.lang.book import Book
from litesmith.lang.catalogue import read_mo
from litesmith.lang.numbers import ENGLISH, Form

_WIDE = {". ": "。", "; ": "；", ": ": "：", ", ": "，", "(": "（", ")": "）"}

_SPANISH = {"de el": "del", "a el": "al"}
_PORTUGUESE = {
    f"{word} {article}": f"{start}{article}"
    for word, start in (("de", "d"), ("em", "n"), ("por", "pel"))
    for article in ("o", "a", "os", "as")
} | {"a o": "ao", "a os": "aos", "a a": "à", "a as": "às"}

# language -> how it writes numbers and signs
LANGUAGES = {
    "en": ENGLISH,
    "es": Form(",", ".", "; ", "a", merged=_SPANISH),
    "pt": Form(",", ".", "; ", "a", merged=_PORTUGUESE),
    "zh": Form(".", ",", ", ", "至", "。", _WIDE),
}
VARIABLE = "LITESMITH_LANG"
_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")


class _Now:
    """The book that is open; None for English, which the texts are in. Threads share it: work that
    is done beside the command must speak like the command."""

    book: Book | None = None


def say(text: str) -> str:
    """A text for a person, in the language in use."""
    return text if _Now.book is None else _Now.book.say(text)


def language() -> str:
    """The language in use."""
    return "en" if _Now.book is None else _Now.book.language


def use(name: str) -> None:
    """Speaks a language from here on."""
    _Now.book = book(name)


@contextmanager
def speaking(spoken: str | Book | None) -> Iterator[None]:
    """Speaks a language for a while; with None, the one in use."""
    before = _Now.book
    if spoken is not None:
        _Now.book = book(spoken) if isinstance(spoken, str) else spoken
    try:
        yield
    finally:
        _Now.book = before


def missed() -> frozenset[str]:
    """Sentences that were said in English for want of a translation."""
    return frozenset() if _Now.book is None else frozenset(_Now.book.missed)


def known(name: str) -> str:
    """The language of a name such as `es` or `pt_BR.UTF-8`; raises where we have none."""
    short = name.replace("-", "_").partition("_")[0].partition(".")[0].lower()
    if short not in LANGUAGES:
        raise BadInput(f"no language {name!r}; there are {', '.join(LANGUAGES)}")
    return short


def usual(environment: Mapping[str, str] = os.environ) -> str:
    """The language of the user: what the variable says, else the locale, else English."""
    asked = environment.get(VARIABLE)
    if asked:
        return known(asked)
    name = next((environment[one] for one in _LOCALE if environment.get(one)), "")
    try:
        return known(name)
    except BadInput:  # a locale that we have no words for
        return "en"


@cache
def book(name: str) -> Book | None:
    """The messages of a language; None for English."""
    short = known(name)
    if short == "en":
        return None
    place = files("litesmith.lang").joinpath("locale", short, "LC_MESSAGES", "litesmith.mo")
    return Book(short, read_mo(place.read_bytes()), LANGUAGES[short])
