"""Outlines are drawn as COCO's own tool draws them."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import litesmith
from examples.tasks.make import COLOURS, SQUARE, scenes, segmenter
from litesmith.errors import BadInput
from litesmith.tasks.outlines import draw_outline
from litesmith.tflite.file import save

HEIGHT, WIDTH = 24, 31


@given(st.integers(0, 300), st.floats(0, 1))
def test_runs_are_unpacked_as_coco_packs_them(seed: int, share: float) -> None:
    coco = pytest.importorskip("pycocotools.mask")
    mask = np.random.default_rng(seed).random((HEIGHT, WIDTH)) < share
    told = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
    told["counts"] = told["counts"].decode()
    found = draw_outline(told, (WIDTH, HEIGHT), (HEIGHT, WIDTH))
    assert found is not None
    assert (found == mask).all()
    flat = mask.T.reshape(-1)
    ends = np.flatnonzero(np.diff(np.concatenate([[0], flat.astype(int), [1 - int(flat[-1])]])))
    runs = np.diff([0, *ends]).tolist()
    plain = draw_outline(
        {"counts": runs, "size": [HEIGHT, WIDTH]}, (WIDTH, HEIGHT), (HEIGHT, WIDTH)
    )
    assert plain is not None
    assert (plain == mask).all()


@given(st.one_of(st.none(), st.text(), st.integers(), st.lists(st.integers()), st.just([[1, 2]])))
def test_what_is_no_outline_draws_nothing(given: object) -> None:
    assert draw_outline(given, (9, 9), (5, 5)) is None
    assert draw_outline({"counts": given, "size": [3, 3]}, (9, 9), (5, 5)) is None
    assert draw_outline({"counts": [9], "size": given}, (9, 9), (5, 5)) is None


def test_a_polygon_is_scaled_to_the_map() -> None:
    found = draw_outline([[10, 0, 20, 0, 20, 9, 10, 9]], (20, 10), (10, 10))
    assert found is not None
    assert found[:, 5:].mean() > 0.8
    assert not found[:, :4].any()


def outlined(folder: Path) -> Path:
    file = scenes(folder) / "instances.json"
    told = json.loads(file.read_text("utf-8"))
    for one in told["annotations"]:
        left, top = one["bbox"][:2]
        right, bottom = left + SQUARE - 1, top + SQUARE - 1
        one["segmentation"] = [[left, top, right, top, right, bottom, left, bottom]]
    file.write_text(json.dumps(told))
    return folder


def test_maps_are_scored_by_outlines(tmp_path: Path) -> None:
    save(segmenter(), tmp_path / "m.tflite")
    names = tmp_path / "names.txt"
    names.write_text("\n".join(("background", *COLOURS)))
    folder = outlined(tmp_path / "data")
    found = litesmith.evaluate(tmp_path / "m.tflite", folder, norm="unit", class_names=str(names))
    assert (found.metric, found.value) == ("miou", 1.0)
    told = json.loads((folder / "instances.json").read_text("utf-8"))
    for one in told["annotations"]:
        one["segmentation"] = 7
    (folder / "instances.json").write_text(json.dumps(told))
    with pytest.raises(BadInput, match="no outline of a thing can be read"):
        litesmith.evaluate(tmp_path / "m.tflite", folder, norm="unit", class_names=str(names))
