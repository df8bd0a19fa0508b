"""Letters with accents in pictures: the font that comes with Pillow has none, so they are drawn."""

from typing import TYPE_CHECKING
from unicodedata import combining, normalize

from litesmith.pages.drawing.plot import Point

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

# What the font has instead of what it has not.
_LIKE = str.maketrans({"−": "-", "×": "x", "µ": "u", "–": "-", "…": ".", "¿": "", "¡": ""})

# accent -> strokes beside the middle of a letter, above its top, in sizes of the font
_ABOVE: dict[str, tuple[tuple[Point, ...], ...]] = {
    "\u0300": (((0.04, -0.06), (-0.08, -0.17)),),
    "\u0301": (((-0.04, -0.06), (0.08, -0.17)),),
    "\u0302": (((-0.12, -0.06), (0.0, -0.16), (0.12, -0.06)),),
    "\u0303": (((-0.15, -0.07), (-0.06, -0.13), (0.05, -0.07), (0.14, -0.13)),),
    "\u0308": (((-0.1, -0.13), (-0.1, -0.06)), ((0.1, -0.13), (0.1, -0.06))),
}
_BELOW: dict[str, tuple[tuple[Point, ...], ...]] = {
    "\u0327": (((0.01, 0.0), (0.04, 0.08), (-0.06, 0.15)),)
}
_SHIFTS = {"ls": 0.0, "ms": 0.5, "rs": 1.0}


def bare(words: str) -> str:
    """Words in the letters of the font, without accents."""
    apart = normalize("NFKD", words.translate(_LIKE))
    return "".join(c for c in apart if not combining(c)).encode("ascii", "replace").decode()


def accents(words: str) -> list[tuple[int, str]]:
    """Each accent with the place of its letter in `bare`."""
    found: list[tuple[int, str]] = []
    count = 0
    for letter in normalize("NFKD", words.translate(_LIKE)):
        if combining(letter):
            found.append((count - 1, letter))
        else:
            count += 1
    return found


def draw_accents(
    draw: "ImageDraw",
    point: Point,
    words: str,
    *,
    font: "FreeTypeFont | ImageFont",
    anchor: str,
    size: float,
    color: str,
) -> None:
    """Draws what `bare` leaves out, over the bare words at the same point."""
    shown = bare(words)
    start = point[0] - _SHIFTS[anchor] * font.getlength(shown)
    for place, accent in accents(words):
        _, top, _, bottom = font.getbbox(shown[place], anchor="ls")
        middle = start + font.getlength(shown[:place]) + font.getlength(shown[place]) / 2
        edge = point[1] + (top if accent in _ABOVE else bottom)
        for stroke in _ABOVE.get(accent) or _BELOW.get(accent, ()):
            ends = [(middle + x * size, edge + y * size) for x, y in stroke]
            draw.line(ends, color, max(round(0.07 * size), 1), joint="curve")
