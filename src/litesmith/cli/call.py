"""Runs a command: calls its public function with the typed values, and prints the result."""

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import click

import litesmith
from litesmith.cli.options.declare import JSON, Command, Option, Typed, takes, typed_command
from litesmith.cli.text.message import say
from litesmith.cli.text.progress_text import Terminal, pass_on

MISSES_WHAT_WAS_ASKED = 1

# Commands whose public function has another name.
FUNCTIONS = {"eval": "evaluate"}


@runtime_checkable
class _Warns(Protocol):
    """A result with warnings, which are printed on stderr."""

    @property
    def warnings(self) -> tuple[str, ...]: ...


@runtime_checkable
class _Judged(Protocol):
    """A result that can miss the user's requirements."""

    @property
    def is_as_asked(self) -> bool: ...


def call(name: str, command: Command, typed: Typed) -> int:
    """Calls the function of a command and prints its result; returns the exit status."""
    as_json = bool(typed.pop(JSON, False))
    public = command.prepare(typed) if command.prepare is not None else None
    public = public or FUNCTIONS.get(name, name)
    _convert_sources(name, typed)
    with _in_shapes(name, public, typed) as rename:
        return _call(public, command, typed, as_json, rename)


def _call(
    public: str, command: Command, typed: Typed, as_json: bool, rename: Callable[[Any], Any]
) -> int:
    function = getattr(litesmith, public)
    given = [one for one in command.options if one.argument in typed]
    to_text = {one.argument: typed[one.argument] for one in given if one.to_text}
    to_function = {n: value for n, value in typed.items() if _is_handed(n, given)}
    if takes(function, "command"):
        to_function["command"] = typed_command()
    with _progress(command.live, quiet=as_json) as progress:
        if takes(function, "progress"):
            to_function["progress"] = _with_typed_names(progress, rename)
        result: Any = rename(function(**to_function))
    for warning in _warnings(result):
        say("warning", warning)
    if as_json:
        click.echo(json.dumps(result.to_json()))
    else:
        _of_text(command.text)(result, **to_text)
    return MISSES_WHAT_WAS_ASKED if _misses(result) else 0


def _with_typed_names(
    progress: Callable[[Any], None], rename: Callable[[Any], Any]
) -> Callable[[Any], None]:
    """A progress callback that replaces the names of copies by the typed names."""

    def told(event: object) -> None:
        progress(rename(event))

    return told


def _convert_sources(name: str, typed: Typed) -> None:
    """Converts models of other tools to .tflite files before the command sees them."""
    paths = [value for value in typed.values() if isinstance(value, Path)]
    paths += [
        p
        for v in typed.values()
        if isinstance(v, list | tuple)
        for p in cast(Sequence[object], v)
        if isinstance(p, Path)
    ]
    if all(path.suffix.lower() in ("", ".tflite") for path in paths):
        return
    from litesmith.cli.convert_sources import convert_typed

    convert_typed(name, typed)


def _in_shapes(
    name: str, public: str, typed: Typed
) -> AbstractContextManager[Callable[[Any], Any]]:
    """Copies of the models in the sizes of `--shape`, with the function that restores the typed
    names; no copies for a function that takes the sizes itself.
    """
    if "shape" not in typed or takes(getattr(litesmith, public), "shape"):
        return nullcontext(lambda value: value)
    from litesmith.cli.shape_option import in_typed_shapes

    return in_typed_shapes(name, typed)


def _is_handed(name: str, given: Sequence[Option]) -> bool:
    return all(one.to_function for one in given if one.argument == name)


def _warnings(result: object) -> tuple[str, ...]:
    return result.warnings if isinstance(result, _Warns) else ()


def _misses(result: object) -> bool:
    return isinstance(result, _Judged) and not result.is_as_asked


@contextmanager
def _progress(live: str, *, quiet: bool) -> Generator[Callable[[Any], None]]:
    """The progress display of a command."""
    if not live:
        with Terminal(quiet=quiet) as terminal:
            yield terminal
        return
    with _of_text(live)(quiet=quiet) as view:
        yield pass_on(view.show)


def _of_text(place: str) -> Any:
    """A function of `cli/text`, imported on use."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"litesmith.cli.text.{module}"), name)
