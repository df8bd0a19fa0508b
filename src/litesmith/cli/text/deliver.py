"""How commands end: a result is printed for a person or for a program; notes go to stderr."""

import json
from collections.abc import Callable
from typing import Protocol, TypeVar

import click

from litesmith.arguments import as_options
from litesmith.lang import language
from litesmith.units import plain

MISSES_WHAT_WAS_ASKED = 1


class Jsonable(Protocol):
    """A result that programs can read."""

    def to_json(self) -> dict[str, object]: ...


R = TypeVar("R", bound=Jsonable)


def deliver(result: R, print_text: Callable[[R], None], as_json: bool) -> None:
    """Prints a result: one JSON object, or text."""
    if as_json:
        click.echo(json.dumps(result.to_json()))
    else:
        print_text(result)


def say(what: str, text: str) -> None:
    """One line on stderr: a note or a warning."""
    told = " ".join(plain(language.say(as_options(text))).split())
    click.echo(f"litesmith: {language.say(what)}: {told}", err=True)
