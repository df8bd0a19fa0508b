"""Segmentation: the class of every pixel."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model
from litesmith.phrases import phrase
from litesmith.tasks.annotations import (
    CROWD,
    IMAGE_ENDINGS,
    Annotated,
    find_annotations,
    mentions,
    read_coco,
)
from litesmith.tasks.class_names import match_classes
from litesmith.tasks.image_files import UNREADABLE, open_image
from litesmith.tasks.outlines import draw_outline
from litesmith.tasks.task import (
    Answer,
    Place,
    Rows,
    Settings,
    Shown,
    Task,
    TaskItems,
    model_labels,
)
from litesmith.units import plain, total_text

# The label of a pixel that does not count, as in the Pascal VOC and Cityscapes sets.
IGNORED = 255

# The usual names of folders of images, and of the folders of masks beside them.
_FOLDERS = (
    ("images", "masks"),
    ("JPEGImages", "SegmentationClass"),
    ("images", "labels"),
    ("images", "annotations"),
)
# The number of masks examined to tell whether masks are black and white.
_LOOKED_AT = 16

_MASKS = (".png", ".bmp", ".tif", ".tiff", ".gif")


@dataclass(frozen=True)
class SegmentationScorer:
    """Scores class maps; a single score per pixel is that of class 1."""

    def rows(self, metric: str, answer: Answer) -> Rows:
        raise NotImplementedError(metric)  # miou is shared with labels that belong to no task

    def goodness(self, answer: Answer) -> float:
        """The share of pixels that are right."""
        chosen, label = self.tell(answer).mask, answer.label[0]
        counts = label != IGNORED
        return float((chosen == label)[counts].mean()) if counts.any() else 0.0

    def tell(self, answer: Answer) -> Shown:
        output = next(o for o in answer.outputs if o.ndim >= 3)[0]
        if output.ndim == 3:
            output = output.argmax(-1) if output.shape[-1] > 1 else output[..., 0] > 0.5
        return Shown(mask=output.astype(np.int64))


def map_size(model: Model) -> tuple[int, int] | None:
    """Height and width of a model's class map; None where it outputs none."""
    for tensor in model.main.outputs:
        shape = tensor.shape
        is_map = len(shape) == 4 or (len(shape) == 3 and "int" in tensor.dtype)
        if is_map and min(shape[1:3]) > 1:
            return shape[1], shape[2]
    return None


def _find(source: Path) -> tuple[Path, Path] | None:
    if not source.is_dir():
        return None
    pairs = [(source / images, source / masks) for images, masks in _FOLDERS]
    return next((p for p in pairs if p[0].is_dir() and any(_files(p[1], _MASKS))), None)


def has_masks(source: Path) -> bool:
    """Whether a path is a folder of images with masks."""
    return _find(source) is not None


def _files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if p.suffix.lower() in endings and p.is_file())


def _open(source: Path, model: Model, settings: Settings) -> TaskItems:
    found, size = _find(source), map_size(model)
    if size is None:
        raise BadInput("{source}: the model makes no map of classes", plain(str(source)))
    annotations = None if found is not None else find_annotations(source)
    if found is not None:
        return _with_masks(source, *found, size, model)
    if annotations is not None and annotations[0] is read_coco:
        return _with_outlines(read_coco(annotations[1]), annotations[1], size, model, settings)
    raise BadInput(
        "{source}: no masks there; give a folder with `images` and `masks`, which have the same "
        "names, or COCO's JSON with outlines",
        plain(str(source)),
    )


class Surveyed(NamedTuple):
    """The contents of a folder of masks: the names of the classes by number, and for each image the
    class that fills most of it, without empty images."""

    names: tuple[str, ...]
    main: tuple[tuple[Path, int], ...]


def survey_masks(source: Path, names: Sequence[str] = ()) -> Surveyed | None:
    """The classes of all masks of a source, by these names; None where it has none."""
    found = _find(source)
    annotations = None if found is not None else find_annotations(source)
    if found is not None:
        return _survey_files(*found, names)
    if (
        annotations is None
        or annotations[0] is not read_coco
        or not mentions(annotations[1], b'"segmentation"')
    ):
        return None
    known = read_coco(annotations[1])
    used = {thing.name for some in known.things for thing in some}
    own = ("background", *(name for name in known.classes if name in used))
    numbers = {name: number for number, name in enumerate(names or own)}
    pairs = zip(known.files, known.things, strict=True)
    largest = ((file, max(some, key=lambda thing: thing.area)) for file, some in pairs if some)
    main = ((file, numbers.get(thing.name, 0)) for file, thing in largest)
    return Surveyed(tuple(names) or own, tuple(main))


def _survey_files(image_folder: Path, mask_folder: Path, names: Sequence[str]) -> Surveyed:
    masks = {path.stem: path for path in _files(mask_folder, _MASKS)}
    files = [file for file in _files(image_folder, IMAGE_ENDINGS) if file.stem in masks]
    counts = np.zeros((len(files), IGNORED + 1), np.int64)
    for place, file in enumerate(files):
        numbers = np.clip(_read_mask(masks[file.stem]), 0, IGNORED)
        counts[place] = np.bincount(numbers.reshape(-1), minlength=IGNORED + 1)
    shown = counts[:, 1:IGNORED]
    if not shown.any():  # white is class 1
        shown = counts[:, IGNORED:]
    most = max((np.flatnonzero(shown.any(axis=0)) + 1).tolist(), default=1)
    main = [
        (file, int(own.argmax()) + 1) for file, own in zip(files, shown, strict=True) if any(own)
    ]
    if len(names) > most:
        return Surveyed(tuple(names), tuple(main))
    own = ("background", *(f"class {number}" for number in range(1, most + 1)))
    return Surveyed((*names, *own[len(names) :]), tuple(main))


