"""Imports point down only."""

import ast
from pathlib import Path

import pytest

import litesmith

ROOT = Path(litesmith.__file__).parent

# From the top to the bottom; rooms on one line may not import each other. A room is a folder; a
# room inside a room is named with both.
ROOMS = (
    ("cli",),
    ("front",),
    ("pages",),
    ("pages.sections",),
    ("pages.drawing",),
    ("pages.records",),
    ("search.choosing", "search.tuning"),
    ("search.trial",),
    ("regression",),
    ("diagnosis",),
    ("training",),
    ("training.ops",),
    ("transfer",),
    ("passes.rewriting",),
    ("calibration",),
    ("accuracy",),
    ("profiling",),
    ("timing",),
    ("data",),
    ("anatomy", "evidence", "run.devices"),
    ("ray_engine",),
    ("workers",),
    ("run",),
    ("run.accelerators",),
    ("run.rules",),
    ("kernels",),
    ("passes.shrinking",),
    ("passes.quantizing",),
    ("passes.tidy",),
    ("passes.core",),
    ("passes",),
    ("run.litert",),
    ("run.core", "networks"),
    ("ops",),
    ("kernels.loops",),
    ("kernels.programs",),
    ("native",),
    ("demo_files", "numeric"),
    ("tflite",),
    ("ir",),
    ("lang",),
    ("arguments", "display"),
    ("errors", "units"),
    ("phrases", "progress", "schema", "_version"),
)
DEPTH = {name: depth for depth, names in enumerate(ROOMS) for name in names}
FILES = sorted(ROOT.rglob("*.py"))


WHOLE = ("cli",)  # rooms whose inner rooms import each other


def room_of(path: Path) -> str:
    """The folder of a file, or the file itself where that lies in none."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    inner = parts[:-1] if len(parts) > 1 else parts
    return inner[0] if inner[0] in WHOLE else ".".join(inner)


def file_of(name: str) -> Path:
    """The file of a module, or of the module that a name is imported from."""
    place = ROOT.joinpath(*name.split(".")[1:])
    for found in (place.with_suffix(".py"), place / "__init__.py"):
        if found.exists():
            return found
    return file_of(name.rpartition(".")[0])


def imported(path: Path) -> set[str]:
    """Every module of ours that a file imports, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "litesmith"}


def test_every_file_is_in_a_room() -> None:
    front = {"__init__", "__main__"}
    empty = {name.rpartition(".")[0] for name in DEPTH} - {""}
    assert {room_of(path) for path in FILES} <= {*DEPTH, *front, *empty}
    assert {*DEPTH} <= {room_of(path) for path in FILES}


def test_no_room_has_the_name_of_a_public_function() -> None:
    rooms = {name.partition(".")[0] for name in DEPTH}
    assert not rooms & set(litesmith.__all__)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    room = room_of(path)
    if room in ("__init__", "__main__"):  # the package's front, which shows what the rooms make
        return
    for name in imported(path):
        other = room_of(file_of(name))
        if other == "__init__":  # commands call the public functions
            assert room.startswith("cli"), f"{room} imports the package's front"
            continue
        assert other in DEPTH, f"{name} is in no room"
        below = DEPTH[other] > DEPTH[room]
        assert below or other == room, f"{room} imports {other}, which is above or beside it"
