"""A language: its messages, how it writes numbers, and what becomes of a text in it."""

import re
from collections.abc import Mapping
from typing import NamedTuple
from unicodedata import east_asian_width

from litesmith.lang.numbers import Form, in_form, is_number
from litesmith.lang.template import (
    Template,
    Templates,
    filled,
    holes,
    is_number_name,
    parts_of,
    trimmed,
)

# What joins sentences and parts of them, and how unlikely it is to be inside a value.
_JOINTS = {"\n": 3, ". ": 3, "; ": 2, " · ": 2, ": ": 2, " → ": 1, " -> ": 1, ", ": 1}
_MOST_PLACES = 12
_WRONG = 10

# Words by which a text is known to be a sentence, and no name.
PLAIN = frozenset(
    word
    for line in (
        "a all an and any are as at be beside but by can each for from give given has have",
        "how in into is it its many more most must needs no none not nothing of on once one",
        "only or other out per same so some such than that the their them there these they",
        "this those to too use was were what where which who whole why will with without",
        "yet you your",
    )
    for word in line.split()
)

_WORD = re.compile(r"(?<![\w/.=-])[A-Za-z']+(?![\w/=-])")
_INTERVAL = re.compile(r"\[[^\[\]]*\]")
_COMMAND = re.compile(r"(litesmith|pip|python|vela|adb) \S|[\"'`(\[{/]")

# Other programs, whose sentences are told in their words.
_QUOTED = re.compile(r"(?<!Arm )Vela: [^()]*[^() ]")
_QUOTE = "\x1a"

# Values that are shown as they are, whatever they say.
_NAMES = frozenset(
    ("path", "file", "folder", "command", "recipe", "version", "python", "litesmith", "digest")
)
# Values that begin with a count, and those that are words.
_COUNTS = frozenset(("ops", "taken"))
_WORDS = frozenset(("title",))

# Values that are names where they are one word, such as that of a model called `model`.
_OWN_NAMES = frozenset(("model", "name", "names", "stem"))


class Said(NamedTuple):
    """A text in another language.

    known    False where some of it is a sentence that stayed English
    covered  how many English letters were translated
    across   minus what makes its values unlikely: of `a: b is so`, `b` is, and not `a: b`
    at_once  how many letters by one template, which is better than by several
    """

    text: str
    known: bool
    covered: int
    across: int = 0
    at_once: int = 0

    def rank(self) -> tuple[bool, int, int]:
        return self.known, self.covered + self.across, self.at_once


def is_prose(text: str) -> bool:
    """True of what looks like a sentence of ours, not like a name, a number or a command."""
    if "et al." in text:  # a source
        return False
    words = [word for word in _WORD.findall(text) if word.islower()]
    plain = sum(word in PLAIN for word in words)
    return len(words) > 1 and plain > (1 if _COMMAND.match(text) else 0)


