"""The command report."""

from pathlib import Path

from tests.cli.test_cli import litesmith
from tests.pages import folders


def test_it_says_where_the_page_is(tmp_path: Path) -> None:
    folder = folders.write_folder(tmp_path / "tuned")
    for words, place in (
        ((), folder / "report.html"),
        (("--markdown",), folder / "report.md"),
        (("-o", tmp_path / "page.html"), tmp_path / "page.html"),
    ):
        done = litesmith("report", folder, *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{place}\n", "")
        assert place.stat().st_size > 1_000


def test_a_folder_of_something_else_is_one_line(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        done = litesmith("report", folder)
        assert done.returncode == 2 and not done.stdout
        assert done.stderr.startswith(f"litesmith: {folder}: ")
        assert done.stderr.count("\n") == 1 and "litesmith tune" in done.stderr


def test_an_input_is_not_overwritten_by_a_folder(tmp_path: Path) -> None:
    done = litesmith("report", folders.write_folder(tmp_path / "tuned"), "-o", tmp_path)
    assert done.returncode == 2
    assert "is a folder" in done.stderr
