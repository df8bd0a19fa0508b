"""Measurements that are run by hand import what there is."""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"


@pytest.mark.parametrize("path", sorted(BENCH.glob("*.py")), ids=lambda path: path.stem)
def test_what_a_bench_imports_of_ours_is_there(path: Path) -> None:
    missing = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("litesmith")
        for alias in node.names
        if not hasattr(import_module(node.module or ""), alias.name)
        and find_spec(f"{node.module}.{alias.name}") is None
    ]
    assert missing == []
