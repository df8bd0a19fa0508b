"""The trade-off graphs as values: the cost of each trial against its quality."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

from litesmith.evidence.records import Score
from litesmith.evidence.tune_record import FLOAT, MISSES, NEAR
from litesmith.lang.language import say
from litesmith.pages.drawing.plot import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Box,
    Label,
    Point,
    Scale,
    Spot,
    label_box,
    place_labels,
    place_note,
    segments,
    staircase,
    text_width,
    ticks,
)
from litesmith.pages.records.tune_folder import Entry, TuneFolder
from litesmith.phrases import Quantity, phrase
from litesmith.units import number_text, total_text

BYTES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
TIMES = {"µs": 1.0, "ms": 1e3, "s": 1e6}

# A trial that loses more than the first number times the budget, or costs more than the second
# number times the float model, is drawn as a triangle at the edge: in scale, it would squeeze all
# others into one spot.
_FAR_BELOW, _FAR_BEYOND = 6, 2.5

# The radius of a mark, and of a mark in a ring.
_MARK, _RING = 6.0, 12.0

Cost = tuple[float, float, float]  # the value, and the ends of its interval

Shown = TypeVar("Shown")
Record = TypeVar("Record")


@dataclass(frozen=True)
class Axis(Generic[Shown, Record]):
    """The horizontal axis of a graph: a cost of a model."""

    name: str
    title: str
    units: dict[str, float]
    cost: Callable[[Shown, Record], Cost | None]

    def unit(self, largest: float) -> str:
        """The largest unit that is not larger than this amount."""
        fitting = [unit for unit, size in self.units.items() if largest >= size]
        return fitting[-1] if fitting else next(iter(self.units))


@dataclass(frozen=True)
class PlotMark:
    """A trial in a graph; `bars` are the ends of its intervals, left, upper, right, lower.

    is_outlined  True where it was scored on other samples than the model to ship
    """

    entry: Entry
    x: float
    y: float
    bars: tuple[float, float, float, float]
    shape: str
    on_front: bool
    is_outlined: bool = False
    label: Label | None = None

    @property
    def spot(self) -> Spot:
        return Spot(self.x, self.y, _RING if self.on_front else _MARK)

    @property
    def bar_boxes(self) -> tuple[Box, Box]:
        left, upper, right, lower = self.bars
        return (left, self.y - 1, right, self.y + 1), (self.x - 1, upper, self.x + 1, lower)


@dataclass(frozen=True)
class Tick:
    place: float
    text: str


@dataclass(frozen=True)
class TradeoffGraph:
    """A graph with every position computed, ready to be drawn.

    meanings  the meaning of shapes, where it is not the usual one
    samples   the samples behind filled and outlined marks, where there are both
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
    samples: str = ""

    @property
    def notes(self) -> tuple[Label, ...]:
        """The words at the lines of the budget and the limit."""
        return place_notes(self.budget, self.limit, [mark.spot.box for mark in self.marks])


class _Found(NamedTuple):
    """A trial that can be drawn; `worth` is its score, or how much better it is than float's."""

    entry: Entry
    cost: Cost
    score: Score
    worth: Cost


def exact(cost: float | None) -> Cost | None:
    """A cost whose interval has no width."""
    return None if cost is None else (cost, cost, cost)


def _time_of(entry: Entry, _: TuneFolder) -> Cost | None:
    """The time of a run as every text states it; the interval is that of the ratio to the float
    model."""
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
    Axis("ram", phrase("Arena"), BYTES, lambda entry, _: exact(entry.ram_bytes)),
    Axis("flash", phrase("Flash"), BYTES, lambda entry, _: exact(entry.flash_bytes)),
)
_ALWAYS = ("size", "latency")


def graphs(record: TuneFolder) -> tuple[TradeoffGraph, ...]:
    """The graphs of the trials: size, latency, and any cost that is minimized or has a ceiling."""
    request = record.summary.request
    asked = (*_ALWAYS, request.minimize, *request.ceilings)
    wanted = [axis for axis in AXES if axis.name in asked]
    drawn = (_graph(axis, record) for axis in wanted)
    return tuple(graph for graph in drawn if graph is not None)


