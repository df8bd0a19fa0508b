"""Ways in which a file of JSON can be damaged, by accident or on purpose."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

# Code that no record may bring: a module of this name, were it there, would be imported for it.
PLANTED = "planted_by_a_record"

_DEEP: Any = "x"
for _ in range(300):
    _DEEP = [_DEEP]

VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**400,
    1e308,
    float("nan"),
    float("-inf"),
    "",
    f"{PLANTED}:run",
    "../../elsewhere",
    "a\0b\x1b[31m",
    "\ud800",
    [],
    {},
    {"text": "{x:.2f}", "values": {"x": 10**400}},
    {"text": "{x!s:>9}{", "values": {"x": None}},
    _DEEP,
)

Keys = tuple[str | int, ...]


def places(shown: Any, start: Keys = ()) -> Iterator[Keys]:
    """Where each value stands; of a list, its first element stands for all."""
    yield start
    if isinstance(shown, dict):
        for key, one in shown.items():  # pyright: ignore
            yield from places(one, (*start, str(key)))  # pyright: ignore
    elif isinstance(shown, list) and shown:
        yield from places(shown[0], (*start, 0))


def with_value(shown: Any, place: Keys, value: Any) -> Any:
    """A copy with another value at a place."""
    if not place:
        return value
    copy = deepcopy(shown)
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return copy


def without(shown: Any, place: Keys) -> Any:
    """A copy that lacks what stands at a place."""
    copy = deepcopy(shown)
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    del inner[place[-1]]
    return copy


def damaged_values(shown: Any, *, every: bool = False) -> Iterator[bytes]:
    """The file with each value replaced and with each left out: by one odd value after the other,
    or by every one."""
    for number, place in enumerate(places(shown)):
        for value in VALUES if every else (VALUES[number % len(VALUES)],):
            yield json.dumps(with_value(shown, place, value)).encode()
        if place:
            yield json.dumps(without(shown, place)).encode()


def damaged_bytes(content: bytes) -> tuple[bytes, ...]:
    """The file as no JSON, or as JSON that is not what it seems."""
    twice = content.replace(b"{", b'{"schema": 1, "schema": 1, ', 1)
    deep = b'{"schema": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    digits = content.replace(b": 1", b": " + b"9" * 5000, 1)
    return (
        b"",
        b"\xff\xfe\x00",
        b"null",
        content[: len(content) // 2],
        content.replace(b'"', b'"\xe9', 1),
        content.decode().encode("utf-16"),
        twice,
        deep,
        digits,
        content + content,
    )
