"""Detection: the objects in an image, and their places."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model
from litesmith.phrases import phrase
from litesmith.tasks.annotations import CROWD, WANTED, Annotated, find_annotations
from litesmith.tasks.boxes import Detections, overlaps
from litesmith.tasks.class_names import match_classes
from litesmith.tasks.detectors import LAYOUTS, layout_of
from litesmith.tasks.matching import WIDTH, Flags, image_row, match_answers
from litesmith.tasks.task import (
    Answer,
    Mark,
    Rows,
    Settings,
    Shown,
    Task,
    TaskItems,
    in_image,
    is_placed,
    model_labels,
    one_by_one,
    pad_rows,
)
from litesmith.units import plain, total_text

# The least score of a detection that is drawn.
_LEAST_SHOWN = 0.3

# The columns of a label: the class, the box, and how the object counts.
_WIDTH = 6


@dataclass(frozen=True)
class DetectionScorer:
    """Scores boxes.

    layout   the layout of the model's outputs
    size     height and width of the model's input
    classes  the model's class of each class of the data
    names    the names of the data's classes
    """

    layout: str
    size: tuple[int, int]
    classes: tuple[int, ...]
    names: tuple[str, ...]

    def rows(self, metric: str, answer: Answer) -> Rows:
        del metric  # all metrics of detection share these numbers
        return pad_rows([self._row(one) for one in one_by_one(answer)])

    def _row(self, one: Answer) -> Rows:
        found = self._of_data(LAYOUTS[self.layout].decode(one.outputs, self.size))
        if is_placed(one.label):
            corners = in_image(found.boxes.reshape(-1, 2), one.label)
            found = found._replace(boxes=np.clip(corners, 0.0, 1.0).reshape(-1, 4))
        things = one.label[one.label[:, 0] >= 0]
        boxes, states = things[:, 1:5], things[:, 5]

        def match(answers: NDArray[np.int64], own: NDArray[np.int64]) -> tuple[Flags, Flags]:
            crowds = states[own] == CROWD
            likeness = overlaps(found.boxes[answers], boxes[own], crowds)
            return match_answers(likeness, states[own] != WANTED, crowds)

        kinds = things[:, 0].astype(np.int64)
        counts = states == WANTED
        return image_row(len(self.names), kinds, counts, found.classes, found.scores, match)

    def goodness(self, answer: Answer) -> float:
        """How well detections and objects agree, weighted by the scores."""
        row = self._row(one_by_one(answer)[0])[0]
        wanted = row[1 : 1 + len(self.names)].sum()
        outcomes = row[1 + len(self.names) :].reshape(-1, WIDTH)
        right = (outcomes[:, 2].astype(np.int64) & 1) * outcomes[:, 1]
        return float(2 * right.sum() / max(outcomes[:, 1].sum() + wanted, 1e-9))

    def _of_data(self, found: Detections) -> Detections:
        """The detections of classes that the data has, in the data's numbering."""
        places = {number: place for place, number in enumerate(self.classes)}
        classes = np.array([places.get(int(n), -1) for n in found.classes], np.int64)
        known = classes >= 0
        return Detections(found.boxes[known], found.scores[known], classes[known])

    def tell(self, answer: Answer) -> Shown:
        one = one_by_one(answer)[0]
        found = self._of_data(LAYOUTS[self.layout].decode(one.outputs, self.size))
        rows = zip(found.boxes.tolist(), found.scores.tolist(), found.classes.tolist(), strict=True)
        return Shown(
            marks=tuple(
                Mark((box[0], box[1], box[2], box[3]), f"{self.names[kind]} {score:.2f}")
                for box, score, kind in rows
                if score >= _LEAST_SHOWN
            )
        )


def _open(source: Path, model: Model, settings: Settings) -> TaskItems:
    found = find_annotations(source)
    if found is None:
        raise BadInput(
            "{source}: no boxes there; give COCO's JSON, a folder with it, with `Annotations` of "
            "XML, or with `images` and `labels`",
            plain(str(source)),
        )
    read, place = found
    if settings.size is None:
        raise BadInput("{source}: the model takes no image to find things in", plain(str(source)))
    layout = layout_of(model, settings.size, settings.decode)
    if not layout:
        shapes = ", ".join(str(tensor.shape) for tensor in model.main.outputs)
        raise BadInput(
            "outputs of {shapes} are no boxes that are known; say how they are meant with "
            "{option}: {known}",
            shapes,
            "--decode",
            ", ".join(LAYOUTS),
        )
    annotations = read(place)
    count = LAYOUTS[layout].classes([tensor.shape[1:] for tensor in model.main.outputs])
    labels = model_labels(model, settings)
    if layout == "postprocess" and labels[:1] in (("???",), ("background",)):
        labels = labels[1:]  # the list begins with the background, which the op does not count
    numbers, notes = match_classes(annotations.classes, labels, count, plain(str(place)))
    kept = tuple(number for number in numbers if number is not None)
    names = tuple(
        n for n, number in zip(annotations.classes, numbers, strict=True) if number is not None
    )
    layout_note = phrase("boxes read as {title} gives them", LAYOUTS[layout].title)
    notes = (*annotations.notes, layout_note, *notes, *_note_unknown_classes(annotations, names))
    scorer = DetectionScorer(layout, settings.size, kept, names)
    return TaskItems(
        [file.name for file in annotations.files],
        _labels(annotations, names).__getitem__,
        scorer,
        annotations.files,
        notes=notes,
        sizes=annotations.sizes,
    )


def _note_unknown_classes(annotations: Annotated, names: tuple[str, ...]) -> tuple[str, ...]:
    missing = [name for name in annotations.classes if name not in names]
    lost = sum(thing.name in missing for some in annotations.things for thing in some)
    if not lost:
        return ()
    return (
        phrase(
            "boxes of classes that the model does not know ({names}), left out: {count}",
            ", ".join(map(plain, missing[:5])),
            total_text(lost),
        ),
    )


def _labels(annotations: Annotated, names: tuple[str, ...]) -> list[Array]:
    """The labels of each image (things, 6), padded to one length with the class −1."""
    places = {name: float(place) for place, name in enumerate(names)}
    rows = [
        [(places[t.name], *t.box, float(t.state)) for t in some if t.name in places]
        for some in annotations.things
    ]
    most = max(map(len, rows), default=0)
    blank = (-1.0, *([0.0] * (_WIDTH - 1)))
    return [np.array(row + [blank] * (most - len(row))).reshape(most, _WIDTH) for row in rows]


def _is_given(source: Path, model: Model, settings: Settings) -> bool:
    if settings.size is None or find_annotations(source) is None:
        return False
    return settings.decode in LAYOUTS or bool(layout_of(model, settings.size))


DETECTION = Task(phrase("detection"), ("ap", "ap50"), "image", _open, _is_given)
