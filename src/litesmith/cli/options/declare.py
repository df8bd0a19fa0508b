"""Commands from functions: each parameter says with `option` or `argument` how it is typed.

    def inspect(model: Annotated[Path, argument(metavar="MODEL", help="A .tflite file.")]) -> None:

A group of options that several commands share is a TypedDict of such declarations; a command takes
it as `**name: Unpack[Group]` and is handed those that were typed, so that the others keep the
defaults of the function that it calls.
"""

import inspect
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Union, get_args, get_origin, get_type_hints

import click

from litesmith.lang.language import LANGUAGES, say
from litesmith.phrases import phrase
from litesmith.type_guards import is_sequence


@dataclass(frozen=True)
class Declared:
    """How one parameter of a command is typed; without names it has its place instead of one."""

    names: tuple[str, ...]
    help: str
    metavar: str | None
    least: int | None
    show_default: bool | str
    hidden: bool
    load: Callable[[str], None] | None
    print_and_stop: Callable[[], None] | None


def option(
    *names: str,
    help: str,
    metavar: str | None = None,
    min: int | None = None,
    show_default: bool | str = True,
    hidden: bool = False,
    load: Callable[[str], None] | None = None,
    print_and_stop: Callable[[], None] | None = None,
) -> Declared:
    """An option; `load` is called with each of its values, and `print_and_stop` in place of the
    command."""
    return Declared(names, help, metavar, min, show_default, hidden, load, print_and_stop)


def argument(*, metavar: str, help: str, show_default: bool = False) -> Declared:
    """An argument, which is known by its place."""
    return Declared((), help, metavar, None, show_default, False, None, None)


def make_command(name: str, function: Callable[..., int | None], *, help: str) -> click.Command:
    """The command that calls a function with what was typed; it speaks the language in use."""
    declared = list(_declared(function))
    parameters = [_parameter(where, *parts) for where, parts in declared]
    made = _Command(name, callback=_call(function), help=say(help))
    made.params = [*parameters, language_option()]
    made.places = [
        (declaration.metavar or where, say(declaration.help))
        for where, (_, declaration, _) in declared
        if not declaration.names
    ]
    return made


class _Command(click.Command):
    """A command whose help tells of its arguments too."""

    places: Sequence[tuple[str, str]] = ()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.places:
            with formatter.section(say(phrase("Arguments"))):
                formatter.write_dl(self.places)
        super().format_options(ctx, formatter)


def language_option() -> click.Option:
    """The option `--lang`, as help shows it: it is taken from the command line before that is
    parsed."""
    return click.Option(
        ["--lang"],
        metavar="|".join(LANGUAGES),
        help=say(phrase("Language of reports and messages; JSON and records are the same in all.")),
        expose_value=False,
    )


def version_option(text: str) -> click.Option:
    """The option `--version`."""
    declared = option(
        "--version", help="Print the version.", print_and_stop=lambda: click.echo(text)
    )
    return _option("version", bool, declared, False)


def typed_command() -> str:
    """The command as the user typed it, for the records."""
    return shlex.join(["litesmith", *sys.argv[1:]])


def options_of(function: Callable[..., object]) -> dict[str, Declared]:
    """The declaration of every parameter of a command, those of its groups too."""
    return {name: declared for name, (_, declared, _) in _declared(function)}


_Parts = tuple[object, Declared, object]  # type, declaration, default


def _declared(function: Callable[..., object]) -> Iterator[tuple[str, _Parts]]:
    hints = get_type_hints(function, include_extras=True)
    late: list[tuple[str, _Parts]] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            (group,) = get_args(hints[name])
            shared = get_type_hints(group, include_extras=True)
            late += [(own, (*_split(hint), None)) for own, hint in shared.items()]
        else:
            yield name, (*_split(hints[name]), parameter.default)
    yield from late


def _split(hint: object) -> tuple[object, Declared]:
    assert get_origin(hint) is Annotated, f"{hint} has no declaration"
    kind, declared = get_args(hint)
    return kind, declared


def _parameter(name: str, kind: object, declared: Declared, default: object) -> click.Parameter:
    kind, is_list = _plain_type(kind)
    if not declared.names:
        made = click.Argument(
            [name],
            type=_click_type(kind, declared),
            metavar=declared.metavar,
            required=default is inspect.Parameter.empty,
            nargs=-1 if is_list else 1,
        )
        if not made.required:
            made.default = default
        return made
    return _option(name, kind, declared, default, is_list=is_list)


def _option(
    name: str, kind: object, declared: Declared, default: object, *, is_list: bool = False
) -> click.Option:
    required = default is inspect.Parameter.empty
    stops, default_text = declared.print_and_stop is not None, declared.show_default
    made = click.Option(
        [*declared.names, name],
        type=None if kind is bool else _click_type(kind, declared),
        is_flag=True if kind is bool else None,
        metavar=declared.metavar,
        help=say(declared.help),
        required=required,
        show_default=say(default_text) if isinstance(default_text, str) else default_text,
        hidden=declared.hidden,
        multiple=is_list,
        callback=_callback(declared),
        is_eager=stops,
        expose_value=not stops,
    )
    if not required:
        made.default = default
    return made


def _plain_type(kind: object) -> tuple[object, bool]:
    """The type of a single value, and whether there may be several."""
    if get_origin(kind) in (Union, UnionType):
        (kind,) = (one for one in get_args(kind) if one is not NoneType)
    if get_origin(kind) is list:
        return get_args(kind)[0], True
    return kind, False


def _click_type(kind: object, declared: Declared) -> "click.ParamType[object]":
    if kind is Path:
        return click.Path(path_type=Path)
    if kind is str:
        return click.STRING
    if kind is float:
        made, name = click.types.FloatParamType(), phrase("float")
    elif declared.least is not None:
        made, name = click.IntRange(min=declared.least), phrase("integer range")
    else:
        made, name = click.types.IntParamType(), phrase("integer")
    made.name = say(name)
    return made


def _callback(
    declared: Declared,
) -> Callable[[click.Context, click.Parameter, object], object] | None:
    load, stop = declared.load, declared.print_and_stop
    if load is None and stop is None:
        return None

    def called(context: click.Context, _: click.Parameter, value: object) -> object:
        if stop is not None and value:
            stop()
            context.exit()
        if load is not None and is_sequence(value):
            for one in value:
                load(str(one))
        return value

    return called


def _call(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """The function as the parser calls it: lists are lists, and what was not typed of a group is
    left out."""
    parameters = inspect.signature(function).parameters
    own = {n for n, p in parameters.items() if p.kind is not inspect.Parameter.VAR_KEYWORD}

    def called(**typed: object) -> int | None:
        values = {name: _as_list(value) for name, value in typed.items()}
        shared = {n: v for n, v in values.items() if n not in own and v is not None}
        return function(**{n: v for n, v in values.items() if n in own}, **shared)

    return called


def _as_list(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    return list(value) or None  # pyright: ignore
