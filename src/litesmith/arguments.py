"""Arguments in sentences: Python speaks of `samples=-1`, the shell of `--samples -1`.

A sentence is filled with an Argument; the command line shows the option in its place. So there is
one text for both.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import cache, wraps
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import ParamSpec, TypeVar, Union, Unpack, get_args, get_origin, get_type_hints

from litesmith.errors import BadInput
from litesmith.operating_system import quote
from litesmith.phrases import Phrase, phrase
from litesmith.type_guards import is_path, is_sequence
from litesmith.units import number_text

P = ParamSpec("P")
R = TypeVar("R")

# Arguments whose option has another name.
_OPTIONS = {"accelerator": "--for", "out": "-o"}


class Argument(str):
    """An argument as Python writes it, and the option that stands for it."""

    __slots__ = ("option",)
    option: str


def argument(name: str, value: object = None) -> Argument:
    """`samples=-1`, or without a value the argument itself: `samples=`."""
    shown = f"{name}=" if value is None or value is True else f"{name}={_python_text(value)}"
    made = Argument(f"{name}=True" if value is True else shown)
    option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
    made.option = option if value is None or value is True else f"{option} {_shell_text(value)}"
    return made


def _python_text(value: object) -> str:
    if isinstance(value, float):
        return number_text(value)
    return repr(str(value) if is_path(value) else value)


def _shell_text(value: object) -> str:
    if is_sequence(value) and not isinstance(value, str | bytes):
        return quote(",".join(map(str, value)))
    return number_text(value) if isinstance(value, float) else quote(str(value))


def as_options(text: str) -> str:
    """A sentence in which arguments are called as the shell calls them."""
    if isinstance(text, Argument):
        return text.option
    if not isinstance(text, Phrase):
        return text
    values = {n: as_options(v) if isinstance(v, str) else v for n, v in text.values.items()}
    return Phrase(text.template, values)


def refuse_below(name: str, value: float | None, least: float) -> None:
    """Raises where an argument is given and too small."""
    if value is not None and value < least:
        raise BadInput(
            "{argument}: a number from {least} on is needed", argument(name, value), least
        )


def refuse_unknown(name: str, value: str, known: Sequence[str]) -> None:
    """Raises where an argument is none of the words that there are."""
    if value not in known:
        raise BadInput("{argument}: there are {known}", argument(name, value), ", ".join(known))


def check_types(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which refuses an argument of a wrong type in a line that says what it takes.

    Numbers, texts and switches are looked at; what else a parameter takes is left to the function.
    """
    names = tuple(inspect.signature(function).parameters)

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        types = _plain_types(function)
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            _refuse_type(name, value, types.get(name, ()))
        return function(*args, **kwargs)

    return checked


_PLAIN = {
    bool: phrase("True or False is needed"),
    int: phrase("a whole number is needed"),
    float: phrase("a number is needed"),
    str: phrase("a text is needed"),
}
_ACCEPTED = {bool: (bool,), int: (Integral,), float: (Real,), str: (str,), NoneType: (NoneType,)}


@cache
def _plain_types(function: Callable[..., object]) -> dict[str, tuple[type, ...]]:
    """The types of each parameter that takes nothing but numbers, texts and switches."""
    hints = get_type_hints(function)
    for name, hint in tuple(hints.items()):
        if get_origin(hint) is Unpack:  # options that several functions share
            hints |= get_type_hints(get_args(hint)[0])
            del hints[name]
    hints.pop("return", None)
    parts = {name: _union_parts(hint) for name, hint in hints.items()}
    return {name: own for name, own in parts.items() if all(part in _ACCEPTED for part in own)}


def _union_parts(hint: object) -> tuple[type, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)  # pyright: ignore


def _refuse_type(name: str, value: object, types: Sequence[type]) -> None:
    is_switch = isinstance(value, bool) and bool not in types
    accepted = tuple(one for part in types for one in _ACCEPTED[part])
    if types and (is_switch or not isinstance(value, accepted)):
        wanted = next(_PLAIN[part] for part in types if part is not NoneType)
        raise BadInput("{argument}: {wanted}", argument(name, value), wanted)
