"""Data as people have it: the same scene in three forms, and what is wrong with it."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import litesmith
from examples.tasks.make import COLOURS, SIDE, detector, masks, scenes, segmenter
from litesmith.errors import BadInput
from litesmith.tasks.annotations import find_annotations, read_coco, read_yolo
from litesmith.tasks.class_names import COCO_80, COCO_90, VOC_20, match_classes
from litesmith.tasks.outlines import draw_outline
from litesmith.tflite.file import save
from tests.platforms import posix

ENTITY = '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE x [<!ENTITY a "b">]><annotation/>'


def told(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "instances.json").read_text("utf-8"))


def as_voc(folder: Path, out: Path) -> Path:
    content = told(folder)
    (out / "Annotations").mkdir(parents=True)
    (out / "JPEGImages").mkdir()
    for image in content["images"]:
        name = image["file_name"]
        (out / "JPEGImages" / name).write_bytes((folder / "images" / name).read_bytes())
        things = ""
        for one in content["annotations"]:
            if one["image_id"] == image["id"]:
                x, y, w, h = one["bbox"]
                things += (
                    f"<object><name>{COLOURS[one['category_id'] - 1]}</name><bndbox><xmin>{x + 1}"
                    f"</xmin><ymin>{y + 1}</ymin><xmax>{x + w}</xmax><ymax>{y + h}</ymax></bndbox>"
                    "</object>"
                )
        text = f"<annotation><filename>{name}</filename><size><width>{SIDE}</width><height>{SIDE}</height></size>{things}</annotation>"  # noqa: E501
        (out / "Annotations" / f"{Path(name).stem}.xml").write_text(text)
    return out


def as_yolo(folder: Path, out: Path) -> Path:
    content = told(folder)
    (out / "images").mkdir(parents=True)
    (out / "labels").mkdir()
    (out / "data.yaml").write_text("nc: 2\nnames:\n  0: red\n  1: green\n")
    for image in content["images"]:
        name = image["file_name"]
        (out / "images" / name).write_bytes((folder / "images" / name).read_bytes())
        lines = []
        for one in content["annotations"]:
            if one["image_id"] == image["id"]:
                x, y, w, h = (side / SIDE for side in one["bbox"])
                lines.append(f"{one['category_id'] - 1} {x + w / 2} {y + h / 2} {w} {h}")
        (out / "labels" / f"{Path(name).stem}.txt").write_text("\n".join(lines))
    return out


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a detector and a segmenter, and data for both."""
    scenes(tmp_path / "coco")
    masks(tmp_path / "masks")
    save(detector(), tmp_path / "model.tflite")
    save(segmenter(), tmp_path / "map.tflite")
    return tmp_path


def test_three_forms_of_the_same_boxes(place: Path) -> None:
    model = place / "model.tflite"
    content = told(place / "coco")
    for one in content["annotations"][::2]:
        one["bbox"][0] += 1
    (place / "coco" / "instances.json").write_text(json.dumps(content))
    folders = [place / "coco", as_voc(place / "coco", place / "voc")]
    folders.append(as_yolo(place / "coco", place / "yolo"))
    (place / "labels.txt").write_text("\n".join(COLOURS))
    labels = str(place / "labels.txt")
    found = [litesmith.evaluate(model, one, norm="unit", class_names=labels) for one in folders]
    values = [one.value for one in found]
    assert 0.5 < values[0] < 1
    assert values == pytest.approx([values[0]] * 3)
    assert found[0].metric == "ap"
    assert found[0].n == 24


def test_a_file_of_annotations_is_enough(place: Path) -> None:
    whole = litesmith.evaluate(place / "model.tflite", place / "coco", norm="unit")
    file = litesmith.evaluate(
        place / "model.tflite", place / "coco" / "instances.json", norm="unit", metric="ap50"
    )
    assert file.value >= whole.value
    assert any("detection" in note for note in whole.notes)


def test_what_is_wrong_is_counted_and_named(place: Path) -> None:
    content = told(place / "coco")
    content["annotations"][0]["bbox"] = [500, 500, 8, 8]
    content["annotations"][1]["bbox"] = [5, 5, -8, 8]
    content["annotations"][2]["category_id"] = 77
    content["images"][3]["file_name"] = "gone.png"
    (place / "coco" / "instances.json").write_text(json.dumps(content))
    found = litesmith.evaluate(place / "model.tflite", place / "coco", norm="unit")
    notes = " ".join(found.notes)
    assert "boxes outside their image: 1, first annotation 0" in notes
    assert "boxes without extent: 1," in notes
    assert "annotations of unknown images or classes: 1," in notes
    assert "images that are not there: 1, first gone.png" in notes
    assert found.n == 23


