"""The profiler's events as slices on a timeline: which op ran from when to when, run by run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from litesmith.ir.types import Model, Op
from litesmith.profiling.alignment import BUILTIN, END, INSIDE, Mark, align
from litesmith.run.core.target import LITESMITH
from litesmith.run.litert.capi import Event
from litesmith.units import plain

_REST, _INVOKE = 1, "Invoke"  # the event of this type and tag spans one pass through a graph

# XNNPACK truncates its times to whole microseconds (XNNPACK src/runtime.c divides nanoseconds by
# 1000), which loses half of one on average. The builtin kernels' times lose nothing on average:
# they are differences of two times that are truncated alike.
_LOST_US = 0.5

XNNPACK, OWN, CUSTOM = "xnnpack", "builtin", "custom"


@dataclass(frozen=True)
class Moment:
    """A copy of an event of the runtime, whose own text is gone once the profiler starts again."""

    type: int
    index: int
    graph: int
    tag: str
    start_us: int
    us: int


@dataclass(frozen=True)
class Slice:
    """A part of a run: an op of a graph (None where no op fits), the kernel, when and how long."""

    graph: int
    index: int | None
    name: str
    kernel: str
    tag: str
    start_us: float
    us: float


@dataclass(frozen=True)
class Run:
    """One run of a model on the runtime's clock. `entry` is the number of the graph that ran."""

    entry: int
    start_us: float
    us: float
    slices: tuple[Slice, ...]


@dataclass
class _Pass:
    """One pass through a graph, while its events are gathered."""

    graph: int
    start_us: float
    us: float
    moments: list[Moment]


def moments(events: Iterable[Event]) -> list[Moment]:
    """Copies of the runtime's events."""
    return [
        Moment(e.type, e.index, e.graph, _text(e.tag), e.start_us, e.elapsed_us) for e in events
    ]


def _short_name(op: Op) -> str:
    """The name of the op's output; the first one of the many names that converters join."""
    return plain(op.outputs[0].name).split(";")[0] if op.outputs else ""


def _text(tag: bytes | None) -> str:
    return plain((tag or b"").decode("utf-8", "surrogateescape"))


class Timeline:
    """Builds the runs of one model from its events, and remembers alignments."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._known: dict[tuple[int, tuple[Mark, ...]], list[int | None]] = {}

    def runs(self, gathered: Sequence[Moment]) -> list[Run]:
        """The runs that the events describe, in order; incomplete runs are left out."""
        found: list[Run] = []
        slices: list[Slice] = []
        entry = _entry(gathered)
        for one in _passes(gathered):
            slices += self._slices(one)
            if one.graph == entry:
                ordered = sorted(slices, key=lambda s: s.start_us)
                found.append(Run(one.graph, one.start_us, one.us, tuple(ordered)))
                slices = []
        return found

    def _slices(self, one: _Pass) -> list[Slice]:
        """The slices of a pass, one for each op and stretch of time."""
        marks = tuple(Mark(m.type, m.index, m.tag) for m in one.moments)
        key = one.graph, marks
        if key not in self._known:
            self._known[key] = align(self._model.graphs[one.graph], marks)
        placed = zip(one.moments, _times(one), self._known[key], strict=True)
        slices: list[Slice] = []
        for moment, (start, us), index in placed:
            made = self._slice(moment, index, start, us)
            last = slices[-1] if slices else None
            if last is not None and index is not None and last.index == index:
                tag = f"{last.tag} + {made.tag}"
                slices[-1] = replace(last, us=made.start_us + made.us - last.start_us, tag=tag)
            else:
                slices.append(made)
        return slices

    def _slice(self, moment: Moment, index: int | None, start: float, us: float) -> Slice:
        op = None if index is None else self._model.graphs[moment.graph].ops[index]
        name = moment.tag if op is None else f"{plain(op.label)} {_short_name(op)}".rstrip()
        kernel = XNNPACK if moment.type == INSIDE else OWN
        if kernel == OWN and op is not None and op.is_custom:
            kernel = CUSTOM
        if moment.tag == LITESMITH or (op is not None and op.custom.startswith(f"{LITESMITH}:")):
            kernel = LITESMITH
        return Slice(moment.graph, index, name, kernel, moment.tag, start, us)


def _entry(gathered: Sequence[Moment]) -> int:
    """The graph that a run starts with: the first whose pass begins."""
    return next((m.graph for m in gathered if m.type == _REST and m.tag == _INVOKE), 0)


def _passes(gathered: Sequence[Moment]) -> list[_Pass]:
    """Passes through graphs in the order that they end; a graph that is called ends first."""
    open_passes: list[_Pass] = []
    ended: list[_Pass] = []
    for moment in gathered:
        if moment.type == _REST and moment.tag == _INVOKE:
            open_passes.append(_Pass(moment.graph, moment.start_us, moment.us, []))
        elif open_passes and moment.type in (BUILTIN, INSIDE):
            open_passes[-1].moments.append(moment)
        elif open_passes and moment.type == END and moment.graph == open_passes[-1].graph:
            ended.append(open_passes.pop())
    return ended


def _times(one: _Pass) -> list[tuple[float, float]]:
    """Start and duration of each event. XNNPACK gives durations only: its ops follow each other
    from the end of the last known time, and are compressed where they would reach beyond the next
    one."""
    times: list[tuple[float, float]] = []
    cursor = one.start_us
    inside: list[float] = []
    for moment in one.moments:
        if moment.type == INSIDE:
            inside.append(moment.us + _LOST_US)
            continue
        times += _one_by_one(inside, cursor, moment.start_us)
        inside = []
        times.append((moment.start_us, moment.us))
        cursor = moment.start_us + moment.us
    return times + _one_by_one(inside, cursor, one.start_us + one.us)


def _one_by_one(durations: Sequence[float], start: float, end: float) -> list[tuple[float, float]]:
    total = sum(durations)
    squeeze = min(1.0, max(end - start, 0.0) / total) if total else 1.0
    placed: list[tuple[float, float]] = []
    for duration in durations:
        placed.append((start, duration * squeeze))
        start += duration * squeeze
    return placed
