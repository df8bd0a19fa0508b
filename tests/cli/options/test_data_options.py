"""The options on data: what is typed is what is meant."""

from dataclasses import replace

import numpy as np
import pytest

from litesmith import BadInput
from litesmith.cli.options.data_options import ImageOptions, open_given, typed, with_progress
from litesmith.data.preparation import Preparation
from litesmith.data.sources import Samples, open_data
from tests.data.test_sources import scorer


def test_nothing_typed_is_nothing_given() -> None:
    assert ImageOptions().preparation() == Preparation()


def test_numbers_as_typed() -> None:
    typed = ImageOptions(mean="1,2, 3", std="127.5", resize="bicubic", crop=1, label_offset=1)
    assert typed.preparation() == Preparation((1, 2, 3), (127.5,), "", "bicubic", 1, 1)


@pytest.mark.parametrize("text", ["", "a", "1,,2", "1;2;3"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"--mean .*: give one number or three"):
        ImageOptions(mean=text).preparation()


def test_choices_are_said(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path_factory.mktemp("data") / "x.npy"
    np.save(path, np.zeros((3, 8, 8, 3), np.float32))
    data = open_given(str(path), scorer(), ImageOptions(), samples=5)
    assert isinstance(data, Samples) and len(data) == 3
    told = capsys.readouterr()
    assert told.err == "litesmith: note: 5 samples asked for; there are 3\n" and not told.out


def test_progress_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = open_data(np.arange(768, dtype=np.float32).reshape(4, 8, 8, 3), scorer())
    assert with_progress(data, "looking") is data
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert with_progress(data, "looking", quiet=True) is data
    watched = with_progress(data, "looking")
    assert watched is not data and len(watched) == 4 and watched.digest == data.digest
    for a, b in zip(data, watched, strict=True):
        np.testing.assert_array_equal(a.inputs[0], b.inputs[0])
    assert not capsys.readouterr().out


def test_progress_reads_nothing_before_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    found = open_data(np.zeros((4, 8, 8, 3), np.float32), scorer())
    assert isinstance(found, Samples)

    def digest(index: int) -> str:
        read.append(index)
        return str(index)

    data = replace(found, rows=replace(found.rows, digest=digest))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    watched = with_progress(data, "looking")
    assert len(watched) == 4 and not read
    assert watched.digest == data.digest and len(read) == 4


def test_typed_options_read_back() -> None:
    assert typed(ImageOptions()) == ""
    options = ImageOptions(norm="tf", resize="bicubic", crop=1.0, label_offset=1)
    words = " --norm tf --resize bicubic --crop 1.0 --label-offset 1"
    assert typed(options) == words
    assert typed(ImageOptions(mean="1,2,3", std="2"), 7) == " --mean 1,2,3 --std 2 --samples 7"
