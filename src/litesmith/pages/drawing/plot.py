"""Where things go in a drawing: scales, ticks, shapes, labels. Knows no model and no colour."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom

WIDTH, HEIGHT = 400, 320
LEFT, TOP, RIGHT, BOTTOM = 52, 12, 392, 272

# What a letter takes, for the largest size that labels are drawn in.
_LETTER, _LINE = 7.2, 13
_GAP = 9


@dataclass(frozen=True)
class Scale:
    """Numbers from `low` to `high` on the places from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 2)

    def within(self, value: float) -> float:
        """The place of a value, or the nearest end."""
        return self.place(min(max(value, self.low), self.high))


def ticks(low: float, high: float, most: int = 6) -> tuple[float, ...]:
    """Round numbers from low to high: steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 5) if m * power >= rough), 10 * power)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, 2 - math.floor(math.log10(step)))
    return tuple(round(place * step, digits) for place in range(first, last + 1))


def _ring(count: int, *radii: float, turn: float = 0.0) -> tuple[Point, ...]:
    """Points around the centre; the radii take turns."""
    angles = [2 * math.pi * place / count + turn for place in range(count)]
    return tuple(
        (radii[place % len(radii)] * math.sin(angle), -radii[place % len(radii)] * math.cos(angle))
        for place, angle in enumerate(angles)
    )


def _circle(radius: float) -> tuple[Point, ...]:
    """A ring that ends where it began, so that another may go on from there."""
    points = _ring(20, radius)
    return *points, points[0]


_CROSS = ((-3, -1), (-1, -1), (-1, -3), (1, -3), (1, -1), (3, -1))
_TURNED = math.sqrt(0.5)

# name -> a closed outline around the centre
SHAPES: dict[str, tuple[Point, ...]] = {
    "circle": _ring(20, 5.5),
    "cross": tuple(
        (2 * (x - y) * _TURNED, 2 * (x + y) * _TURNED)
        for x, y in (*_CROSS, *((-x, -y) for x, y in _CROSS))
    ),
    "square": _ring(4, 7, turn=math.pi / 4),
    "star": _ring(10, 11, 4.8),
    "below": _ring(3, 7, turn=math.pi),
    "beyond": _ring(3, 7, turn=math.pi / 2),
    "hollow": (*_circle(6), *reversed(_circle(3.4))),
}


def outline(shape: str, x: float, y: float) -> tuple[Point, ...]:
    """The corners of a shape at a place."""
    return tuple((round(x + dx, 2), round(y + dy, 2)) for dx, dy in SHAPES[shape])


def staircase(points: Iterable[Point]) -> tuple[Point, ...]:
    """The line that no point is left of and above; places, so that up is a smaller second number.

    Only points that none beats in both are its corners.
    """
    corners: list[Point] = []
    for x, y in sorted(points):
        if not corners:
            corners.append((x, y))
        elif y < corners[-1][1]:
            corners += [(x, corners[-1][1]), (x, y)]
    return tuple(corners)


@dataclass(frozen=True)
class Label:
    """A text beside a point; `anchor` is the SVG word for the end that the place is of."""

    text: str
    x: float
    y: float
    anchor: str


def place_labels(
    names: Sequence[str], points: Sequence[Point], line: Sequence[Point] = ()
) -> tuple[Label | None, ...]:
    """A label for each point, the first ones first, off a line where that can be; None where there
    is no room left."""
    segments = [
        (min(a[0], b[0]), min(a[1], b[1]) - 1, max(a[0], b[0]), max(a[1], b[1]) + 1)
        for a, b in pairwise(line)
    ]
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    placed: list[Label | None] = []
    for name, (x, y) in zip(names, points, strict=True):
        own = (x - 6, y - 6, x + 6, y + 6)
        others = [box for box in taken if box != own]
        free = [label for label in _tries(name, x, y) if _is_free(label, others)]
        found = next((label for label in free if _is_free(label, segments)), next(iter(free), None))
        placed.append(found)
        if found is not None:
            taken.append(_box(found))
    return tuple(placed)


def _tries(name: str, x: float, y: float) -> tuple[Label, ...]:
    return (
        Label(name, x + _GAP, y + 4, "start"),
        Label(name, x - _GAP, y + 4, "end"),
        Label(name, x, y - _GAP - 2, "middle"),
        Label(name, x, y + _GAP + 11, "middle"),
        Label(name, x + _GAP, y - _GAP, "start"),
        Label(name, x + _GAP, y + _GAP + 9, "start"),
    )


def _box(label: Label) -> Box:
    width = _LETTER * len(label.text)
    left = label.x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[label.anchor]
    return left, label.y - _LINE + 2, left + width, label.y + 3


def _is_free(label: Label, taken: Sequence[Box]) -> bool:
    left, top, right, bottom = _box(label)
    if left < LEFT + 2 or right > RIGHT + 6 or top < TOP - 8 or bottom > BOTTOM:
        return False
    return not any(
        left < box[2] and right > box[0] and top < box[3] and bottom > box[1] for box in taken
    )
