"""Commands as values: what can be typed, the public function that takes it, what prints its result.

    INSPECT = Command(
        "inspect_text:print_inspection",
        (argument("model", metavar="MODEL", help="A .tflite file."), option("--ops", kind=bool, …)),
        help="What is in a model.",
    )

The function receives only what was typed, so all defaults are its own; `default` is the copy that
help shows, which a test compares.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from litesmith.cli.options.examples import EXAMPLES
from litesmith.cli.options.panels import PANELS, place_of
from litesmith.cli.options.wrapping import wrap, write_rows
from litesmith.lang.language import LANGUAGES, say
from litesmith.operating_system import quote_all
from litesmith.phrases import phrase

Typed = dict[str, Any]

# Columns of a help page for how an option is typed.
_LEFT = 26


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option or a positional argument; an argument has no names.

    argument      the argument of the public function, or of the function that prints the result
    kind          the type of one value; bool is a switch
    choices       values that the shell completes, with | between them
    is_place      True for a text that can be a path, which the shell completes
    many          True where it can be typed several times
    default       the default of the function, as it would be typed
    show_default  the same in words
    gives         the value of a switch
    to_function   whether the public function receives it
    to_text       whether the function that prints the result receives it
    load          called with each value before anything else happens
    print_and_stop  called in place of the command
    """

    names: tuple[str, ...] = ()
    argument: str
    help: str
    metavar: str | None = None
    kind: type = str
    choices: str = ""
    is_place: bool = False
    least: int | None = None
    many: bool = False
    required: bool = False
    default: str | None = None
    show_default: str = ""
    gives: bool | None = True
    hidden: bool = False
    to_function: bool = True
    to_text: bool = False
    load: Callable[[str], None] | None = None
    print_and_stop: Callable[[], None] | None = None


@dataclass(frozen=True)
class Command:
    """A command of the shell.

    text      the function that prints its result, as module:function of `cli/text`
    live      the class that shows the work while it lasts, if that is more than a line
    prepare   checks the typed values before anything is done; returns the name of the function
              where it differs from the command's
    has_json  whether `--json` prints the result for programs
    """

    text: str
    options: Sequence[Option]
    help: str
    live: str = ""
    prepare: Callable[[Typed], str | None] | None = None
    has_json: bool = True


JSON = "as_json"


def option(*names: str, help: str, argument: str = "", **more: Any) -> Option:
    """An option; its argument has its name unless another is given."""
    long = next(name for name in names if name.startswith("--"))
    return Option(names=names, argument=argument or _plain(long), help=help, **more)


def argument(name: str, *, metavar: str, help: str, **more: Any) -> Option:
    """A positional argument; one in brackets, or one that can be repeated, can be left out."""
    required = not more.get("many") and not metavar.startswith("[")
    return Option(argument=name, metavar=metavar, help=help, required=required, **more)


def make_click(
    name: str, command: Command, run: Callable[[str, Command, Typed], int]
) -> click.Command:
    """A command for the parser, in the language in use."""
    options = list(command.options)
    if command.has_json:
        options.append(option("--json", argument=JSON, kind=bool, help="Print one JSON object."))

    def called(**_: object) -> int:
        return run(name, command, _typed_values(options, click.get_current_context()))

    made = _ClickCommand(name, callback=called, help=say(command.help))
    made.params = [*map(_parameter, options), language_option()]
    made.options = options
    return made


class _ClickCommand(click.Command):
    """A command whose help also lists its arguments, has its options in panels, and ends with
    examples.
    """

    options: Sequence[Option] = ()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        places = [(one.metavar or "", say(one.help)) for one in self.options if not one.names]
        if places:
            with formatter.section(say(phrase("Arguments"))):
                write_rows(formatter, places)
        rows = {_key(one): _row(one) for one in self.options if one.names and not one.hidden}
        panels: dict[int, list[tuple[int, tuple[str, str]]]] = {}
        for parameter in self.get_params(ctx):
            row = rows.get(parameter.name or "") or parameter.get_help_record(ctx)
            if row is not None and isinstance(parameter, click.Option) and not parameter.hidden:
                panel, place = place_of(self.name or "", parameter.opts)
                panels.setdefault(panel, []).append((place, row))
        for panel in sorted(panels):
            with formatter.section(say(PANELS[panel].title)):
                write_rows(formatter, [row for _, row in sorted(panels[panel])], _LEFT)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(say(phrase("Examples"))):
            for words, purpose in EXAMPLES[self.name or ""]:
                margin = " " * formatter.current_indent
                formatter.write(f"{margin}{words}\n")
                for line in wrap(say(purpose), formatter.width - 2 * len(margin)):
                    formatter.write(f"{margin}{margin}{line}\n")


