"""Sentences as values: a phrase is a template and what it is filled with.

A phrase is an English `str`, so that whatever takes a text takes a phrase; it also remembers its
template and values, so that any language can be made of it later, exactly, by looking its template
up. What a program must know is never read out of a phrase: it is a field of its own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from string import Formatter

Value = str | int | float | bool | None

_PARSER = Formatter()


class Quantity(str):
    """A number with its unit, as English writes it: `69.15 % [67.09, 71.14]`."""

    __slots__ = ()

    def __str__(self) -> str:
        return self  # not a plain copy of it


class Phrase(str):
    """A sentence in English, and what it was made of."""

    __slots__ = ("template", "values")
    template: str
    values: Mapping[str, Value]

    def __new__(cls, template: str, values: Mapping[str, Value]) -> "Phrase":
        made = str.__new__(cls, fill(template, values) if values else template)
        made.template = template
        made.values = values
        return made

    def __reduce__(self) -> tuple[type["Phrase"], tuple[str, Mapping[str, Value]]]:
        return Phrase, (self.template, dict(self.values))

    def __str__(self) -> str:
        return self  # so that `str(error)` remembers what the error's message was made of

    def format(self, *_: object, **values: object) -> "Phrase":
        """A phrase that was made without its values, with them."""
        return phrase(self.template, *(values[name] for name in names_of(self.template)))

    def __add__(self, other: str) -> "Phrase":
        return join((self, other), "")

    def __radd__(self, other: str) -> "Phrase":
        return join((other, self), "")


def phrase(template: str, /, *values: object) -> Phrase:
    """A sentence: `phrase("op {op}: {bits} bits have no storage", op.name, bits)`.

    Values are given in the order in which their names stand in the template, each name once;
    fields are filled in as by `str.format`, and braces themselves are doubled. Without values, the
    template is the sentence as it stands.
    """
    if not values:
        return template if isinstance(template, Phrase) else Phrase(template, {})
    quoted = {name for _, name, _, how in _PARSER.parse(template) if how == "r"}
    pairs = zip(names_of(template), values, strict=True)
    return Phrase(template, {name: _plain(value, name in quoted) for name, value in pairs})


def names_of(template: str) -> list[str]:
    """The names of a template's values, each once, in their order."""
    return list(dict.fromkeys(name for _, name, _, _ in _PARSER.parse(template) if name))


def join(parts: Iterable[str], between: str) -> Phrase:
    """Texts one after the other, each of which may be a phrase."""
    listed = [_plain(part) for part in parts]
    if len(listed) == 1 and isinstance(listed[0], Phrase):
        return listed[0]
    names = [f"part{number}" for number in range(len(listed))]
    between = between.replace("{", "{{").replace("}", "}}")
    template = between.join(f"{{{name}}}" for name in names)
    return Phrase(template, dict(zip(names, listed, strict=True)))


def join_and(parts: Sequence[str]) -> Phrase:
    """Texts as a list in a sentence: `a, b and c`."""
    *first, last = parts
    return phrase("{first} and {last}", join(first, ", "), last) if first else phrase(last)


def fill(
    template: str,
    values: Mapping[str, Value],
    show: Callable[[Value, str], str] = format,
    meet: Callable[[str, str], str] = str.__add__,
) -> str:
    """A template with its values; a language shows values, and lets texts meet, in its own way."""
    whole = ""
    for literal, name, spec, conversion in _PARSER.parse(template):
        whole = meet(whole, literal) if literal else whole
        if name is not None:
            value = values[name]
            told = repr(value) if conversion == "r" else show(value, spec or "")
            whole = meet(whole, told)
    return whole


class _AsIs(str):
    """What a program calls something, which has its own quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _plain(value: object, is_quoted: bool = False) -> Value:
    """A value that can be written to a file and read again."""
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Integral):  # a number of numpy's
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, BaseException) and value.args and isinstance(value.args[0], Phrase):
        return value.args[0]
    return _AsIs(repr(value)) if is_quoted else str(value)