def place_notes(budget: Tick | None, limit: Tick | None, taken: Sequence[Box]) -> tuple[Label, ...]:
    """The notes at the lines of budget and limit: off the marks if possible, always inside the
    drawing, and never over each other.
    """
    placed: list[Label] = []
    if budget is not None:
        below, above = budget.place + 13, budget.place - 5
        heights = [below, above] if BOTTOM - budget.place > 18 else [above]
        ends = ((RIGHT - 2, "end"), (LEFT + 4, "start"))
        tries = [(x, height, anchor) for height in heights for x, anchor in ends]
        placed.append(place_note(_fit(budget.text, "budget"), tries, taken))
    if limit is not None:
        words = say(limit.text)
        is_left = limit.place + 4 + text_width(words) < RIGHT
        beside = (limit.place + 4, "start") if is_left else (limit.place - 4, "end")
        used = [placed[0].y] if placed else []
        heights = [y for y in (TOP + 9, BOTTOM - 6) if all(abs(y - one) > 14 for one in used)]
        tries = [(beside[0], height, beside[1]) for height in heights]
        placed.append(place_note(words, tries, taken))
    return tuple(placed)


def _fit(text: str, short: str) -> str:
    """A text in the language in use, or a word for it where the drawing is too narrow."""
    shown = say(text)
    return shown if text_width(shown) < RIGHT - LEFT - 8 else say(short)


def shown_score(record: TuneFolder, entry: Entry) -> Score | None:
    """The score of a trial as every text states it: for the model to ship, the headline's score;
    for others, the score on held-out samples if there is one, otherwise that on the search samples.
    """
    chosen = record.summary.chosen
    if chosen is not None and chosen.name == entry.name and chosen.accuracy is not None:
        return chosen.accuracy
    return entry.proof or entry.score


def _is_paired(entry: Entry, score: Score) -> bool:
    return entry.name == FLOAT or score.difference is not None


def _gain(entry: Entry, score: Score, worth: int) -> Cost:
    """The gain over the float model on the same samples, with its interval."""
    found = score.against
    if entry.name == FLOAT or found is None or found.difference is None:
        return 0.0, 0.0, 0.0
    own = worth * found.difference
    ends = (found.difference_low, found.difference_high)
    lower, upper = sorted(own if end is None else worth * end for end in ends)
    return own, min(lower, own), max(upper, own)


def _find(axis: Axis[Entry, TuneFolder], record: TuneFolder) -> tuple[list[_Found], bool]:
    """The trials that can be drawn; and whether they are drawn by their difference from the float
    model, because scores on different samples have only that in common.
    """
    scored = [
        (entry, cost, score)
        for entry in record.entries
        if (cost := axis.cost(entry, record)) and (score := shown_score(record, entry))
    ]
    if not scored:
        return [], False
    first = scored[0][2]
    scored = [one for one in scored if one[2].title == first.title]
    is_paired = all(_is_paired(entry, score) for entry, _, score in scored) and len(scored) > 1
    worth = -1 if first.is_lower_better else 1
    return [
        _Found(
            entry, cost, score, _gain(entry, score, worth) if is_paired else worths(score, worth)
        )
        for entry, cost, score in scored
    ], is_paired


