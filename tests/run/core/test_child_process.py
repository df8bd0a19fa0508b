"""Programs that are started beside this one."""

import ast
import socket
from pathlib import Path

import pytest

import litesmith
from litesmith.run.core.child_process import CALL_SECONDS, call_seconds


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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2.5", 2.5), ("", 600), ("soon", 600), ("nan", 600), ("-1", 600), ("0", 600), ("inf", 2e6)],
)
def test_the_limit_of_a_call_is_one_that_can_be_waited_for(
    text: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CALL_SECONDS, text)
    assert call_seconds() == seconds
    socket.socket().settimeout(call_seconds())
