"""The trade-off graphs as values: what each trial costs against how good it is."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

from litesmith.evidence.records import Score
from litesmith.evidence.tuning import FLOAT, MISSES
from litesmith.pages.drawing.plot import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Label,
    Point,
    Scale,
    place_labels,
    staircase,
    ticks,
)
from litesmith.pages.records.tune_folder import Entry, TuneFolder
from litesmith.phrases import phrase
from litesmith.units import number_text

BYTES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
TIMES = {"µs": 1.0, "ms": 1e3, "s": 1e6}

# A trial that loses more than so many times the budget, or costs so many times what the float model
# does, is drawn at the edge, as a triangle: else one such would press all others into one spot.
_FAR_BELOW, _FAR_BEYOND = 6, 2.5

Cost = tuple[float, float, float]  # as it is, and the ends of its interval

Shown = TypeVar("Shown")
Record = TypeVar("Record")


@dataclass(frozen=True)
class Axis(Generic[Shown, Record]):
    """What a graph has from left to right: the cost of a model in a record."""

    name: str
    title: str
    units: dict[str, float]
    cost: Callable[[Shown, Record], Cost | None]

    def unit(self, largest: float) -> str:
        """The largest unit that this much has one of."""
        fitting = [unit for unit, size in self.units.items() if largest >= size]
        return fitting[-1] if fitting else next(iter(self.units))


@dataclass(frozen=True)
class PlotMark:
    """A trial in a graph; `bars` are the ends of its intervals, left, upper, right, lower."""

    entry: Entry
    x: float
    y: float
    bars: tuple[float, float, float, float]
    shape: str
    on_front: bool
    label: Label | None = None


@dataclass(frozen=True)
class Tick:
    place: float
    text: str


@dataclass(frozen=True)
class Graph:
    """A graph with every place computed; drawing it is all that is left.

    meanings  what shapes stand for, where that is not the usual
    """

    name: str
    title: str
    x_title: str
    y_title: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    marks: tuple[PlotMark, ...]
    front: tuple[Point, ...]
    budget: Tick | None
    limit: Tick | None
    meanings: Mapping[str, str] = field(default_factory=dict[str, str])


class _Found(NamedTuple):
    """A trial that can be drawn."""

    entry: Entry
    cost: Cost
    score: Score


def exact(cost: float | None) -> Cost | None:
    """A cost without an interval."""
    return None if cost is None else (cost, cost, cost)


def _time_of(entry: Entry, _: TuneFolder) -> Cost | None:
    """Of a run, as everything tells it; the interval is that of the ratio to the float model."""
    speed = entry.speed
    if speed is None or speed.p50_us is None:
        return None
    low, high, base = speed.low, speed.high, speed.float_us
    if speed.ratio is None or base is None or low is None or high is None:
        return exact(speed.p50_us)
    return speed.p50_us, low * base, high * base


AXES: tuple[Axis[Entry, TuneFolder], ...] = (
    Axis("size", phrase("File size"), BYTES, lambda entry, _: exact(entry.bytes)),
    Axis("latency", phrase("Latency"), TIMES, _time_of),
    Axis("download", phrase("Download size"), BYTES, lambda entry, _: exact(entry.gzip_bytes)),
    Axis("memory", phrase("Peak memory"), BYTES, lambda entry, _: exact(entry.peak_bytes)),
)
_ALWAYS = ("size", "latency")


def graphs(record: TuneFolder) -> tuple[Graph, ...]:
    """The graphs that the trials fill: size and latency, and what was to be small."""
    wanted = [axis for axis in AXES if axis.name in (*_ALWAYS, record.summary.request.minimize)]
    drawn = (_graph(axis, record) for axis in wanted)
    return tuple(graph for graph in drawn if graph is not None)


def note_height(line: float) -> float:
    """Where words on a line across the graph go: below it, or above where there is no room."""
    return line + 13 if BOTTOM - line > 18 else line - 5


def shown_score(entry: Entry) -> Score | None:
    """The score on the samples that all trials share, where there is one."""
    return entry.score or entry.proof


def _graph(axis: Axis[Entry, TuneFolder], record: TuneFolder) -> Graph | None:
    found = [
        _Found(entry, cost, score)
        for entry in record.entries
        if (cost := axis.cost(entry, record)) and (score := shown_score(entry))
    ]
    if not found:
        return None
    first = found[0].score
    found = [one for one in found if one.score.title == first.title]
    worth = -1 if first.is_lower_better else 1
    floor = _floor(record, worth)
    across, limit = _across(found, record.summary.request.ceilings.get(axis.name))
    up = up_scale([worths(one.score, worth) for one in found], floor, _FAR_BELOW)
    marks = _labelled([_mark(record, one, across, up) for one in found])
    unit = axis.unit(across.high)
    return Graph(
        name=axis.name,
        title=phrase("{title} and accuracy", axis.title),
        x_title=phrase("{title}{on}, {unit}", axis.title, _on(axis, found), unit),
        y_title=y_title(phrase(first.title), first.unit),
        x_ticks=scale_ticks(across, axis.units[unit]),
        y_ticks=scale_ticks(up, worth * (0.01 if first.unit == "share" else 1.0)),
        marks=marks,
        front=staircase((m.x, m.y) for m in marks if m.on_front),
        budget=None
        if floor is None
        else Tick(up.within(floor), phrase(record.summary.request.budget)),
        limit=limit,
    )


def y_title(title: str, unit: str) -> str:
    """What the upright axis is called."""
    unit = {"share": ", %", "": ""}.get(unit, phrase(", {unit}", unit))
    return phrase("{title}{unit}", title, unit)


def _across(found: Sequence[_Found], limit: float | None) -> tuple[Scale, Tick | None]:
    """From nothing to the largest cost to look at; a limit that is far beyond it is not drawn."""
    base = [one.cost[0] for one in found if one.entry.name == FLOAT]
    most = _FAR_BEYOND * base[0] if base else math.inf
    largest = max(cost for one in found if (cost := one.cost[0]) <= most)
    if limit is None or limit > 1.5 * largest:
        return Scale(0.0, 1.06 * largest, LEFT, RIGHT), None
    scale = Scale(0.0, 1.06 * max(largest, limit), LEFT, RIGHT)
    return scale, Tick(scale.place(limit), phrase("limit"))


def _on(axis: Axis[Entry, TuneFolder], found: Sequence[_Found]) -> str:
    """The target that times are of."""
    targets = [one.entry.speed.target for one in found if one.entry.speed]
    return (
        phrase(" on {targets}", targets[0])
        if axis.name == "latency" and targets and targets[0]
        else ""
    )


def up_scale(worths: Sequence[Cost], floor: float | None, far: float = math.inf) -> Scale:
    """From the lowest worth to look at to the highest; what is `far` times as far below the best as
    the floor is not looked at."""
    best, top = max(value for value, _, _ in worths), max(high for _, _, high in worths)
    least = -math.inf
    if floor is not None and floor < best:
        least = best - far * (best - floor)
    seen = [max(low, least) for value, low, _ in worths if value >= least]
    bottom = min(seen if floor is None else [*seen, floor])
    room = 0.06 * (top - bottom) or 0.01 * abs(top) or 0.01
    return Scale(bottom - room, top + room, BOTTOM, TOP)


def worths(score: Score, worth: int) -> Cost:
    """A score and the ends of its interval, such that more is better.

    The interval is of the paired difference where it is known: what a drop is judged by.
    """
    own, ends = worth * score.known_value, score.paired_ends or (score.low, score.high)
    lower, upper = sorted(own if end is None else worth * end for end in ends)
    return own, min(lower, own), max(upper, own)


def _mark(record: TuneFolder, one: _Found, across: Scale, up: Scale) -> PlotMark:
    entry, (cost, cheap, dear), score = one
    value, low, high = worths(score, -1 if score.is_lower_better else 1)
    x, y = across.within(cost), up.within(value)
    bars = (across.within(cheap), up.within(high), across.within(dear), up.within(low))
    on_front = entry.name in record.summary.front
    if value < up.low:
        return PlotMark(entry, x, y - 7, (x, y, x, y), "below", on_front)
    if cost > across.high:
        return PlotMark(entry, x - 7, y, (x, bars[1], x, bars[3]), "beyond", on_front)
    return PlotMark(entry, x, y, bars, _shape(entry, record), on_front)


def _shape(entry: Entry, record: TuneFolder) -> str:
    best = record.summary.best
    if best is not None and entry.name == best.name:
        return "star"
    if entry.name == FLOAT:
        return "square"
    return "cross" if entry.status == MISSES else "circle"


def _labelled(marks: list[PlotMark]) -> tuple[PlotMark, ...]:
    """The marks with labels, those that matter most first; they are drawn last."""
    order = {"star": 0, "square": 1}
    ranked = sorted(marks, key=lambda m: (order.get(m.shape, 3 - m.on_front), m.x))
    names = [shorten(m.entry.name, 20) for m in ranked]
    return with_labels(ranked, place_labels(names, [(m.x, m.y) for m in ranked]))


def with_labels(ranked: Sequence[PlotMark], labels: Sequence[Label | None]) -> tuple[PlotMark, ...]:
    """The marks with their labels, the first drawn last."""
    pairs = zip(ranked, labels, strict=True)
    return tuple(replace(mark, label=label) for mark, label in reversed(list(pairs)))


def shorten(name: str, most: int) -> str:
    """A name that has no more letters than this."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def scale_ticks(scale: Scale, size: float) -> tuple[Tick, ...]:
    """Round numbers of a unit that has `size`."""
    low, high = sorted((scale.low / size, scale.high / size))
    return tuple(
        Tick(scale.place(value * size), number_text(value).replace("-", "−"))
        for value in ticks(low, high)
    )


def _floor(record: TuneFolder, worth: int) -> float | None:
    """The least worth that the budget allows: what any trial has, without its room."""
    known = (
        worth * entry.score.known_value - entry.room
        for entry in record.entries
        if entry.score is not None and entry.room is not None
    )
    return next(known, None)
