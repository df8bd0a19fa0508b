"""Several runs side by side: a row each, found by words, with a way to each report."""

import re
from pathlib import Path

import pytest

import litesmith
from litesmith.errors import BadInput
from litesmith.pages.folder_kinds import KINDS, write_report, write_runs
from litesmith.pages.runs_page import link_page
from tests.pages import folders
from tests.pages.drawing.test_page import HOSTILE, Page
from tests.pages.test_folder_kinds import EXAMPLES


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [make(tmp_path / name) for name, make in EXAMPLES.items()]


def test_every_kind_of_folder_has_a_row(runs: list[Path], tmp_path: Path) -> None:
    assert {kind.command for kind in KINDS} == set(EXAMPLES)
    page = Page(write_runs(runs, tmp_path / "runs.html").read_text(encoding="utf-8"))
    rows = [str(found["data-filter"]) for found in page.with_attribute("data-filter", "tr")]
    assert len(rows) == len(runs)
    for command, row in zip(EXAMPLES, rows, strict=True):
        assert command in row.split() and row == row.lower()


def test_bars_are_found_by_the_words_of_their_rows(runs: list[Path], tmp_path: Path) -> None:
    page = Page(write_runs(runs, tmp_path / "runs.html").read_text(encoding="utf-8"))
    rows, bars = (
        {found["data-filter"] for found in page.with_attribute("data-filter", kind)}
        for kind in ("tr", "li")
    )
    assert bars and bars < rows


def test_links_lead_to_reports_that_are_there(runs: list[Path], tmp_path: Path) -> None:
    write_report(runs[-1])
    place = tmp_path / "deep" / "runs.html"
    place.parent.mkdir()
    page = Page(write_runs(runs, place).read_text(encoding="utf-8"))
    links = [found["href"] for kind, found in page.elements if kind == "a"]
    assert [link for link in links if link and not link.startswith("#")] == ["../tune/report.html"]
    assert link_page(runs[0], place) == ""


def test_the_public_function_takes_one_or_several(runs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "runs.md"
    found = litesmith.report(runs, markdown=True, out=out)
    rows = [line for line in out.read_text("utf-8").splitlines() if line.startswith("| ")]
    assert found.path == out and len(rows) == 2 + len(runs)
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    once = litesmith.report([runs[0], runs[0]])
    assert once.path == runs[0] / "report.html"


def test_no_folder_and_a_wrong_one_are_refused(runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no folder is given"):
        litesmith.report([])
    with pytest.raises(BadInput, match="no such folder"):
        litesmith.report([*runs, tmp_path / "none"], out=tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_never_markup(name: str, tmp_path: Path) -> None:
    told = {**folders.summary(), "model": name, "sentence": name}
    made = [folders.write_folder(tmp_path / str(place), told) for place in range(2)]
    page = Page(write_runs(made, tmp_path / "runs.html").read_text(encoding="utf-8"))
    assert sum(kind == "script" for kind, _ in page.elements) == 1
    assert not any("onmouseover" in found for _, found in page.elements)


def test_empty_records_are_rows_too(tmp_path: Path) -> None:
    made = []
    for kind in KINDS:
        folder = tmp_path / kind.command
        folder.mkdir()
        (folder / kind.record).write_text("{}")
        made.append(folder)
    page = Page(write_runs(made, tmp_path / "runs.html").read_text(encoding="utf-8"))
    assert len(page.with_attribute("data-filter", "tr")) == len(KINDS)