def _graph(axis: Axis[Entry, TuneFolder], record: TuneFolder) -> TradeoffGraph | None:
    found, is_paired = _find(axis, record)
    if not found:
        return None
    first = found[0].score
    worth = -1 if first.is_lower_better else 1
    floor = _floor(record, worth, is_paired)
    across, limit = _across(found, record.summary.request.ceilings.get(axis.name))
    up = up_scale([one.worth for one in found], floor, _FAR_BELOW)
    budget = None
    if floor is not None:
        budget = Tick(up.within(floor), phrase(record.summary.request.budget))
    marks = [_mark(record, one, across, up) for one in found]
    front = staircase((m.x, m.y) for m in marks if m.on_front)
    unit, size = axis.unit(across.high), 0.01 if first.unit == "share" else 1.0
    title = phrase("{title} against float", phrase(first.title))
    return TradeoffGraph(
        name=axis.name,
        title=phrase("{title} and accuracy", axis.title),
        x_title=phrase("{title}{on}, {unit}", axis.title, _target_words(axis, found), unit),
        y_title=_gain_title(title, first.unit)
        if is_paired
        else y_title(phrase(first.title), first.unit),
        x_ticks=scale_ticks(across, axis.units[unit]),
        y_ticks=scale_ticks(up, size, is_signed=True)
        if is_paired
        else scale_ticks(up, worth * size),
        marks=_label_by_rank(marks, segments(front), place_notes(budget, limit, _boxes(marks))),
        front=front,
        budget=budget,
        limit=limit,
        samples=_samples_words(record, marks),
    )


def _boxes(marks: Sequence[PlotMark]) -> list[Box]:
    return [mark.spot.box for mark in marks]


def _samples_words(record: TuneFolder, marks: Sequence[PlotMark]) -> str:
    """The sentence on which samples are behind filled and outlined marks."""
    if not any(mark.is_outlined for mark in marks):
        return ""
    shown = record.summary.data
    return phrase(
        "Filled: on the {count} held-out samples, as in the headline. Outlined: on the {count2} "
        "samples of the search.",
        total_text(shown.held_out),
        total_text(shown.search),
    )


def _gain_title(title: str, unit: str) -> str:
    """The title of the vertical axis for differences."""
    return y_title(title, "pt" if unit == "share" else unit)


def y_title(title: str, unit: str) -> str:
    """The title of the vertical axis."""
    unit = {"share": ", %", "": ""}.get(unit, phrase(", {unit}", unit))
    return phrase("{title}{unit}", title, unit)


def _across(found: Sequence[_Found], limit: float | None) -> tuple[Scale, Tick | None]:
    """A scale from 0 to the largest cost shown, and the tick of the limit, unless that is far
    beyond.
    """
    base = [one.cost[0] for one in found if one.entry.name == FLOAT]
    most = _FAR_BEYOND * base[0] if base else math.inf
    largest = max(cost for one in found if (cost := one.cost[0]) <= most)
    if limit is None or limit > 1.5 * largest:
        return Scale(0.0, 1.06 * largest, LEFT, RIGHT), None
    scale = Scale(0.0, 1.06 * max(largest, limit), LEFT, RIGHT)
    return scale, Tick(scale.place(limit), phrase("limit"))


def _target_words(axis: Axis[Entry, TuneFolder], found: Sequence[_Found]) -> str:
    """The target that times are of."""
    targets = [one.entry.speed.target for one in found if one.entry.speed]
    return (
        phrase(" on {targets}", shorten(targets[0], 18))
        if axis.name == "latency" and targets and targets[0]
        else ""
    )


def up_scale(worths: Sequence[Cost], floor: float | None, far: float = math.inf) -> Scale:
    """A scale from the lowest worth shown to the highest; worths that are more than `far` times as
    far below the best as the floor are not shown.
    """
    best, top = max(value for value, _, _ in worths), max(high for _, _, high in worths)
    least = -math.inf
    if floor is not None and floor < best:
        least = best - far * (best - floor)
    seen = [max(low, least) for value, low, _ in worths if value >= least]
    bottom = min(seen if floor is None else [*seen, floor])
    room = 0.06 * (top - bottom) or 0.01 * abs(top) or 0.01
    return Scale(bottom - room, top + room, BOTTOM, TOP)


def worths(score: Score, worth: int) -> Cost:
    """A score and its interval, with the sign changed where less is better.

    The interval is that of the paired difference where it is known, because a drop is judged by it.
    """
    own, ends = worth * score.known_value, score.paired_ends or (score.low, score.high)
    lower, upper = sorted(own if end is None else worth * end for end in ends)
    return own, min(lower, own), max(upper, own)


