"""A trade-off graph as PNG, for places where SVG is not shown.

The font that comes with Pillow has no letters with accents, so accents are drawn.
"""

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING
from unicodedata import combining, normalize

from litesmith.lang.language import language, say, speaking
from litesmith.pages.drawing.plot import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Point, outline
from litesmith.pages.drawing.svg import LEFT_IS_BETTER, UP_IS_BETTER, shape_words
from litesmith.pages.drawing.tradeoff import PlotMark, TradeoffGraph

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

# Pixels of the picture for a unit of the drawing; more are drawn, so that edges are smooth.
_SCALE, _SMOOTH = 2, 2
_TITLE, _KEYS = 26, 26

# The share of white inside an outlined mark.
_INNER = 0.55

_INK, _SOFT, _LINE, _ACCENT = "#16202c", "#586575", "#dfe4ea", "#0b6bcb"
_BAD, _OUTSIDE = "#b3372e", "#fbf1f0"
_FILLS = {
    "star": "#12805c",
    "square": _INK,
    "circle": _ACCENT,
    "cross": _BAD,
    "below": _BAD,
    "beyond": _SOFT,
    "hollow": _ACCENT,
}
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}

# Languages whose letters are not in Pillow's font and cannot be composed with accents.
_WITHOUT_FONT = ("zh",)


def png(graph: TradeoffGraph) -> bytes:
    """The picture of a graph, with its title and the meaning of its shapes; in English where the
    font has no letters for the language in use."""
    paper = _Paper()
    with speaking("en" if language() in _WITHOUT_FONT else None):
        paper.text((LEFT, -8), say(graph.title), "start", _INK, 15)
        _frame(paper, graph)
        _lines(paper, graph)
        for mark in graph.marks:
            _mark(paper, mark)
        _legend(paper, graph)
    return paper.content()


