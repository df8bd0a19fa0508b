"""The image tasks for which a head can be taught, one row each: detection and segmentation."""

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw

from litesmith.data.preparation import Preparation
from litesmith.data.sources import Given
from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model
from litesmith.phrases import phrase
from litesmith.tasks.annotations import find_annotations
from litesmith.tasks.segmentation import IGNORED, Surveyed, has_masks, survey_masks
from litesmith.tasks.task import Shown, read_list
from litesmith.transfer.confusion import Mistake
from litesmith.transfer.detector import build_detector, finish_detector
from litesmith.transfer.feature_maps import STRIDES, FeatureMap
from litesmith.transfer.segmenter import SEGMENTER_STRIDES, build_segmenter, finish_segmenter
from litesmith.type_guards import is_path
from litesmith.units import plain

if TYPE_CHECKING:
    from litesmith.training.student import Student
    from litesmith.training.teaching.picture_course import PictureGoal, PictureSamples

_THUMB, _QUALITY = 160, 75
_TRUE, _SAID = (40, 200, 90), (220, 40, 40)


@dataclass(frozen=True)
class PictureTask:
    """A task of images.

    metric   the metric, and its word in the progress of the training
    strides  the strides of the maps that its head reads
    survey   the names of the classes of some data, and the largest class in each image
    build    a backbone, its maps, the number of classes and a seed -> a network to train
    finish   a trained network, its strides, and whether to leave it raw -> the model to ship
    goal     a network to train, images and strides -> the goal of its training; imports torch
    count    the label of an image and the number of classes -> its amount of each class
    draw     an image, its label, the network's answer, and the names -> a mistake to show
    """

    metric: str
    score: str
    strides: tuple[int, ...]
    survey: Callable[[Given, Preparation], Surveyed]
    build: Callable[[Model, Sequence[FeatureMap], int, int], Model]
    finish: Callable[[Model, Sequence[int], bool], Model]
    goal: Callable[["Student", "PictureSamples", Sequence[int]], "PictureGoal"]
    count: Callable[[Array, int], Array]
    draw: Callable[[str, Array, Array, Shown, Sequence[str]], Mistake]


# Detection.


def holds_boxes(source: Given) -> bool:
    """Whether the data is images with boxes."""
    return is_path(source) and Path(source).exists() and find_annotations(Path(source)) is not None


def _survey_boxes(data: Given, preparation: Preparation) -> Surveyed:
    del preparation
    found = find_annotations(Path(data)) if is_path(data) else None
    if found is None:
        raise BadInput(
            "{source}: no boxes there; give COCO's JSON, a folder with it, with `Annotations` of "
            "XML, or with `images` and `labels`",
            _source_text(data),
        )
    read, place = found
    boxes = read(place)
    used = {thing.name for some in boxes.things for thing in some}
    names = tuple(name for name in boxes.classes if name in used)
    pairs = zip(boxes.files, boxes.things, strict=True)
    largest = ((file, max(some, key=lambda thing: thing.area)) for file, some in pairs if some)
    return Surveyed(names, tuple((file, names.index(thing.name)) for file, thing in largest))


def _finish_detector(model: Model, strides: Sequence[int], raw: bool) -> Model:
    return finish_detector(model, strides, raw=raw)


def _detector_goal(
    student: "Student", samples: "PictureSamples", strides: Sequence[int]
) -> "PictureGoal":
    from litesmith.training.teaching.detector_goal import DetectorGoal

    return DetectorGoal(student, samples, strides)


def _count_boxes(label: Array, classes: int) -> Array:
    kinds = label[:, 0].astype(np.int64)
    return np.bincount(kinds[kinds >= 0], minlength=classes)


