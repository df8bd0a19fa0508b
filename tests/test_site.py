"""The documentation as a site: it builds offline, without a dead link, from the code as it is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from litesmith.cli.commands import COMMANDS
from litesmith.front.printed_json.schemas import PRINTED, RECORDS
from tests.slowness import patient

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material")
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(place)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=patient(300))
    assert done.returncode == 0, done.stderr
    return place


def test_every_option_is_there(site: Path) -> None:
    page = (site / "reference" / "options.html").read_text(encoding="utf-8")
    for name, command in COMMANDS.items():
        assert f'id="{name}"' in page
        for option in (one for one in command.options if one.names and not one.hidden):
            assert option.names[0].partition("/")[0] in page


def test_every_schema_is_there(site: Path) -> None:
    for name in (*PRINTED, *RECORDS):
        assert (site / "reference" / f"{name}.schema.json").is_file()


def test_every_public_name_is_there(site: Path) -> None:
    import litesmith

    page = (site / "reference" / "api.html").read_text(encoding="utf-8")
    for name in litesmith.__all__:
        assert name == "__version__" or f'id="{name}"' in page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="https?:', text), page.name


def test_it_can_be_searched(site: Path) -> None:
    assert "max-drop" in (site / "search" / "search_index.json").read_text(encoding="utf-8")
