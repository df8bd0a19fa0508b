"""The geometry of a drawing: scales, ticks, shapes, labels. Models and colours do not occur
here.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple
from unicodedata import east_asian_width

Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom

WIDTH, HEIGHT = 400, 320
LEFT, TOP, RIGHT, BOTTOM = 52, 12, 392, 272

# The font size of labels and the height of a line, in units of the drawing.
_SIZE, _LINE = 12.2, 14

# Letters of unusual width, relative to the font size. The widths are those of a wide font, so that
# no browser's font makes a label wider than expected.
_WIDTHS = {
    **dict.fromkeys(" !'(),-./:;I[]`fijlrt{|}", 0.42),
    **dict.fromkeys("%@MWmw—…", 1.02),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ&+<=>#~", 0.82),
}
_USUAL_WIDTH, _WIDE = 0.66, 1.05

# How much further than usual a label may be from its mark, where other marks are near.
_FURTHER = (6.0, 12.0)


@dataclass(frozen=True)
class Scale:
    """Maps numbers from `low` to `high` to positions from `start` to `end`."""

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
    """A closed ring, so that another can follow it in one path."""
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


def outline(shape: str, x: float, y: float, size: float = 1.0) -> tuple[Point, ...]:
    """The corners of a shape at a place."""
    return tuple((round(x + size * dx, 2), round(y + size * dy, 2)) for dx, dy in SHAPES[shape])


def staircase(points: Iterable[Point]) -> tuple[Point, ...]:
    """The staircase with no point to its upper left; points are positions, so up means a smaller
    second number.

    Its corners are the points that no other beats in both coordinates.
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
    """A text beside a point; `anchor` is SVG's word for the end of the text that is at the
    point.
    """

    text: str
    x: float
    y: float
    anchor: str


class Spot(NamedTuple):
    """A mark that a label belongs to, and how far it reaches from its middle."""

    x: float
    y: float
    radius: float = 6.0

    @property
    def box(self) -> Box:
        return (
            self.x - self.radius,
            self.y - self.radius,
            self.x + self.radius,
            self.y + self.radius,
        )


def place_labels(
    names: Sequence[str],
    spots: Sequence[Spot],
    *,
    taken: Iterable[Box] = (),
    avoided: Sequence[Box] = (),
) -> tuple[Label | None, ...]:
    """Places a label for each spot, the first ones first: never over another label, another mark or
    anything `taken`, and if possible not over anything `avoided`. None where no room is left."""
    used = list(taken)
    placed: list[Label | None] = []
    for place, (name, spot) in enumerate(zip(names, spots, strict=True)):
        others = [other.box for number, other in enumerate(spots) if number != place]
        free = [one for one in _tries(name, spot) if _is_free(label_box(one), (*used, *others))]
        found = min(free, key=lambda one: _count_overlaps(label_box(one), avoided), default=None)
        placed.append(found)
        if found is not None:
            used.append(label_box(found))
    return tuple(placed)


def segments(line: Sequence[Point]) -> list[Box]:
    """The parts of a line, each as the box that it fills."""
    return [
        (min(a[0], b[0]), min(a[1], b[1]) - 1, max(a[0], b[0]), max(a[1], b[1]) + 1)
        for a, b in pairwise(line)
    ]


def place_note(text: str, tries: Sequence[tuple[float, float, str]], taken: Sequence[Box]) -> Label:
    """A note at a line, at the first free place of `tries`; at the first if none is free."""
    labels = [Label(text, x, y, anchor) for x, y, anchor in tries]
    return next((one for one in labels if not _count_overlaps(label_box(one), taken)), labels[0])


def _tries(name: str, spot: Spot) -> tuple[Label, ...]:
    """The places of a label, the best first."""
    x, y, radius = spot
    found: list[Label] = []
    for reach in (radius, *(radius + more for more in _FURTHER)):
        above, below = y - reach - 4, y + reach + 11
        found += [
            Label(name, x + reach + 4, y + 4, "start"),
            Label(name, x - reach - 4, y + 4, "end"),
            Label(name, x, above, "middle"),
            Label(name, x, below, "middle"),
            *(Label(name, x + 4, height, "start") for height in (above, below)),
            *(Label(name, x - 4, height, "end") for height in (above, below)),
        ]
    return tuple(found)


def text_width(words: str) -> float:
    """The largest width that words take in a drawing."""
    return _SIZE * sum(map(_letter_width, words))


def _letter_width(letter: str) -> float:
    if east_asian_width(letter) in "WF":
        return _WIDE
    usual = _USUAL_WIDTH if letter.isascii() or letter.isalpha() else _WIDE
    return _WIDTHS.get(letter, usual)


def label_box(label: Label) -> Box:
    """The area of a label."""
    width = text_width(label.text)
    left = label.x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[label.anchor]
    return left, label.y - _LINE + 3, left + width, label.y + 3


def do_meet(one: Box, other: Box) -> bool:
    """True where two boxes share more than an edge."""
    is_beside = one[2] <= other[0] or other[2] <= one[0]
    return not (is_beside or one[3] <= other[1] or other[3] <= one[1])


def _count_overlaps(box: Box, others: Iterable[Box]) -> int:
    return sum(do_meet(box, other) for other in others)


def _is_free(box: Box, taken: Iterable[Box]) -> bool:
    left, top, right, bottom = box
    is_inside = left >= LEFT + 2 and right <= WIDTH - 2 and top >= 1 and bottom <= BOTTOM
    return is_inside and not _count_overlaps(box, taken)
