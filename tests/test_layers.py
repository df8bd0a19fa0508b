"""Imports point down only."""

import ast
from functools import cache
from pathlib import Path

import pytest

import litesmith
from litesmith.plugins import PLUGINS

ROOT = Path(litesmith.__file__).parent

# From the top to the bottom; rooms on one line may not import each other. A room is a folder; a
# room inside a room is named with both.
ROOMS = (
    ("cli",),
    ("cli.commands",),
    ("cli.text",),
    ("cli.options",),
    ("front",),
    ("front.printed_json",),
    ("pages",),
    ("pages.graph",),
    ("pages.sections",),
    ("pages.drawing",),
    ("pages.records",),
    ("graph_view",),
    ("search.choosing", "search.tuning"),
    ("search.trial",),
    ("regression",),
    ("diagnosis",),
    ("micro",),
    ("training.teaching",),
    ("training",),
    ("training.ops",),
    ("transfer",),
    ("passes.rewriting",),
    ("calibration",),
    ("precision",),
    ("accuracy",),
    ("profiling",),
    ("timing",),
    ("data",),
    ("tasks",),
    ("anatomy", "evidence", "run.devices"),
    ("conversion",),
    ("conversion.aten", "conversion.rules"),
    ("conversion.core",),
    ("workers",),
    ("run",),
    ("run.accelerators",),
    ("run.rules",),
    ("passes.shrinking",),
    ("passes.quantizing",),
    ("passes.tidy",),
    ("passes.core",),
    ("passes",),
    ("run.litert",),
    ("run.core",),
    ("ops",),
    ("native",),
    ("demo_files", "known_networks", "numeric"),
    ("blocks", "tflite"),
    ("ir",),
    ("plugins",),
    ("arguments", "display", "temporary"),
    ("lang",),
    ("errors", "units"),
    ("installing", "phrases", "progress", "schema", "unfinished", "_version"),
    ("operating_system", "type_guards"),
)
DEPTH = {name: depth for depth, names in enumerate(ROOMS) for name in names}
FILES = sorted(ROOT.rglob("*.py"))

# Rooms that can be taken away, and those that each may import: it and everything below.
TAKEN_AWAY = {"kernels": "passes.shrinking", "networks": "native", "ray_engine": "workers"}


def room_of(path: Path) -> str:
    """The folder of a file, or the file itself where that lies in none."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    inner = parts[:-1] if len(parts) > 1 else parts
    return ".".join(inner)


def file_of(name: str) -> Path:
    """The file of a module, or of the module that a name is imported from."""
    place = ROOT.joinpath(*name.split(".")[1:])
    for found in (place.with_suffix(".py"), place / "__init__.py"):
        if found.exists():
            return found
    return file_of(name.rpartition(".")[0])


def plugged_room(room: str) -> str:
    """The room that can be taken away which this one is, or is in; "" for all others."""
    outer = room.partition(".")[0]
    return outer if outer in TAKEN_AWAY else ""


@cache
def read_names(path: Path) -> tuple[set[str], set[str]]:
    """Every module of ours that a file imports, inside functions too, and every string in it."""
    names: set[str] = set()
    strings: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.add(node.value)
    return {name for name in names if name.split(".")[0] == "litesmith"}, strings


def test_every_file_is_in_a_room() -> None:
    front = {"__init__", "__main__"}
    empty = {name.rpartition(".")[0] for name in DEPTH} - {""}
    found = {room_of(path) for path in FILES}
    assert {room for room in found if not plugged_room(room)} <= {*DEPTH, *front, *empty}
    assert {*DEPTH} <= found
    assert {*TAKEN_AWAY} <= found


def test_no_room_has_the_name_of_a_public_function() -> None:
    rooms = {name.partition(".")[0] for name in (*DEPTH, *TAKEN_AWAY)}
    assert not rooms & set(litesmith.__all__)


# The package's front shows what the rooms make.
IN_ROOMS = [path for path in FILES if room_of(path) not in ("__init__", "__main__")]


@pytest.mark.parametrize("path", IN_ROOMS, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    room = room_of(path)
    own = plugged_room(room)
    for name in read_names(path)[0]:
        other = room_of(file_of(name))
        if other == "__init__":  # commands call the public functions
            assert room.startswith("cli"), f"{room} imports the package's front"
            continue
        if own and plugged_room(other) == own:
            continue
        assert other in DEPTH, f"{name} is in no room that may be imported"
        if own:
            assert DEPTH[other] >= DEPTH[TAKEN_AWAY[own]], f"{room} imports {other}, above it"
            continue
        below = DEPTH[other] > DEPTH[room]
        assert below or other == room, f"{room} imports {other}, which is above or beside it"


def names_of_rooms(path: Path) -> set[str]:
    """The rooms that can be taken away which a file imports, or names in a string of code."""
    names, strings = read_names(path)
    found = {name.split(".")[1] for name in names if "." in name}
    for text in strings:
        head, _, rest = text.removeprefix("litesmith.").partition(".")
        is_path = rest != "" and all(part.isidentifier() for part in rest.split("."))
        if is_path and not text.endswith((".py", ".tflite")):
            found.add(head)
    return found & {*TAKEN_AWAY}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_table_of_plugins_names_rooms_that_can_be_taken_away(path: Path) -> None:
    assert names_of_rooms(path) <= {plugged_room(room_of(path))}


def test_the_table_of_plugins_has_each_of_them() -> None:
    assert {row.room for row in PLUGINS.values()} == {*TAKEN_AWAY}
