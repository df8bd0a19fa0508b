"""Draws the outlines of objects, which COCO stores as polygons or as runs of pixels, on maps of
classes.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from litesmith.type_guards import is_list_or_tuple, is_mapping

Mask = NDArray[np.bool_]

# Limits for a sane file: the pixels of an image, and the distance of a point from it.
_MOST_PIXELS = 1 << 28
_FARTHEST = 1 << 30
# Bits of a run.
_MOST_BITS = 64


def draw_outline(outline: object, image: tuple[int, int], size: tuple[int, int]) -> Mask | None:
    """Draws an outline on a map of this height and width; `image` is the width and height in whose
    pixels the outline is given. None where the outline is not understood."""
    if is_mapping(outline):
        runs, height_width = outline.get("counts"), _whole_numbers(outline.get("size"))
        if len(height_width) != 2 or not 0 < height_width[0] * height_width[1] <= _MOST_PIXELS:
            return None
        counts = _unpack_runs(runs) if isinstance(runs, str) else _whole_numbers(runs)
        whole = _from_runs(counts, height_width[0], height_width[1])
        return None if whole is None else _resize(whole, size)
    if not is_list_or_tuple(outline) or not outline:
        return None
    canvas = Image.new("1", (size[1], size[0]))
    scale = size[1] / image[0], size[0] / image[1]
    for ring in outline:
        points = numbers(ring)
        if len(points) < 6 or len(points) % 2:
            return None
        corners = [
            (x * scale[0], y * scale[1]) for x, y in zip(points[::2], points[1::2], strict=True)
        ]
        ImageDraw.Draw(canvas).polygon(corners, fill=1)
    return np.asarray(canvas, bool)


def numbers(value: object) -> list[float]:
    """The numbers of a list; empty where it holds anything else, or numbers that no map can
    hold.
    """
    if not is_list_or_tuple(value):
        return []
    found = [v for v in value if isinstance(v, int | float) and not isinstance(v, bool)]
    known = [float(v) for v in found if abs(v) <= _FARTHEST]
    return known if len(known) == len(value) else []


def _whole_numbers(value: object) -> list[int]:
    return [int(number) for number in numbers(value)]


def _unpack_runs(text: str) -> list[int]:
    """Unpacks runs from COCO's letters: five bits a letter, with a sixth that says whether more
    follow; from the third run on, a run is stored as its difference from the run before the last.
    """
    counts: list[int] = []
    place = 0
    while place < len(text):
        number, shift, more = 0, 0, True
        while more and place < len(text):
            bits = ord(text[place]) - 48
            number |= (bits & 31) << shift
            more = bool(bits & 32)
            place, shift = place + 1, shift + 5
            if shift > _MOST_BITS:
                return []
            if not more and bits & 16:
                number |= -1 << shift
        counts.append(number + (counts[-2] if len(counts) > 2 else 0))
    return counts


def _from_runs(counts: Sequence[int], height: int, width: int) -> Mask | None:
    """A mask from runs of pixels, alternately outside and inside the object, down the columns."""
    if not counts or min(counts) < 0 or sum(counts) != height * width:
        return None
    values = np.arange(len(counts)) % 2 == 1
    return np.repeat(values, counts).reshape(width, height).T


def _resize(mask: Mask, size: tuple[int, int]) -> Mask:
    image = Image.fromarray(mask.astype(np.uint8))
    return np.asarray(image.resize((size[1], size[0]), Image.Resampling.NEAREST), bool)
