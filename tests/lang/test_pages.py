"""A page in another language has no word in English that is not a name, a unit or a number."""

import json
import re
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path

import pytest

from litesmith.lang.language import LANGUAGES
from litesmith.pages.folder_kinds import write_report
from litesmith.units import plain
from tests.lang.books import messages
from tests.lang.test_everywhere import FOLDERS

OTHERS = [name for name in LANGUAGES if name != "en"]
_AS_IS = ("b", "code", "pre", "script", "style")
_SHOWN = ("alt", "aria-label", "data-label", "data-tip", "title")

# Names of ours and of others, targets, and units, which are the same in every language.
_NAMES = frozenset(("Litesmith", "Python", "MACs", "Top", "gzip", "top", "cpu", "gpu"))
_UNITS = frozenset(("min", "pt", "dB", "ms", "ns", "µs", "KB", "MB", "GB"))


class _Texts(HTMLParser):
    """What a reader sees of a page, or hears."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _AS_IS:
            self._inside.append(tag)
        self.found += [value for name, value in attrs if name in _SHOWN and value]

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            self._inside.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self._inside and data.strip():
            self.found.append(" ".join(data.split()))


def _strings(folder: Path) -> set[str]:
    """Every text and name in the records of a folder."""
    found: set[str] = set()
    for path in folder.rglob("*.json*"):
        whole = path.read_text(encoding="utf-8")
        for text in (whole, *whole.splitlines()):
            with suppress(ValueError):
                found |= set(_inside(json.loads(text)))
    return found


def _inside(value: object) -> list[str]:
    if isinstance(value, str):
        whole = plain(" ".join(value.split()))
        return [whole, whole.partition(": ")[2]]  # a command to type, and what for
    if isinstance(value, dict):
        return [one for item in value.items() for part in item for one in _inside(part)]
    if isinstance(value, list):
        return [one for part in value for one in _inside(part)]
    return []


def _words(text: str, given: set[str], same: set[str]) -> list[str]:
    """The words of a text that are ours and could be translated. A sentence of a record, which may
    be another program's, keeps the text that it is in as it is."""
    inside = sorted((one for one in given if len(one) > 2 and one in text), key=len, reverse=True)
    if text.lower() in same or any(" " in one for one in inside):
        return []
    for one in inside:
        text = re.sub(rf"(?<!\w){re.escape(one)}(?!\w)", " ", text)
    found = re.findall(r"(?<![\w/.])[A-Za-zµ]{2,}(?![\w/])", text)
    ours = [word for word in found if not (word.isupper() or word in _NAMES | _UNITS)]
    return [word for word in ours if word.lower() not in same]


@pytest.mark.parametrize("kind", FOLDERS)
def test_no_word_of_a_page_stays_english(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    FOLDERS[kind](folder)
    given = _strings(folder)
    english = set(_Texts(write_report(folder, lang="en").read_text("utf-8")).found)
    for lang in OTHERS:
        same = {text.lower() for text, said in messages.translations(lang) if text == said}
        shown = _Texts(write_report(folder, lang=lang).read_text("utf-8")).found
        left = {text: _words(text, given, same) for text in shown if text in english}
        assert {text: words for text, words in left.items() if words} == {}, lang


def test_a_word_that_stays_is_found() -> None:
    page = "<p title='a tip'>Latency <b>name</b> 3 ms</p><td>int8 is large</td>"
    texts = _Texts(page).found
    assert texts == ["a tip", "Latency", "3 ms", "int8 is large"]
    assert [_words(text, {"int8"}, {"latency"}) for text in texts] == [
        ["tip"],
        [],
        [],
        ["is", "large"],
    ]