def _row(one: Option) -> tuple[str, str]:
    """An option as help shows it: its spelling and its meaning."""
    # spellings of other programs are not listed
    names = ", ".join(name for name in one.names if "_" not in name)
    kind = one.metavar or ("" if one.kind is bool else "FILE" if one.kind is Path else "N")
    default = say(one.show_default) if one.show_default else one.default or ""
    if one.kind is bool or default == "0":
        default = ""
    if one.required:
        default = say(phrase("required"))
    help = say(one.help)
    return f"{names} {kind}".strip(), f"{help} [{default}]" if default else help


def language_option() -> click.Option:
    """The option `--lang`, as help shows it: it is taken from the command line before that is
    parsed."""
    return click.Option(
        ["--lang"],
        metavar="|".join(LANGUAGES),
        help=say(phrase("Language of reports and messages.")),
        expose_value=False,
        shell_complete=complete_with(LANGUAGES),
    )


def version_option(text: str) -> click.Option:
    """The option `--version`."""
    shown = option(
        "--version", kind=bool, help="Print the version.", print_and_stop=lambda: click.echo(text)
    )
    return _option(shown)


def typed_command() -> str:
    """The command as the user typed it, for the records."""
    return quote_all(["litesmith", *sys.argv[1:]])


def takes(function: Callable[..., object], name: str) -> bool:
    """True where a function has an argument of this name."""
    return name in inspect.signature(function).parameters


def _typed_values(options: Sequence[Option], context: click.Context) -> Typed:
    """The typed values by argument, without defaults; the parts of a list that is typed in several
    ways are joined.
    """
    typed: Typed = {}
    for one in options:
        key = _key(one)
        is_list = not one.names and one.many  # the parser passes an empty list
        if context.get_parameter_source(key) is not ParameterSource.COMMANDLINE and not is_list:
            continue
        value = context.params.get(key)
        if one.many:
            typed[one.argument] = [*typed.get(one.argument, ()), *(value or ())]
        else:
            typed[one.argument] = one.gives if value is True else value
    return typed


def _key(one: Option) -> str:
    """The parser's name for an option: two options can set one argument."""
    return _plain(one.names[-1]) if one.names else one.argument


def _plain(name: str) -> str:
    return name.partition("/")[0].removeprefix("--").replace("-", "_")


def _parameter(one: Option) -> click.Parameter:
    if one.names:
        return _option(one)
    return click.Argument(
        [one.argument],
        type=_click_type(one),
        metavar=f"{one.metavar} …" if one.many else one.metavar,
        required=one.required,
        nargs=-1 if one.many else 1,
        shell_complete=_completer(one),
    )


def _option(one: Option) -> click.Option:
    stops = one.print_and_stop is not None
    made = click.Option(
        [*one.names, _key(one)],
        type=None if one.kind is bool else _click_type(one),
        is_flag=True if one.kind is bool else None,
        metavar=one.metavar,
        help=say(one.help),
        required=one.required,
        show_default=say(one.show_default) if one.show_default else one.default is not None,
        hidden=one.hidden,
        multiple=one.many,
        callback=_callback(one),
        shell_complete=_completer(one),
        is_eager=stops,
        expose_value=not stops,
    )
    if one.default is not None:
        made.default = True if one.kind is bool else one.default
    return made


_Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def complete_with(choices: Iterable[str]) -> _Completer:
    """Makes a completer from values: it returns those that begin with the typed letters."""
    known = tuple(dict.fromkeys(choices))

    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
        return [CompletionItem(one) for one in known if one.startswith(begun)]

    return complete


def _complete_path(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    return [CompletionItem(begun, type="file")]


def _completer(one: Option) -> _Completer | None:
    if one.choices:
        return complete_with(one.choices.split("|"))
    return _complete_path if one.is_place else None


def _click_type(one: Option) -> "click.ParamType[object]":
    if one.kind is Path:
        return click.Path(path_type=Path)
    if one.kind is str:
        return click.STRING
    if one.kind is float:
        made, name = click.types.FloatParamType(), phrase("float")
    elif one.least is not None:
        made, name = click.IntRange(min=one.least), phrase("integer range")
    else:
        made, name = click.types.IntParamType(), phrase("integer")
    made.name = say(name)
    return made


def _callback(one: Option) -> Callable[[click.Context, click.Parameter, Any], object] | None:
    load, stop = one.load, one.print_and_stop
    if load is None and stop is None:
        return None

    def called(context: click.Context, _: click.Parameter, value: Any) -> object:
        if stop is not None and value:
            stop()
            context.exit()
        if load is not None:
            for text in value:
                load(text)
        return value

    return called
