"""The command that adds an extra fits how the package was installed."""

import pytest

from litesmith.installing import install_command

PLACES = {
    "/home/me/.local/share/pipx/venvs/litesmith": "pipx install --force 'litesmith[train]'",
    "/home/me/.local/share/uv/tools/litesmith": "uv tool install 'litesmith[train]'",
    "/home/me/.cache/uv/archive-v0/x1": "uvx --from 'litesmith[train]' litesmith",
}


@pytest.mark.parametrize("prefix", PLACES)
def test_by_where_it_lies(prefix: str) -> None:
    assert install_command("train", prefix) == PLACES[prefix]


def test_elsewhere_by_pip_and_in_quotes() -> None:
    shown = install_command("train", "/opt/python")
    assert shown.startswith("pip install ") and shown.endswith("[train]'")
