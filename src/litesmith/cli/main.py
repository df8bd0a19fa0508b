"""The command `litesmith`: its sub-commands, and how every error becomes one plain line."""

import os
import sys
from contextlib import suppress
from typing import NoReturn

import click

from litesmith._version import VERSION
from litesmith.arguments import as_options
from litesmith.cli.call import call
from litesmith.cli.commands import COMMANDS
from litesmith.cli.guard import (
    BAD_INPUT,
    CTRL_C,
    STOPPED,
    TERMINATED,
    can_guard,
    run_guarded,
    unwrapped,
)
from litesmith.cli.options.command_line import plain_switches, take_language, tell_cold
from litesmith.cli.options.declare import language_option, make_click, version_option
from litesmith.cli.streams import OUTPUT, one_line, print_traceback, settle_streams, why_failed
from litesmith.errors import LitesmithError
from litesmith.lang import language
from litesmith.phrases import join, phrase

_OUR_BUG = 70


class Commands(click.Group):
    """All commands; what each needs is imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return make_click(cmd_name, COMMANDS[cmd_name], call)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(language.say(phrase("Commands"))):
            formatter.write_dl([(name, language.say(one.help)) for name, one in COMMANDS.items()])


def make_app() -> Commands:
    """The whole command line, whose help is in the language in use."""
    return Commands(
        "litesmith",
        help=language.say(phrase("Make .tflite models small and fast, and prove it.")),
        no_args_is_help=True,
        params=[version_option(f"litesmith {VERSION}"), language_option()],
    )


def main() -> NoReturn:
    """Runs the command line and exits: 0 fine, 2 bad input, 70 a bug of ours, 130 Ctrl-C."""
    settle_streams()
    sys.exit(run_guarded(_run, _fail) if can_guard() else _run())


def _run() -> int:
    try:
        words = take_language(sys.argv[1:])
        sys.argv[1:] = words  # which records keep: they are the same in all languages
        tell_cold(words)
        with unwrapped():
            app = make_app()
            with app.make_context("litesmith", plain_switches(words)) as context:
                result = app.invoke(context)
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except LitesmithError as error:
        return _fail(_noted(as_options(error.args[0]), error), BAD_INPUT)
    except KeyboardInterrupt as error:
        return _fail(_noted(STOPPED, error), CTRL_C)
    except SystemExit as error:
        if error.code == TERMINATED:
            return _fail(_noted(STOPPED, error), TERMINATED)
        raise
    except BrokenPipeError:  # the reader of our output has gone, as in `… | head`
        _forget_output()
        return 0
    except OSError as error:
        if error.filename == OUTPUT:
            _forget_output()
        return _fail(_noted(why_failed(error), error), BAD_INPUT)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return BAD_INPUT
    except click.ClickException as error:
        return _fail(phrase("{format_message} (see --help)", error.format_message()), BAD_INPUT)
    except Exception as error:
        print_traceback()
        return _fail(
            phrase(
                "a bug of ours ({name}: {error}); please report the lines above",
                type(error).__name__,
                error,
            ),
            _OUR_BUG,
        )


def _forget_output() -> None:
    """What is still to be printed goes nowhere, so that exiting does not fail for it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _noted(message: str, error: BaseException) -> str:
    """A message with what those who passed the error on have noted of it."""
    return join([message, *map(as_options, getattr(error, "__notes__", ()))], "; ")


def _fail(message: str, status: int) -> int:
    with suppress(OSError):  # nobody hears it: the status tells it
        print(f"litesmith: {one_line(language.say(message))}", file=sys.stderr)
    return status
