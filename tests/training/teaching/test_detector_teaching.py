"""Detectors are taught from pictures with boxes, and what cannot be is said in one line."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import litesmith
from litesmith import BadInput, Builder, Model
from litesmith.calibration.claims import check_claims
from litesmith.evidence.folder import RETRAIN
from litesmith.progress import Status
from litesmith.run.session import Session
from litesmith.tflite.file import digest, load, save
from litesmith.tflite.read_metadata import metadata
from litesmith.training.teaching.picture_result import TaughtNetwork
from tests.zoo import noise

COLOURS = {"blue": (30, 60, 220), "red": (220, 40, 30)}


def backbone(size: int = 64) -> Model:
    """Random filters that see colours, down to a map of stride 8 and one of 16."""
    b = Builder()
    x = b.input("image", (1, size, size, 3))
    for place, wide in enumerate((12, 16, 24, 24)):
        weight = noise(wide, 3, 3, x.shape[3], seed=place) * 2 / x.shape[3] ** 0.5
        x = b.op("CONV_2D", x, weight, noise(wide, seed=9), stride_h=2, stride_w=2)
        x = b.op("RELU", x)
    return b.model(b.op("MEAN", x, [1, 2]), signature="serve")


def write_boxes(folder: Path, count: int, seed: int = 0, *, empty: int = 0) -> Path:
    """Pictures with two squares of different colours, some without any, in COCO's form."""
    random = np.random.default_rng(seed)
    (folder / "images").mkdir(parents=True)
    images: list[dict[str, object]] = []
    boxes: list[dict[str, object]] = []
    for number in range(count):
        pixels = random.normal(128, 12, (80, 80, 3))
        for kind, colour in enumerate(COLOURS.values()) if number >= empty else ():
            side = int(random.integers(20, 34))
            left, top = (
                int(random.integers(0, 40 - side + 1) + 40 * kind),
                int(random.integers(0, 80 - side)),
            )
            left = min(left, 80 - side)
            pixels[top : top + side, left : left + side] = colour
            box = [left, top, side, side]
            boxes.append({"id": len(boxes), "image_id": number, "category_id": kind, "bbox": box})
        name = f"{number:03d}.png"
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / "images" / name)
        images.append({"id": number, "file_name": name, "width": 80, "height": 80})
    told = {
        "images": images,
        "annotations": boxes,
        "categories": [{"id": n, "name": name} for n, name in enumerate(COLOURS)],
    }
    (folder / "instances.json").write_text(json.dumps(told))
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("detector")
    save(backbone(), folder / "backbone.tflite")
    write_boxes(folder / "train", 64, empty=4)
    write_boxes(folder / "val", 16, seed=1, empty=2)
    return folder


def taught(place: Path, out: str = "out.tflite", **more: object) -> TaughtNetwork:
    options: dict[str, object] = {"norm": "tf", "epochs": 6.0, "rate": 0.01, "augment": "flip"}
    found = litesmith.retrain(
        place / "backbone.tflite",
        place / "train",
        place / out,
        **options | more,  # pyright: ignore
    )
    assert isinstance(found, TaughtNetwork)
    return found


@pytest.fixture(scope="module")
def found(place: Path) -> TaughtNetwork:
    return taught(place, val=place / "val", evidence=place / "evidence")


def test_two_classes_are_found_and_the_file_is_judged_without_a_flag(
    place: Path, found: TaughtNetwork
) -> None:
    assert found.classes == ("blue", "red") and found.value > 0.2 and found.n == 16
    assert found.low <= found.value <= found.high
    again = litesmith.evaluate(found.out, place / "val", metric="ap50")
    assert again.value == pytest.approx(found.value)
    assert metadata(load(found.out)).labels == found.classes


def test_an_interpreter_reads_it(found: TaughtNetwork) -> None:
    with Session(found.out, "cpu:1") as session:
        session.run()
        assert {name: a.shape for name, a in session.outputs.items()} == {
            "boxes": (1, 100, 4),
            "classes": (1, 100),
            "scores": (1, 100),
            "count": (1,),
        }


def test_training_to_int8_follows_the_boxes_that_the_last_op_chooses_among(
    place: Path, found: TaughtNetwork
) -> None:
    out = place / "qat.tflite"
    litesmith.qat(found.out, place / "train", out=out, epochs=1, rate=1e-3)
    claims = check_claims(out, load(found.out), None, profiled=False)
    assert claims.worst is None and not claims.is_useless
    again = litesmith.evaluate(out, place / "val", metric="ap50")
    assert again.value > found.value - 0.2


