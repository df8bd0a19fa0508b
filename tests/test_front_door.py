"""Every command calls one public function by the same names; listing them costs no import."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Unpack, get_args, get_origin, get_type_hints

import pytest

import litesmith
from litesmith.accuracy.metrics import METRICS
from litesmith.calibration.quantize_effort import EFFORTS
from litesmith.cli.call import FUNCTIONS
from litesmith.cli.commands import COMMANDS
from litesmith.cli.options import shared_options
from litesmith.cli.options.declare import Option
from litesmith.data.preparation import NORMS, RESIZES, Preparation
from litesmith.numeric.ranges import ESTIMATORS
from litesmith.passes.core.schemes import SCHEMES
from litesmith.tasks.task_table import TASKS
from litesmith.training.settings import AUGMENTS, RECORD_SECONDS, Training
from litesmith.workers.engine import ENGINES

# Options that have no argument: how a result is printed, and what Python has other words for.
NO_ARGUMENT = {
    "ops": "an import of the module that registers them",
    "shape": "litesmith.resize",
    "top": "rows that are printed",
    "output_format": "how times are printed",
    "enable_op_profiling": "a hint to profile",
    "help_platform": "a text",
    "update": "update_baseline",
}

# Arguments of a command that belong to a second function.
OTHER_FUNCTIONS: dict[str, Callable[..., object]] = {"gate": litesmith.update_baseline}

# Modules that run something when they are imported, or need what is not installed everywhere.
NOT_IMPORTED = ("litesmith.__main__",)


def options_of(name: str) -> dict[str, Option]:
    return {option.argument: option for option in COMMANDS[name].options}


def function_of(name: str) -> Callable[..., object]:
    return getattr(litesmith, FUNCTIONS.get(name, name))


def arguments_of(function: Callable[..., object]) -> dict[str, object]:
    """The parameters of a function with their defaults, those of its groups too."""
    found: dict[str, object] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            hint = get_type_hints(function)[name]
            assert get_origin(hint) is Unpack
            found |= dict.fromkeys(get_type_hints(get_args(hint)[0]))
        else:
            found[name] = parameter.default
    return found


def test_importing_every_module_puts_none_in_the_place_of_a_function() -> None:
    for found in walk_packages(litesmith.__path__, "litesmith."):
        if found.name not in NOT_IMPORTED:
            try:
                import_module(found.name)
            except ModuleNotFoundError as error:  # an extra that is not installed
                assert not (error.name or "").startswith("litesmith")
    for name in litesmith.__all__:
        if name != "__version__":
            given = getattr(litesmith, name)
            assert callable(given) and not isinstance(given, ModuleType), name


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_function_that_takes_what_it_takes(name: str) -> None:
    assert FUNCTIONS.get(name, name) in litesmith.__all__
    taken = arguments_of(function_of(name))
    if name in OTHER_FUNCTIONS:
        taken |= arguments_of(OTHER_FUNCTIONS[name])
    for argument, option in options_of(name).items():
        assert argument in taken or argument in NO_ARGUMENT, option


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_the_defaults_of_the_function(name: str) -> None:
    given = arguments_of(function_of(name))
    for argument, option in options_of(name).items():
        default = given.get(argument)
        if isinstance(default, str | float | Path) and not isinstance(default, bool) and default:
            assert option.default is not None or option.show_default, option
        if option.default is not None and default is not None:
            assert option.kind(option.default) == option.kind(default), option


def test_what_help_lists_is_what_there_is() -> None:
    listed = {
        shared_options.AUGMENTS: AUGMENTS,
        shared_options.ENGINES: ENGINES,
        shared_options.NORMS: NORMS,
        shared_options.RESIZES: RESIZES,
        shared_options.SCHEMES: SCHEMES,
        shared_options.RANGES: ESTIMATORS,
        shared_options.EFFORTS: EFFORTS,
    }
    for text, known in listed.items():
        assert text.split("|") == list(known)
    assert ", ".join(sorted(TASKS)) in options_of("eval")["task"].help
    assert ", ".join(METRICS) in options_of("eval")["metric"].help


def test_what_help_says_of_defaults_is_so() -> None:
    told = options_of("prune")
    known = {
        "resize": Preparation.resize,
        "crop": Preparation.crop,
        "epochs": Training.epochs,
        "labels": Training.labels,
        "augment": Training.augment,
        "seed": Training.seed,
        "device": Training.device,
        "record_every": RECORD_SECONDS,
    }
    for name, default in known.items():
        shown = told[name].default
        assert shown in (str(default), f"{default:g}" if isinstance(default, float) else "")


def imported(*words: str) -> set[str]:
    """The packages that a command imports."""
    program = (
        "import sys; sys.argv = ['litesmith', *sys.argv[1:]]\n"
        "from litesmith.cli import main\n"
        "status = main._run()\n"
        "print('', *{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
    )
    return {*done.stderr.split()}


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_waits_for_nothing(name: str) -> None:
    assert not {"numpy", "rich", "PIL", "torch"} & imported(*name.split(), "--help")


def test_inspect_waits_for_what_it_needs(tmp_path) -> None:
    b = litesmith.Builder()
    litesmith.save(b.model(b.op("ABS", b.input("x", (1, 4)))), tmp_path / "m.tflite")
    found = imported("inspect", str(tmp_path / "m.tflite"))
    assert "numpy" in found
    assert not {"torch", "PIL", "ai_edge_litert", "openvino", "numba", "ray"} & found
