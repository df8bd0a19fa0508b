"""JSON schemas of types, from the annotations that the codec uses.

Dataclasses and named tuples are records of the codec; a `TypedDict` is an object that code builds
itself. Each becomes a named definition of the schema.
"""

from collections.abc import Mapping
from typing import Literal, NotRequired, Required, TypeGuard, get_args, get_origin, get_type_hints
from typing import is_typeddict as is_any_typeddict

from litesmith.evidence.codec import (
    Bounds,
    Mark,
    Stored,
    is_record,
    list_options,
    read_slots,
    strip_marks,
)

Schema = dict[str, object]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

# A sentence in a file, which can be shown in any language later.
_PHRASE: Schema = {
    "type": "object",
    "description": "A sentence: a template, and the values that fill it.",
    "properties": {"text": {"type": "string"}, "values": {"type": "object"}},
    "required": ["text", "values"],
    "additionalProperties": False,
}

_SCALARS: dict[object, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}


def make_schema(
    kind: object, title: str, *, is_file: bool = False, beside: Mapping[str, type] | None = None
) -> Schema:
    """Makes the schema of what is printed, or of what is written to a file.

    beside  records whose keys the named object also has
    """
    maker = _Maker(is_file, beside or {})
    body = maker.value(kind)
    found: Schema = {"$schema": DIALECT, "title": title, **body}
    return found | {"$defs": maker.definitions} if maker.definitions else found


class _Maker:
    """Makes schemas, and collects the definitions that they refer to."""

    def __init__(self, is_file: bool, beside: Mapping[str, type]) -> None:
        self.is_file, self.beside = is_file, beside
        self.definitions: dict[str, Schema] = {}

    def value(self, hint: object, marks: tuple[object, ...] = ()) -> Schema:
        hint, own = strip_marks(hint)
        marks = (*marks, *own)
        stored = next((mark for mark in marks if isinstance(mark, Stored)), None)
        if stored is not None:
            return self._or_null(self.value(stored.kind), hint)
        options = [one for one in list_options(hint) if one is not type(None)]
        shown = [self._one(one, marks) for one in options]
        if Mark.EMPTY in marks:
            shown.append({"type": "object", "maxProperties": 0})
        body: Schema = shown[0] if len(shown) == 1 else {"anyOf": shown}
        return body if Mark.EMPTY in marks else self._or_null(body, hint)

    def _or_null(self, body: Schema, hint: object) -> Schema:
        if type(None) not in list_options(hint):
            return body
        return {"anyOf": [body, {"type": "null"}]}

    def _one(self, hint: object, marks: tuple[object, ...]) -> Schema:
        hint, own = strip_marks(hint)
        if _is_typeddict(hint) or is_record(hint):
            return self._reference(hint)
        origin, inner = get_origin(hint), get_args(hint)
        if isinstance(origin, type) and is_record(origin):
            return self._reference(origin)
        if origin is Literal:
            return {"enum": list(inner)}
        if origin in (tuple, list):
            return self._list(inner)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.value(inner[1])}
        return self._scalar(hint, (*marks, *own))

    def _scalar(self, hint: object, marks: tuple[object, ...]) -> Schema:
        if hint is str and self.is_file:
            self.definitions.setdefault("Phrase", _PHRASE)
            return {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Phrase"}]}
        if hint not in _SCALARS:
            return {}
        found: Schema = {"type": _SCALARS[hint]}
        for mark in marks:
            if isinstance(mark, Bounds) and mark.least > -float("inf"):
                found["minimum"] = mark.least
            if isinstance(mark, Bounds) and mark.most < float("inf"):
                found["maximum"] = mark.most
        if hint is float and Mark.NAMED in marks:
            return {"anyOf": [found, {"enum": ["inf", "-inf", "nan"]}]}
        return found

    def _list(self, inner: tuple[object, ...]) -> Schema:
        if not inner:
            return {"type": "array"}
        if len(inner) == 1 or inner[-1] is Ellipsis:
            return {"type": "array", "items": self.value(inner[0])}
        places = [self.value(one) for one in inner]
        return {"type": "array", "prefixItems": places, "items": False, "minItems": len(places)}

    def _reference(self, kind: type) -> Schema:
        name = kind.__name__
        if name not in self.definitions:
            self.definitions[name] = {}  # types may hold themselves
            made = self._typeddict(kind) if _is_typeddict(kind) else self._record(kind)
            summary = (kind.__doc__ or "").strip().split("\n\n")[0]
            if summary and not summary.startswith(f"{name}("):
                made = {"description": " ".join(summary.split()), **made}
            self.definitions[name] = made
        return {"$ref": f"#/$defs/{name}"}

    def _typeddict(self, kind: type) -> Schema:
        hints = get_type_hints(kind, include_extras=True)
        required: frozenset[str] = getattr(kind, "__required_keys__", frozenset())
        shown = {name: self.value(_without_need(hint)) for name, hint in hints.items()}
        needed = [name for name in hints if name in required]
        if kind.__name__ in self.beside:
            other = self._record(self.beside[kind.__name__])
            shown, needed = _properties(other) | shown, [*_required(other), *needed]
        return _object(shown, needed)

    def _record(self, kind: type) -> Schema:
        shown: dict[str, Schema] = {}
        required: list[str] = []
        for slot in read_slots(kind):
            if Mark.FLAT in slot.marks:
                inner = next(one for one in list_options(slot.hint) if is_record(one))
                made = self._record(inner)
                shown |= _properties(made)
                if type(None) not in list_options(slot.hint):
                    required += _required(made)
                continue
            shown[slot.key] = self.value(slot.hint, slot.marks)
            if Mark.OMITTED not in slot.marks:
                required.append(slot.key)
        return _object(shown, required)


def _object(properties: dict[str, Schema], required: list[str]) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _properties(made: Schema) -> dict[str, Schema]:
    found = made["properties"]
    assert isinstance(found, dict)
    return found  # type: ignore[return-value]  # of our own making


def _required(made: Schema) -> list[str]:
    found = made["required"]
    assert isinstance(found, list)
    return found  # type: ignore[return-value]  # as above


def _is_typeddict(hint: object) -> TypeGuard[type]:
    return isinstance(hint, type) and is_any_typeddict(hint)


def _without_need(hint: object) -> object:
    """The annotation of a key, without its Required or NotRequired."""
    origin = get_origin(hint)
    return get_args(hint)[0] if origin in (NotRequired, Required) else hint
