"""The folder of `choose`, as far as it can be read; and its graphs: accuracy against size and
against time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from litesmith.evidence.choose_record import CandidateRow, ChooseSummary
from litesmith.evidence.folder import CHOOSE
from litesmith.evidence.records import Score, Speed
from litesmith.evidence.tune_record import FITS, MISSES
from litesmith.pages.drawing.plot import LEFT, RIGHT, Box, Label, Scale, segments, staircase
from litesmith.pages.drawing.tradeoff import (
    BYTES,
    TIMES,
    Axis,
    Cost,
    PlotMark,
    Tick,
    TradeoffGraph,
    exact,
    label_marks,
    place_notes,
    scale_ticks,
    shorten,
    up_scale,
    with_labels,
    worths,
    y_title,
)
from litesmith.pages.records.salvage_folder import find_changed, read_summary
from litesmith.pages.records.tune_folder import Entry
from litesmith.phrases import phrase
from litesmith.units import number_text, score_text

# Costs that differ by more than this factor are drawn on a logarithmic axis, where the small ones
# stay apart.
_FAR_APART = 6.0

# The number of letters of a name in a graph; where even that does not fit, the number in the table
# is shown.
_MOST_LETTERS = 28


@dataclass(frozen=True)
class ChosenModel:
    """A candidate; graphs draw its `entry`.

    is_measured  False where its accuracy is a published one
    """

    entry: Entry
    row: CandidateRow
    is_measured: bool = True

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def source(self) -> str:
        """The publisher of the accuracy; "" for a measured one."""
        return self.row.published.source if self.row.published else ""

    @property
    def time_ends(self) -> tuple[float | None, float | None]:
        return self.row.p50_low_us, self.row.p50_high_us


@dataclass(frozen=True)
class ChooseFolder:
    """Everything in the report of a choice; `losses` says what could not be read, `changed` names
    files that differ from those measured.
    """

    summary: ChooseSummary
    models: tuple[ChosenModel, ...] = ()
    losses: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def model(self, name: str | None) -> ChosenModel | None:
        return next((model for model in self.models if model.name == name), None)


def read_choice(folder: Path) -> ChooseFolder:
    """Reads the folder of a choice, finished or not."""
    summary, losses = read_summary(ChooseSummary, folder / CHOOSE)
    models = tuple(_model(row, summary) for row in summary.candidates)
    files = ((Path(row.file), row.digest) for row in summary.candidates if row.file)
    return ChooseFolder(summary, models, losses, find_changed(files))


def _model(row: CandidateRow, summary: ChooseSummary) -> ChosenModel:
    score, is_measured = _score(row), True
    if score is None and row.published is not None:
        title, value = phrase("published, not measured here"), row.published.value
        score, is_measured = Score("", title, "share", value, None, None, 0), False
    is_asked = row.p50_us is not None and bool(summary.request.limits)
    us, target = row.p50_us, summary.request.target
    entry = Entry(
        name=row.model or "a model",
        status="" if not is_asked else MISSES if row.misses else FITS,
        recipe=row.recipe,
        digest=row.digest,
        bytes=row.bytes or None,
        gzip_bytes=row.gzip_bytes or None,
        peak_bytes=row.peak_bytes or None,
        score=score,
        speed=None if us is None else Speed(target, "", us, None, None, None, None, ""),
        notes=row.notes,
    )
    return ChosenModel(entry, row, is_measured)


def _score(row: CandidateRow) -> Score | None:
    if row.value is None:
        return None
    return Score(
        metric=row.metric or "",
        title=row.title or phrase("accuracy"),
        unit=row.unit or "",
        value=row.value,
        low=row.low,
        high=row.high,
        n=row.n or 0,
        better=row.better,
    )


_Axis = Axis[ChosenModel, ChooseFolder]


def _time(model: ChosenModel, _: ChooseFolder) -> Cost | None:
    speed = model.entry.speed
    if speed is None or speed.p50_us is None:
        return None
    low, high = model.time_ends
    return speed.p50_us, low or speed.p50_us, high or speed.p50_us


AXES: tuple[_Axis, ...] = (
    Axis("size", phrase("File size"), BYTES, lambda model, _: exact(model.entry.bytes)),
    Axis("latency", phrase("Latency"), TIMES, _time),
)


class _CostAxis:
    """Positions of costs on an axis, linear or logarithmic."""

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
            return scale_ticks(self._scale, size)
        powers = range(-3, 10)
        decades = self._scale.high - self._scale.low
        steps = (1, 2, 5) if decades < 2 else (1, 3) if decades < 3 else (1,)
        rounds = [m * 10.0**power for power in powers for m in steps]
        inside = [
            value
            for value in rounds
            if self._scale.low <= math.log10(value * size) <= self._scale.high
        ]
        return tuple(Tick(self.place(value * size), number_text(value)) for value in inside)


def graphs(record: ChooseFolder) -> tuple[TradeoffGraph, ...]:
    """The graphs for which the models have numbers."""
    drawn = (_graph(axis, record) for axis in AXES)
    return tuple(graph for graph in drawn if graph is not None)


def _graph(axis: _Axis, record: ChooseFolder) -> TradeoffGraph | None:
    found = [
        (model, cost, model.entry.score)
        for model in record.models
        if (cost := axis.cost(model, record)) and model.entry.score is not None
    ]
    if not found:
        return None
    measured = next((score for model, _, score in found if model.is_measured), None)
    first = measured or found[0][2]
    worth = -1 if first.is_lower_better else 1
    found = [one for one in found if one[2].unit == first.unit]
    limit = record.summary.request.ceilings.get(axis.name)
    costs = [cost[0] for _, cost, _ in found]
    limit = limit if limit and limit < 3 * max(costs) else None
    across = _CostAxis(costs if limit is None else [*costs, limit])
    floor = record.summary.request.min_accuracy
    up = up_scale([worths(score, worth) for _, _, score in found], floor)
    unit = axis.unit(across.high)
    title = phrase(first.title) if measured is not None else phrase("published accuracy")
    marks = [_mark(record, one, across, up, worth) for one in found]
    line = staircase((m.x, m.y) for m in marks if m.on_front)
    least = phrase("at least {score}", score_text(floor or 0.0, "share"))
    budget = None if floor is None else Tick(up.within(floor), least)
    ceiling = None if limit is None else Tick(across.place(limit), phrase("limit"))
    notes = place_notes(budget, ceiling, [mark.spot.box for mark in marks])
    names = [model.name for model in record.models]
    return TradeoffGraph(
        name=axis.name,
        title=phrase("{title} and accuracy", axis.title),
        x_title=_x_title(axis, record, unit, across.is_log),
        y_title=y_title(title, first.unit),
        x_ticks=across.ticks(axis.units[unit]),
        y_ticks=scale_ticks(up, worth * (0.01 if first.unit == "share" else 1.0)),
        marks=_label_by_rank(marks, names, segments(line), notes),
        front=line,
        budget=budget,
        limit=ceiling,
        meanings={
            "star": phrase("to take"),
            "circle": phrase("fits") if record.summary.request.limits else phrase("candidate"),
        },
    )


def _x_title(axis: _Axis, record: ChooseFolder, unit: str, is_log: bool) -> str:
    target = record.summary.request.target
    on = phrase(" on {target}", shorten(target, 18)) if axis.name == "latency" and target else ""
    title = phrase("{title}{on}, {unit}", axis.title, on, unit)
    return phrase("{title} (logarithmic)", title) if is_log else title


def _mark(
    record: ChooseFolder,
    one: tuple[ChosenModel, Cost, Score],
    across: _CostAxis,
    up: Scale,
    worth: int,
) -> PlotMark:
    model, (cost, cheap, dear), score = one
    value, low, high = worths(score, worth)
    return PlotMark(
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


def _label_by_rank(
    marks: Sequence[PlotMark], names: Sequence[str], line: Sequence[Box], notes: Sequence[Label]
) -> tuple[PlotMark, ...]:
    """The marks with names, the most important first; where a name finds no room, its number in the
    table. Important marks are drawn last.
    """
    ranked = sorted(marks, key=lambda m: (m.shape != "star", not m.on_front, m.x, m.y))
    short = [shorten(m.entry.name, _MOST_LETTERS) for m in ranked]
    texts = [
        label.text if label is not None else str(1 + names.index(mark.entry.name))
        for mark, label in zip(ranked, label_marks(short, ranked, line, notes), strict=True)
    ]
    return with_labels(ranked, label_marks(texts, ranked, line, notes))
