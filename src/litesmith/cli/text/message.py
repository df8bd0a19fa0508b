"""Messages on stderr: a line each; on a terminal that is too narrow for it, broken at words."""

import shutil
import sys

import click

from litesmith.arguments import as_options
from litesmith.cli.options.wrapping import wrap
from litesmith.lang import language
from litesmith.units import plain

_LEAST_WIDTH = 40
_INDENT = "  "


def say(what: str, text: str) -> None:
    """A note or a warning."""
    click.echo(message(f"{language.say(what)}: {language.say(as_options(text))}"), err=True)


def message(text: str) -> str:
    """A message as stderr gets it; nothing in it acts on the terminal."""
    told = f"litesmith: {plain(' '.join(text.split()))}"
    if not sys.stderr.isatty():
        return told
    width = max(shutil.get_terminal_size().columns, _LEAST_WIDTH)
    return f"\n{_INDENT}".join(wrap(told, width - len(_INDENT)))