def _draw_boxes(
    name: str, pixels: Array, label: Array, answer: Shown, names: Sequence[str]
) -> Mistake:
    """A picture with the true boxes in green and those of the detector in red."""
    image = Image.fromarray(pixels)
    image.thumbnail((_THUMB, _THUMB))
    draw = ImageDraw.Draw(image)
    sides = (image.width, image.height) * 2
    rows = label[label[:, 0] >= 0].tolist()
    for boxes, colour in (
        ([row[1:5] for row in rows], _TRUE),
        ([mark.box for mark in answer.marks], _SAID),
    ):
        for box in boxes:
            corners = [value * side for value, side in zip(box, sides, strict=True)]
            draw.rectangle(corners, outline=colour, width=2)
    nothing = phrase("nothing")
    surest = max((float(m.words.rpartition(" ")[2]) for m in answer.marks), default=0.0)
    return Mistake(
        name,
        ", ".join(names[int(row[0])] for row in rows) or nothing,
        ", ".join(mark.words.rpartition(" ")[0] for mark in answer.marks[:3]) or nothing,
        surest,
        _thumbnail(image),
    )


# Segmentation.


def holds_masks(source: Given) -> bool:
    """Whether the data is images with masks."""
    return is_path(source) and has_masks(Path(source))


def _survey_masks(data: Given, preparation: Preparation) -> Surveyed:
    class_names = read_list(Path(preparation.class_names)) if preparation.class_names else ()
    found = survey_masks(Path(data), class_names) if is_path(data) else None
    if found is None:
        raise BadInput(
            "{source}: no masks there; give a folder with `images` and `masks`, which have the "
            "same names, or COCO's JSON with outlines",
            _source_text(data),
        )
    if not found.main:
        raise BadInput(
            "{source}: its masks show nothing but background; there is nothing to learn",
            _source_text(data),
        )
    return found


def _finish_segmenter(model: Model, strides: Sequence[int], raw: bool) -> Model:
    del strides, raw
    return finish_segmenter(model)


def _segmenter_goal(
    student: "Student", samples: "PictureSamples", strides: Sequence[int]
) -> "PictureGoal":
    from litesmith.training.teaching.segmenter_goal import SegmenterGoal

    return SegmenterGoal(student, samples, strides)


def _count_maps(label: Array, classes: int) -> Array:
    """1 for each class that the map has."""
    return np.isin(np.arange(classes), label).astype(np.int64)


def _draw_maps(
    name: str, pixels: Array, label: Array, answer: Shown, names: Sequence[str]
) -> Mistake:
    """An image with missed pixels in green, and wrongly predicted ones in red."""
    assert answer.mask is not None
    counts = label != IGNORED
    wrong = counts & (answer.mask != label)
    image = np.array(Image.fromarray(pixels).resize(label.shape[::-1]), np.float32)
    for where, colour in ((wrong & (answer.mask != 0), _SAID), (wrong & (label != 0), _TRUE)):
        image[where] = 0.4 * image[where] + 0.6 * np.array(colour, np.float32)
    shown = Image.fromarray(image.astype(np.uint8))
    shown.thumbnail((_THUMB, _THUMB))
    right = float((~wrong)[counts].mean()) if counts.any() else 1.0
    return Mistake(
        name,
        _mask_words(label[counts], names),
        _mask_words(answer.mask[counts], names),
        right,
        _thumbnail(shown),
    )


def _mask_words(numbers: Array, names: Sequence[str]) -> str:
    """The classes of pixels, the largest first, without the background."""
    found, counts = np.unique(numbers[numbers > 0], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:3]
    return ", ".join(names[int(number)] for number in found[order]) or phrase("nothing")


def _thumbnail(image: Image.Image) -> str:
    content = io.BytesIO()
    image.save(content, "JPEG", quality=_QUALITY)
    return base64.b64encode(content.getvalue()).decode()


def _source_text(data: Given) -> str:
    return plain(str(data)) if is_path(data) else type(data).__name__


PICTURE_TASKS = {
    "detection": PictureTask(
        "ap50",
        "AP",
        STRIDES,
        _survey_boxes,
        build_detector,
        _finish_detector,
        _detector_goal,
        _count_boxes,
        _draw_boxes,
    ),
    "segmentation": PictureTask(
        "miou",
        phrase("mean IoU"),
        SEGMENTER_STRIDES,
        _survey_masks,
        build_segmenter,
        _finish_segmenter,
        _segmenter_goal,
        _count_maps,
        _draw_maps,
    ),
}
