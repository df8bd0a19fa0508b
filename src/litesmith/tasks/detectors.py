"""Output layouts of detectors: a row for each, with the function that decodes its boxes."""

import itertools
from collections.abc import Callable, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model
from litesmith.phrases import phrase
from litesmith.tasks.boxes import Boxes, Detections, detections, from_centres, in_order

Shape = tuple[int, ...]
Shapes = Sequence[Shape]
Outputs = Sequence[Array]

POSTPROCESS = "TFLite_Detection_PostProcess"


class Layout(NamedTuple):
    """An output layout of detectors.

    fits     whether outputs of these shapes have this layout, for a model with an input of this
             height and width
    decode   outputs of one image, without the batch dimension, and the size -> detections
    classes  the number of classes in the outputs; 0 where they do not show it
    """

    title: str
    fits: Callable[[Shapes, tuple[int, int]], bool]
    decode: Callable[[Outputs, tuple[int, int]], Detections]
    classes: Callable[[Shapes], int]


def layout_of(model: Model, size: tuple[int, int], asked: str = "") -> str:
    """The name of the layout in which a model answers; "" where none fits."""
    if asked and asked not in LAYOUTS:
        raise BadInput("no layout {asked!r} of boxes; there are {known}", asked, ", ".join(LAYOUTS))
    graph = model.main
    if asked:
        shapes = [tensor.shape[1:] for tensor in graph.outputs]
        is_open = any(not tensor.shape for tensor in graph.outputs)
        return asked if is_open or LAYOUTS[asked].fits(shapes, size) else ""
    if any(op.custom == POSTPROCESS for op in graph.ops):
        return "postprocess"
    shapes = [tensor.shape[1:] for tensor in graph.outputs]
    return next((name for name, row in LAYOUTS.items() if row.fits(shapes, size)), "")


# Outputs that are already selected boxes.


def _is_postprocess(shapes: Shapes, _: tuple[int, int]) -> bool:
    sizes = [int(np.prod(shape)) for shape in shapes]
    ends = [shape[-1:] for shape in shapes]
    return len(shapes) == 4 and ends.count((4,)) == 1 and 1 in sizes and len({*sizes}) == 3


def _postprocess(outputs: Outputs, _: tuple[int, int]) -> Detections:
    """Boxes (top, left, bottom, right), classes, scores and how many there are, in any order."""
    arrays = [np.asarray(output, np.float64) for output in outputs]
    place = next(n for n, a in enumerate(arrays) if a.shape[-1:] == (4,) and a.ndim >= 2)
    boxes = arrays.pop(place).reshape(-1, 4)
    counts = [n for n, a in enumerate(arrays) if a.size == 1]
    stated_count = arrays.pop(counts[-1]).reshape(-1)[0] if counts else len(boxes)
    count = int(np.clip(np.nan_to_num(stated_count), 0, len(boxes)))
    first, second = (a.reshape(-1) for a in arrays)
    classes, scores = first, second
    if not _are_integers(first) or (_are_integers(second) and bool((second > first).any())):
        classes, scores = second, first
    kept = slice(0, count)
    numbers = np.maximum(np.nan_to_num(classes[kept]), 0).astype(np.int64)
    by_class = np.zeros((len(numbers), int(numbers.max(initial=0)) + 1))
    by_class[np.arange(len(numbers)), numbers] = scores[kept]
    return detections(boxes[kept][:, [1, 0, 3, 2]], by_class)


def _are_integers(values: NDArray[np.float64]) -> bool:
    return bool((values == np.round(values)).all())


def _is_selected(shapes: Shapes, _: tuple[int, int]) -> bool:
    return len(shapes) == 1 and len(shapes[0]) == 2 and shapes[0][1] == 6 and shapes[0][0] <= 1000


def _selected_boxes(outputs: Outputs, size: tuple[int, int]) -> Detections:
    rows = outputs[0].astype(np.float64)
    boxes = np.clip(_in_shares(rows[:, :4], size), 0.0, 1.0)
    return in_order(boxes, rows[:, 4], np.nan_to_num(rows[:, 5]).astype(np.int64))


def _in_shares(boxes: Boxes, size: tuple[int, int]) -> Boxes:
    """Boxes in shares of the image, where they are in pixels of the input."""
    if not boxes.size or float(np.nan_to_num(np.abs(boxes)).max()) <= _MOST_SHARE:
        return boxes
    return boxes / np.array([size[1], size[0]] * 2, np.float64)


