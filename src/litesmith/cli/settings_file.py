"""`litesmith.toml` beside a model: options that apply without being typed.

    data = "val/"          # for every command that has --data
    norm = "torch"

    [tune]                 # for `litesmith tune` alone
    max-drop = "1pt"

The settings become words of the command line, so records hold them too. A typed option wins.
Relative paths start at the file's folder. The file may have come with a downloaded model, so it
names no code, sends nothing to another machine, writes nothing outside its own folder and does not
weaken a gate.
"""

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from litesmith.cli.commands import COMMANDS
from litesmith.cli.options.declare import Option
from litesmith.errors import BadInput
from litesmith.type_guards import is_list_or_tuple, is_mapping
from litesmith.units import bytes_text

NAME = "litesmith.toml"
_MODELS = (".tflite", ".onnx", ".pt2", ".keras")

# Options whose value is code where it has a colon: module:function, file.py:Class. A path of data
# may have a colon too.
_NAMES_CODE = ("--metric", "--task")
_NAMES_DATA = ("--data", "--eval", "--val", "--calibrate")
# Options whose value may be another machine, and those that have something fetched from one.
_NAMES_PLACES, _FETCHES = ("--on", "--engine"), ("--pretrained",)
_LOCAL_PLACES = re.compile(r"(?!ray\b)[^/]*")  # cpu:4,gpu; no ssh://host/cpu:4, no ray
# Options whose value is a file or folder to write.
WRITES = (
    "--bundle",
    "--c",
    "--csv",
    "--evidence",
    "--junit",
    "--log",
    "--markdown",
    "--output",
    "--overlay",
    "--page",
    "--trace",
)
# Options that would let a model pass its own gate (too little time or too few groups never make a
# worse result certain), or would put more into a bundle than is promised.
_LOOSENS = {
    "gate": ("--allow", "--group", "--seconds", "--update"),
    "doctor": ("--keep-custom-options",),
}
_MOST_BYTES = 1 << 20


def find_settings(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    """The file beside the first model of a command line, and its settings as words."""
    if not words or words[0] not in COMMANDS:
        return None, []
    models = (Path(word) for word in _placed_words(words) if word.lower().endswith(_MODELS))
    place = next((model.parent / NAME for model in models), None)
    if place is None or not place.is_file():
        return None, []
    return place, _as_words(place, words[0], words[1:])


def _placed_words(words: Sequence[str]) -> Iterator[str]:
    """The words of a command that are neither options nor their values."""
    takes_value = {
        name for one in COMMANDS[words[0]].options if one.kind is not bool for name in one.names
    }
    for before, word in pairwise(words):
        if not word.startswith("-") and before not in takes_value:
            yield word


def _as_words(place: Path, command: str, typed: Sequence[str]) -> list[str]:
    read = _read(place)
    own: dict[str, Mapping[str, object]] = {
        name: {str(key): value for key, value in table.items()}
        for name, table in read.items()
        if is_mapping(table)
    }
    unknown = next((name for name in own if name not in COMMANDS), None)
    if unknown is not None:
        raise BadInput("{place}: [{name}] is no command", place, unknown)
    common = {name: value for name, value in read.items() if name not in own}
    everywhere = {key for row in COMMANDS.values() for key in _by_name(row.options)}
    _refuse_unknown(place, common, everywhere)
    known = _by_name(COMMANDS[command].options)
    _refuse_unknown(place, own.get(command, {}), {*known})
    words: list[str] = []
    for name, value in {**common, **own.get(command, {})}.items():
        one = known.get(name)
        if one is not None and not {word.partition("=")[0] for word in typed} & {*one.names}:
            _refuse_loosening(place, command, one)
            words += _option_words(place, one, value)
    return words


def _read(place: Path) -> dict[str, object]:
    with place.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise BadInput("{place}: is larger than {size}", place, bytes_text(_MOST_BYTES))
    try:
        return tomllib.loads(content.decode())
    # raised for numbers that are too long and lists that are too deep
    except (ValueError, RecursionError) as error:
        raise BadInput("{place}: not TOML ({error})", place, error) from None


def _by_name(options: Sequence[Option]) -> dict[str, Option]:
    """Options by their names without dashes."""
    return {
        name.partition("/")[0].lstrip("-"): one
        for one in options
        for name in one.names
        if name.startswith("--")
    }


def _refuse_unknown(place: Path, given: Mapping[str, object], known: set[str]) -> None:
    for name in given:
        if name not in known:
            raise BadInput("{place}: {name}: no such option; see --help", place, name)


def _refuse_loosening(place: Path, command: str, one: Option) -> None:
    name = _long_name(one)
    if name in _LOOSENS.get(command, ()):
        raise BadInput(
            "{place}: {name}: what {command} lets pass is said on the command line alone",
            place,
            name,
            command,
        )


def _long_name(one: Option) -> str:
    return next(name for name in one.names if name.startswith("--")).partition("/")[0]


def _option_words(place: Path, one: Option, value: object) -> list[str]:
    name = _long_name(one)
    if one.kind is bool:
        if not isinstance(value, bool):
            raise BadInput("{place}: {name}: true or false, not {value}", place, name, value)
        if value and name in _FETCHES:
            raise _refused_place(place, name, name)
        return [name] if value else []
    values = value if is_list_or_tuple(value) and one.many else [value]
    return [word for single in values for word in (name, _word(place, one, name, single))]


def _word(place: Path, one: Option, name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or "\0" in str(value):
        raise BadInput("{place}: {name}: a text or a number, not {value}", place, name, value)
    text = str(value)
    beside = place.parent / text
    words = shlex.join([name, text])
    if one.load is not None or _is_code(name, text, beside):
        raise BadInput(
            "{place}: {name}: code is named on the command line alone: {words}", place, name, words
        )
    if name in _NAMES_PLACES and not _LOCAL_PLACES.fullmatch(text):
        raise _refused_place(place, name, words)
    if name in WRITES and not _is_inside(beside, place.parent):
        raise BadInput(
            "{place}: {name}: files outside this folder are named on the command line alone: "
            "{words}",
            place,
            name,
            words,
        )
    is_path = one.kind is Path or beside.exists()
    return str(beside) if isinstance(value, str) and is_path else text


def _refused_place(place: Path, name: str, words: str) -> BadInput:
    return BadInput(
        "{place}: {name}: other machines are named on the command line alone: {words}",
        place,
        name,
        words,
    )


def _is_code(name: str, text: str, beside: Path) -> bool:
    is_data = name in _NAMES_DATA and not beside.exists()
    return ":" in text and (is_data or name in _NAMES_CODE)


def _is_inside(path: Path, folder: Path) -> bool:
    """True for a path in a folder or below it, after following links."""
    return path.resolve().is_relative_to(folder.resolve())
