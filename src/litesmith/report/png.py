"""A trade-off graph as PNG, for places that show pictures only."""

from collections.abc import Sequence
from io import BytesIO

from litesmith.report.plot import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Point, outline
from litesmith.report.svg import shape_words
from litesmith.report.tradeoff import Graph, Mark, note_height

# Pixels of the picture for a unit of the drawing; more are drawn, so that edges are smooth.
_SCALE, _SMOOTH = 2, 2
_TITLE, _KEYS = 26, 26

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

# The font that comes with Pillow has no such letters.
_LETTERS = str.maketrans({"−": "-", "×": "x", "µ": "u", "–": "-", "…": "."})


def png(graph: Graph) -> bytes:
    """The picture of a graph, with its title and the meaning of its shapes."""
    paper = _Paper()
    paper.text((LEFT, -8), graph.title, "start", _INK, 15)
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

    def text(
        self, point: Point, words: str, anchor: str, color: str = _SOFT, size: float = 11
    ) -> float:
        """Writes words, and gives their width."""
        from PIL import ImageFont

        shown = words.translate(_LETTERS).encode("ascii", "replace").decode()
        font = ImageFont.load_default(size * self._factor)
        halo = {"stroke_width": self._factor, "stroke_fill": "white"} if color == _INK else {}
        self._draw.text(self._at(point), shown, color, font, _ANCHORS[anchor], **halo)
        return self._draw.textlength(shown, font) / self._factor

    def upward(self, words: str) -> None:
        """Writes the title of the upright axis."""
        from PIL import Image, ImageDraw, ImageFont

        font = ImageFont.load_default(11 * self._factor)
        shown = words.translate(_LETTERS).encode("ascii", "replace").decode()
        strip = Image.new("RGB", ((BOTTOM - TOP) * self._factor, 15 * self._factor), "white")
        place = (strip.width / 2, strip.height * 0.75)
        ImageDraw.Draw(strip).text(place, shown, _SOFT, font, "ms")
        self._image.paste(strip.rotate(90, expand=True), (0, (TOP + _TITLE) * self._factor))

    def content(self) -> bytes:
        small = self._image.reduce(_SMOOTH)
        target = BytesIO()
        small.quantize(64).save(target, "PNG", optimize=True)
        return target.getvalue()


def _frame(paper: _Paper, graph: Graph) -> None:
    if graph.budget:
        paper.box(LEFT, graph.budget.place, RIGHT, BOTTOM, _OUTSIDE)
    for tick in graph.y_ticks:
        paper.line([(LEFT, tick.place), (RIGHT, tick.place)], _LINE, 0.75)
        paper.text((LEFT - 6, tick.place + 4), tick.text, "end")
    for tick in graph.x_ticks:
        paper.line([(tick.place, TOP), (tick.place, BOTTOM)], _LINE, 0.75)
        paper.text((tick.place, BOTTOM + 15), tick.text, "middle")
    paper.line([(LEFT, BOTTOM), (RIGHT, BOTTOM)], _SOFT)
    paper.text(((LEFT + RIGHT) / 2, BOTTOM + 33), graph.x_title, "middle")
    paper.upward(graph.y_title)


def _lines(paper: _Paper, graph: Graph) -> None:
    if graph.budget:
        y = graph.budget.place
        paper.dashes((LEFT, y), (RIGHT, y), _BAD, 5)
        paper.text((RIGHT - 2, note_height(y)), graph.budget.text[:40], "end", _BAD, 10)
    if graph.limit:
        x = graph.limit.place
        paper.dashes((x, TOP), (x, BOTTOM), _BAD, 2)
        paper.text((x + 4, TOP + 9), graph.limit.text, "start", _BAD, 10)
    if len(graph.front) > 1:
        paper.line(graph.front, _ACCENT, 1.5)


def _mark(paper: _Paper, mark: Mark) -> None:
    left, upper, right, lower = mark.bars
    fill = _FILLS[mark.shape]
    paper.line([(left, mark.y), (right, mark.y)], fill, 0.5)
    paper.line([(mark.x, upper), (mark.x, lower)], fill, 0.5)
    if mark.on_front:
        paper.ring((mark.x, mark.y), 12, _ACCENT)
    paper.shape(outline(mark.shape, mark.x, mark.y), fill)
    if mark.label:
        paper.text((mark.label.x, mark.label.y), mark.label.text, mark.label.anchor, _INK)


def _legend(paper: _Paper, graph: Graph) -> None:
    x, y = 14.0, HEIGHT + 8.0
    for shape, words in shape_words(graph):
        paper.shape(outline(shape, x, y), _FILLS[shape])
        x += 28 + paper.text((x + 12, y + 4), words, "start", size=10)
    if graph.front:
        paper.line([(x - 6, y), (x + 10, y)], _ACCENT, 1.5)
        paper.text((x + 14, y + 4), "Pareto front", "start", size=10)
