"""Tests that a type checker can follow: `isinstance` leaves open what a container holds."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import TypeIs


# More than anything that is counted has; Python refuses numbers of some thousands.
_MOST_DIGITS = 18


def is_whole(text: str) -> bool:
    """True of a text that is a whole number, of digits that Python takes for one."""
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def is_path(value: object) -> "TypeIs[str | PathLike[str]]":
    return isinstance(value, str | PathLike)


def is_sequence(value: object) -> "TypeIs[Sequence[object]]":
    return isinstance(value, Sequence)


def is_tuple(value: object) -> "TypeIs[tuple[object, ...]]":
    return isinstance(value, tuple)


def is_list_or_tuple(value: object) -> "TypeIs[list[object] | tuple[object, ...]]":
    return isinstance(value, list | tuple)


def is_mapping(value: object) -> "TypeIs[Mapping[object, object]]":
    return isinstance(value, Mapping)


def is_list(value: object) -> "TypeIs[list[object]]":
    return isinstance(value, list)


def is_json_object(value: object) -> "TypeIs[dict[str, object]]":
    """True for an object of JSON, whose keys are texts."""
    return isinstance(value, dict)


def is_iterable(value: object) -> "TypeIs[Iterable[object]]":
    return isinstance(value, Iterable)
