"""Accuracy against size and against time, of the models to choose from."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from litesmith.evidence.records import Score
from litesmith.evidence.tuning import MISSES
from litesmith.pages.drawing.plot import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Point,
    Scale,
    place_labels,
    staircase,
    ticks,
)
from litesmith.pages.drawing.tradeoff import Graph, Mark, Tick
from litesmith.pages.records.choose_folder import ChooseFolder, ChosenModel
from litesmith.phrases import phrase
from litesmith.units import number_text, score_text

_BYTES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9}
_TIMES = {"µs": 1.0, "ms": 1e3, "s": 1e6}

# Costs that differ by more than this are drawn on a logarithmic axis: else the small ones would
# be one spot.
_FAR_APART = 6.0

# Names are cut to so many letters; where even that finds no place, the number in the table.
_MOST_LETTERS = 28


class Axis(NamedTuple):
    """What a graph has from left to right; `cost` is a model's, with the ends of its interval."""

    name: str
    title: str
    units: dict[str, float]
    cost: Callable[[ChosenModel], tuple[float, float, float] | None]


def _size(model: ChosenModel) -> tuple[float, float, float] | None:
    size = model.entry.bytes
    return None if size is None else (size, size, size)


def _time(model: ChosenModel) -> tuple[float, float, float] | None:
    speed = model.entry.speed
    if speed is None or speed.p50_us is None:
        return None
    low, high = model.time_ends
    return speed.p50_us, low or speed.p50_us, high or speed.p50_us


AXES = (
    Axis("size", phrase("File size"), _BYTES, _size),
    Axis("latency", phrase("Latency"), _TIMES, _time),
)


class _Across:
    """Places of costs, linear or by their logarithm."""

    def __init__(self, costs: Sequence[float]) -> None:
        low, high = min(costs), max(costs)
        self.is_log = high > _FAR_APART * low
        if self.is_log:
            room = 0.07 * math.log10(high / low)
            self._scale = Scale(math.log10(low) - room, math.log10(high) + room, LEFT, RIGHT)
        else:
            self._scale = Scale(0.0, 1.06 * high, LEFT, RIGHT)
        self.high = high

    def place(self, cost: float) -> float:
        return self._scale.within(math.log10(cost) if self.is_log else cost)

    def ticks(self, size: float) -> tuple[Tick, ...]:
        """Round numbers of a unit that has `size`."""
        if not self.is_log:
            found = ticks(0.0, self._scale.high / size)
            return tuple(Tick(self.place(value * size), number_text(value)) for value in found)
        powers = range(-3, 7)
        rounds = [m * 10.0**power for power in powers for m in (1, 2, 5)]
        inside = [
            value
            for value in rounds
            if self._scale.low <= math.log10(value * size) <= self._scale.high
        ]
        return tuple(Tick(self.place(value * size), number_text(value)) for value in inside)


def graphs(record: ChooseFolder) -> tuple[Graph, ...]:
    """The graphs that the models fill."""
    drawn = (_graph(axis, record) for axis in AXES)
    return tuple(graph for graph in drawn if graph is not None)


def _graph(axis: Axis, record: ChooseFolder) -> Graph | None:
    found = [
        (model, cost, model.entry.score)
        for model in record.models
        if (cost := axis.cost(model)) and model.entry.score is not None
    ]
    if not found:
        return None
    measured = next((score for model, _, score in found if model.is_measured), None)
    first = measured or found[0][2]
    worth = -1 if first.is_lower_better else 1
    found = [one for one in found if one[2].unit == first.unit]
    limit = record.summary.request.ceilings.get(axis.name)
    costs = [cost[0] for _, cost, _ in found]
    across = _Across([*costs, limit] if limit and limit < 3 * max(costs) else costs)
    floor = record.summary.request.min_accuracy
    up = _up([_ends(score, worth) for _, _, score in found], floor)
    unit = _unit(axis, across.high)
    marks = [_mark(record, one, across, up, worth) for one in found]
    line = staircase((m.x, m.y) for m in marks if m.on_front)
    return Graph(
        name=axis.name,
        title=phrase("{title} and accuracy", axis.title),
        x_title=_x_title(axis, record, unit, across.is_log),
        y_title=_y_title(first, measured is not None),
        x_ticks=across.ticks(axis.units[unit]),
        y_ticks=_y_ticks(up, worth * (0.01 if first.unit == "share" else 1.0)),
        marks=_labelled(marks, [model.name for model in record.models], line),
        front=line,
        budget=None
        if floor is None
        else Tick(up.within(floor), phrase("at least {score}", score_text(floor, "share"))),
        limit=Tick(across.place(limit), phrase("limit"))
        if limit and limit < 3 * max(costs)
        else None,
        meanings={
            "star": phrase("to take"),
            "circle": phrase("fits") if record.summary.request.limits else phrase("candidate"),
        },
    )


