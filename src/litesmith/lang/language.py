"""The language of everything that people read. Records, JSON and commands are the same in all of
them.
"""

import gettext
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from unicodedata import east_asian_width

from litesmith.errors import BadInput
from litesmith.lang.numbers import ENGLISH, Form, in_form, is_number
from litesmith.phrases import Phrase, Quantity, Value, fill

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
_DOMAIN, _CATALOGUES = "litesmith", Path(__file__).with_name("locale")
_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")


@dataclass(frozen=True)
class Language:
    """A language: its short name, its translation of a template, and how it writes numbers."""

    name: str
    look_up: Callable[[str], str]
    form: Form

    def say(self, text: str) -> str:
        """A text in this language: phrases by their template, other texts if the catalogue has
        them.
        """
        if not isinstance(text, Phrase):
            return in_form(text, self.form) if is_number(text) else self._translate(text)
        template = self._translate(text.template)
        if not text.values:
            return template
        return fill(template, text.values, self._show, partial(_join, self.form))

    def _translate(self, template: str) -> str:
        return self.look_up(template) if template else template  # "" would be the file's header

    def _show(self, value: Value, spec: str) -> str:
        if isinstance(value, Phrase):
            return self.say(value)
        shown = format(value, spec)
        is_quantity = isinstance(value, Quantity | float) or bool(spec)
        return in_form(shown, self.form) if is_quantity else shown


class _Now:
    """The language in use; None for English, in which texts are written. All threads share it,
    because work in other threads must speak the command's language.
    """

    language: Language | None = None


def say(text: str) -> str:
    """A text for a person, in the language in use."""
    return str(text) if _Now.language is None else _Now.language.say(text)


def language() -> str:
    """The name of the language in use."""
    return "en" if _Now.language is None else _Now.language.name


def use(name: str) -> None:
    """Switches to a language; also for the parser of the command line, which asks gettext."""
    _Now.language = open_language(name)
    gettext.bindtextdomain(_DOMAIN, str(_CATALOGUES))
    gettext.textdomain(_DOMAIN)
    os.environ["LANGUAGE"] = language()


@contextmanager
def speaking(spoken: str | Language | None) -> Generator[None]:
    """Switches to a language inside the block; None keeps the one in use."""
    before = _Now.language
    if spoken is not None:
        _Now.language = open_language(spoken) if isinstance(spoken, str) else spoken
    try:
        yield
    finally:
        _Now.language = before


def language_of(name: str) -> str:
    """The language of a name such as `es` or `pt_BR.UTF-8`; raises where there is none."""
    short = name.replace("-", "_").partition("_")[0].partition(".")[0].lower()
    if short not in LANGUAGES:
        raise BadInput("no language {name!r}; there are {known}", name, ", ".join(LANGUAGES))
    return short


def usual_language(environment: Mapping[str, str] = os.environ) -> str:
    """The language of the user: by our variable, else by the locale, else English."""
    asked = environment.get(VARIABLE)
    if asked:
        return language_of(asked)
    name = next((environment[one] for one in _LOCALE if environment.get(one)), "")
    try:
        return language_of(name)
    except BadInput:  # there is no catalogue for this locale
        return "en"


@cache
def open_language(name: str) -> Language | None:
    """A language with its catalogue; None for English."""
    short = language_of(name)
    if short == "en":
        return None
    try:
        catalogue = gettext.translation(_DOMAIN, _CATALOGUES, [short])
    except FileNotFoundError:
        raise BadInput(
            "language {name!r}: its catalogue was not built; in a checkout, "
            "`python tools/messages.py` builds it",
            short,
        ) from None
    return Language(short, catalogue.gettext, LANGUAGES[short])


def _join(form: Form, left: str, right: str) -> str:
    """Joins two texts as the language requires."""
    return _join_wide(left, right) if form.wide else _join_merged(form, left, right)


def _join_merged(form: Form, left: str, right: str) -> str:
    """Joins two texts; the adjoining words are merged where the language merges them."""
    last, (first, space, rest) = left[:-1].rpartition(" ")[2], right.partition(" ")
    one = form.merged.get(f"{last} {first}") if left.endswith(" ") and space else None
    return left + right if one is None else f"{left[: -len(last) - 1]}{one}{space}{rest}"


def _join_wide(left: str, right: str) -> str:
    """Joins two texts: no space between wide letters, a space between a wide letter and a narrow
    one.
    """
    if not left.strip() or not right.strip():
        return left + right
    ends = left.rstrip()[-1], right.lstrip()[0]
    wide = [east_asian_width(letter) in "WF" for letter in ends]
    if all(wide):
        return left.rstrip() + right.lstrip()
    near = left[-1] == ends[0] and right[0] == ends[1]
    if near and any(wide) and all(map(str.isalnum, ends)):
        return f"{left} {right}"
    return left + right
