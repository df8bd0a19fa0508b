"""Data as a user hands it over: what is asked for is what is meant, and can be typed again."""

from dataclasses import replace

import numpy as np
import pytest

from litesmith import BadInput
from litesmith.data.opened_samples import OpenedSamples
from litesmith.data.preparation import Preparation, Preparing, read_preparation
from litesmith.data.samples import watch_data
from litesmith.data.sources import open_data
from litesmith.front.given_data import open_given, type_options
from litesmith.progress import Note, Status, silent
from tests.data.test_sources import scorer


def test_nothing_given_is_nothing_asked_for() -> None:
    assert read_preparation() == Preparation()
    assert read_preparation(mean=None, resize=None) == Preparation()


def test_numbers_as_typed_and_as_numbers() -> None:
    wanted = Preparation((1, 2, 3), (127.5,), "", "bicubic", 1, 1)
    others = Preparing(resize="bicubic", crop=1, label_offset=1)
    assert read_preparation(mean="1,2, 3", std="127.5", **others) == wanted
    assert read_preparation(mean=(1, 2, 3), std=127.5, **others) == wanted
    assert read_preparation(replace(wanted, crop=0.5), crop=1) == wanted


@pytest.mark.parametrize("text", ["", "a", "1,,2", "1;2;3"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"mean=.*: give one number or three"):
        read_preparation(mean=text)


def test_choices_are_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("data") / "x.npy"
    np.save(path, np.zeros((3, 8, 8, 3), np.float32))
    told: list[Status | Note] = []
    data = open_given(str(path), scorer(), Preparation(), told.append, samples=5)
    assert isinstance(data, OpenedSamples) and len(data) == 3
    assert told == [Note("5 samples asked for; there are 3")]


def test_progress_changes_nothing() -> None:
    data = open_data(np.arange(768, dtype=np.float32).reshape(4, 8, 8, 3), scorer())
    assert watch_data(data, "looking", silent) is data
    seen: list[Status | Note] = []
    watched = watch_data(data, "looking", seen.append)
    assert watched is not data and len(watched) == 4 and watched.digest == data.digest
    for a, b in zip(data, watched, strict=True):
        np.testing.assert_array_equal(a.inputs[0], b.inputs[0])
    assert seen == [Status("looking", done, 4) for done in range(5)]


def test_progress_reads_nothing_before_it_is_asked() -> None:
    read: list[int] = []
    found = open_data(np.zeros((4, 8, 8, 3), np.float32), scorer())
    assert isinstance(found, OpenedSamples)

    def digest(index: int) -> str:
        read.append(index)
        return str(index)

    data = replace(found, rows=replace(found.rows, digest=digest))
    watched = watch_data(data, "looking", lambda _: None)
    assert len(watched) == 4 and not read
    assert watched.digest == data.digest and len(read) == 4


def test_options_can_be_typed_again() -> None:
    assert type_options({}) == ""
    options = Preparing(norm="tf", resize="bicubic", crop=1.0, label_offset=1)
    assert type_options(options) == " --norm tf --resize bicubic --crop 1.0 --label-offset 1"
    assert type_options({"std": 2, "mean": (1, 2, 3)}, 7) == " --mean 1,2,3 --std 2 --samples 7"
