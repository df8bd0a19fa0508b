"""Segmenters are taught from pictures with masks, and what cannot be is said in one line."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import litesmith
from litesmith import BadInput
from litesmith.run.session import Session
from litesmith.tasks.segmentation import IGNORED
from litesmith.tflite.file import load, save
from litesmith.tflite.read_metadata import metadata
from litesmith.training.teaching.moved_pictures import draw_moves, move_maps, move_pictures
from litesmith.training.teaching.picture_result import TaughtNetwork
from tests.training.teaching.test_detector_teaching import backbone


def write_masks(folder: Path, count: int, numbers: tuple[int, ...] = (1, 3), seed: int = 0) -> Path:
    """Pictures with a bright square on the left or a dark one on the right, and where it is."""
    random = np.random.default_rng(seed)
    for kind in ("images", "masks"):
        (folder / kind).mkdir(parents=True)
    for place in range(count):
        pixels, mask = random.normal(128, 12, (64, 64, 3)), np.zeros((64, 64), np.uint8)
        number, left, top = place % len(numbers), *random.integers(4, 28, 2)
        pixels[top : top + 28, left : left + 28] = (240, 60, 30) if number else (20, 60, 230)
        mask[top : top + 28, left : left + 28] = numbers[number]
        mask[0] = IGNORED if len(numbers) > 1 else 0
        for kind, values in (("images", pixels.clip(0, 255)), ("masks", mask)):
            Image.fromarray(values.astype(np.uint8)).save(folder / kind / f"{place}.png")
    return folder


def taught(place: Path, **more: object) -> TaughtNetwork:
    options: dict[str, object] = {"norm": "tf", "epochs": 6.0, "rate": 0.01, "augment": "flip"}
    given = (place / "backbone.tflite", place / "train", place / "out.tflite")
    found = litesmith.retrain(*given, **options | more)  # pyright: ignore
    assert isinstance(found, TaughtNetwork)
    return found


def test_a_segmenter_is_taught_judged_quantized_and_shown_without_a_flag(tmp_path: Path) -> None:
    save(backbone(), tmp_path / "backbone.tflite")
    write_masks(tmp_path / "train", 40)
    write_masks(tmp_path / "val", 12, seed=1)
    found = taught(tmp_path, val=tmp_path / "val", evidence=tmp_path / "evidence")
    assert found.value > 0.5 and found.low <= found.value <= found.high and found.n == 12
    assert found.classes == ("background", "class 1", "class 2", "class 3")
    assert found.found.wanted == (12, 6, 0, 6) and found.to_json()["metric"] == "miou"
    assert metadata(load(found.out)).labels == found.classes
    with Session(found.out, "cpu:1") as session:
        session.run()
        assert session.outputs["scores"].shape == (1, 64, 64, 4)
    again = litesmith.evaluate(found.out, tmp_path / "val")
    assert again.metric == "miou" and again.value == pytest.approx(found.value)
    small = litesmith.quantize(found.out, tmp_path / "train", effort="quick", runs=1)
    small.save(tmp_path / "int8.tflite")
    int8 = litesmith.evaluate(tmp_path / "int8.tflite", tmp_path / "val")
    assert int8.value > found.value - 0.1
    assert found.report is not None
    page = found.report.read_text("utf-8")
    assert "Mean IoU" in page and "data:image/jpeg" in page and "class 2" not in page


def test_white_masks_are_one_class_and_what_cannot_be_taught_is_said(tmp_path: Path) -> None:
    save(backbone(), tmp_path / "backbone.tflite")
    write_masks(tmp_path / "train", 24, (IGNORED,))
    assert taught(tmp_path, epochs=1.0).classes == ("background", "class 1")
    (tmp_path / "names.txt").write_text("nothing\nsquare\n")
    named = taught(tmp_path, epochs=1.0, class_names=str(tmp_path / "names.txt"))
    assert named.classes == ("nothing", "square")
    with pytest.raises(BadInput, match=r"raw.*: is for detectors"):
        taught(tmp_path, raw=True)
    write_masks(tmp_path / "none" / "train", 20, (0,))
    save(backbone(), tmp_path / "none" / "backbone.tflite")
    with pytest.raises(BadInput, match="its masks show nothing but background"):
        taught(tmp_path / "none")
    given = tmp_path / "backbone.tflite", tmp_path / "train" / "images"
    with pytest.raises(BadInput, match="no masks there"):
        litesmith.retrain(*given, task="segmentation")


@pytest.mark.parametrize("how", ["auto", "flip", "shift", "none"])
@pytest.mark.parametrize("seed", range(3))
def test_a_mask_goes_where_its_picture_goes(how: str, seed: int) -> None:
    maps = torch.zeros((2, 32, 32), dtype=torch.uint8)
    maps[:, 6:20, 10:26] = 1
    pictures = maps[..., None].expand(-1, -1, -1, 3) * 255.0
    moves = torch.from_numpy(draw_moves(2, how, np.random.default_rng(seed)))
    moved, found = move_pictures(pictures, moves)[..., 0], move_maps(maps, moves)
    known = found != IGNORED
    bright = moved > (moved[known].min() + moved[known].max()) / 2
    assert float((bright == (found == 1))[known].float().mean()) > 0.95
