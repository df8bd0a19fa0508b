"""Key points: where the parts of a body, a face or a hand are."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model
from litesmith.phrases import phrase
from litesmith.tasks.annotations import (
    WANTED,
    Annotated,
    Thing,
    find_annotations,
    mentions,
    read_coco,
)
from litesmith.tasks.matching import Flags, image_row, match_answers
from litesmith.tasks.task import (
    Answer,
    Mark,
    Outputs,
    Rows,
    Settings,
    Shown,
    Task,
    TaskItems,
    in_image,
    one_by_one,
    pad_rows,
)
from litesmith.units import plain

Points = NDArray[np.float64]  # (points, 2) across and down in shares of the image

# COCO's tolerances for the 17 points of a person; other bodies use a single tolerance.
_PERSON = np.array(
    [26, 25, 25, 35, 35, 79, 79, 72, 72, 62, 62, 107, 107, 87, 87, 89, 89], np.float64
)
_OTHER = 50.0
_PER = 1000.0

# A point is right where it is off by less than this share of the longer side of the box.
_NEAR = 0.1

# The numbers before the points of a label: present or −1, whether it is ignored, its area, width
# and height in shares, and the aspect of the image.
_HEAD = 6


class PointLayout(NamedTuple):
    """An output layout of key points.

    fits    whether outputs of these shapes hold this many points
    decode  outputs of one image and the size of the input -> points, and a score for each
    """

    title: str
    fits: Callable[[list[tuple[int, ...]], int], bool]
    decode: Callable[[Outputs, int, tuple[int, int]], tuple[Points, NDArray[np.float64]]]


def _map(outputs: Outputs, count: int) -> NDArray[np.float64]:
    return next(o for o in outputs if o.ndim == 3 and o.shape[2] == count).astype(np.float64)


def _has_map(shapes: list[tuple[int, ...]], count: int) -> bool:
    return any(len(s) == 3 and s[2] == count and min(s[:2]) > 1 for s in shapes)


def _from_heat(outputs: Outputs, count: int, size: tuple[int, int]) -> tuple[Points, Points]:
    """The hottest place of each map, moved by the offsets (down for all, then across) where the
    model gives offsets, as PoseNet does, in pixels of the input.
    """
    heat = np.nan_to_num(_map(outputs, count), nan=-np.inf)
    rows, columns = heat.shape[:2]
    flat = heat.reshape(-1, count)
    places = flat.argmax(axis=0)
    down, across = places // columns, places % columns
    scores = 1 / (1 + np.exp(-np.clip(flat[places, np.arange(count)], -50, 50)))
    offsets = [o for o in outputs if o.ndim == 3 and o.shape == (rows, columns, 2 * count)]
    if not offsets:
        return np.stack([(across + 0.5) / columns, (down + 0.5) / rows], axis=1), scores
    moved = offsets[0].reshape(-1, 2, count)[places, :, np.arange(count)].astype(np.float64)
    steps = (size[0] - 1) / max(rows - 1, 1), (size[1] - 1) / max(columns - 1, 1)
    across, down = across * steps[1] + moved[:, 1], down * steps[0] + moved[:, 0]
    return np.stack([across / size[1], down / size[0]], axis=1), scores


def _has_triples(shapes: list[tuple[int, ...]], count: int) -> bool:
    return any(s[-2:] == (count, 3) for s in shapes)


def _from_triples(outputs: Outputs, count: int, _: tuple[int, int]) -> tuple[Points, Points]:
    """Down, across and a score, in shares: MoveNet's."""
    rows = next(o for o in outputs if o.shape[-2:] == (count, 3)).reshape(-1, count, 3)[0]
    return rows[:, [1, 0]].astype(np.float64), rows[:, 2].astype(np.float64)


def _width(shapes: list[tuple[int, ...]], count: int) -> int:
    sizes = [int(np.prod(s)) for s in shapes if max(s, default=1) == int(np.prod(s))]
    return next((per for size in sizes for per in (2, 3, 5) if size == per * count), 0)


