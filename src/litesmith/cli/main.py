"""The command `litesmith`: its subcommands, and how every error becomes one plain line."""

import os
import sys
from contextlib import suppress
from difflib import get_close_matches
from typing import NoReturn

import click

from litesmith._version import VERSION
from litesmith.arguments import as_options
from litesmith.cli.call import call
from litesmith.cli.commands import COMMANDS
from litesmith.cli.completion import INSTALL, SHELLS, answer_shell, is_asked, write_script
from litesmith.cli.guard import (
    BAD_INPUT,
    CTRL_C,
    STOPPED,
    TERMINATED,
    can_guard,
    crash_sentence,
    run_guarded,
    unwrapped,
)
from litesmith.cli.options.command_line import plain_switches, take_language, tell_cold, tell_pipes
from litesmith.cli.options.declare import (
    complete_with,
    language_option,
    make_click,
    version_option,
)
from litesmith.cli.options.topics import GROUPS, TOPICS
from litesmith.cli.options.wrapping import write_rows
from litesmith.cli.settings_file import find_settings
from litesmith.cli.streams import OUTPUT, print_traceback, settle_streams, why_failed
from litesmith.cli.text.message import message, say
from litesmith.cli.text.topic_text import print_first_steps, print_topic
from litesmith.errors import BadInput, LitesmithError
from litesmith.lang import language
from litesmith.operating_system import native_crash, quote_all
from litesmith.phrases import join, phrase

_OUR_BUG = 70

# What Python 3.12 and later add to whatever is raised while a class names its fields.
_PYTHONS_NOTE = "Error calling __set_name__"


