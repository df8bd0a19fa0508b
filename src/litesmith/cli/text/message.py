"""Messages on stderr: one line each, broken at words if the terminal is too narrow."""

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
    """A message for stderr, without characters that act on the terminal."""
    line = f"litesmith: {plain(' '.join(text.split()))}"
    if not sys.stderr.isatty():
        return line
    width = max(shutil.get_terminal_size().columns, _LEAST_WIDTH)
    return f"\n{_INDENT}".join(wrap(line, width - len(_INDENT)))
