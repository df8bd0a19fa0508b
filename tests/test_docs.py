"""What the documents and the docstrings of rooms name is there: files, tables, links, rooms."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import litesmith

PACKAGE = Path(litesmith.__file__).parent
ROOT = Path(__file__).parent.parent
ROOMS = sorted(path.parent for path in PACKAGE.glob("*/**/__init__.py"))
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md"))]
PAGES += [*sorted((ROOT / ".github").rglob("*.md")), ROOT / "bench" / "README.md"]

# `timing/turns.py`, `tests/zoo.py`, `ir/edit.py:regraph`, `networks/layer*.py`.
FILE = re.compile(r"`([\w./*-]*\.(?:py|md))(?::\w+)?`")
# `STEPS` of `passes/__init__.py`
TABLE = re.compile(r"`(\w+)`(?:\]\([^)]*\))?\s+(?:of|in)\s+`([\w./-]+\.py)`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#([^)]*))?\)")

# Files that a reader writes, and patterns of names.
MADE_UP = {"my_ops.py", "src/litesmith/ROOM/NAME.py", "tests/ROOM/test_NAME.py"}


def find_file(name: str, *homes: Path) -> Path | None:
    """The file of that name in the first home that has it; a pattern stands for its first file."""
    return next((found for home in homes for found in sorted(home.glob(name))), None)


def missing_files(text: str, *homes: Path) -> Iterator[str]:
    """Files that a text names and no home has. A name without a folder may also be a file beside
    the one that was named before it: `timing/turns.py`, `clock.py`."""
    beside: tuple[Path, ...] = ()
    for name in FILE.findall(text):
        if name in MADE_UP:
            continue
        found = find_file(name, *homes) or ("/" not in name and find_file(name, *beside)) or None
        if found is None:
            yield name
        else:
            beside = (found.parent,)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not list(missing_files(text, page.parent, ROOT, PACKAGE))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_tables_are_in_the_files_that_a_page_names(page: Path) -> None:
    for table, name in TABLE.findall(page.read_text(encoding="utf-8")):
        found = find_file(name, ROOT, PACKAGE)
        assert found is not None, name
        assert re.search(rf"\b{table}\b", found.read_text("utf-8")), f"no {table} in {name}"


def describe(room: Path) -> str:
    """The docstring of a room."""
    return ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8"))) or ""


@pytest.mark.parametrize("room", ROOMS, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_room_has_a_line_for_each_of_its_files(room: Path) -> None:
    listed = re.findall(r"^(\w+\.py|\w+/)(?=  )", describe(room), re.MULTILINE)
    files = {path.name for path in room.glob("*.py")} - {"__init__.py"}
    inner = {f"{path.parent.name}/" for path in room.glob("*/__init__.py")}
    assert describe(room)
    assert set(listed) == files | inner
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("room", ROOMS, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_that_a_room_names_exist(room: Path) -> None:
    assert not list(missing_files(describe(room), room, PACKAGE, ROOT))


def headings(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        place = page.parent / link
        assert place.exists(), link
        assert not anchor or anchor in headings(place), f"{link}#{anchor}"


def test_the_architecture_names_every_room() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", text.split("\n## ")[2], re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} <= named
    files = {path.stem for path in PACKAGE.glob("*.py")}
    assert named <= {path.name for path in PACKAGE.iterdir()} | files


def test_the_glossary_has_each_word_once() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| ([^|]+?) \|", text, re.MULTILINE)
    words = [word for word in words if word not in ("word", "---")]
    assert len(words) > 50
    assert len(words) == len(set(words))


def test_the_changelog_has_this_version() -> None:
    versions = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert any(litesmith.__version__ in version for version in versions)
