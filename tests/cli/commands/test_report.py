"""The command report."""

from pathlib import Path
from typing import cast

from litesmith.front.report import report
from litesmith.tflite.file import digest
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


def test_files_that_are_not_those_that_were_measured_come_first(tmp_path: Path) -> None:
    """A file in the place of the best was still called proven."""
    source = tmp_path / "model.tflite"
    source.write_bytes(b"as it came")
    told = {**folders.summary(), "model_path": str(source), "model_digest": digest(source)}
    folder = folders.write_folder(tmp_path / "tuned", told)
    (folder / "best.tflite").write_bytes(b"as it was measured")
    best = cast(dict[str, object], told["best"]) | {"digest": digest(folder / "best.tflite")}
    folder = folders.write_folder(tmp_path / "tuned", {**told, "best": best})
    done = litesmith("report", folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert '<p class="word">Proven</p>' in page
    for path in (source, folder / "best.tflite"):
        path.write_bytes(b"another")
        done = litesmith("report", folder)
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert (done.returncode, done.stdout) == (1, f"{folder / 'report.html'}\n")
        assert f"warning: {path}: this is not the file that was measured" in done.stderr
        assert '<p class="word">Not the files that were measured</p>' in page
        assert '<p class="word">Proven</p>' not in page
        assert litesmith("report", folder, "--markdown").returncode == 1
        text = (folder / "report.md").read_text(encoding="utf-8")
        assert "Not the files that were measured" in text.partition("\n")[0]


def test_who_calls_it_from_python_is_told_too(tmp_path: Path) -> None:
    told = folders.summary()
    best = cast(dict[str, object], told["best"]) | {"digest": 64 * "0"}
    folder = folders.write_folder(tmp_path / "tuned", {**told, "best": best})
    made = report(folder)
    assert made.is_as_asked and Path(made) == made.path == folder / "report.html"
    (folder / "best.tflite").write_bytes(b"another")
    made = report(folder)
    assert not made.is_as_asked and "best.tflite" in made.changed[0]
    assert made.to_rows() == [{"path": str(made.path), "as_measured": False}]