class Commands(click.Group):
    """All commands; each imports what it needs on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *_ABOUT_COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _ABOUT_COMMANDS:
            return _ABOUT_COMMANDS[cmd_name](self)
        if cmd_name not in COMMANDS:
            return None
        return make_click(cmd_name, COMMANDS[cmd_name], call)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise BadInput(_no_command(args[0]))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, names in GROUPS:
            with formatter.section(language.say(title)):
                rows = [(name, language.say(COMMANDS[name].help)) for name in names]
                write_rows(formatter, rows, width)
        formatter.write_paragraph()
        formatter.write_text(
            language.say(
                phrase(
                    "Options and examples: `litesmith COMMAND --help`. More: `litesmith help "
                    "{topics}`. Completion in your shell: `litesmith completion {shells}`.",
                    "|".join(TOPICS),
                    "|".join(SHELLS),
                )
            )
        )


def _no_command(name: str) -> str:
    likely = get_close_matches(name, [*COMMANDS, *_ABOUT_COMMANDS], n=1)
    if likely:
        return phrase("no command {name!r}; did you mean {likely}?", name, likely[0])
    return phrase("no command {name!r}; `litesmith --help` lists all", name)


def _usage_mistake(error: click.ClickException) -> str:
    """The mistake in a command line, and where the right words are listed."""
    context = getattr(error, "ctx", None)
    command = context.command_path if isinstance(context, click.Context) else "litesmith"
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        likely = ", ".join(error.possibilities)
        return phrase("no option {name!r}; did you mean {likely}?", error.option_name, likely)
    if isinstance(error, click.NoSuchOption):
        wrong = phrase("no option {name!r}", error.option_name)
    elif isinstance(error, click.MissingParameter) and error.param is not None:
        wrong = phrase("{command} needs {name}", command.split()[-1], _spell(error.param))
    elif isinstance(error, click.BadParameter) and error.param is not None:
        wrong = phrase("{name}: {why}", _spell(error.param), error.message.rstrip(".。"))
    else:
        wrong = error.format_message().rstrip(".")
    return phrase("{wrong}; `{command} --help` has all options and examples", wrong, command)


def _spell(param: click.Parameter) -> str:
    """An argument or option as help writes it."""
    if isinstance(param, click.Option):
        return f"{param.opts[0]} {param.metavar or ''}".rstrip()
    return param.metavar or param.human_readable_name


def make_app() -> Commands:
    """The whole command line, whose help is in the language in use."""
    return Commands(
        "litesmith",
        help=language.say(phrase("Make .tflite models small and fast, and prove it.")),
        params=[version_option(f"litesmith {VERSION}"), language_option()],
        options_metavar="",
        subcommand_metavar=language.say(phrase("COMMAND …")),
    )


def _help_command(app: Commands) -> click.Command:
    def called(topic: str | None) -> None:
        context = click.get_current_context()
        if topic in TOPICS:
            print_topic(TOPICS[topic])
            return
        found = app if topic is None else app.get_command(context, topic)
        if found is None:
            known = ", ".join(dict.fromkeys([*TOPICS, *COMMANDS]))
            raise BadInput("no help on {topic!r}; there are {known}", topic, known)
        parent = context.parent
        assert parent is not None
        click.echo(found.get_help(parent if topic is None else click.Context(found, parent, topic)))

    return click.Command(
        "help",
        callback=called,
        params=[
            click.Argument(
                ["topic"],
                required=False,
                metavar="[TOPIC]",
                shell_complete=complete_with([*TOPICS, *COMMANDS]),
            )
        ],
        help=language.say(phrase("Help on a topic or a command.")),
    )


def _completion_command(app: Commands) -> click.Command:
    def called(shell: str) -> None:
        click.echo(write_script(app, shell))

    return click.Command(
        "completion",
        callback=called,
        params=[click.Argument(["shell"], metavar="SHELL", shell_complete=complete_with(SHELLS))],
        help=language.say(
            phrase("Print what your shell runs to complete commands: {shells}.", ", ".join(SHELLS))
        ),
        epilog="\b\n" + "\n".join(INSTALL.values()),
    )


# Commands about the command line itself, which have no function in Python.
_ABOUT_COMMANDS = {"help": _help_command, "completion": _completion_command}


def main() -> NoReturn:
    """Runs the command line and exits: 0 fine, 2 bad input, 70 a bug of ours, 130 Ctrl-C."""
    settle_streams()
    if is_asked(os.environ):
        take_language([])
        sys.exit(answer_shell(make_app()))
    sys.exit(run_guarded(_run, _fail) if can_guard() else _run())


def _run() -> int:
    try:
        words = _with_settings(take_language(sys.argv[1:]))
        sys.argv[1:] = words  # the words for records, which are the same in all languages
        tell_cold(words)
        tell_pipes(words)
        if not words:
            print_first_steps()
            return 0
        with unwrapped():
            app = make_app()
            with app.make_context("litesmith", plain_switches(words)) as context:
                result = app.invoke(context)
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except LitesmithError as error:
        return _fail(_with_notes(as_options(error.args[0]), error), BAD_INPUT)
    except KeyboardInterrupt as error:
        return _fail(_with_notes(STOPPED, error), CTRL_C)
    except SystemExit as error:
        if error.code == TERMINATED:
            return _fail(_with_notes(STOPPED, error), TERMINATED)
        raise
    except BrokenPipeError:  # the reader of our output is gone, as in `… | head`
        _forget_output()
        return 0
    except OSError as error:
        if error.filename == OUTPUT:
            _forget_output()
        crash = native_crash(error)
        why = crash_sentence(crash) if crash else why_failed(error)
        return _fail(_with_notes(why, error), BAD_INPUT)
    except MemoryError as error:
        why = phrase("there is not enough memory for this; free some, or give less data")
        return _fail(_with_notes(why, error), BAD_INPUT)
    except click.ClickException as error:
        return _fail(_usage_mistake(error), BAD_INPUT)
    except BaseException as error:  # a panic of a Rust library is one
        print_traceback()
        return _fail(
            phrase(
                "this is a bug in Litesmith ({name}: {error}); please report the lines above",
                type(error).__name__,
                error,
            ),
            _OUR_BUG,
        )


def _with_settings(words: list[str]) -> list[str]:
    """The words with those of `litesmith.toml`, which a note lists."""
    place, more = find_settings(words)
    if place is None or not more:
        return words
    say("note", phrase("{place}: {words}", place, quote_all(more)))
    return [words[0], *more, *words[1:]]


def _forget_output() -> None:
    """Discards pending output, so that exiting does not fail because of it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _with_notes(text: str, error: BaseException) -> str:
    """A message with the notes that were added to its exception on the way."""
    notes: list[str] = getattr(error, "__notes__", [])
    ours = [note for note in notes if not note.startswith(_PYTHONS_NOTE)]
    return join([text, *map(as_options, ours)], "; ")


def _fail(text: str, status: int) -> int:
    with suppress(OSError):  # nobody hears it: the status tells it
        print(message(language.say(text)), file=sys.stderr)
    return status
