"""What cannot be used is named, counted and left out; too much of it is refused in one line."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from litesmith import BadInput
from litesmith.data.images import Picture, decode, image_fault
from litesmith.data.preparation import Preparation
from litesmith.data.sources import open_data
from litesmith.tasks.image_files import FORMATS
from tests.data.test_images import noise, saved
from tests.data.test_sources import RAW, scorer

JPEG = io.BytesIO()
Image.fromarray(noise(40, 40)).save(JPEG, "JPEG")
WHOLE = JPEG.getvalue()

LARGE = b"BM" + bytes(8) + (54).to_bytes(4, "little") + (40).to_bytes(4, "little")
LARGE += (60000).to_bytes(4, "little") * 2 + b"\x01\0\x18\0" + bytes(24)

BROKEN = {
    "truncated": WHOLE[: len(WHOLE) // 2],
    "no image": b"some text in place of an image",
    "empty": b"",
    "far too large": LARGE,
}


def folder(root: Path, count: int = 100, classes: int = 4) -> Path:
    for index in range(count):
        saved(root / str(index % classes) / f"{index:03}.png", noise(9, 9, index))
    return root


@pytest.mark.parametrize("why", BROKEN)
def test_each_kind_of_damage_is_left_out_and_named(tmp_path: Path, why: str) -> None:
    (folder(tmp_path) / "2" / "bad.jpg").write_bytes(BROKEN[why])
    data = open_data(tmp_path, scorer(), preparation=RAW)
    assert len(data) == 100 and all(sample.name != "2/bad.jpg" for sample in data)
    assert f"1 of 101 images cannot be read and are left out: 2/bad.jpg ({why})" in data.notes


def test_the_samples_are_those_of_the_folder_without_them(tmp_path: Path) -> None:
    whole = open_data(folder(tmp_path / "a"), scorer(), preparation=RAW)
    broken = folder(tmp_path / "b")
    for index, content in enumerate(BROKEN.values()):
        (broken / str(index) / f"0{index}0x.jpg").write_bytes(content)
    data = open_data(broken, scorer(), preparation=RAW)
    assert data.digest == whole.digest
    assert [s.name for s in data] == [s.name for s in whole]
    assert [s.label for s in data] == [s.label for s in whole]


@pytest.mark.parametrize(("bad", "refused"), [(5, False), (6, True)])
def test_more_than_one_in_twenty_is_refused(tmp_path: Path, bad: int, refused: bool) -> None:
    folder(tmp_path)
    for index in range(bad):
        (tmp_path / "0" / f"{4 * index:03}.png").write_bytes(WHOLE[:200])
    if not refused:
        assert len(open_data(tmp_path, scorer(), preparation=RAW)) == 95
        return
    with pytest.raises(BadInput, match=r"6 of 100 images cannot be read, more than 5\.0 %") as it:
        open_data(tmp_path, scorer(), preparation=RAW)
    assert "0/000.png (truncated)" in str(it.value) and "and 1 more" in str(it.value)
    assert "\n" not in str(it.value)


def test_nothing_but_broken_images(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"")
    with pytest.raises(BadInput, match="1 of 1 images cannot be read"):
        open_data(tmp_path, scorer(), preparation=RAW)


def test_a_class_that_has_nothing_left_keeps_its_number(tmp_path: Path) -> None:
    for name in ("ant", "bee", "cow"):
        for index in range(20 if name != "bee" else 0):
            saved(tmp_path / name / f"{index}.png", noise(9, 9, index))
    (tmp_path / "bee").mkdir()
    (tmp_path / "bee" / "x.jpg").write_bytes(b"")
    data = open_data(tmp_path, scorer(), preparation=RAW)
    assert {int(s.label[0]) for s in data if s.label is not None} == {0, 2}
    assert "class 1 (bee) has no samples left" in data.notes


def test_an_empty_folder_is_a_class_where_the_model_has_as_many(tmp_path: Path) -> None:
    for name in ("ant", "bee", "cow"):
        (tmp_path / name).mkdir()
        if name != "bee":
            saved(tmp_path / name / "0.png", noise(9, 9))
    for classes, last in ((3, 2), (2, 1)):
        data = open_data(tmp_path, scorer(classes=classes), preparation=RAW)
        assert [int(s.label[0]) for s in data if s.label is not None] == [0, last]


def test_others_take_the_place_of_what_is_left_out(tmp_path: Path) -> None:
    for index in range(0, 100, 25):
        (folder(tmp_path) / "0" / f"{index:03}.jpg").write_bytes(WHOLE[:300])
    data = open_data(tmp_path, scorer(), preparation=RAW, samples=40)
    assert len(data) == 40 and not any(s.name.endswith(".jpg") for s in data)


def test_only_what_is_taken_is_looked_at(tmp_path: Path) -> None:
    folder(tmp_path)
    taken = {s.name for s in open_data(tmp_path, scorer(), preparation=RAW, samples=8)}
    for path in tmp_path.glob("*/*.png"):
        if f"{path.parent.name}/{path.name}" not in taken:
            path.write_bytes(b"")
    data = open_data(tmp_path, scorer(), preparation=RAW, samples=8)
    assert {s.name for s in data} == taken and not data.notes


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs rights to be refused")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (folder(tmp_path) / "0" / "000.png").chmod(0)
    assert "(permission denied)" in open_data(tmp_path, scorer(), preparation=RAW).notes[0]


def test_an_image_that_is_all_but_a_line_is_none(tmp_path: Path) -> None:
    path = saved(tmp_path / "line.png", noise(1, 5000))
    assert image_fault(path) == "5000×1 pixels"
    with pytest.raises(BadInput, match="5000×1 pixels"):
        decode(path, Picture(8, 8, 3, -1), Preparation())


@pytest.mark.parametrize("kind", ["EPS", "ICO", "PCX", "SGI"])
def test_what_is_in_a_file_is_of_a_format_that_is_read_whatever_its_name(
    tmp_path: Path, kind: str
) -> None:
    """Pillow goes by the content, and has Ghostscript run what is PostScript."""
    Image.fromarray(noise(32, 32)).save(tmp_path / "a.png", kind)
    assert image_fault(tmp_path / "a.png") == "no image"
    with pytest.raises(BadInput, match="no image"):
        decode(tmp_path / "a.png", Picture(8, 8, 3, -1), Preparation())


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("progressive", [False, True])
def test_any_cut_is_seen_and_no_whole_image_is_blamed(
    tmp_path: Path, kind: str, progressive: bool
) -> None:
    stream = io.BytesIO()
    Image.fromarray(noise(40, 30)).save(stream, kind, progressive=progressive)
    content, path = stream.getvalue(), tmp_path / "a"
    path.write_bytes(content)
    assert image_fault(path) == ""
    path.write_bytes(content + (b"more" if kind == "JPEG" else b""))
    assert image_fault(path) == ""
    for end in np.linspace(0, len(content) * 0.95, 25).astype(int):
        path.write_bytes(content[:end])
        assert image_fault(path)


def test_damage_that_shows_late_is_one_line_with_the_name(tmp_path: Path) -> None:
    path = folder(tmp_path) / "3" / "003.png"
    data = open_data(tmp_path, scorer(), preparation=RAW)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(BadInput, match=r"003\.png: not a readable image \(truncated\)"):
        list(data)
