"""The command that adds an extra fits how the package was installed."""

import re
import sys
from pathlib import Path

import pytest

import litesmith
from litesmith.installing import install_command, wanted_package
from tests.platforms import posix

PLACES = {
    "/home/me/.local/share/pipx/venvs/litesmith": "pipx install --force ",
    "/home/me/.local/share/uv/tools/litesmith": "uv tool install ",
    "/home/me/.cache/uv/archive-v0/x1": "uvx --from ",
}


@posix
@pytest.mark.parametrize("prefix", PLACES)
def test_by_where_it_lies(prefix: str) -> None:
    shown = install_command("train", prefix)
    assert shown.startswith(PLACES[prefix]) and "[train]'" in shown


@posix
def test_elsewhere_by_the_pip_of_this_environment_and_in_quotes() -> None:
    shown = install_command("train", "/opt/python")
    assert shown.startswith(f"{sys.executable} -m pip install ") and shown.endswith("[train]'")


ORIGINS = [
    ({}, "litesmith[jit]"),
    ({"url": "file:///home/me/litesmith", "dir_info": {}}, "/home/me/litesmith[jit]"),
    (
        {"url": "file:///home/me/a%20b", "dir_info": {"editable": True}},
        "-e /home/me/a b[jit]",
    ),
    (
        {"url": "file:///home/me/litesmith-1.whl", "archive_info": {}},
        "/home/me/litesmith-1.whl[jit]",
    ),
    (
        {"url": "https://host/litesmith.git", "vcs_info": {"vcs": "git", "commit_id": "1"}},
        "litesmith[jit] @ git+https://host/litesmith.git",
    ),
]


@posix
@pytest.mark.parametrize(("origin", "wanted"), ORIGINS)
def test_from_where_it_came(origin: dict[str, object], wanted: str) -> None:
    assert wanted_package(origin, "jit") == wanted


def test_no_message_has_a_hint_of_its_own() -> None:
    """Extras are named by `install_command`, which knows where the package came from."""
    package = Path(litesmith.__file__).parent
    for path in package.rglob("*.py"):
        if path.name != "installing.py":
            assert not re.search(r"pip install[^\n]*litesmith\[", path.read_text("utf-8")), path
