"""Programs that are started beside this one."""

import ast
from pathlib import Path

import litesmith


def test_no_child_takes_modules_from_the_current_folder() -> None:
    """Python puts that folder first for `-m` and `-c`, and a folder of downloads may hold a file
    that is called like a package: -P or -I keeps it out."""
    lists = [
        (path, node.elts)
        for path in Path(litesmith.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.List) and node.elts
    ]
    started = [(path, elts) for path, elts in lists if ast.unparse(elts[0]) == "sys.executable"]
    assert len(started) > 5
    for path, (_, switch, *_) in started:
        assert ast.unparse(switch) in ("'-P'", "'-I'"), path