def edited(**changes: object) -> Any:
    def edit(place: Path) -> None:
        file = place / "coco" / "instances.json"
        file.write_text(json.dumps(told(place / "coco") | changes))

    return edit


def written(name: str, content: bytes) -> Any:
    return lambda place: (place / name).write_bytes(content)


LARGE = b"BM" + bytes(8) + (54).to_bytes(4, "little") + (40).to_bytes(4, "little")
LARGE += (60000).to_bytes(4, "little") * 2 + b"\x01\0\x18\0" + bytes(24)

BAD = {
    "cut JSON": (written("coco/instances.json", b'{"images": ['), "coco", "not JSON"),
    "no list": (edited(images={"a": 1}), "coco", "images is no list of objects"),
    "a text as number": (
        edited(images=[{"id": "x", "file_name": "000.png", "width": 1, "height": 1}]),
        "coco",
        "id is 'x' where a whole number is needed",
    ),
    "no image there": (
        edited(images=[{"id": 0, "file_name": "no.png", "width": 9, "height": 9}]),
        "coco",
        "none of its images is there",
    ),
    "an image above": (
        edited(images=[{"id": 0, "file_name": "../model.tflite", "width": 9, "height": 9}]),
        "coco",
        "none of its images is there",
    ),
    "nothing to find": (edited(annotations=[]), "coco", "there is nothing to find"),
    "other classes": (
        edited(categories=[{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": "c"}]),
        "coco",
        "is one of the model's",
    ),
    "two files": (written("coco/more.json", b'{"images": []}'), "coco", "has 2 files of annot"),
    "colours in a mask": (
        lambda place: Image.new("RGB", (SIDE, SIDE)).save(place / "masks/masks/0.png"),
        "masks",
        "has colours, not classes",
    ),
    "an unknown class": (
        lambda place: Image.new("L", (SIDE, SIDE), 9).save(place / "masks/masks/0.png"),
        "masks",
        "pixel of class 9; the model's are 0 to 2",
    ),
    "a broken mask": (written("masks/masks/0.png", b"no"), "masks", "not a readable mask"),
    "a mask of PostScript": (
        lambda place: Image.new("L", (SIDE, SIDE)).save(place / "masks/masks/0.png", "EPS"),
        "masks",
        "not a readable mask (cannot identify",
    ),
    "a mask that is far too large": (
        written("masks/masks/0.png", LARGE),
        "masks",
        "not a readable mask (Image size (3600000000 pixels) exceeds limit",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_data_is_one_line(place: Path, name: str) -> None:
    spoil, source, why = BAD[name]
    spoil(place)
    model = place / ("map.tflite" if source == "masks" else "model.tflite")
    with pytest.raises(BadInput, match=r"^[^\n]+$") as told:
        litesmith.evaluate(model, place / source, norm="unit")
    assert why in str(told.value)


@pytest.mark.parametrize("number", [10**400, float("nan"), float("inf"), -1, 2**63, 1e308])
def test_numbers_that_are_none_of_an_image(tmp_path: Path, number: float) -> None:
    file = scenes(tmp_path / "coco") / "instances.json"
    good = told(file.parent)
    keys: dict[str, object] = {
        "bbox": [1, 1, number, 2],
        "area": number,
        "keypoints": [number] * 3,
        "segmentation": [[number] * 6],
    }
    runs = {"segmentation": {"counts": [number], "size": [2, number]}}
    for changes in (*({key: value} for key, value in keys.items()), runs):
        first, *others = good["annotations"]
        file.write_text(json.dumps(good | {"annotations": [first | changes, *others]}))
        for thing in (thing for some in read_coco(file).things for thing in some):
            draw_outline(thing.outline, thing.image, (8, 8))
    good["images"][0]["width"] = number
    file.write_text(json.dumps(good))
    with pytest.raises(BadInput, match=r"has no size|whole number"):
        read_coco(file)


def test_a_run_without_an_end_is_none() -> None:
    assert draw_outline({"counts": "o" * 1_000_000, "size": [3, 3]}, (9, 9), (5, 5)) is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"<annotation>", "not XML"),
        *(
            (
                b"<annotation><filename>000</filename><size><width>%s</width><height>8</height>"
                b"</size></annotation>" % word,
                "has no size",
            )
            for word in (b"nan", b"inf", b"1e999")
        ),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><annotation/>', "declare no entities"),
        (ENTITY.encode("utf-16"), "declare no entities"),
        (b'<?xml version="1.0" encoding="rot13"?><annotation/>', "not XML"),
        (b'<?xml version="1.0" encoding="nobody"?><annotation/>', "not XML"),
        (b"<annotation><filename>000</filename></annotation>", "size/width is None"),
    ],
)
def test_bad_xml_is_one_line(place: Path, content: bytes, why: str) -> None:
    folder = as_voc(place / "coco", place / "voc")
    (folder / "Annotations" / "000.xml").write_bytes(content)
    with pytest.raises(BadInput, match=r"^[^\n]+$") as told:
        litesmith.evaluate(place / "model.tflite", folder, norm="unit")
    assert why in str(told.value)


@pytest.mark.parametrize("line", ["red 1 2 3 4", "0 1 2", "0 a b c d"])
def test_bad_lines_are_one_line(place: Path, line: str) -> None:
    folder = as_yolo(place / "coco", place / "yolo")
    (folder / "labels" / "000.txt").write_text(line)
    with pytest.raises(BadInput, match="a line is `class centre-x"):
        litesmith.evaluate(place / "model.tflite", folder, norm="unit")


def test_masks_are_scored_by_pixel(place: Path) -> None:
    found = litesmith.evaluate(place / "map.tflite", place / "masks", norm="unit")
    assert (found.metric, found.value) == ("miou", 1.0)
    mask = np.asarray(Image.open(place / "masks/masks/0.png")).copy()
    mask[:] = np.where(mask == 0, 1, mask)
    Image.fromarray(mask).save(place / "masks/masks/0.png")
    assert litesmith.evaluate(place / "map.tflite", place / "masks", norm="unit").value < 1


def test_nothing_is_taken_for_annotations_that_is_not(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"a": 1}')
    assert find_annotations(tmp_path) is None


@posix
def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    """A folder may come out of an archive, which can hold pipes."""
    scenes(tmp_path / "coco")
    for ending in ("json", "xml", "yaml"):
        os.mkfifo(tmp_path / f"a.{ending}")
    assert find_annotations(tmp_path) is None
    assert read_yolo(as_yolo(tmp_path / "coco", tmp_path)).classes == ("red", "green")


def test_classes_by_name() -> None:
    assert (len(COCO_90), len(COCO_80), len(VOC_20)) == (90, 80, 20)
    assert match_classes(["cat", "Dog"], (), 80, "d").numbers == (15, 16)
    assert match_classes(["cat", "dog"], (), 90, "d").numbers == (16, 17)
    assert match_classes(["dining table", "tv", "ghost"], (), 20, "d").numbers == (10, 19, None)
    assert match_classes(["motorbike"], ["x", "motorcycle"], 2, "d").numbers == (1,)
    assert match_classes(["face"], (), 1, "d").numbers == (0,)
    with pytest.raises(BadInput, match=r"none of its classes .ghost. is one of the model's .x, y."):
        match_classes(["ghost"], ["x", "y"], 2, "d")


def test_black_and_white_masks_are_of_two_classes(place: Path) -> None:
    for path in (place / "masks" / "masks").glob("*.png"):
        mask = np.asarray(Image.open(path))
        white = np.where((mask > 0) & (mask < 255), 255, 0).astype(np.uint8)
        Image.fromarray(white).save(path)
    found = litesmith.evaluate(place / "map.tflite", place / "masks", norm="unit")
    assert any("white is taken for class 1" in note for note in found.notes)
    assert 0 < found.value < 1  # green squares are of class 2 to the model


@pytest.mark.parametrize("layout", ["yolov8", "ssd", "end2end", "blazeface"])
def test_a_layout_that_does_not_fit_is_refused(place: Path, layout: str) -> None:
    with pytest.raises(BadInput, match="are no boxes that are known; say how"):
        litesmith.evaluate(place / "model.tflite", place / "coco", norm="unit", decode=layout)


def test_a_gate_of_a_detector_tells_the_worse_from_the_same(place: Path) -> None:
    scenes(place / "many", 150, seed=4)
    baseline, off = place / "b.json", {"latency": "off", "memory": "off"}
    given = {"data": place / "many", "norm": "unit", "allow": off}
    litesmith.update_baseline(baseline, place / "model.tflite", **given)
    assert litesmith.gate(baseline, place / "model.tflite", **given).passes
    save(detector(noise=0.45), place / "worse.tflite")
    found = litesmith.gate(
        baseline, place / "worse.tflite", **given | {"allow": off | {"size": "off"}}
    )
    assert not found.passes


def test_the_normalisation_is_the_one_that_does_the_task(place: Path) -> None:
    weights = np.array([[0, 0, 0], [1, -1, 0], [-1, 1, 0]], np.float32).reshape(3, 1, 1, 3)
    b = litesmith.Builder()
    x = b.input("image", (1, SIDE, SIDE, 3))
    model = b.model(b.op("CONV_2D", x, weights / 64, np.float32([1.5, 0, 0])))  # pixels as they are
    save(model, place / "raw.tflite")
    found = litesmith.evaluate(place / "raw.tflite", place / "masks")
    assert found.value == 1
    assert any("normalisation raw (x) guessed: the task is done 100" in n for n in found.notes)
