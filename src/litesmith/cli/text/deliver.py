"""How commands end: a result is printed for a person or for a program; notes go to stderr."""

import click

from litesmith.arguments import as_options
from litesmith.lang import language
from litesmith.units import plain


def say(what: str, text: str) -> None:
    """One line on stderr: a note or a warning."""
    told = " ".join(plain(language.say(as_options(text))).split())
    click.echo(f"litesmith: {language.say(what)}: {told}", err=True)
