"""JSON from frozen types and back, by their annotations: a key of the JSON is a field's name.

A phrase is written as its template and values, so that a page can be made in any language later.
`decode` reads what Litesmith wrote, and accepts nothing beyond the type. `salvage` reads what a
user hands over: anything may be missing or odd, and every loss has a reason.
"""

import json
import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from string import Formatter
from typing import (
    Annotated,
    Generic,
    Literal,
    NamedTuple,
    TypeGuard,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from litesmith.operating_system import is_endless
from litesmith.phrases import Phrase, Quantity, Value, phrase
from litesmith.units import plain

T = TypeVar("T")

# No time, size or score is larger than this; sums and squares of such numbers stay finite.
_LARGEST = 1e18

# The number formats that a template may use: `.2f`, `g`, `,`.
_SPEC = re.compile(r"[+,]?(\.\d)?[defg%]?")


class Mark(Enum):
    """How a field is stored, beyond its type."""

    OMITTED = phrase("the key is left out where the value is the default")
    FLAT = phrase("the keys of the inner type stand among those of the outer one")
    EMPTY = phrase("an object without keys stands for None")
    NAMED = phrase(
        "infinities and NaN are written by name; else they are null, where null is allowed"
    )


@dataclass(frozen=True)
class Key:
    """The key of a field whose name is reserved in Python."""

    name: str


class Stored(NamedTuple):
    """A value that is stored as another type, with the conversions in both directions."""

    kind: object
    pack: Callable[..., object]
    unpack: Callable[..., object]


@dataclass(frozen=True)
class Bounds:
    """The range of sensible numbers."""

    least: float = -math.inf
    most: float = math.inf


Omitted = Annotated[T | None, Mark.OMITTED]  # with the default None
Positive = Annotated[float, Bounds(least=1 / _LARGEST)]
Count = Annotated[int, Bounds(least=0)]
Share = Annotated[float, Bounds(0, 1)]


class Malformed(ValueError):
    """An error in JSON, with its place."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(phrase("{path}: {why}", path, why) if path else why)


class Salvaged(NamedTuple, Generic[T]):
    """The readable part of some JSON, and a reason for each loss."""

    value: T
    losses: tuple[str, ...]


def read_record(path: Path) -> bytes:
    """Reads a file; raises Malformed for a pipe or a device, which might never end."""
    if is_endless(path):
        raise Malformed("", phrase("it is no regular file"))
    return path.read_bytes()


def parse(content: bytes | str) -> object:
    """Parses the JSON of a file."""
    try:
        return json.loads(content, object_pairs_hook=_refuse_twice)
    except Malformed:
        raise
    except (ValueError, RecursionError):
        raise Malformed("", phrase("it is not JSON")) from None


def _refuse_twice(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuses a JSON object with a repeated key, since readers differ in which value they take."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise Malformed("", phrase('has "{key}" twice', plain(twice)))
    return found


def dump(value: object, *, indent: int | None = None) -> str:
    """Formats a value as the text of a file."""
    return json.dumps(_with_templates(encode(value)), indent=indent, allow_nan=False)


def encode(value: object) -> object:
    """Converts a value to JSON's objects, lists, texts and numbers; phrases become their English
    text."""
    return _encode(value, type(value))


def encode_fields(record: object) -> dict[str, object]:
    """Converts a record to a JSON object."""
    return _encode_record(record)


def decode(kind: type[T], shown: object) -> T:
    """Reads an encoded value; raises Malformed where a key is missing, unknown or odd."""
    return _read(_Reader(is_strict=True), kind, shown)


def salvage(kind: type[T], shown: object) -> Salvaged[T]:
    """Reads as much of a value as possible; raises Malformed where a number without a default is
    missing."""
    reader = _Reader(is_strict=False)
    return Salvaged(_read(reader, kind, shown), tuple(reader.losses))


def _read(reader: "_Reader", kind: type[T], shown: object) -> T:
    try:
        found = reader.value(kind, shown, "")
    except RecursionError:
        raise Malformed("", phrase("it is nested too deep")) from None
    assert isinstance(found, kind)
    return found


def finite(value: float | None) -> float | None:
    """Returns a finite number, or None: JSON cannot express infinity or NaN."""
    return value if value is not None and math.isfinite(value) else None


def is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


# Reading annotations.


class Slot(NamedTuple):
    """A field as the codec sees it; `make` builds the default, where there is one."""

    name: str
    key: str
    hint: object
    marks: tuple[object, ...]
    make: Callable[[], object] | None


@cache
def read_slots(kind: type) -> tuple[Slot, ...]:
    """The fields of a dataclass or a named tuple."""
    hints = get_type_hints(kind, include_extras=True)
    found: list[Slot] = []
    for name, make in _defaults(kind).items():
        inner, marks = strip_marks(hints[name])
        key = next((mark.name for mark in marks if isinstance(mark, Key)), name)
        found.append(Slot(name, key, inner, marks, make))
    return tuple(found)


def _defaults(kind: type) -> dict[str, Callable[[], object] | None]:
    """The function that builds each field's default; None for a field without a default."""
    names: tuple[str, ...] = getattr(kind, "_fields", ())
    given: Mapping[str, object] = getattr(kind, "_field_defaults", {})
    if is_dataclass(kind):
        return {one.name: _default(one) for one in fields(kind)}
    return {name: (lambda n=name: given[n]) if name in given else None for name in names}


def _default(one: Field[object]) -> Callable[[], object] | None:
    if one.default_factory is not MISSING:
        return one.default_factory
    return None if one.default is MISSING else lambda: one.default


def strip_marks(hint: object) -> tuple[object, tuple[object, ...]]:
    """Separates an annotation from its marks."""
    if get_origin(hint) is not Annotated:
        return hint, ()
    inner, *marks = get_args(hint)
    deeper, more = strip_marks(inner)
    return deeper, (*marks, *more)


def list_options(hint: object) -> tuple[object, ...]:
    """The types of a union, or the single type."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _is_optional(hint: object) -> bool:
    return type(None) in list_options(hint)


def is_record(hint: object) -> TypeGuard[type]:
    return isinstance(hint, type) and (hasattr(hint, "_fields") or is_dataclass(hint))


# Writing.


def _is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    return isinstance(value, Mapping)


def _is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


def _encode(value: object, hint: object, marks: tuple[object, ...] = ()) -> object:
    hint, own = strip_marks(hint)
    marks = (*marks, *own)
    if value is None:
        return {} if Mark.EMPTY in marks else None
    for mark in marks:
        if isinstance(mark, Stored):
            return _encode(mark.pack(value), mark.kind)
    if isinstance(value, int | str):
        return value
    if isinstance(value, float):
        return _encode_number(value, hint, marks)
    if is_record(type(value)):
        return _encode_record(value)
    if _is_mapping(value):
        inner = _element(hint, 1)
        return {str(key): _encode(one, inner) for key, one in value.items()}
    if _is_sequence(value):
        return [_encode(one, _element(hint, place)) for place, one in enumerate(value)]
    raise TypeError(phrase("{name} has no place in JSON", type(value).__name__))


def _encode_number(value: float, hint: object, marks: tuple[object, ...]) -> object:
    if math.isfinite(value):
        return value
    if Mark.NAMED in marks:
        return str(value)
    if _is_optional(hint):
        return None
    raise ValueError(phrase("JSON has no word for {value}", value))


def _encode_record(value: object) -> dict[str, object]:
    shown: dict[str, object] = {}
    for slot in read_slots(type(value)):
        own: object = getattr(value, slot.name)
        if Mark.FLAT in slot.marks:
            shown |= _encode_record(own) if own is not None else {}
        elif Mark.OMITTED not in slot.marks or slot.make is None or own != slot.make():
            shown[slot.key] = _encode(own, slot.hint, slot.marks)
    return shown


def _element(hint: object, place: int) -> object:
    """The annotation of one element of a tuple, a list or a mapping."""
    for one in list_options(hint):
        inner = get_args(one)
        if inner and (inner[-1] is Ellipsis or len(inner) == 1):
            return inner[0]
        if inner and place < len(inner):
            return inner[place]
    return object


def _with_templates(shown: object) -> object:
    """JSON in which an object with template and values stands for every phrase with values."""
    if is_object(shown):
        return {key: _with_templates(one) for key, one in shown.items()}
    if is_list(shown):
        return [_with_templates(one) for one in shown]
    return _template(shown) if isinstance(shown, Phrase) and shown.values else shown


def _template(text: Phrase) -> dict[str, object]:
    values = {name: _template_value(value) for name, value in text.values.items()}
    return {"text": text.template, "values": values}


def _template_value(value: Value) -> object:
    if isinstance(value, Phrase):
        return _template(value)
    return {"quantity": str(value)} if isinstance(value, Quantity) else value


# Reading.


class _Reader:
    """Reads JSON, either strictly or as far as possible."""

    def __init__(self, *, is_strict: bool) -> None:
        self.is_strict = is_strict
        self.losses: list[str] = []

    def value(
        self, hint: object, shown: object, path: str, marks: tuple[object, ...] = ()
    ) -> object:
        hint, own = strip_marks(hint)
        marks = (*marks, *own)
        if hint is object or isinstance(hint, TypeVar):
            return shown
        options = list_options(hint)
        if type(None) in options and (shown is None or (Mark.EMPTY in marks and shown == {})):
            return None
        for mark in marks:
            if isinstance(mark, Stored):
                return mark.unpack(self.value(mark.kind, shown, path))
        *others, last = (one for one in options if one is not type(None))
        for one in others:
            try:
                return self._one(one, shown, path, marks)
            except Malformed:
                continue
        return self._one(last, shown, path, marks)

    def _one(self, hint: object, shown: object, path: str, marks: tuple[object, ...]) -> object:
        hint, own = strip_marks(hint)
        marks = (*marks, *own)
        if is_record(hint):
            return self._record(hint, shown, path)
        origin, inner = get_origin(hint), get_args(hint)
        if origin is tuple:
            return self._tuple(inner, shown, path)
        if origin is Literal:
            return _one_of(inner, shown, path)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self._mapping(inner[1], shown, path)
        return self._scalar(hint, shown, path, marks)

    def _scalar(self, hint: object, shown: object, path: str, marks: tuple[object, ...]) -> object:
        if hint is str and isinstance(shown, str):
            return self._text(shown)
        if hint is str and is_object(shown):
            return self._phrase(shown, path)
        if hint is bool and isinstance(shown, bool):
            return shown
        if hint is int or hint is float:
            return self._number(hint is int, shown, path, marks)
        wanted = phrase("a text") if hint is str else phrase("true or false")
        raise Malformed(path, phrase("is {said}, not {wanted}", _describe(shown), wanted))

    def _text(self, shown: str) -> str:
        return shown if self.is_strict else _one_line(shown)

    def _phrase(self, shown: Mapping[str, object], path: str) -> Phrase:
        template, values = shown.get("text"), shown.get("values")
        if set(shown) != {"text", "values"} or not isinstance(template, str):
            raise Malformed(path, "is an object, not a text")
        if not is_object(values):
            raise Malformed(path, "has no values")
        filled = {key: self._phrase_value(one, path) for key, one in values.items()}
        try:
            _refuse_wide(template)
            return Phrase(self._text(template), filled)
        except (LookupError, ValueError, OverflowError, TypeError, AttributeError):
            raise Malformed(path, f"is a text without its values: {_describe(template)}") from None

    def _phrase_value(self, shown: object, path: str) -> Value:
        if isinstance(shown, str):
            return self._text(shown)
        if shown is None or isinstance(shown, bool | int | float):
            return shown
        if not is_object(shown):
            raise Malformed(path, f"has {_describe(shown)} in a text")
        quantity = shown.get("quantity")
        is_quantity = isinstance(quantity, str)
        return Quantity(self._text(quantity)) if is_quantity else self._phrase(shown, path)

    def _number(
        self, is_whole: bool, shown: object, path: str, marks: tuple[object, ...]
    ) -> int | float:
        if Mark.NAMED in marks and shown in ("inf", "-inf", "nan"):
            return float(str(shown))
        if isinstance(shown, bool) or not isinstance(shown, int | float):
            raise Malformed(path, phrase("is {said}, not a number", _describe(shown)))
        for mark in marks:
            if isinstance(mark, Bounds) and not mark.least <= shown <= mark.most:
                raise Malformed(path, phrase("is {shown}, which it cannot be", shown))
        if not abs(shown) <= _LARGEST:  # NaN is not within any bounds
            raise Malformed(path, phrase("is {shown}, which it cannot be", shown))
        if not is_whole:
            return float(shown)
        if shown != int(shown) or (self.is_strict and not isinstance(shown, int)):
            raise Malformed(path, phrase("is {shown}, not a whole number", shown))
        return int(shown)

    def _tuple(self, inner: tuple[object, ...], shown: object, path: str) -> tuple[object, ...]:
        if not is_list(shown):
            raise Malformed(path, phrase("is {said}, not a list", _describe(shown)))
        is_open = len(inner) == 2 and inner[1] is Ellipsis
        if not is_open and len(shown) != len(inner):
            raise Malformed(
                path, phrase("has {count} values, not {count2}", len(shown), len(inner))
            )
        found: list[object] = []
        for place, one in enumerate(shown):
            try:
                found.append(self.value(inner[0 if is_open else place], one, f"{path}[{place}]"))
            except Malformed as error:
                if self.is_strict or not is_open:
                    raise
                self.losses.append(str(error))
        return tuple(found)

    def _mapping(self, inner: object, shown: object, path: str) -> dict[str, object]:
        if not is_object(shown):
            raise Malformed(path, phrase("is {said}, not an object", _describe(shown)))
        found: dict[str, object] = {}
        for key, one in shown.items():
            name = key if self.is_strict else _one_line(key)
            try:
                found[name] = self.value(inner, one, _join_path(path, name))
            except Malformed as error:
                if self.is_strict:
                    raise
                self.losses.append(str(error))
        return found

    def _record(self, kind: type, shown: object, path: str) -> object:
        if not is_object(shown):
            raise Malformed(path, phrase("is {said}, not an object", _describe(shown)))
        known: set[str] = set()
        values: dict[str, object] = {}
        missing: list[str] = []
        for slot in read_slots(kind):
            keys = _keys(slot)
            known |= {slot.key, *keys}
            own = {key: shown[key] for key in keys if key in shown}
            if own or Mark.FLAT in slot.marks:
                values[slot.name] = self._field(slot, own, path)
            elif Mark.OMITTED in slot.marks and slot.make is not None:
                values[slot.name] = slot.make()
            else:
                missing.append(slot.key)
                values[slot.name] = self._empty(slot, path)
        unknown = [key for key in shown if key not in known]
        if unknown and self.is_strict:
            raise Malformed(
                path, phrase('"{unknown}" is unknown to this version', plain(unknown[0]))
            )
        if missing:
            self.losses.append(str(Malformed(path, phrase("has no {missing}", ", ".join(missing)))))
        try:
            return kind(**values)
        except Malformed:
            raise
        except ValueError as error:
            raise Malformed(path, str(error)) from None

    def _field(self, slot: Slot, own: Mapping[str, object], path: str) -> object:
        """Reads a field from its own key, or from the keys of a flattened record."""
        try:
            if Mark.FLAT not in slot.marks:
                return self.value(slot.hint, own[slot.key], _join_path(path, slot.key), slot.marks)
            return self.value(slot.hint, own, path) if own or not _is_optional(slot.hint) else None
        except Malformed as error:
            return self._without(slot, error, path)

    def _without(self, slot: Slot, error: Malformed, path: str) -> object:
        """Returns a substitute for an odd field."""
        if self.is_strict:
            raise error
        try:
            found = self._empty(slot, path)
        except Malformed:  # there is no substitute
            raise error from None
        self.losses.append(str(error))
        return found

    def _empty(self, slot: Slot, path: str) -> object:
        """Returns a substitute for a missing field; raises Malformed where there is none."""
        if self.is_strict:
            raise Malformed(path, phrase('has no "{key}"', slot.key))
        if slot.make is not None:
            return slot.make()
        return self._nothing(slot.hint, _join_path(path, slot.key))

    def _nothing(self, hint: object, path: str) -> object:
        if _is_optional(hint):
            return None
        for kind, nothing in ((str, ""), (bool, False), (int, 0)):
            if hint is kind:
                return nothing
        origin = get_origin(hint)
        if origin is tuple and get_args(hint)[-1] is Ellipsis:
            return ()
        if origin is Literal:
            return get_args(hint)[0]
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return dict[str, object]()
        if is_record(hint):
            return _Reader(is_strict=False).value(hint, {}, path)
        raise Malformed(path, phrase("is not there"))


def _keys(slot: Slot) -> set[str]:
    """The keys of a field on disk."""
    if Mark.FLAT not in slot.marks:
        return {slot.key}
    kind = next(one for one in list_options(slot.hint) if is_record(one))
    return {key for inner in read_slots(kind) for key in _keys(inner)}


def _one_of(allowed: tuple[object, ...], shown: object, path: str) -> object:
    if shown not in allowed or isinstance(shown, bool):
        raise Malformed(
            path,
            phrase("is {said}, not {allowed}", _describe(shown), " or ".join(map(repr, allowed))),
        )
    return shown


def _refuse_wide(template: str) -> None:
    """Raises for a template that would fill memory with spaces."""
    for _, _, spec, _ in Formatter().parse(template):
        if spec and not _SPEC.fullmatch(spec):
            raise ValueError(spec)


def _one_line(text: str) -> str:
    """A text made safe to print on one line."""
    return plain(re.sub(r"\s", " ", text)).strip()


def _join_path(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _describe(shown: object) -> str:
    """Describes a JSON value in a word or two."""
    if is_object(shown):
        return phrase("an object")
    if is_list(shown):
        return phrase("a list")
    if isinstance(shown, str):
        text = _one_line(shown)
        return repr(text if len(text) <= 40 else f"{text[:39]}…")
    return "null" if shown is None else str(shown).lower()