def _mark(record: TuneFolder, one: _Found, across: Scale, up: Scale) -> PlotMark:
    entry, (cost, cheap, dear), score, (value, low, high) = one
    x, y = across.within(cost), up.within(value)
    bars = (across.within(cheap), up.within(high), across.within(dear), up.within(low))
    mark = PlotMark(
        entry,
        x,
        y,
        bars,
        _shape(entry, record),
        entry.name in record.summary.front,
        _is_searched(record, entry, score),
    )
    if value < up.low:
        return replace(mark, y=y - 7, bars=(x, y, x, y), shape="below")
    if cost > across.high:
        return replace(mark, x=x - 7, bars=(x, bars[1], x, bars[3]), shape="beyond")
    return mark


def _is_searched(record: TuneFolder, entry: Entry, score: Score) -> bool:
    """True for a score on the samples of the search where the headline is on others; the float
    model's difference from itself is 0 on all samples.
    """
    chosen = record.summary.chosen
    entry_of_chosen = record.entry(chosen.name) if chosen is not None else None
    is_proven = (
        entry_of_chosen is not None
        and shown_score(record, entry_of_chosen) != entry_of_chosen.score
    )
    return is_proven and entry.name != FLOAT and score == entry.score


def _shape(entry: Entry, record: TuneFolder) -> str:
    best = record.summary.best
    if best is not None and entry.name == best.name:
        return "star"
    if entry.name == FLOAT:
        return "square"
    return "cross" if entry.status in (MISSES, NEAR) else "circle"


def _label_by_rank(
    marks: list[PlotMark], avoided: Sequence[Box], notes: Sequence[Label]
) -> tuple[PlotMark, ...]:
    """The marks with labels, the most important first; these are drawn last."""
    order = {"star": 0, "square": 1}
    ranked = sorted(marks, key=lambda m: (order.get(m.shape, 3 - m.on_front), m.x))
    names = [shorten(m.entry.name, 20) for m in ranked]
    return with_labels(ranked, label_marks(names, ranked, avoided, notes))


def label_marks(
    names: Sequence[str],
    marks: Sequence[PlotMark],
    avoided: Sequence[Box],
    notes: Sequence[Label],
) -> tuple[Label | None, ...]:
    """Labels beside marks: never over the notes at the lines, and if possible not over lines and
    intervals.
    """
    bars = [box for mark in marks for box in mark.bar_boxes]
    return place_labels(
        names,
        [mark.spot for mark in marks],
        taken=map(label_box, notes),
        avoided=(*avoided, *bars),
    )


def with_labels(ranked: Sequence[PlotMark], labels: Sequence[Label | None]) -> tuple[PlotMark, ...]:
    """The marks with their labels, in reverse, so that the first is drawn last."""
    pairs = zip(ranked, labels, strict=True)
    return tuple(replace(mark, label=label) for mark, label in reversed(list(pairs)))


def shorten(name: str, most: int) -> str:
    """A name that has no more letters than this."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def scale_ticks(scale: Scale, size: float, *, is_signed: bool = False) -> tuple[Tick, ...]:
    """Ticks at round numbers of a unit that has `size`; differences have a sign."""
    low, high = sorted((scale.low / size, scale.high / size))
    return tuple(
        Tick(scale.place(value * size), _tick_text(value, is_signed)) for value in ticks(low, high)
    )


def _tick_text(value: float, is_signed: bool) -> str:
    sign = "+" if is_signed and value > 0 else ""
    return Quantity(sign + number_text(value).replace("-", "−"))


def _floor(record: TuneFolder, worth: int, is_paired: bool) -> float | None:
    """The least worth that the budget allows: any trial's worth minus its room."""
    known = (
        (_gain(entry, entry.score, worth)[0] if is_paired else worth * entry.score.known_value)
        - entry.room
        for entry in record.entries
        if entry.score is not None and entry.room is not None
    )
    return next(known, None)
