"""Where an image lies in a model's input: turned upright or as it lies, squashed or in a letterbox,
and the same boxes, points and masks are found."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import litesmith
from examples.tasks.make import COLOURS, SIDE, SQUARE, detector, segmenter
from litesmith.data.preparation import read_preparation
from litesmith.errors import BadInput
from litesmith.tflite.file import save

HIGH = SIDE // 2
# How pixels that are right are laid down, so that the note of that number turns them upright.
LAID = {
    1: lambda pixels: pixels,
    3: lambda pixels: pixels[::-1, ::-1],
    6: lambda pixels: np.rot90(pixels, 1),
    8: lambda pixels: np.rot90(pixels, -1),
}


def scene(random: np.random.Generator) -> tuple[np.ndarray, int, int, int]:
    """A wide image with a square: pixels, the class, left and top of it."""
    pixels = random.integers(0, 40, (HIGH, SIDE, 3)).astype(np.uint8)
    kind, left, top = int(random.integers(0, 2)), *(4 * random.integers(0, (7, 3)))
    pixels[top : top + SQUARE, left : left + SQUARE, kind] = 230
    return pixels, kind, int(left), int(top)


def write(folder: Path, form: str, note: int = 1, *, as_laid: bool = False) -> Path:
    """Wide scenes whose files have a note of how to turn them; boxes are those of the upright
    image, or of the image as it lies."""
    random = np.random.default_rng(0)
    for name in ("images", "labels") if form == "yolo" else ("Annotations", "JPEGImages"):
        (folder / name).mkdir(parents=True)
    place = folder / ("images" if form == "yolo" else "JPEGImages")
    images, told = [], []
    exif = Image.Exif()
    exif[0x0112] = note
    for number in range(16):
        pixels, kind, left, top = scene(random)
        mark = np.zeros(pixels.shape[:2], bool)
        mark[top : top + SQUARE, left : left + SQUARE] = True
        laid = np.ascontiguousarray(LAID[note](pixels))
        file = place / f"{number}.jpg"
        Image.fromarray(laid).save(file, quality=98, subsampling=0, exif=exif.tobytes())
        rows, columns = np.nonzero(LAID[note](mark) if as_laid else mark)
        high, wide = laid.shape[:2] if as_laid else pixels.shape[:2]
        left, top = int(columns.min()), int(rows.min())
        size = {"width": wide, "height": high}
        images.append({"id": number, "file_name": file.name, **size})
        box = [left, top, SQUARE, SQUARE]
        told.append({"id": number, "image_id": number, "category_id": 1 + kind, "bbox": box})
        if form == "yolo":
            share = SQUARE / wide, SQUARE / high
            middle = left / wide + share[0] / 2, top / high + share[1] / 2
            words = map(str, (kind, *middle, *share))
            (folder / "labels" / f"{number}.txt").write_text(" ".join(words))
        elif form == "voc":
            sides = {"xmin": left + 1, "ymin": top + 1, "xmax": left + 8, "ymax": top + 8}
            text = "".join(f"<{name}>{value}</{name}>" for name, value in sides.items())
            size_text = "".join(f"<{name}>{value}</{name}>" for name, value in size.items())
            (folder / "Annotations" / f"{number}.xml").write_text(
                f"<annotation><filename>{file.name}</filename><size>{size_text}</size><object>"
                f"<name>{COLOURS[kind]}</name><bndbox>{text}</bndbox></object></annotation>"
            )
    (folder / "classes.txt").write_text("\n".join(COLOURS))
    if form == "coco":
        names = [{"id": 1 + n, "name": name} for n, name in enumerate(COLOURS)]
        content = {"images": images, "annotations": told, "categories": names}
        (folder / "instances.json").write_text(json.dumps(content))
    return folder


def precision(folder: Path, data: Path, **options: str) -> float:
    save(detector(), folder / "model.tflite")
    (folder / "names.txt").write_text("\n".join(COLOURS))
    names = str(folder / "names.txt")
    model = folder / "model.tflite"
    return litesmith.evaluate(model, data, norm="unit", class_names=names, **options).value


@pytest.mark.parametrize("form", ["coco", "voc", "yolo"])
@pytest.mark.parametrize("note", LAID)
def test_boxes_of_the_upright_image(tmp_path: Path, form: str, note: int) -> None:
    data = write(tmp_path / "data", form, note)
    assert precision(tmp_path, data, resize="letterbox") == 1


@pytest.mark.parametrize("form", ["coco", "voc"])
@pytest.mark.parametrize("note", [6, 8])
def test_boxes_of_the_image_as_it_lies(tmp_path: Path, form: str, note: int) -> None:
    data = write(tmp_path / "data", form, note, as_laid=True)
    assert precision(tmp_path, data, resize="letterbox") == 1


def test_a_detector_of_shapes_needs_the_letterbox(tmp_path: Path) -> None:
    data = write(tmp_path / "data", "coco")
    assert precision(tmp_path, data, resize="letterbox") == 1
    assert precision(tmp_path, data) < 0.5  # squashed, the squares are none


def test_a_map_in_a_letterbox(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    for name in ("images", "masks"):
        (tmp_path / "data" / name).mkdir(parents=True)
    for number in range(6):
        pixels, kind, left, top = scene(random)
        mask = np.zeros((HIGH, SIDE), np.uint8)
        mask[top : top + SQUARE, left : left + SQUARE] = 1 + kind
        Image.fromarray(pixels).save(tmp_path / "data" / "images" / f"{number}.png")
        Image.fromarray(mask).save(tmp_path / "data" / "masks" / f"{number}.png")
    save(segmenter(), tmp_path / "model.tflite")
    given = tmp_path / "model.tflite", tmp_path / "data"
    assert litesmith.evaluate(*given, norm="unit", resize="letterbox").value == 1


def test_points_in_a_letterbox(tmp_path: Path) -> None:
    """A model that tells the same two places of every input: where a wide image has its own."""
    (tmp_path / "data").mkdir()
    Image.new("RGB", (SIDE, HIGH)).save(tmp_path / "data" / "a.png")
    inner = [(4.0, 2.0), (20.0, 10.0)]
    body = {
        "id": 0,
        "image_id": 0,
        "category_id": 1,
        "bbox": [0, 0, SIDE, HIGH],
        "area": SIDE * HIGH,
        "keypoints": [number for x, y in inner for number in (x, y, 2)],
    }
    image = {"id": 0, "file_name": "a.png", "width": SIDE, "height": HIGH}
    content = {"images": [image], "annotations": [body], "categories": [{"id": 1, "name": "x"}]}
    (tmp_path / "data" / "points.json").write_text(json.dumps(content))
    b = litesmith.Builder()
    x = b.input("image", (1, SIDE, SIDE, 3))
    none = b.op("MUL", b.op("MEAN", x, [1, 2, 3]), np.zeros(1, np.float32))
    places = np.float32([[x, y + (SIDE - HIGH) / 2] for x, y in inner]).reshape(1, 4)
    save(b.model(b.op("ADD", b.op("RESHAPE", none, [1, 1]), places)), tmp_path / "model.tflite")
    given = tmp_path / "model.tflite", tmp_path / "data"
    boxed, squashed = (
        litesmith.evaluate(*given, norm="unit", metric="oks", task="keypoints", **more).value
        for more in ({"resize": "letterbox"}, {})
    )
    assert (boxed, squashed) == (1, pytest.approx(0, abs=0.5))


def test_a_letterbox_keeps_all_of_an_image() -> None:
    with pytest.raises(BadInput, match="a letterbox keeps all of an image; leave out crop"):
        read_preparation(resize="letterbox", crop=0.5)
