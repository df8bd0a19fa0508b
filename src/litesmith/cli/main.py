"""The command `litesmith`: its sub-commands, and how every error becomes one plain line."""

import os
import signal
import sys
import traceback
from importlib import import_module
from typing import Annotated, NoReturn

import typer

from litesmith._version import VERSION
from litesmith.cli.options.benchmark_switches import plain_switches
from litesmith.cli.options.compile_notice import tell_cold
from litesmith.cli.options.language_option import take_language
from litesmith.errors import LitesmithError
from litesmith.lang import speech

_STOPPED = "stopped; nothing half-written is left"
_EPILOG = (
    f"--lang {'|'.join(speech.LANGUAGES)}, anywhere: the language of reports and what is said "
    f"[{speech.VARIABLE}, or the locale]; JSON and records are the same in all."
)
_BAD_INPUT, _OUR_BUG, _CTRL_C, _TERMINATED = 2, 70, 130, 143

app = typer.Typer(
    name="litesmith",
    help="Make .tflite models small and fast, and prove it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=_EPILOG,
)

# name -> where its function is; imported when it is used, so that no command waits for the others
COMMANDS = {
    "tune": "tune:tune",
    "choose": "choose:choose",
    "report": "report:report",
    "compare": "compare:compare",
    "gate": "gate:gate",
    "inspect": "model:inspect",
    "bench": "bench:bench",
    "profile": "profile:profile",
    "eval": "evaluate:evaluate",
    "doctor": "doctor:doctor",
    "targets": "targets:targets",
    "catalogue": "catalogue:catalogue",
    "apply": "model:apply",
    "quantize": "quantize:quantize",
    "prune": "shrink:prune",
    "cluster": "shrink:cluster",
    "qat": "shrink:qat",
    "retrain": "retrain:retrain",
    "diff": "model:diff",
    "demo": "demo:demo",
    "cache": "cache:cache",
}


def _register(words: list[str]) -> None:
    """Adds the command that is called, or all of them where that does not say which."""
    for name in words[:1] if words and words[0] in COMMANDS else COMMANDS:
        module, _, function = COMMANDS[name].partition(":")
        app.command(name, epilog=_EPILOG)(
            getattr(import_module(f"litesmith.cli.commands.{module}"), function)
        )


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"litesmith {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Make .tflite models small and fast, and prove it."""


def main() -> NoReturn:
    """Runs the command line and exits: 0 fine, 2 bad input, 70 a bug of ours, 130 Ctrl-C."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # so that clean-up happens
    sys.exit(_run())


def _run() -> int:
    try:
        words = take_language(sys.argv[1:])
        sys.argv[1:] = words  # which records keep: they are the same in all languages
        _register(words)
        tell_cold(words)
        result = app(args=plain_switches(words), standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        if result == _CTRL_C:  # the parser of the command line has caught it
            return _fail(_STOPPED, _CTRL_C)
        return result if isinstance(result, int) else 0
    except LitesmithError as error:
        return _fail(_noted(str(error), error), _BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort) as error:
        return _fail(_noted(_STOPPED, error), _CTRL_C)
    except SystemExit as error:
        if error.code == _TERMINATED:
            return _fail(_noted(_STOPPED, error), _TERMINATED)
        raise
    except BrokenPipeError:  # the reader of our output has gone, as in `… | head`
        _forget_output()
        return 0
    except OSError as error:
        _forget_output()
        told = f"{error.filename or 'standard output'}: {error.strerror}"
        return _fail(_noted(told, error), _BAD_INPUT)
    except Exception as error:
        told = getattr(error, "format_message", None)  # what the command-line parser raises has it
        if told is not None:
            return _fail(f"{told()} (see --help)", _BAD_INPUT)
        traceback.print_exc()
        return _fail(
            f"a bug of ours ({type(error).__name__}: {error}); please report the lines above",
            _OUR_BUG,
        )


def _forget_output() -> None:
    """What is still to be printed goes nowhere, so that exiting does not fail for it."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _noted(message: str, error: BaseException) -> str:
    """A message with what those who passed the error on have noted of it."""
    return "; ".join([message, *getattr(error, "__notes__", ())])


def _fail(message: str, status: int) -> int:
    if sys.stderr is not None:
        print(f"litesmith: {speech.say(' '.join(message.split()))}", file=sys.stderr)
    return status
