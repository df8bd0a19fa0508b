"""The report for a pull request."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.pages.drawing.markdown import code, escape_markdown
from litesmith.pages.folder_kinds import write_markdown
from tests.pages import folders


@pytest.mark.parametrize("moment", folders.MOMENTS)
def test_pictures_lie_beside_the_text(moment: str, tmp_path: Path) -> None:
    folder = folders.MOMENTS[moment](tmp_path)
    text = write_markdown(folder).read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    assert len(pictures) == (0 if moment == "float only" else 2)
    for picture in pictures:
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")


def test_another_place_takes_the_pictures_along(tmp_path: Path) -> None:
    out = tmp_path / "pull request.md"
    assert write_markdown(folders.write_folder(tmp_path / "tuned"), out) == out
    assert "(pull%20request-size.png)" in out.read_text(encoding="utf-8")
    assert (tmp_path / "pull request-size.png").exists()
    assert not (tmp_path / "tuned" / "report.md").exists()


def test_every_trial_is_one_row(tmp_path: Path) -> None:
    text = write_markdown(folders.write_folder(tmp_path)).read_text(encoding="utf-8")
    _, _, table = text.partition("</summary>")
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + len(folders.TRIED)
    columns = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
    assert len(columns) == 1


@given(st.text(alphabet="ab<>&|`*_[]()#@!:\\-", max_size=20))
def test_escaped_words_hold_no_markup(words: str) -> None:
    bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", escape_markdown(words))
    assert not set(bare) & set("<>&|`*_[]@\\")
    assert re.sub(r"\\(.)", r"\1", escape_markdown(words)) == words


@given(st.text(alphabet="a` ", min_size=1, max_size=12))
def test_code_ends_where_it_should(words: str) -> None:
    shown = code(words)
    fence = re.match(r"`+", shown)
    assert fence is not None
    inner = shown[len(fence[0]) : -len(fence[0])]
    assert fence[0] not in re.findall(r"`+", inner)
    assert words in inner
