"""Changes to the words of a command line before they are parsed."""

import os
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from litesmith.errors import BadInput
from litesmith.lang import language
from litesmith.lang.language import say
from litesmith.phrases import phrase
from litesmith.units import plain

_OPTION = "--lang"

# Flags of TensorFlow's benchmark_model that take no value here, but are typed with one there.
_SWITCHES = ("--enable_op_profiling",)
_TRUE, _FALSE = ("true", "1"), ("false", "0")

# The ending of targets that run our own kernels.
_OURS = ":litesmith"


def take_language(words: Sequence[str]) -> list[str]:
    """Switches to the requested language or the usual one; returns all other words.

    Words after `--` are not changed.
    """
    own, rest = _before_dashes(words)
    asked: str | None = None
    left: list[str] = []
    while own:
        word = own.pop(0)
        name, equals, value = word.partition("=")
        if name != _OPTION:
            left.append(word)
        elif equals or own:
            asked = value if equals else own.pop(0)
        else:
            raise BadInput(
                "{option}: which language? there are {languages}",
                _OPTION,
                ", ".join(language.LANGUAGES),
            )
    language.use(language.usual_language() if asked is None else asked)
    return left + rest


def _before_dashes(words: Sequence[str]) -> tuple[list[str], list[str]]:
    place = list(words).index("--") if "--" in words else len(words)
    return list(words[:place]), list(words[place:])


def plain_switches(words: Sequence[str]) -> list[str]:
    """A command line whose switches have no value: `--switch=true` and `--switch true` are
    `--switch`, and with false they are nothing."""
    kept: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        name, _, value = word.partition("=")
        if name not in _SWITCHES:
            kept.append(word)
            continue
        if not value and left and left[0].lower() in _TRUE + _FALSE:
            value = left.pop(0)
        if value.lower() not in _FALSE:
            kept.append(name)
    return kept


def tell_unkept() -> None:
    """Prints one line on stderr where files kept between runs cannot be trusted."""
    from litesmith.native.sealed_file import why_not_kept

    why = why_not_kept()
    if why:
        click.echo(f"litesmith: {say('note')}: {say(why)}", err=True)


def tell_pipes(words: Sequence[str]) -> None:
    """Prints one line on stderr for each pipe that a command reads: until something is written to
    it, the command waits.
    """
    for word in words:
        _, _, value = word.rpartition("=")
        with suppress(OSError, ValueError):  # not a file, and perhaps no valid name
            # a pipe behind /dev/fd already has its writer
            if stat.S_ISFIFO(os.lstat(value).st_mode):
                told = phrase(
                    "{path}: is a pipe; this waits for what is written to it", plain(value)
                )
                click.echo(f"litesmith: {say('note')}: {say(told)}", err=True)


def tell_cold(words: Sequence[str]) -> None:
    """Prints one line on stderr where the command names a target whose kernels must be compiled
    first.
    """
    if words and words[0] != "cache":  # this target reports it itself
        tell_unkept()
    if not any(word.endswith(_OURS) or f"{_OURS}," in word for word in words):
        return
    from litesmith.run.litert.own_kernels import find_own_kernels  # which needs numpy

    kernels = find_own_kernels()
    if kernels is None:  # the target itself will be refused
        return
    missing = kernels.why_not()
    if missing:
        told = say(phrase("{missing}; the runtime's kernels run the model", missing))
        click.echo(f"litesmith: {say('note')}: {told}", err=True)
    elif kernels.is_cold() and sys.stderr.isatty():
        click.echo(say("compiling kernels for this machine, once: some 10 s"), err=True)
