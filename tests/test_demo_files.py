"""The demo's model and data: small, real, and what they are said to be."""

import os
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from litesmith import BadInput, apply, evaluate, load
from litesmith.data.sources import open_data
from litesmith.demo_files import DATA, LICENCE, MODEL, TOP1, content, write
from litesmith.tflite.read_metadata import StatedNorm, metadata

NAMES = (LICENCE, DATA, MODEL)


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    with np.load(BytesIO(content(DATA)), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def test_they_are_under_a_megabyte_together() -> None:
    assert sum(len(content(name)) for name in NAMES) < 1_000_000


def test_the_data_is_images_with_labels(arrays: dict[str, np.ndarray]) -> None:
    x, y = arrays["x"], arrays["y"]
    assert x.shape == (1900, 28, 28, 1) and x.dtype == np.uint8
    assert y.shape == (1900,)
    assert set(y.tolist()) == set(range(10))
    assert np.bincount(y).min() > 150  # no class is rare


def test_no_image_is_there_twice(arrays: dict[str, np.ndarray]) -> None:
    x = arrays["x"]
    assert len({image.tobytes() for image in x}) == len(x)


def test_the_licence_is_the_data_sets_own() -> None:
    text = content(LICENCE).decode()
    assert "Copyright © 2017 Zalando SE" in text
    assert "this permission notice shall be included in all copies" in " ".join(text.split())


def test_the_model_says_how_to_feed_it() -> None:
    told = metadata(load(content(MODEL)))
    assert told.problem == ""
    assert told.inputs == (StatedNorm((0.0,), (255.0,)),)
    assert len(told.labels) == 10 and told.labels[9] == "ankle boot"


def test_the_model_scores_what_it_is_said_to_score(tmp_path: Path) -> None:
    model, data = write(tmp_path)
    samples = open_data(data, load(model))
    assert samples.notes == ("normalisation x / 255: from the model's metadata",)
    found = evaluate(model, samples)
    assert found.metric == "top1"
    assert found.value == pytest.approx(TOP1, abs=0.001)


def test_there_is_something_to_tidy() -> None:
    model = load(content(MODEL))
    tidy = apply(model, "cleanup | fold | fuse").model
    left = {op.kind for op in tidy.main.ops}
    assert {"PAD", "MUL", "ADD"} <= {op.kind for op in model.main.ops}
    assert not {"PAD", "MUL", "ADD"} & left


def test_written_files_are_the_ones_that_ship(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    assert write(folder) == (folder / MODEL, folder / DATA)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        name: content(name) for name in NAMES
    }
    write(folder)  # again is fine
    assert len(list(folder.iterdir())) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_where_one_file_cannot_be_written_none_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(BadInput, match="is a folder") as error:
        write(tmp_path)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"mine")
    for folder in (tmp_path / "taken", tmp_path / "taken" / "below"):
        with pytest.raises(BadInput, match=r"cannot be made a folder .*; choose another") as error:
            write(folder)
        assert "\n" not in str(error.value)
    assert (tmp_path / "taken").read_bytes() == b"mine"


def test_a_full_disk_leaves_nothing_and_the_old_file(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    (tmp_path / LICENCE).write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, before[1]))  # the data is larger
    try:
        with pytest.raises(BadInput, match="cannot be written") as error:
            write(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == [tmp_path / LICENCE]
    assert (tmp_path / LICENCE).read_bytes() == b"old"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write anywhere"
)
def test_a_protected_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BadInput, match="cannot be written"):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == []
