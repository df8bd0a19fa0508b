"""Imports point down only."""

import ast
from pathlib import Path

import pytest

import litesmith

ROOT = Path(litesmith.__file__).parent

# From the top to the bottom; names on one line may not import each other.
LAYERS = (
    ("cli",),
    ("report",),
    ("search",),
    ("train",),
    ("measure",),
    ("engine",),
    ("run",),
    ("passes",),
    ("catalogue", "evidence"),
    ("ops",),
    ("jit",),
    ("demo", "numeric"),
    ("tflite",),
    ("ir",),
    ("lang",),
    ("errors", "schema", "units", "_version"),
)
DEPTH = {name: depth for depth, names in enumerate(LAYERS) for name in names}
FILES = sorted(ROOT.rglob("*.py"))


def own_layer(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


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


def test_every_file_is_in_a_layer() -> None:
    known = {*DEPTH, "__init__", "__main__"}
    assert {own_layer(path) for path in FILES} == known


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    layer = own_layer(path)
    if layer not in DEPTH:  # the package's front, which shows what the layers make
        return
    for name in imported(path):
        other = name.split(".")[1]
        assert other in DEPTH, f"{name} is no layer"
        below = DEPTH[other] > DEPTH[layer]
        assert below or other == layer, f"{layer} imports {other}, which is above or beside it"