class _Paper:
    """Draws in the units of the graph, below a title."""

    def __init__(self) -> None:
        from PIL import Image, ImageDraw

        self._factor = _SCALE * _SMOOTH
        size = (WIDTH * self._factor, (HEIGHT + _TITLE + _KEYS) * self._factor)
        self._image = Image.new("RGB", size, "white")
        self._draw = ImageDraw.Draw(self._image)

    def _at(self, point: Point) -> Point:
        return point[0] * self._factor, (point[1] + _TITLE) * self._factor

    def line(self, points: Sequence[Point], color: str, width: float = 1.0) -> None:
        self._draw.line([self._at(p) for p in points], color, round(width * self._factor))

    def dashes(self, start: Point, end: Point, color: str, dash: float) -> None:
        length = max(abs(end[0] - start[0]), abs(end[1] - start[1]))
        count = max(int(length / (2 * dash)), 1)
        for place in range(count):
            shares = (2 * place / (2 * count), (2 * place + 1) / (2 * count))
            ends = [
                (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]))
                for share in shares
            ]
            self.line(ends, color, 1.4)

    def shape(self, points: Sequence[Point], fill: str) -> None:
        self._draw.polygon([self._at(p) for p in points], fill, "white", self._factor // 2)

    def box(self, left: float, top: float, right: float, bottom: float, fill: str) -> None:
        self._draw.rectangle([self._at((left, top)), self._at((right, bottom))], fill)

    def ring(self, point: Point, radius: float, color: str) -> None:
        self._draw.circle(self._at(point), radius * self._factor, None, color, self._factor)

    def width(self, words: str, size: float) -> float:
        """The width of some words."""
        from PIL import ImageFont

        font = ImageFont.load_default(size * self._factor)
        return self._draw.textlength(bare(words), font) / self._factor

    def text(
        self, point: Point, words: str, anchor: str, color: str = _SOFT, size: float = 11
    ) -> None:
        from PIL import ImageFont

        shown, at, size = bare(words), self._at(point), size * self._factor
        font = ImageFont.load_default(size)
        spot, halo = _ANCHORS[anchor], self._factor if color == _INK else 0
        self._draw.text(at, shown, color, font, spot, stroke_width=halo, stroke_fill="white")
        draw_accents(self._draw, at, words, font=font, anchor=spot, size=size, color=color)

    def upward(self, words: str) -> None:
        """Writes the title of the vertical axis."""
        from PIL import Image, ImageDraw, ImageFont

        size = 11 * self._factor
        font = ImageFont.load_default(size)
        strip = Image.new("RGB", ((BOTTOM - TOP) * self._factor, 15 * self._factor), "white")
        place = (strip.width / 2, strip.height * 0.75)
        draw = ImageDraw.Draw(strip)
        draw.text(place, bare(words), _SOFT, font, "ms")
        draw_accents(draw, place, words, font=font, anchor="ms", size=size, color=_SOFT)
        self._image.paste(strip.rotate(90, expand=True), (0, (TOP + _TITLE) * self._factor))

    def content(self) -> bytes:
        small = self._image.reduce(_SMOOTH)
        target = BytesIO()
        small.quantize(64).save(target, "PNG", optimize=True)
        return target.getvalue()


def _frame(paper: _Paper, graph: TradeoffGraph) -> None:
    if graph.budget:
        paper.box(LEFT, graph.budget.place, RIGHT, BOTTOM, _OUTSIDE)
    for tick in graph.y_ticks:
        paper.line([(LEFT, tick.place), (RIGHT, tick.place)], _LINE, 0.75)
        paper.text((LEFT - 6, tick.place + 4), say(tick.text), "end")
    for tick in graph.x_ticks:
        paper.line([(tick.place, TOP), (tick.place, BOTTOM)], _LINE, 0.75)
        paper.text((tick.place, BOTTOM + 15), say(tick.text), "middle")
    paper.line([(LEFT, BOTTOM), (RIGHT, BOTTOM)], _SOFT)
    paper.line([(LEFT, TOP), (LEFT, BOTTOM)], _SOFT)
    across = f"{say(LEFT_IS_BETTER)}   {say(graph.x_title)}"
    paper.text(((LEFT + RIGHT) / 2, BOTTOM + 33), across, "middle")
    paper.upward(f"{say(graph.y_title)}   {say(UP_IS_BETTER)}")


def _lines(paper: _Paper, graph: TradeoffGraph) -> None:
    if graph.budget:
        y = graph.budget.place
        paper.dashes((LEFT, y), (RIGHT, y), _BAD, 5)
    if graph.limit:
        x = graph.limit.place
        paper.dashes((x, TOP), (x, BOTTOM), _BAD, 2)
    for note in graph.notes:
        paper.text((note.x, note.y), note.text, note.anchor, _BAD, 10)
    if len(graph.front) > 1:
        paper.line(graph.front, _ACCENT, 1.5)


def _mark(paper: _Paper, mark: PlotMark) -> None:
    left, upper, right, lower = mark.bars
    fill = _FILLS[mark.shape]
    paper.line([(left, mark.y), (right, mark.y)], fill, 0.5)
    paper.line([(mark.x, upper), (mark.x, lower)], fill, 0.5)
    if mark.on_front:
        paper.ring((mark.x, mark.y), 12, _ACCENT)
    paper.shape(outline(mark.shape, mark.x, mark.y), fill)
    if mark.is_outlined:
        paper.shape(outline(mark.shape, mark.x, mark.y, _INNER), "white")
    if mark.label:
        paper.text((mark.label.x, mark.label.y), mark.label.text, mark.label.anchor, _INK)


def _legend(paper: _Paper, graph: TradeoffGraph) -> None:
    x, y = 14.0, HEIGHT + 8.0
    shown = [(shape, say(words)) for shape, words in shape_words(graph)]
    front = say("Pareto front") if graph.front else ""
    taken = sum(paper.width(words, 10) for _, words in shown) + paper.width(front, 10)
    gap = min(28.0, (WIDTH - 30 - taken) / max(len(shown), 1))
    for shape, words in shown:
        paper.shape(outline(shape, x, y), _FILLS[shape])
        paper.text((x + 12, y + 4), words, "start", size=10)
        x += gap + paper.width(words, 10)
    if front:
        paper.line([(x - 6, y), (x + 10, y)], _ACCENT, 1.5)
        paper.text((x + 14, y + 4), front, "start", size=10)


# Substitutes for characters that the font lacks.
_LIKE = str.maketrans(
    {"−": "-", "×": "x", "µ": "u", "–": "-", "…": ".", "←": "<", "→": ">", "¿": "", "¡": ""}
)

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
    """Draws the accents that `bare` removes, over the bare words at the same point."""
    shown = bare(words)
    start = point[0] - _SHIFTS[anchor] * font.getlength(shown)
    for place, accent in accents(words):
        _, top, _, bottom = font.getbbox(shown[place], anchor="ls")
        middle = start + font.getlength(shown[:place]) + font.getlength(shown[place]) / 2
        edge = point[1] + (top if accent in _ABOVE else bottom)
        for stroke in _ABOVE.get(accent) or _BELOW.get(accent, ()):
            ends = [(middle + x * size, edge + y * size) for x, y in stroke]
            draw.line(ends, color, max(round(0.07 * size), 1), joint="curve")
