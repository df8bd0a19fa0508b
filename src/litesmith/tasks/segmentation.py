"""Segmentation: the class of every pixel."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model
from litesmith.phrases import phrase
from litesmith.tasks.annotations import IMAGE_ENDINGS
from litesmith.tasks.task import Answer, Rows, Settings, Shown, Task, TaskItems
from litesmith.units import plain, total_text

# The label of a pixel that does not count, as in the Pascal VOC and Cityscapes sets.
IGNORED = 255

# Folders of images beside folders of masks, as people name them.
_FOLDERS = (
    ("images", "masks"),
    ("JPEGImages", "SegmentationClass"),
    ("images", "labels"),
    ("images", "annotations"),
)
# So many masks tell whether they are black and white.
_LOOKED_AT = 16

_MASKS = (".png", ".bmp", ".tif", ".tiff", ".gif")


@dataclass(frozen=True)
class SegmentationScorer:
    """Shows maps of classes; a single score a pixel is that of class 1."""

    def rows(self, metric: str, answer: Answer) -> Rows:
        raise NotImplementedError(metric)  # miou serves labels of any origin

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
    """Height and width of the map of classes that a model makes; None where it makes none."""
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


def _files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if p.suffix.lower() in endings)


def _open(source: Path, model: Model, settings: Settings) -> TaskItems:
    del settings
    found, size = _find(source), map_size(model)
    if found is None:
        raise BadInput(
            "{source}: no masks there; give a folder with `images` and `masks`, which have the "
            "same names",
            plain(str(source)),
        )
    if size is None:
        raise BadInput("{source}: the model makes no map of classes", plain(str(source)))
    masks = {p.stem: p for p in _files(found[1], _MASKS)}
    images = _files(found[0], IMAGE_ENDINGS)
    files = [p for p in images if p.stem in masks]
    if not files:
        raise BadInput("{source}: no image has a mask of its name", plain(str(source)))
    notes: tuple[str, ...] = ()
    if len(files) < len(images):
        lost = next(p.name for p in images if p.stem not in masks)
        notes = (
            phrase(
                "{count} images have no mask, first {lost}",
                total_text(len(images) - len(files)),
                lost,
            ),
        )
    is_white = all(_are_black_and_white(masks[file.stem]) for file in files[:_LOOKED_AT])
    if is_white:
        notes = (*notes, phrase("masks are black and white: white is taken for class 1"))
    classes = next((t.shape[-1] for t in model.main.outputs if len(t.shape) == 4), IGNORED + 1)

    def label(index: int) -> Array:
        found = _mask(masks[files[index].stem], size, max(2, classes))
        return np.where(found == IGNORED, 1, found) if is_white else found

    return TaskItems([f.name for f in files], label, SegmentationScorer(), files, notes=notes)


def _are_black_and_white(path: Path) -> bool:
    """Whether a mask has nothing but 0 and 255."""
    try:
        with Image.open(path) as opened:
            return {*np.unique(np.asarray(opened)).tolist()} <= {0, IGNORED}
    except (OSError, UnidentifiedImageError, ValueError):
        return False  # which is told where it is read


def _mask(path: Path, size: tuple[int, int], classes: int) -> Array:
    """The class of every pixel as the mask has it, in the size of the model's map."""
    try:
        with Image.open(path) as opened:
            if opened.mode not in ("P", "L", "1", "I", "I;16"):
                raise BadInput(
                    "{path}: a mask of mode {mode} has colours, not classes; save it with one "
                    "number a pixel",
                    plain(str(path)),
                    opened.mode,
                )
            numbers = Image.fromarray(np.asarray(opened).astype(np.int32))
    except (OSError, UnidentifiedImageError, ValueError) as error:
        raise BadInput("{path}: not a readable mask ({error})", plain(str(path)), error) from None
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


def _is_given(source: Path, model: Model, settings: Settings) -> bool:
    return settings.size is not None and map_size(model) is not None and _find(source) is not None


SEGMENTATION = Task(phrase("segmentation"), ("miou",), "image", _open, _is_given)
