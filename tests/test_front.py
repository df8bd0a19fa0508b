"""What `import litesmith` gives, and what it does not wait for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import litesmith

TREE = ast.parse(Path(litesmith.__file__).read_text("utf-8"))
CHECKED = {
    alias.name: node.module
    for node in ast.walk(TREE)
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("litesmith.")
    for alias in node.names
    if alias.asname is None
}


@pytest.mark.parametrize("name", sorted(CHECKED))
def test_what_type_checkers_see_is_what_there_is(name: str) -> None:
    given = getattr(litesmith, name)
    assert given is getattr(sys.modules[str(CHECKED[name])], name)


def test_all_is_all() -> None:
    assert {*litesmith.__all__} == {*CHECKED, "__version__"} <= {*dir(litesmith)}
    with pytest.raises(AttributeError, match="'litesmith' has no attribute 'polish'"):
        litesmith.polish  # pyright: ignore[reportAttributeAccessIssue] # noqa: B018
    with pytest.raises(ImportError, match="polish"):
        from litesmith import polish  # pyright: ignore[reportAttributeAccessIssue] # noqa: F401


def test_nothing_is_imported_before_it_is_used() -> None:
    program = (
        "import sys, litesmith; print('numpy' in sys.modules); "
        "from litesmith import *; print(tune.__module__)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert shown.stdout.split() == ["False", "litesmith.front.tune"]