# The coordinates of boxes in shares stay below this; larger ones are pixels.
_MOST_SHARE = 4.0


# Grids of anchors: YOLO v2 and v3.

# Widths and heights in cells, as published with the networks.
_VOC_TINY = (1.08, 1.19, 3.42, 4.41, 6.63, 11.38, 9.42, 5.11, 16.62, 10.52)
_COCO_V2 = (
    *(0.57273, 0.677385, 1.87446, 2.06253, 3.33843),
    *(5.47434, 7.88282, 3.52778, 9.77052, 9.16828),
)
# Anchors in pixels, from the finest grid to the coarsest.
_V3 = (
    *((10, 13), (16, 30), (33, 23)),
    *((30, 61), (62, 45), (59, 119)),
    *((116, 90), (156, 198), (373, 326)),
)
_V3_TINY = ((10, 14), (23, 27), (37, 58), (81, 82), (135, 169), (344, 319))
_ANCHORS_V2 = 5

# The least number of pixels per place of a detector's grid; a finer output is a class map.
_LEAST_STRIDE = 8


def _is_yolo_v2(shapes: Shapes, size: tuple[int, int]) -> bool:
    return (
        len(shapes) == 1
        and len(shapes[0]) == 3
        and shapes[0][0] * _LEAST_STRIDE <= size[0]
        and shapes[0][0] == shapes[0][1]
        and shapes[0][2] % _ANCHORS_V2 == 0
        and shapes[0][2] // _ANCHORS_V2 > 5
    )


