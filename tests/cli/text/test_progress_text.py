"""The line of long work on a terminal."""

import pytest

from litesmith.cli.text.progress_text import Terminal, status_line
from litesmith.progress import Note, Status


def test_a_line_says_how_far_the_work_is() -> None:
    assert status_line(Status("copies"), 3) == "copies"
    assert status_line(Status("scoring", 0, 5000), 0) == "scoring · 0/5,000"
    half = status_line(Status("scoring", 1000, 2000, "loss 0.3"), 30)
    assert half == "scoring · 1,000/2,000 · about 30.0 s left · loss 0.3"


def test_a_first_guess_and_the_last_second_are_not_told() -> None:
    assert status_line(Status("scoring", 1, 5000), 0.4) == "scoring · 1/5,000"
    assert status_line(Status("scoring", 4999, 5000), 30) == "scoring · 4,999/5,000"


def test_work_that_tells_nothing_more_is_shown_at_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Terminal(patience=60) as progress:
        progress(Status("timing ops one by one"))
        progress(Status("scoring", 1, 2))
    shown = capsys.readouterr().err
    assert "timing ops" in shown and "scoring" not in shown


def test_notes_are_said_where_no_line_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with Terminal() as progress:
        progress(Status("scoring", 1, 2))
        progress(Note("the data has no labels"))
        progress(Note("the data looks wrong", "warning"))
    told = "litesmith: note: the data has no labels\nlitesmith: warning: the data looks wrong\n"
    assert capsys.readouterr().err == told


def test_the_line_goes_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Terminal(patience=0) as progress:
        progress(Status("scoring", 1, 2))
        progress(Status("scoring", 2, 2))  # too soon for another frame
    shown = capsys.readouterr().err
    assert "scoring · 1/2" in shown and "2/2" not in shown
    assert shown.endswith("\r\x1b[K")