def _has_list(shapes: list[tuple[int, ...]], count: int) -> bool:
    return _width(shapes, count) > 0


def _from_list(outputs: Outputs, count: int, size: tuple[int, int]) -> tuple[Points, Points]:
    """Across and down, and more behind them, in pixels of the input or in shares."""
    per = _width([o.shape for o in outputs], count)
    values = next(o for o in outputs if o.size == per * count).reshape(count, per)
    points = values[:, :2].astype(np.float64)
    if float(np.nanmax(np.abs(points), initial=0.0)) > 2:
        points = points / (size[1], size[0])
    return points, np.ones(count)


# The layouts in order of recognition: explicit points come before maps that accompany them.
POINT_LAYOUTS = {
    "movenet": PointLayout(phrase("down, across, score"), _has_triples, _from_triples),
    "points": PointLayout(phrase("a list of points"), _has_list, _from_list),
    "heatmap": PointLayout(phrase("heat maps"), _has_map, _from_heat),
}


@dataclass(frozen=True)
class KeypointScorer:
    """Scores the points of one body in an image."""

    layout: str
    size: tuple[int, int]
    count: int

    def rows(self, metric: str, answer: Answer) -> Rows:
        make = self._share_near if metric == "pck" else self._precision
        return pad_rows([make(one) for one in one_by_one(answer)])

    def _points(self, one: Answer) -> tuple[Points, NDArray[np.float64]]:
        points, scores = POINT_LAYOUTS[self.layout].decode(one.outputs, self.count, self.size)
        return np.where(np.isfinite(points), points, np.inf), scores

    def _in_image(self, one: Answer) -> tuple[Points, NDArray[np.float64]]:
        points, scores = self._points(one)
        return in_image(points, one.label), scores

    def _precision(self, one: Answer) -> Rows:
        """One answer against every body, by how alike the points are (OKS)."""
        points, scores = self._in_image(one)
        things = one.label[one.label[:, 0] >= 0]

        def match(answers: NDArray[np.int64], own: NDArray[np.int64]) -> tuple[Flags, Flags]:
            del answers
            alike = [alikeness(points, things[n]) for n in own]
            ignored = things[own, 1] != 0
            return match_answers(
                np.array([alike]).reshape(1, -1), ignored, np.zeros(len(own), bool)
            )

        kinds = np.zeros(len(things), np.int64)
        sure = np.nan_to_num(np.array([scores.mean()]))
        return image_row(1, kinds, things[:, 1] == 0, np.zeros(1, np.int64), sure, match)

    def goodness(self, answer: Answer) -> float:
        """The similarity of the points to those of the most similar body."""
        one = one_by_one(answer)[0]
        points, _ = self._in_image(one)
        return max((alikeness(points, thing) for thing in one.label if thing[0] >= 0), default=0.0)

    def _share_near(self, one: Answer) -> Rows:
        """The numbers of near points and of known points of the body that fits best."""
        points, _ = self._in_image(one)
        best = (0.0, 0.0)
        for thing in one.label[(one.label[:, 0] >= 0) & (one.label[:, 1] == 0)]:
            _, wide, high, aspect = thing[2:_HEAD]
            known = thing[_HEAD:].reshape(-1, 3)
            predicted = known[:, 2] > 0
            off = np.hypot(*((points - known[:, :2]) * (aspect, 1.0)).T)
            near = float((off[predicted] < _NEAR * max(wide * aspect, high)).sum())
            best = max(best, (near, float(predicted.sum())))
        return np.array([best])

    def tell(self, answer: Answer) -> Shown:
        points, _ = self._points(one_by_one(answer)[0])
        marks = [Mark((x, y, x, y), "", is_point=True) for x, y in points.tolist()]
        return Shown(marks=tuple(mark for mark in marks if np.isfinite(mark.box).all()))