def test_the_page_has_the_worst_pictures_and_the_curves(place: Path, found: TaughtNetwork) -> None:
    assert found.report is not None and (place / "evidence" / RETRAIN).exists()
    page = found.report.read_text("utf-8")
    assert "data:image/jpeg" in page and "AP50" in page
    assert page.count("<polyline") >= 2 or page.count("<path") >= 2
    assert found.to_json()["metric"] == "ap50" and len(found.to_rows()) == 2


def test_without_the_choice_among_boxes_the_answers_are_as_good(
    place: Path, found: TaughtNetwork
) -> None:
    raw = taught(place, "raw.tflite", val=place / "val", raw=True)
    assert [t.shape for t in load(raw.out).main.outputs] == [(1, 80, 4), (1, 80, 2)]
    assert raw.value == pytest.approx(found.value, abs=0.05)
    assert litesmith.evaluate(raw.out, place / "val", metric="ap50").value == pytest.approx(
        raw.value
    )


def test_an_interrupted_training_ends_in_the_same_file(place: Path) -> None:
    settings = {"epochs": 2.0, "record_every": 0.0, "fine_tune": "last"}
    whole = taught(place, "uncut.tflite", evidence=place / "uncut", **settings)
    assert whole.tuned is not None and whole.report is not None and whole.report.exists()
    seen: list[object] = []

    def stop(event: object) -> None:
        seen.append(event)
        if isinstance(event, Status) and "AP50" in str(event.more) and event.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        taught(place, "cut.tflite", progress=stop, **settings)
    assert (place / "cut.tflite.training").is_dir() and not (place / "cut.tflite").exists()
    resumed = taught(place, "cut.tflite", resume=True, **settings)
    assert digest(resumed.out) == digest(whole.out)


def test_one_class_is_enough(place: Path, tmp_path: Path) -> None:
    write_boxes(tmp_path / "train", 24)
    told = json.loads((tmp_path / "train" / "instances.json").read_text("utf-8"))
    told["annotations"] = [one for one in told["annotations"] if one["category_id"] == 1]
    (tmp_path / "train" / "instances.json").write_text(json.dumps(told))
    save(backbone(), tmp_path / "backbone.tflite")
    found = taught(tmp_path, epochs=1.0, norm=None)
    assert found.classes == ("red",)
    assert any("assumed" in note for note in found.notes)


def test_boxes_outside_their_pictures_are_left_out_and_said(tmp_path: Path) -> None:
    write_boxes(tmp_path / "train", 24)
    told = json.loads((tmp_path / "train" / "instances.json").read_text("utf-8"))
    told["annotations"][0]["bbox"] = [500, 500, 10, 10]
    (tmp_path / "train" / "instances.json").write_text(json.dumps(told))
    save(backbone(), tmp_path / "backbone.tflite")
    found = taught(tmp_path, epochs=1.0)
    assert sum(found.learned) + sum(found.found.wanted) == 47
    assert any("outside" in note or "extent" in note for note in found.notes)


def test_what_cannot_be_taught_is_said_in_one_line(place: Path, tmp_path: Path) -> None:
    write_boxes(tmp_path / "train", 3)
    save(backbone(), tmp_path / "backbone.tflite")
    with pytest.raises(BadInput, match="pictures are too few to learn from; give 16 or more"):
        taught(tmp_path)
    write_boxes(tmp_path / "bare" / "train", 20, empty=20)
    save(backbone(), tmp_path / "bare" / "backbone.tflite")
    with pytest.raises(BadInput, match="there is nothing to find in its images"):
        taught(tmp_path / "bare", task="detection")
    b = Builder()
    flat = b.op("RESHAPE", b.input("image", (1, 64, 64, 3)), [1, 64 * 64 * 3])
    save(
        b.model(b.op("FULLY_CONNECTED", flat, noise(8, 64 * 64 * 3))), tmp_path / "backbone.tflite"
    )
    with pytest.raises(BadInput, match="has no map in which a place stands for"):
        litesmith.retrain(tmp_path / "backbone.tflite", place / "train", tmp_path / "o.tflite")
    with pytest.raises(BadInput, match="no head is taught for it; there are classification"):
        taught(place, task="keypoints")
    with pytest.raises(BadInput, match="is for classifiers"):
        taught(place, at="pooled")
    with pytest.raises(BadInput, match="no boxes there"):
        litesmith.retrain(place / "backbone.tflite", place / "val" / "images", task="detection")
