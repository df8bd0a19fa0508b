"""Messages on stderr: whole in a pipe, broken at words on a terminal."""

import pytest
from rich.cells import cell_len

from litesmith.cli.text.message import message, say

LONG = "the data has no labels, so that nothing can be said about the accuracy of this model yet"


def test_a_pipe_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say("note", f"{LONG}\n{LONG}")
    assert capsys.readouterr().err == f"litesmith: note: {LONG} {LONG}\n"


@pytest.mark.parametrize("width", [40, 57, 80])
@pytest.mark.parametrize("text", [LONG, "数据没有标签，因此还不能说明这个模型的准确率。" * 3])
def test_a_terminal_gets_whole_words(
    text: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(width))
    lines = message(text).splitlines()
    assert all(cell_len(line) <= width for line in lines)
    gap = " " if text is LONG else ""
    assert gap.join(line.strip() for line in lines).removeprefix("litesmith:").strip() == text


def test_what_acts_on_a_terminal_is_shown() -> None:
    assert "\x1b" not in message("a\x1b[2Jb")
