"""Copies and near copies are one group, samples that are not stay apart, and splits keep groups."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from litesmith import Builder, Model
from litesmith.data.preparation import Preparation
from litesmith.data.sample_splits import item_groups, sample_groups, split_data
from litesmith.data.samples import Data
from litesmith.data.sources import open_data
from litesmith.errors import BadInput
from tests.draws import draws

RAW = Preparation(norm="raw")


def reading(*shape: int) -> Model:
    b = Builder()
    return b.model(b.op("RELU", b.input("x", shape)))


def count(data: Data) -> int:
    return len(np.unique(item_groups(data)))


def sets(groups: np.ndarray, names: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(names[groups == group].tolist()) for group in groups}


def pictures(number: int, size: int = 24, seed: int = 0) -> np.ndarray:
    """Pictures with large shapes, as photographs have them."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, (number, 4, 4, 3)).astype(np.uint8)
    smooth = [Image.fromarray(c).resize((size, size), Image.Resampling.BICUBIC) for c in coarse]
    return np.stack([np.asarray(one) for one in smooth])


@draws(15)
@given(st.integers(4, 40), st.integers(5, 60), st.integers(1, 6), st.integers(0, 999))
def test_copies_are_found_in_any_order(width: int, number: int, copies: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    first = random.normal(size=(number, width)).astype(np.float32)
    noise = random.normal(size=(number * copies, width)) * 1e-4
    rows = (np.tile(first, (copies, 1)) + noise).astype(np.float32)
    names, order = np.arange(len(rows)), random.permutation(len(rows))
    groups = item_groups(open_data({"x": rows}, reading(1, width)))
    mixed = item_groups(open_data({"x": rows[order]}, reading(1, width)))
    assert sets(groups, names) == sets(mixed, order)
    assert all((groups[names % number == n] == groups[n]).all() for n in range(number))
    assert width < 8 or len(np.unique(groups)) == number


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8, 16, 64, 600])
def test_independent_samples_stay_apart(width: int) -> None:
    random = np.random.default_rng(width)
    rows = random.normal(size=(1500, width)).astype(np.float32)
    curved = np.tanh(rows[:, :1] @ random.normal(size=(1, 30))).astype(np.float32)
    assert count(open_data({"x": rows}, reading(1, width))) >= 1495
    assert count(open_data({"x": curved}, reading(1, 30))) >= 1495


def test_near_copies_of_many_samples() -> None:
    random = np.random.default_rng(0)
    first = random.normal(size=(900, 20))
    rows = np.tile(first, (4, 1)) + 0.02 * random.normal(size=(3600, 20))
    groups = item_groups(open_data({"x": rows.astype(np.float32)}, reading(1, 20)))
    assert 900 <= len(np.unique(groups)) <= 920


def test_near_copies_of_pictures() -> None:
    images = pictures(30, 32)
    random = np.random.default_rng(1)
    brighter = (images * 0.8 + 30).astype(np.uint8)
    noisy = np.clip(images + random.normal(0, 8, images.shape), 0, 255).astype(np.uint8)
    copies = np.concatenate([images, brighter, noisy, images[:, :, ::-1]])
    data = open_data({"x": copies}, reading(1, 32, 32, 3), preparation=RAW)
    assert count(data) == 30
    assert count(open_data({"x": pictures(300)}, reading(1, 24, 24, 3), preparation=RAW)) >= 295


@pytest.mark.parametrize("batch", [1, 2])
def test_parts_have_no_group_in_common(batch: int) -> None:
    random = np.random.default_rng(3)
    rows = np.tile(random.normal(size=(20, 12)), (6, 1))
    rows = (rows + 1e-3 * random.normal(size=rows.shape)).astype(np.float32)
    rows = rows[np.argsort(np.arange(120) % 20, kind="stable")]
    data = open_data({"x": rows}, reading(batch, 12))
    assert len(np.unique(sample_groups(data))) == 20
    parts = split_data(data, (0.2, 0.3, 0.5))
    assert sum(map(len, parts)) == len(data)
    assert sum(count(part) for part in parts) == 20


def folder_of_pictures(place: Path) -> Path:
    for number, image in enumerate(pictures(12)):
        path = place / f"c{number % 2}" / f"patient{number // 4}" / f"scan_{number % 4}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return place


def test_groups_by_the_users_word(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(12, 9)).astype(np.float32)
    arrays = {"x": rows, "who": np.array(list("aabbccddeeff"))}
    data = open_data(arrays, reading(1, 9), preparation=Preparation(group="who"))
    assert item_groups(data).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    place, model = folder_of_pictures(tmp_path), reading(1, 24, 24, 3)
    for asked, wanted in (
        ("folder", 6),
        ("folder:1", 2),
        (r"patient\d", 3),
        (r"(c\d)/patient(\d)", 6),
    ):
        try:
            data = open_data(place, model, preparation=Preparation(norm="raw", group=asked))
        except BadInput as error:  # deeper folders are read where folders are the groups
            assert not asked.startswith("folder") and "no images" in str(error)
            continue
        assert count(data) == wanted, asked


def test_a_pattern_in_names(tmp_path: Path) -> None:
    for number, image in enumerate(pictures(8)):
        Image.fromarray(image).save(tmp_path / f"video{number // 4}_{number}.png")
    model = reading(1, 24, 24, 3)

    def groups(asked: str) -> int:
        return count(open_data(tmp_path, model, preparation=Preparation(norm="raw", group=asked)))

    assert groups(r"^video\d") == groups(r"video(\d)_") == 2
    assert groups("none") == groups("") == 8
    for asked, told in (("video0", "says nothing of 4 of 8 files"), ("(", "no pattern")):
        with pytest.raises(BadInput, match=told):
            groups(asked)
    arrays = {"x": np.zeros((2, 9), np.float32)}
    with pytest.raises(BadInput, match=re.escape("needs an array of that name")):
        open_data(arrays, reading(1, 9), preparation=Preparation(group="who"))


def test_none_says_that_copies_are_independent() -> None:
    rows = np.zeros((10, 9), np.float32)
    assert count(open_data({"x": rows}, reading(1, 9))) == 1
    asked = Preparation(group="none")
    assert count(open_data({"x": rows}, reading(1, 9), preparation=asked)) == 10


def test_an_image_is_read_once_for_its_score_and_its_group(tmp_path: Path) -> None:
    for number, image in enumerate(pictures(6)):
        Image.fromarray(image).save(tmp_path / f"{number}.png")
    data = open_data(tmp_path, reading(1, 24, 24, 3), preparation=RAW)
    assert len(list(data)) == 6
    for path in tmp_path.iterdir():
        path.write_bytes(b"")  # what was read is known
    assert count(data) == 6


def test_quiet_clips_are_alike_only_where_they_are_copies() -> None:
    """Clips of near silence are close to each other beside loud ones, and are no copies for it."""
    random = np.random.default_rng(0)
    loudness = np.repeat([1.0, 0.01], 30)[:, None]
    clips = random.normal(size=(60, 4000)) * loudness
    again = clips[40:45] + random.normal(size=(5, 4000)) * 0.0005
    rows = np.concatenate([clips, again]).astype(np.float32)
    groups = item_groups(open_data({"x": rows}, reading(1, 4000)))
    assert len(np.unique(groups)) == 60
    assert (groups[40:45] == groups[60:]).all()