class Book:
    """The messages of a language."""

    def __init__(self, language: str, messages: Mapping[str, str], form: Form) -> None:
        self.language = language
        self.missed: set[str] = set()
        self._exact = {filled(k, {}): filled(v, {}) for k, v in messages.items() if not holes(k)}
        self._templates = Templates(Template(*pair) for pair in messages.items())
        self._form = form
        self._seen: dict[str, Said] = {}

    def say(self, text: str) -> str:
        """A text in this language; what is in no template stays, and is kept in `missed`."""
        said = self._said(text, 0)
        if not said.known:
            self.missed.add(text)
        return said.text

    def _said(self, text: str, depth: int) -> Said:
        if text not in self._seen:
            self._seen[text] = self._trimmed_said(text, depth)
        return self._seen[text]

    def _trimmed_said(self, text: str, depth: int) -> Said:
        """Spaces, signs before a line and commas behind it are kept as they are."""
        if "\xa0" in text:  # a text that is to be broken before brackets only
            said = self._said(text.replace("\xa0", " "), depth)
            return said._replace(text=said.text.replace(" ", "\xa0").replace("\xa0[", " ["))
        core = trimmed(text)
        if not core:
            return Said(text, True, 0)
        start = text.index(core)
        said = self._core_said(core, depth)
        tail = text[start + len(core) :]
        if said.text and is_wide(said.text[-1]):
            tail = self._form.wide.get(f"{tail.rstrip()} ", tail)
        return said._replace(text=text[:start] + said.text + tail)

    def _core_said(self, text: str, depth: int) -> Said:
        quoted = _QUOTED.search(text)
        if quoted:
            said = self._said(text.replace(quoted[0], _QUOTE), depth)
            return said._replace(text=said.text.replace(_QUOTE, quoted[0]))
        exact = self._looked_up(text)
        if exact is not None:
            count = sum(map(str.isalpha, text))
            return Said(exact, True, count, 0, count)
        if is_number(text):
            return Said(in_form(text, self._form), True, 0)
        if text.endswith(".") and is_number(text[:-1]):
            return Said(in_form(text[:-1], self._form) + self._form.stop, True, 0)
        if depth > 8 or not re.search(r"[A-Za-z]{2}", text):
            return Said(text, True, 0)
        tried = [*self._by_template(text, depth), *self._by_parts(text, depth)]
        tried += [*self._by_number(text, depth), *self._by_file(text, depth)]
        best = max(tried, key=Said.rank, default=None)
        stays = Said(text, not is_prose(text), 0)
        if best is None or (not best.known and 2 * best.covered < len(text)):
            return stays
        return best if best.covered or not stays.known else stays._replace(text=best.text)

    def _by_number(self, text: str, depth: int) -> list[Said]:
        """A word with its number behind it: `top-1 94.87 %`; of `class 1`, the number is none."""
        found = re.fullmatch(r"(.*?\S) ([~<≈±+−-]?\d.*)", text)
        if found is None or not is_number(found[2]):
            return []
        word = self._said(found[1], depth + 1)
        is_value = found[1].endswith(":") or re.fullmatch(r"\S*\d\.\d\S*", found[2])
        if (word.covered and is_value) or re.search(r"\d ?(%|[a-zµA-Z]+\b)", found[2]):
            space = "" if word.text[-1] in self._form.wide.values() else " "
            return [word._replace(text=f"{word.text}{space}{in_form(found[2], self._form)}")]
        return []

    def _by_file(self, text: str, depth: int) -> list[Said]:
        """A file with a sentence about it behind it."""
        name, _, rest = text.partition(" ")
        is_file = re.fullmatch(r"\S*[./]\S*\w", name)
        return self._joined(name, " ", rest, "", depth) if is_file else []

    def _looked_up(self, text: str) -> str | None:
        """The message of a text, whatever its first letter's case and with its full stop or not."""
        for one in (text, text[:1].swapcase() + text[1:]):
            for stop in ("", "."):
                found = self._exact.get(one.removesuffix(stop))
                if found and one.endswith(stop):
                    end = self._form.stop if stop else ""
                    return _cased(found, text, one).removesuffix(end) + end
        return None

    def _by_template(self, text: str, depth: int) -> list[Said]:
        found: list[Said] = []
        for template in self._templates.near(text):
            for values in template.readings(text):
                said = {name: self._value(name, value, depth) for name, value in values.items()}
                found.append(
                    Said(
                        self._filled(template.other, {n: s.text for n, s in said.items()}),
                        all(one.known for one in said.values()),
                        template.weight + sum(one.covered for one in said.values()),
                        sum(one.across for one in said.values()) - _amiss(values),
                        template.weight,
                    )
                )
        return found

    def _value(self, name: str, value: str, depth: int) -> Said:
        kind = name.rstrip("0123456789")
        if kind in _NAMES or (kind in _OWN_NAMES and value.isalnum()):
            return Said(value, True, 0)
        return self._said(value, depth + 1)

    def _by_parts(self, text: str, depth: int) -> list[Said]:
        """Both sides of each joint; what is in brackets behind others, without these."""
        found: list[Said] = []
        for joint in _JOINTS:
            for place in _places(text, joint):
                left, right = text[:place], text[place + len(joint) :]
                found += self._joined(left, joint, right, "", depth)
        if text.endswith(")") and "(" in text:
            left, _, right = text[:-1].rpartition("(")
            found += self._joined(left, "(", right, ")", depth)
        return found

    def _joined(self, left: str, joint: str, right: str, end: str, depth: int) -> list[Said]:
        if not right.strip() or (not left and joint != "("):
            return []
        first, second = (self._said(side, depth + 1) for side in (left, right))
        covered, across = first.covered + second.covered, first.across + second.across
        shown = f"{first.text}{joint}{second.text}{end}"
        near = first.text[-1:] + second.text[:1] if joint == ", " else first.text + second.text
        if any(map(is_wide, near)):
            shown = self._widely(first.text, joint, second.text, end)
        return [Said(shown, first.known and second.known, covered, across)]

    def _widely(self, left: str, joint: str, right: str, end: str) -> str:
        wide = self._form.wide
        if joint in wide:
            left, right = left.rstrip(), right.lstrip()
        return f"{left}{wide.get(joint, joint)}{right}{wide.get(end, end)}"

    def _filled(self, text: str, values: Mapping[str, str]) -> str:
        """A template with its values, as this language writes what meets."""
        shown = ""
        for part in parts_of(text, values):
            shown = _beside(shown, part) if self._form.wide else self._met(shown, part)
        return shown

    def _met(self, left: str, right: str) -> str:
        """Two texts, the words between them made one where the language does so."""
        last, (first, space, rest) = left[:-1].rpartition(" ")[2], right.partition(" ")
        one = self._form.merged.get(f"{last} {first}") if left.endswith(" ") and space else None
        return left + right if one is None else f"{left[: -len(last) - 1]}{one}{space}{rest}"


