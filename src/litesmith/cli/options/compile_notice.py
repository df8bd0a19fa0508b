"""What is to be said before kernels of our own run: that they are compiled first, or cannot be."""

import sys
from collections.abc import Sequence

import click

from litesmith.lang.language import say
from litesmith.phrases import phrase
from litesmith.run.core.target import LITESMITH
from litesmith.run.litert.own_kernels import find_own_kernels


def tell_cold(words: Sequence[str]) -> None:
    """One line on stderr, where the command names such a target."""
    if not any(word.endswith(f":{LITESMITH}") or f":{LITESMITH}," in word for word in words):
        return
    kernels = find_own_kernels()
    if kernels is None:  # the target itself will be refused
        return
    missing = kernels.why_not()
    if missing:
        told = say(phrase("{missing}; the runtime's kernels run the model", missing))
        click.echo(f"litesmith: {say('note')}: {told}", err=True)
    elif kernels.is_cold() and sys.stderr is not None and sys.stderr.isatty():
        click.echo(say("compiling kernels for this machine, once: some 10 s"), err=True)
