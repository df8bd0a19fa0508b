"""Every layout of outputs gives back the boxes that it was made from."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.tasks.boxes import detections, overlaps
from litesmith.tasks.detectors import LAYOUTS, layout_of
from litesmith.tasks.keypoints import POINT_LAYOUTS

CLASSES, SURE = 6, 4.0
# Two things far apart: a box by its corners in shares, and a class.
BOXES = np.array([[0.10, 0.15, 0.35, 0.45], [0.55, 0.50, 0.90, 0.95]])
KINDS = np.array([2, 5])
SCORE = 1 / (1 + np.exp(-SURE))


def centres(boxes: np.ndarray) -> np.ndarray:
    return np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], axis=1)


def logit(share: np.ndarray) -> np.ndarray:
    return np.log(share / (1 - share))


def postprocess() -> list[np.ndarray]:
    boxes = np.zeros((10, 4))
    boxes[:2] = BOXES[:, [1, 0, 3, 2]]
    classes, scores = np.zeros(10), np.zeros(10)
    classes[:2], scores[:2] = KINDS, SCORE
    return [boxes, classes, scores, np.array([2.0])]


def turned_postprocess() -> list[np.ndarray]:
    boxes, classes, scores, count = postprocess()
    return [scores, boxes, count, classes]


def grid(side: int, anchors: np.ndarray, soft: bool) -> np.ndarray:
    """A grid on which the anchor that fits best tells each box."""
    made = np.full((side, side, len(anchors), 5 + CLASSES), -9.0)
    for (x, y, w, h), kind in zip(centres(BOXES), KINDS, strict=True):
        column, row = int(x * side), int(y * side)
        best = int(np.abs(np.log(anchors / (w, h))).sum(axis=1).argmin())
        cell = made[row, column, best]
        cell[:2] = logit(np.array([x * side - column, y * side - row]))
        cell[2:4] = np.log((w, h) / anchors[best])
        cell[4] = SURE
        cell[5:] = 0.0 if soft else -20.0
        cell[5 + kind] = 30.0
    return made.reshape(side, side, -1)


def yolo_v2() -> list[np.ndarray]:
    small = [0.57273, 0.677385, 1.87446, 2.06253, 3.33843, 5.47434]
    known = [*small, 7.88282, 3.52778, 9.77052, 9.16828]
    return [grid(13, np.array(known).reshape(5, 2) / 13, True)]


def yolo_v3() -> list[np.ndarray]:
    fine = np.array([(10, 14), (23, 27), (37, 58)]) / 416
    coarse = np.array([(81, 82), (135, 169), (344, 319)]) / 416
    nothing = np.full((26, 26, len(fine) * (5 + CLASSES)), -9.0)
    return [grid(13, coarse, False), nothing]


def listed(count: int, *, objectness: bool) -> np.ndarray:
    rows = np.zeros((count, 4 + objectness + CLASSES))
    rows[:, :4] = 0.5
    rows[[3, 700], :4] = centres(BOXES)
    rows[[3, 700], -CLASSES + KINDS] = SCORE
    if objectness:
        rows[[3, 700], 4] = 1.0
    return rows


def chosen() -> list[np.ndarray]:
    rows = np.zeros((300, 6))
    rows[:2] = np.concatenate([BOXES * 416, np.full((2, 1), SCORE), KINDS[:, None]], axis=1)
    return [rows]


def ssd() -> list[np.ndarray]:
    from litesmith.tasks.detectors import _ssd_anchors

    anchors = _ssd_anchors((300, 300))
    offsets, scores = np.zeros((len(anchors), 4)), np.full((len(anchors), CLASSES + 1), -12.0)
    middle, size = anchors[:, :2], anchors[:, 2:]
    corners = np.concatenate([middle - size / 2, middle + size / 2], axis=1)
    for box, own, kind in zip(BOXES, centres(BOXES), KINDS, strict=True):
        best = int(overlaps(corners, box[None])[:, 0].argmax())
        x, y = (own[:2] - anchors[best, :2]) / anchors[best, 2:] * 10
        w, h = np.log(own[2:] / anchors[best, 2:]) * 5
        offsets[best] = (y, x, h, w)
        scores[best, 1 + kind] = SURE
    assert len(anchors) == 1917
    return [offsets, scores]


def blaze() -> list[np.ndarray]:
    maps = [np.indices((side, side)).reshape(2, -1).T[:, ::-1] for side in (16, 8)]
    places = [(at + 0.5) / side for at, side in zip(maps, (16, 8), strict=True)]
    anchors = np.concatenate(
        [np.repeat(at, n, axis=0) for at, n in zip(places, (2, 6), strict=True)]
    )
    offsets, scores = np.zeros((896, 16)), np.full((896, 1), -300.0)
    for own in centres(BOXES):
        best = int(np.abs(anchors - own[:2]).sum(axis=1).argmin())
        offsets[best, :4] = [*((own[:2] - anchors[best]) * 128), *(own[2:] * 128)]
        scores[best] = SURE
    return [offsets, scores]


def centre_net() -> list[np.ndarray]:
    heat = np.full((64, 64, CLASSES), -9.0)
    sizes, offsets = np.zeros((2, 64, 64, 2))
    for own, kind in zip(centres(BOXES) * 64, KINDS, strict=True):
        column, row = int(own[0]), int(own[1])
        heat[row, column, kind] = SURE
        sizes[row, column] = own[2:]
        offsets[row, column] = own[:2] - (column, row)
    return [heat, sizes, offsets]


MADE: dict[str, tuple[str, int, Callable[[], list[np.ndarray]]]] = {
    "postprocess": ("postprocess", 300, postprocess),
    "postprocess in another order": ("postprocess", 300, turned_postprocess),
    "yolov2": ("yolov2", 416, yolo_v2),
    "yolov3": ("yolov3", 416, yolo_v3),
    "yolov5": ("yolov5", 320, lambda: [listed(6300, objectness=True)]),
    "yolov8": ("yolov8", 640, lambda: [listed(8400, objectness=False).T]),
    "yolov8 in pixels": (
        "yolov8",
        640,
        lambda: [(listed(8400, objectness=False) * ([640.0] * 4 + [1.0] * CLASSES)).T],
    ),
    "end2end": ("end2end", 416, chosen),
    "ssd": ("ssd", 300, ssd),
    "blazeface": ("blazeface", 128, blaze),
    "centernet": ("centernet", 256, centre_net),
}


def answering(outputs: list[np.ndarray], side: int) -> Model:
    """A model with an image to look at, and outputs of these shapes."""
    b = Builder()
    x = b.input("image", (1, side, side, 3))
    size = b.op("MEAN", x, [0, 1, 2, 3])
    return b.model(*(b.op("MUL", o[None].astype(np.float32), size) for o in outputs))


@pytest.mark.parametrize("name", MADE)
def test_boxes_come_back(name: str) -> None:
    layout, side, make = MADE[name]
    outputs = make()
    assert layout_of(answering(outputs, side), (side, side)) == layout
    found = LAYOUTS[layout].decode([o.astype(np.float32) for o in outputs], (side, side))
    order = np.argsort(found.boxes[:, 0])
    assert found.boxes[order] == pytest.approx(BOXES, abs=2e-3)
    assert found.scores == pytest.approx([SCORE, SCORE], abs=1e-3)
    assert found.classes[order].tolist() == ([0, 0] if layout == "blazeface" else KINDS.tolist())


@pytest.mark.parametrize("name", MADE)
def test_nan_finds_nothing(name: str) -> None:
    layout, side, make = MADE[name]
    outputs = [np.full_like(o, np.nan) for o in make()]
    outputs[-1] = np.array([2.0]) if name == "postprocess" else outputs[-1]
    with np.errstate(all="ignore"):
        assert not len(LAYOUTS[layout].decode(outputs, (side, side)).boxes)


def test_other_outputs_are_no_boxes() -> None:
    b = Builder()
    x = b.input("image", (1, 64, 64, 3))
    model = b.model(b.op("MEAN", x, [1, 2]))
    assert layout_of(model, (64, 64)) == ""
    with pytest.raises(BadInput, match="no layout 'yolo' of boxes; there are postprocess"):
        layout_of(model, (64, 64), "yolo")


@given(st.integers(0, 500))
def test_what_is_left_is_apart_and_nothing_else_goes(seed: int) -> None:
    random = np.random.default_rng(seed)
    corners = np.sort(random.random((40, 2, 2)), axis=1)
    boxes, scores = corners.reshape(40, 4)[:, [0, 1, 2, 3]], random.random((40, 3))
    found = detections(boxes, scores)
    assert (np.diff(found.scores) <= 0).all()
    for kind in range(3):
        own = found.boxes[found.classes == kind]
        near = overlaps(own, own) - np.eye(len(own))
        assert (near <= 0.5).all()
        sure = boxes[scores[:, kind] > 0.005]
        gone = [b for b in sure if not (own == b).all(axis=1).any()]
        assert all((overlaps(b[None], own) > 0.5).any() for b in gone)


SHAPES = st.lists(st.lists(st.integers(1, 40), max_size=4).map(tuple), max_size=4)


@given(SHAPES, st.sampled_from([(0, 0), (32, 32), (128, 128), (192, 192), (300, 300), (416, 320)]))
def test_any_outputs_can_be_looked_at(shapes: list[tuple[int, ...]], size: tuple[int, int]) -> None:
    """A model of anything else is no detector, and nothing to fall over."""
    for row in LAYOUTS.values():
        if row.fits(shapes, size):
            assert row.classes(shapes) >= 0
    for row in POINT_LAYOUTS.values():
        assert row.fits(shapes, 17) in (True, False)