def _places(text: str, joint: str) -> list[int]:
    """Where a joint is, outside intervals, at most so many times that all can be tried."""
    within = [one.span() for one in _INTERVAL.finditer(text)]
    found = (one.start() for one in re.finditer(re.escape(joint), text))
    return [at for at in found if not any(a < at < b for a, b in within)][:_MOST_PLACES]


def _amiss(values: Mapping[str, str]) -> int:
    """How unlikely values are: for joints inside them, most of all in names, and for words where a
    number should be."""
    price = 0
    for name, value in values.items():
        if is_number(value):
            price += (", " in _INTERVAL.sub("", value)) + _WRONG * (name in _WORDS)
            continue
        joints = sum(cost for joint, cost in _JOINTS.items() if _places(f"{value} ", joint))
        is_name = bool(joints) and name in _OWN_NAMES
        is_count = name in _COUNTS and value[:1].isalpha()
        price += joints + _WRONG * (is_name or is_count or is_number_name(name))
    return price


def is_wide(letter: str) -> bool:
    """True of Chinese letters and the signs that go with them."""
    return east_asian_width(letter) in "WF"


def _beside(left: str, right: str) -> str:
    """Two texts: no space between wide letters, one between a wide letter and a narrow one."""
    if not left.strip() or not right.strip():
        return left + right
    ends = left.rstrip()[-1], right.lstrip()[0]
    if all(map(is_wide, ends)):
        return left.rstrip() + right.lstrip()
    near = left[-1] == ends[0] and right[0] == ends[1]
    if near and any(map(is_wide, ends)) and all(map(str.isalnum, ends)):
        return f"{left} {right}"
    return left + right


def _cased(shown: str, text: str, message: str) -> str:
    """A translation that begins with a capital or not as the English does, where the message does
    otherwise."""
    if text[:1].isupper() == message[:1].isupper():
        return shown
    return (shown[:1].upper() if text[:1].isupper() else shown[:1].lower()) + shown[1:]