def _yolo_v2(outputs: Outputs, _: tuple[int, int]) -> Detections:
    grid = outputs[0].astype(np.float64)
    rows, columns, depth = grid.shape
    cells = grid.reshape(rows, columns, _ANCHORS_V2, depth // _ANCHORS_V2)
    known = _VOC_TINY if cells.shape[-1] == 25 else _COCO_V2
    anchors = np.array(known).reshape(_ANCHORS_V2, 2) / (columns, rows)
    boxes = _grid_boxes(cells, anchors)
    scores = _sigmoid(cells[..., 4:5]) * _softmax(cells[..., 5:])
    return detections(boxes.reshape(-1, 4), scores.reshape(-1, scores.shape[-1]))


def _grid_boxes(cells: NDArray[np.float64], anchors: NDArray[np.float64]) -> Boxes:
    """Boxes of (rows, columns, anchors, 4 and more), the anchors in shares of the image."""
    rows, columns = cells.shape[:2]
    corners = _corners(rows, columns)[:, :, None]
    centres = (corners + _sigmoid(cells[..., :2])) / (columns, rows)
    return from_centres(np.concatenate([centres, anchors * _exp(cells[..., 2:4])], axis=-1))


def _corners(rows: int, columns: int) -> NDArray[np.float64]:
    """The places of a grid, across and down: (rows, columns, 2)."""
    down, across = np.indices((rows, columns), np.float64)
    return np.stack([across, down], axis=-1)


def _is_yolo_v3(shapes: Shapes, size: tuple[int, int]) -> bool:
    if len(shapes) not in (2, 3) or any(len(shape) not in (3, 4) for shape in shapes):
        return False
    if any(shape[0] * _LEAST_STRIDE > size[0] for shape in shapes):
        return False
    flat = [shape if len(shape) == 3 else (*shape[:2], shape[2] * shape[3]) for shape in shapes]
    depths = {shape[-1] for shape in flat}
    return len(depths) == 1 and all(d % 3 == 0 and d // 3 > 5 for d in depths) and _halve(flat)


def _classes_v3(shapes: Shapes) -> int:
    return (shapes[0][-1] if len(shapes[0]) == 4 else shapes[0][-1] // 3) - 5


def _halve(shapes: Shapes) -> bool:
    """Whether each grid has half as many places per side as the next."""
    sides = sorted(shape[0] for shape in shapes)
    return all(2 * low == high for low, high in itertools.pairwise(sides))


def _yolo_v3(outputs: Outputs, size: tuple[int, int]) -> Detections:
    grids = sorted((o.astype(np.float64) for o in outputs), key=lambda o: -o.shape[0])
    pixels = _V3_TINY if len(grids) == 2 else _V3
    boxes: list[Boxes] = []
    scores: list[NDArray[np.float64]] = []
    for number, grid in enumerate(grids):
        cells = grid.reshape(*grid.shape[:2], 3, -1)
        anchors = np.array(pixels[3 * number :][:3], np.float64) / (size[1], size[0])
        boxes.append(_grid_boxes(cells, anchors).reshape(-1, 4))
        sure = _sigmoid(cells[..., 4:5]) * _sigmoid(cells[..., 5:])
        scores.append(sure.reshape(-1, sure.shape[-1]))
    return detections(np.concatenate(boxes), np.concatenate(scores))


# Lists of candidates: YOLO v5 and v8.


def _is_yolo_v5(shapes: Shapes, size: tuple[int, int]) -> bool:
    return (
        len(shapes) == 1
        and len(shapes[0]) == 2
        and shapes[0][1] > 5
        and (shapes[0][0] in (3 * _places(size), 3 * _places(size, 4)))
    )


def _places(size: tuple[int, int], grids: int = 3) -> int:
    """The places of grids with strides from 8 on."""
    return sum((size[0] // stride) * (size[1] // stride) for stride in (8, 16, 32, 64)[:grids])


def _yolo_v5(outputs: Outputs, size: tuple[int, int]) -> Detections:
    rows = outputs[0].astype(np.float64)
    boxes = from_centres(_in_shares(rows[:, :4], size))
    return detections(boxes, rows[:, 4:5] * rows[:, 5:])


def _is_yolo_v8(shapes: Shapes, size: tuple[int, int]) -> bool:
    return (
        len(shapes) == 1
        and len(shapes[0]) == 2
        and shapes[0][0] > 4
        and (shapes[0][1] in (_places(size), _places(size, 4)))
    )


def _yolo_v8(outputs: Outputs, size: tuple[int, int]) -> Detections:
    rows = outputs[0].astype(np.float64).T
    return detections(from_centres(_in_shares(rows[:, :4], size)), rows[:, 4:])


# Offsets from anchors: SSD and BlazeFace.

# The divisors of SSD's box coder, and the scales of its anchors.
CENTRE_CODE, SIZE_CODE = 10.0, 5.0
_LEAST_SCALE, _MOST_SCALE, _MAPS = 0.2, 0.95, 6


def _ssd_anchors(size: tuple[int, int]) -> Boxes:
    """Centres and sizes: six maps from a sixteenth of the input down, a scale more at each."""
    scales = [*np.linspace(_LEAST_SCALE, _MOST_SCALE, _MAPS), 1.0]
    found: list[Boxes] = []
    rows, columns = (-(-side // 16) for side in size)
    for number in range(_MAPS):
        scale, between = scales[number], sqrt(scales[number] * scales[number + 1])
        kinds = [(scale, 1.0), (scale, 2.0), (scale, 0.5), (scale, 3.0), (scale, 1 / 3)]
        kinds = [*kinds, (between, 1.0)] if number else [(0.1, 1.0), (scale, 2.0), (scale, 0.5)]
        sizes = np.array([(s * sqrt(ratio), s / sqrt(ratio)) for s, ratio in kinds])
        found.append(_anchors_at(rows, columns, sizes))
        rows, columns = -(-rows // 2), -(-columns // 2)
    return np.concatenate(found)


def _anchors_at(rows: int, columns: int, sizes: NDArray[np.float64]) -> Boxes:
    """Centres of all places, each with all sizes: (places · sizes, 4)."""
    centres = (_corners(rows, columns).reshape(-1, 1, 2) + 0.5) / (columns, rows)
    shape = (rows * columns, len(sizes), 2)
    pairs = [np.broadcast_to(centres, shape), np.broadcast_to(sizes, shape)]
    return np.concatenate(pairs, axis=-1).reshape(-1, 4)


def _is_ssd(shapes: Shapes, size: tuple[int, int]) -> bool:
    counts = {_rows_and_width(shape)[0] for shape in shapes}
    widths = [_rows_and_width(shape)[1] for shape in shapes]
    return len(shapes) == 2 and 4 in widths and counts == {len(_ssd_anchors(size))}


def _rows_and_width(shape: Shape) -> tuple[int, int]:
    long = [side for side in shape if side > 1] or [1]
    return long[0], long[-1] if len(long) > 1 else 1


def _ssd(outputs: Outputs, size: tuple[int, int]) -> Detections:
    """Offsets (down, across, height, width); scores with a background class in front."""
    offsets, scores = _pair(outputs, 4)
    boxes = _from_code(offsets, _ssd_anchors(size))
    is_logit = bool((scores < 0).any() or (scores > 1).any())
    return detections(boxes, (_sigmoid(scores) if is_logit else scores)[:, 1:])


def _from_code(offsets: Boxes, anchors: Boxes) -> Boxes:
    """Boxes of offsets (down, across, height, width) from anchors by centre and size."""
    centres = offsets[:, [1, 0]] / CENTRE_CODE * anchors[:, 2:] + anchors[:, :2]
    sizes = _exp(offsets[:, [3, 2]] / SIZE_CODE) * anchors[:, 2:]
    return from_centres(np.concatenate([centres, sizes], axis=-1))


# Strides of the maps that a grid may have, and the side of the square around a place, in strides.
_GRIDS = ((8, 16, 32), (16, 32), (8, 16), (8, 32), (8,), (16,), (32,))
_SQUARE = 4.0


def grid_anchors(size: tuple[int, int], strides: Sequence[int]) -> Boxes:
    """Centres and sizes of one square for every place of maps with these strides."""
    return np.concatenate(
        [
            _anchors_at(
                -(-size[0] // stride),
                -(-size[1] // stride),
                np.array([[_SQUARE * stride / size[1], _SQUARE * stride / size[0]]]),
            )
            for stride in strides
        ]
    )


def _grid_strides(size: tuple[int, int], count: int) -> tuple[int, ...]:
    """The strides of maps with this total number of places; empty where no maps have it."""
    return next((g for g in _GRIDS if len(grid_anchors(size, g)) == count), ())


def _is_grid(shapes: Shapes, size: tuple[int, int]) -> bool:
    if len(shapes) != 2 or any(len(shape) != 2 for shape in shapes):
        return False
    counts = {shape[0] for shape in shapes}
    is_known = len(counts) == 1 and bool(_grid_strides(size, *counts))
    return is_known and 4 in (shape[1] for shape in shapes)


def _grid(outputs: Outputs, size: tuple[int, int]) -> Detections:
    """Offsets from a square around each place, and a probability for each class."""
    offsets, scores = _pair(outputs, 4)
    anchors = grid_anchors(size, _grid_strides(size, len(offsets)))
    return detections(_from_code(offsets, anchors), scores)


def _grid_classes(shapes: Shapes) -> int:
    widths = [shape[1] for shape in shapes]
    widths.remove(4)
    return widths[0]


def _pair(outputs: Outputs, width: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The output with rows of this width, then the other with as many rows."""
    arrays = [np.asarray(output, np.float64) for output in outputs]
    place = next(n for n, a in enumerate(arrays) if _rows_and_width(a.shape)[1] == width)
    first = arrays.pop(place).reshape(-1, width)
    return first, arrays[0].reshape(len(first), -1)


# By the size of the input and the number of anchors: the stride of each map, and how many anchors
# a place of it has.
_BLAZE = {
    (128, 896): ((8, 2), (16, 6)),
    (192, 2304): ((4, 1),),
    (192, 2016): ((8, 2), (16, 6)),
    (256, 896): ((16, 2), (32, 6)),
    (256, 2944): ((8, 2), (16, 2), (32, 6)),
}

# Scores are clipped to this magnitude, where a sigmoid is 0 or 1.
_SUREST = 100.0


def _is_blaze(shapes: Shapes, size: tuple[int, int]) -> bool:
    if len(shapes) != 2 or any(len(shape) != 2 for shape in shapes) or size[0] != size[1]:
        return False
    widths = sorted(shape[1] for shape in shapes)
    counts = {shape[0] for shape in shapes}
    is_known = len(counts) == 1 and (size[0], *counts) in _BLAZE
    return is_known and widths[0] == 1 and widths[1] >= 6 and widths[1] % 2 == 0


def _blaze(outputs: Outputs, size: tuple[int, int]) -> Detections:
    """Offsets in pixels from the places of the anchors, key points behind them."""
    scores, offsets = _pair(outputs, 1)
    maps = _BLAZE[size[0], len(scores)]
    ones = [np.ones((count, 2)) for _, count in maps]
    sides = [size[0] // stride for stride, _ in maps]
    placed = [_anchors_at(side, side, one) for side, one in zip(sides, ones, strict=True)]
    centres = np.concatenate(placed)[:, :2] + offsets[:, :2] / size[0]
    boxes = from_centres(np.concatenate([centres, offsets[:, 2:4] / size[0]], axis=-1))
    return detections(boxes, _sigmoid(np.clip(scores, -_SUREST, _SUREST)))


# Heat maps of centres.


def _is_centre_net(shapes: Shapes, size: tuple[int, int]) -> bool:
    if len(shapes) != 3 or any(len(shape) != 3 for shape in shapes):
        return False
    depths = sorted(shape[2] for shape in shapes)
    sides = {shape[:2] for shape in shapes}
    return len(sides) == 1 and depths[:2] == [2, 2] and 4 * next(iter(sides))[0] == size[0]


def _centre_net(outputs: Outputs, _: tuple[int, int]) -> Detections:
    """Scores of centres, sizes in places, offsets within a place; the two of equal depth in this
    order. A place with a higher-scored neighbour is no centre.
    """
    arrays = [output.astype(np.float64) for output in outputs]
    heat = next((a for a in arrays if a.shape[2] != 2), arrays[0])
    sizes, offsets = (a for a in arrays if a is not heat)
    scores = _sigmoid(heat) if bool((heat < 0).any() or (heat > 1).any()) else heat
    scores = np.where(scores >= _neighbours(scores), scores, 0.0)
    rows, columns = heat.shape[:2]
    places = _corners(rows, columns)
    boxes = np.concatenate([places + offsets, sizes], axis=-1) / ([columns, rows] * 2)
    flat = from_centres(boxes).reshape(-1, 4)
    return detections(flat, scores.reshape(len(flat), -1), same=1.0)


def _neighbours(heat: NDArray[np.float64]) -> NDArray[np.float64]:
    """The most of each place and the eight around it."""
    wide = np.pad(heat, ((1, 1), (1, 1), (0, 0)), constant_values=-np.inf)
    rows, columns = heat.shape[:2]
    shifts = [(down, across) for down in range(3) for across in range(3)]
    return np.max([wide[d : d + rows, a : a + columns] for d, a in shifts], axis=0)


def _sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-values))


def _softmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _exp(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(np.minimum(values, 50.0))


def _unknown(_: Shapes) -> int:
    return 0


def _one_class(_: Shapes) -> int:
    return 1


def _depth(places: int, *, per: int = 1, axis: int = -1) -> Callable[[Shapes], int]:
    """The number of classes in outputs whose depth, for each of `per` anchors, is the classes plus
    some places."""

    def classes(shapes: Shapes) -> int:
        return shapes[0][axis] // per - places

    return classes


def _widest(shapes: Shapes) -> int:
    return max(_rows_and_width(shape)[1] for shape in shapes) - 1


def _deepest(shapes: Shapes) -> int:
    return max(shape[2] for shape in shapes)


LAYOUTS: dict[str, Layout] = {
    "postprocess": Layout("TFLite_Detection_PostProcess", _is_postprocess, _postprocess, _unknown),
    "blazeface": Layout("BlazeFace", _is_blaze, _blaze, _one_class),
    "ssd": Layout("SSD", _is_ssd, _ssd, _widest),
    "grid": Layout(phrase("`retrain --raw`"), _is_grid, _grid, _grid_classes),
    "centernet": Layout("CenterNet", _is_centre_net, _centre_net, _deepest),
    "yolov8": Layout("YOLO v8", _is_yolo_v8, _yolo_v8, _depth(4, axis=0)),
    "yolov5": Layout("YOLO v5", _is_yolo_v5, _yolo_v5, _depth(5)),
    "end2end": Layout(phrase("chosen boxes"), _is_selected, _selected_boxes, _unknown),
    "yolov3": Layout("YOLO v3", _is_yolo_v3, _yolo_v3, _classes_v3),
    "yolov2": Layout("YOLO v2", _is_yolo_v2, _yolo_v2, _depth(5, per=_ANCHORS_V2)),
}