def _x_title(axis: Axis, record: ChooseFolder, unit: str, is_log: bool) -> str:
    target = record.summary.request.target
    on = phrase(" on {target}", target) if axis.name == "latency" and target else ""
    title = phrase("{title}{on}, {unit}", axis.title, on, unit)
    return phrase("{title} (logarithmic)", title) if is_log else title


def _y_title(score: Score, is_measured: bool) -> str:
    unit = {"share": ", %", "": ""}.get(score.unit, phrase(", {unit}", score.unit))
    title = phrase(score.title) if is_measured else phrase("published accuracy")
    return phrase("{title}{unit}", title, unit)


def _unit(axis: Axis, largest: float) -> str:
    fitting = [unit for unit, size in axis.units.items() if largest >= size]
    return fitting[-1] if fitting else next(iter(axis.units))


def _ends(score: Score, worth: int) -> tuple[float, float, float]:
    """A score and the ends of its interval, such that more is better."""
    ends = (score.known_value if end is None else end for end in (score.low, score.high))
    low, high = sorted(worth * end for end in ends)
    return worth * score.known_value, low, high


def _up(worths: Sequence[tuple[float, float, float]], floor: float | None) -> Scale:
    lows = [low for _, low, _ in worths]
    bottom, top = min(lows if floor is None else [*lows, floor]), max(w[2] for w in worths)
    room = 0.06 * (top - bottom) or 0.01 * abs(top) or 0.01
    return Scale(bottom - room, top + room, BOTTOM, TOP)


def _y_ticks(scale: Scale, size: float) -> tuple[Tick, ...]:
    low, high = sorted((scale.low / size, scale.high / size))
    return tuple(
        Tick(scale.place(value * size), number_text(value).replace("-", "−"))
        for value in ticks(low, high)
    )


def _mark(
    record: ChooseFolder,
    one: tuple[ChosenModel, tuple[float, float, float], Score],
    across: _Across,
    up: Scale,
    worth: int,
) -> Mark:
    model, (cost, cheap, dear), score = one
    value, low, high = _ends(score, worth)
    return Mark(
        model.entry,
        across.place(cost),
        up.within(value),
        (across.place(cheap), up.within(high), across.place(dear), up.within(low)),
        _shape(model, record),
        model.row.on_front,
    )


def _shape(model: ChosenModel, record: ChooseFolder) -> str:
    if model.name == record.summary.pick:
        return "star"
    if not model.is_measured:
        return "hollow"
    return "cross" if model.entry.status == MISSES else "circle"


def _labelled(
    marks: Sequence[Mark], names: Sequence[str], line: Sequence[Point]
) -> tuple[Mark, ...]:
    """The marks with names, those that matter most first; where a name finds no place, its number
    in the table. They are drawn last."""
    ranked = sorted(marks, key=lambda m: (m.shape != "star", not m.on_front, m.x, m.y))
    points = [(m.x, m.y) for m in ranked]
    labels = place_labels([_short(m.entry.name) for m in ranked], points, line)
    texts = [
        label.text if label is not None else str(1 + names.index(mark.entry.name))
        for mark, label in zip(ranked, labels, strict=True)
    ]
    labels = place_labels(texts, points, line)
    pairs = zip(ranked, labels, strict=True)
    return tuple(replace(mark, label=label) for mark, label in reversed(list(pairs)))


def _short(name: str) -> str:
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"