def alikeness(points: Points, thing: NDArray[np.float64]) -> float:
    """COCO's object keypoint similarity: how near the known points are, by the size of the body."""
    _, _, area, _, _, aspect = thing[:_HEAD]
    known = thing[_HEAD:].reshape(-1, 3)
    seen = known[:, 2] > 0
    if not seen.any() or area <= 0:
        return 0.0
    spread = 2 * (_PERSON if len(known) == len(_PERSON) else np.full(len(known), _OTHER)) / _PER
    far = np.square(points - known[:, :2]) * (aspect, 1 / aspect)
    return float(np.exp(-far.sum(axis=1) / np.square(spread) / area / 2)[seen].mean())


def _open(source: Path, model: Model, settings: Settings) -> TaskItems:
    found = find_annotations(source)
    annotations = None if found is None else found[0](found[1])
    count = 0 if annotations is None else _point_count(annotations)
    if annotations is None or not count:
        raise BadInput(
            "{source}: no key points there; give COCO's JSON of them, or a folder with it",
            plain(str(source)),
        )
    layout = _layout(model, count, settings)
    if settings.size is None or not layout:
        shapes = ", ".join(str(tensor.shape) for tensor in model.main.outputs)
        raise BadInput(
            "outputs of {shapes} do not tell {count} points in a way that is known; say how they "
            "are meant with {option}: {known}",
            shapes,
            count,
            "--decode",
            ", ".join(POINT_LAYOUTS),
        )
    layout_note = phrase("{count} points read as {title}", count, POINT_LAYOUTS[layout].title)
    labels = _labels(annotations, count)
    scorer = KeypointScorer(layout, settings.size, count)
    names = [file.name for file in annotations.files]
    notes = (*annotations.notes, layout_note)
    return TaskItems(
        names, labels.__getitem__, scorer, annotations.files, notes=notes, sizes=annotations.sizes
    )


def _point_count(annotations: Annotated) -> int:
    counts = {len(t.points) for some in annotations.things for t in some if t.points is not None}
    return counts.pop() if len(counts) == 1 else 0


def _layout(model: Model, count: int, settings: Settings) -> str:
    requested = settings.decode
    if requested and requested not in POINT_LAYOUTS:
        known = ", ".join(POINT_LAYOUTS)
        raise BadInput("no layout {asked!r} of points; there are {known}", requested, known)
    shapes = [tensor.shape[1:] for tensor in model.main.outputs]
    rows = POINT_LAYOUTS.items()
    fitting = (name for name, row in rows if requested in ("", name) and row.fits(shapes, count))
    return next(fitting, "")


def _labels(annotations: Annotated, count: int) -> list[Array]:
    """The labels of each image (things, 6 and the points), padded to one length."""
    rows = [[_row(t, count) for t in some if t.points is not None] for some in annotations.things]
    most = max(map(len, rows), default=0)
    blank = np.array([-1.0, *([0.0] * (_HEAD - 1 + 3 * count))])
    return [np.array(row + [blank] * (most - len(row))).reshape(most, -1) for row in rows]


def _row(thing: Thing, count: int) -> NDArray[np.float64]:
    left, top, right, bottom = thing.box
    points = np.zeros((count, 3)) if thing.points is None else thing.points
    is_out = float(thing.state != WANTED)
    head = (0.0, is_out, thing.area, right - left, bottom - top, thing.aspect)
    return np.concatenate([head, points.reshape(-1)])


def _is_given(source: Path, model: Model, settings: Settings) -> bool:
    found = find_annotations(source)
    if settings.size is None or found is None or found[0] is not read_coco:
        return False
    if not mentions(found[1], b'"keypoints"'):
        return False
    count = _point_count(read_coco(found[1]))
    return bool(count and _layout(model, count, settings._replace(decode="")))


KEYPOINTS = Task(phrase("key points"), ("oks", "pck"), "image", _open, _is_given)
