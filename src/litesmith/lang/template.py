"""A sentence with values in it: the template that it was made from, found again."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

# Values that are numbers, by the name that they have in templates.
NUMBER_NAMES = frozenset(
    (
        "amount",
        "bytes",
        "duration",
        "energy",
        "error",
        "gain",
        "n",
        "number",
        "percent",
        "rate",
        "score",
        "time",
        "total",
    )
)
_HOLE = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")
_LETTERS = re.compile(r"[^\W\d_]+")
_JOINTS = re.compile(r"^(?:[-•·,;:.…✓✕⊘≈–]+\s+)+|[,;:·\s]+$")
_NUMERIC = r"[~<≈±+−-]{0,2}[\d∞].*?|nan|-?inf"


def is_number_name(name: str) -> bool:
    """True of the name of a value that is a number: `n`, or `time2` of several."""
    return name.rstrip("0123456789") in NUMBER_NAMES


def trimmed(text: str) -> str:
    """A text without what only joins it to others."""
    return _JOINTS.sub("", text.strip()).strip()


def holes(text: str) -> list[str]:
    """The names of the values of a template."""
    return _HOLE.findall(text)


def parts_of(text: str, values: Mapping[str, str]) -> list[str]:
    """The texts and the values of a template, in turns."""
    return [
        values[part] if place % 2 else part.replace("{{", "{").replace("}}", "}")
        for place, part in enumerate(_HOLE.split(text))
    ]


def filled(text: str, values: Mapping[str, str]) -> str:
    """A template with its values."""
    return "".join(parts_of(text, values))


@dataclass(frozen=True)
class Template:
    """An English sentence with names for values, and the same in another language."""

    english: str
    other: str

    @cached_property
    def literals(self) -> list[str]:
        parts = _HOLE.split(self.english)[::2]
        return [part.replace("{{", "{").replace("}}", "}") for part in parts]

    @cached_property
    def weight(self) -> int:
        """How many letters of it are no values."""
        return sum(map(len, _LETTERS.findall(" ".join(self.literals))))

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        return self._pattern(".+?"), self._pattern(".+")

    def _pattern(self, anything: str) -> re.Pattern[str]:
        shown = ""
        for place, part in enumerate(_HOLE.split(self.english)):
            if place % 2 == 0:
                shown += re.escape(part.replace("{{", "{").replace("}}", "}"))
            else:
                shown += f"(?P<{part}>{_NUMERIC if is_number_name(part) else anything})"
        return re.compile(shown, re.DOTALL)

    def readings(self, text: str) -> Iterator[dict[str, str]]:
        """The values that make the text of this template: the first as short as they can be, and as
        long as they can be."""
        if not all(literal in text for literal in self.literals):
            return
        found = [pattern.fullmatch(text) for pattern in self._patterns]
        seen = [one.groupdict() for one in found if one is not None]
        yield from seen[:1] if seen[:1] == seen[1:] else seen

    def words(self) -> set[str]:
        """Words that are in every text of this template."""
        last = len(self.literals) - 1
        found: set[str] = set()
        for place, literal in enumerate(self.literals):
            for one in _LETTERS.finditer(literal):
                touches = (one.start() == 0 and place > 0) or (
                    one.end() == len(literal) and place < last
                )
                if not touches:
                    found.add(one[0])
        return found


class Templates:
    """Templates, found by the rarest of their words."""

    def __init__(self, all_of_them: Iterable[Template]) -> None:
        listed = [template for template in all_of_them if holes(template.english)]
        common = Counter(word for template in listed for word in template.words())
        self._by_word: defaultdict[str, list[Template]] = defaultdict(list)
        for template in listed:
            rarest = min(template.words(), key=lambda word: (common[word], -len(word)), default="")
            self._by_word[rarest].append(template)

    def near(self, text: str) -> Iterator[Template]:
        """Those that the text may be of."""
        for word in {*_LETTERS.findall(text), ""}:
            yield from self._by_word.get(word, ())