def _with_outlines(
    annotations: Annotated, place: Path, size: tuple[int, int], model: Model, settings: Settings
) -> TaskItems:
    """Maps drawn from the outlines of things, the large ones first; crowds do not count."""
    labels, classes = model_labels(model, settings), _class_count(model)
    numbers, notes = match_classes(annotations.classes, labels, classes, plain(str(place)))
    places = {
        n: place for n, place in zip(annotations.classes, numbers, strict=True) if place is not None
    }
    bad = sum(
        draw_outline(t.outline, t.image, (8, 8)) is None
        for some in annotations.things
        for t in some
    )
    if bad == sum(map(len, annotations.things)):
        raise BadInput("{place}: no outline of a thing can be read", plain(str(place)))
    if bad:
        notes = (*notes, phrase("things without an outline, left out: {count}", total_text(bad)))

    def label(index: int) -> Array:
        made = np.zeros(size, np.int32)
        for thing in sorted(annotations.things[index], key=lambda thing: -thing.area):
            shape = draw_outline(thing.outline, thing.image, size)
            if shape is not None:
                known = IGNORED if thing.state == CROWD else places.get(thing.name, IGNORED)
                made[shape] = known
        return made

    names = [file.name for file in annotations.files]
    notes_so_far = (*annotations.notes, *notes)
    return TaskItems(
        names,
        label,
        SegmentationScorer(),
        annotations.files,
        notes=notes_so_far,
        sizes=annotations.sizes,
        placed=_pad_around,
    )


def _class_count(model: Model) -> int:
    return next((t.shape[-1] for t in model.main.outputs if len(t.shape) == 4), IGNORED + 1)


def _with_masks(
    source: Path, image_folder: Path, mask_folder: Path, size: tuple[int, int], model: Model
) -> TaskItems:
    masks = {p.stem: p for p in _files(mask_folder, _MASKS)}
    images = _files(image_folder, IMAGE_ENDINGS)
    files = [p for p in images if p.stem in masks]
    if not files:
        raise BadInput("{source}: no image has a mask of its name", plain(str(source)))
    notes: tuple[str, ...] = ()
    if len(files) < len(images):
        lost = next(p.name for p in images if p.stem not in masks)
        notes = (
            phrase(
                "images without a mask: {count}, first {lost}",
                total_text(len(images) - len(files)),
                lost,
            ),
        )
    is_white = all(_are_black_and_white(masks[file.stem]) for file in files[:_LOOKED_AT])
    if is_white:
        notes = (*notes, phrase("masks are black and white: white is taken for class 1"))
    classes = _class_count(model)

    def label(index: int) -> Array:
        found = _mask(masks[files[index].stem], size, max(2, classes))
        return np.where(found == IGNORED, 1, found) if is_white else found

    names = [file.name for file in files]
    return TaskItems(names, label, SegmentationScorer(), files, notes=notes, placed=_pad_around)


def _pad_around(label: Array, place: Place) -> Array:
    """A label map shrunk into the part of the input that the image fills; the rest does not
    count.
    """
    height, width = label.shape
    left, right = (round(side * width) for side in place[::2])
    top, bottom = (round(side * height) for side in place[1::2])
    made = np.full_like(label, IGNORED)
    whole = Image.fromarray(label.astype(np.int32))
    size = max(1, right - left), max(1, bottom - top)
    part = np.asarray(whole.resize(size, Image.Resampling.NEAREST))
    made[top : top + size[1], left : left + size[0]] = part
    return made


def _are_black_and_white(path: Path) -> bool:
    """Whether a mask holds only 0 and 255."""
    try:
        with open_image(path) as opened:
            return {*np.unique(np.asarray(opened)).tolist()} <= {0, IGNORED}
    except UNREADABLE:
        return False  # the error comes when the mask is read


def _mask(path: Path, size: tuple[int, int], classes: int) -> Array:
    """The class of every pixel of a mask, resized to the model's map."""
    numbers = Image.fromarray(_read_mask(path))
    found = np.asarray(numbers.resize((size[1], size[0]), Image.Resampling.NEAREST))
    wrong = found[(found != IGNORED) & ((found < 0) | (found >= classes))]
    if wrong.size:
        raise BadInput(
            "{path}: has a pixel of class {wrong}; the model's are 0 to {last}",
            plain(str(path)),
            int(wrong[0]),
            classes - 1,
        )
    return found


def _read_mask(path: Path) -> Array:
    """The numbers of a mask in its own size."""
    try:
        with open_image(path) as opened:
            if opened.mode not in ("P", "L", "1", "I", "I;16"):
                raise BadInput(
                    "{path}: a mask of mode {mode} has colours, not classes; save it with one "
                    "number a pixel",
                    plain(str(path)),
                    opened.mode,
                )
            return np.asarray(opened).astype(np.int32)
    except UNREADABLE as error:
        raise BadInput("{path}: not a readable mask ({error})", plain(str(path)), error) from None


def _is_given(source: Path, model: Model, settings: Settings) -> bool:
    if settings.size is None or map_size(model) is None:
        return False
    if _find(source) is not None:
        return True
    annotations = find_annotations(source)
    return (
        annotations is not None
        and annotations[0] is read_coco
        and mentions(annotations[1], b'"segmentation"')
    )


SEGMENTATION = Task(phrase("segmentation"), ("miou",), "image", _open, _is_given)
