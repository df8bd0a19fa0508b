"""Where the time of a run goes: every op of a model with its time, its kernel and its speed."""

from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from statistics import fmean, median
from time import perf_counter

import numpy as np

from litesmith.anatomy.footprint import op_macs
from litesmith.arguments import argument
from litesmith.display import show_html, show_line
from litesmith.errors import BadInput, CannotRun
from litesmith.ir.build import Builder
from litesmith.ir.ops import late_tensors
from litesmith.ir.types import Model, Op, Quant, op_tensors
from litesmith.phrases import phrase
from litesmith.profiling.alignment import Absence, absences
from litesmith.profiling.events import Run, Timeline, moments
from litesmith.run.core.target import LITESMITH, Target
from litesmith.run.litert.capi import quiet
from litesmith.run.session import ReadModel, Session, Source, fill_inputs, read_once
from litesmith.timing.clock import pause_collection, time_call
from litesmith.timing.host import Host
from litesmith.timing.statistics import Row
from litesmith.units import plain, time_text

_MOST_RUNS = 100_000

# The runtime counts whole microseconds: a shorter time is too coarse to compute a speed from.
_LEAST_US = 5.0

# A 1×1 convolution is the matrix product that the kernels do best. These sizes keep weights and
# activations inside a usual second-level cache, and take about a millisecond.
_SIDE, _CHANNELS = 24, 256
_PEAK_SECONDS, _PEAK_RUNS = 0.1, 5


@dataclass(frozen=True)
class OpTime:
    """One op of the file. `us` is None only where no event of the runtime could be matched.

    There is one sample per run. `us` is the mean over the middle half of the runs, by the time of
    the whole run: so the ops add up to a usual run, even on a busy machine.
    """

    graph: int
    index: int
    kind: str
    name: str
    us: float | None
    share: float  # of the sum over the ops of the entry graph
    kernel: str  # xnnpack, builtin, custom, litesmith; "" for an op without a time of its own
    detail: str  # what the runtime calls the kernels that ran
    macs: int
    gmacs: float | None  # GMAC/s; None where there are no MACs, or the time is too short to tell
    of_best: float | None  # the speed as a share of the best that this CPU reached
    fused_into: int | None
    why: str  # why it has no time of its own
    samples_us: tuple[float, ...] = field(repr=False)

    def row(self) -> Row:
        """All fields but the samples, by name."""
        names = (one.name for one in fields(self))
        return {name: getattr(self, name) for name in names if name != "samples_us"}


@dataclass(frozen=True)
class Unmatched:
    """Work inside the runtime that belongs to no op of the file."""

    tag: str
    us: float


@dataclass(frozen=True, repr=False)
class Profile:
    """The ops of a model in run order, and the cost of profiling itself.

    plain_us     runs without profiling, in turns with those of `profiled_us`
    model, host  the name of the file and the machine, where a user requested the profile
    trace        the format of the written trace; "" where none was requested
    """

    target: str
    ops: tuple[OpTime, ...]
    unmatched: tuple[Unmatched, ...]
    plain_us: tuple[float, ...]
    profiled_us: tuple[float, ...]
    runs: tuple[Run, ...]
    best_gmacs: dict[str, float]
    note: str = ""
    model: str = ""
    host: Host | None = None
    warnings: tuple[str, ...] = ()
    trace: str = ""

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        """The result in one line."""
        if not self.top(1):
            return phrase("{time} a run on {target}", time_text(self.run_us), self.target)
        (slowest,) = self.top(1)
        return phrase(
            "{time} a run on {target}; op {index} {kind} takes longest",
            time_text(self.run_us),
            self.target,
            slowest.index,
            slowest.kind,
        )

    @property
    def run_us(self) -> float:
        """The median of the runs without profiling."""
        return median(self.plain_us)

    @property
    def overhead(self) -> float:
        """How much longer a profiled run takes, relative to an unprofiled one."""
        return median(self.profiled_us) / self.run_us - 1

    @property
    def entry(self) -> int:
        """The number of the graph that runs; others are called by its ops."""
        return self.runs[0].entry

    @property
    def ops_us(self) -> float:
        """The sum over the ops of the entry graph; what they call lies inside their times."""
        own = (op.us or 0.0 for op in self.ops if op.graph == self.entry)
        return sum(own) + sum(other.us for other in self.unmatched)

    def top(self, count: int) -> list[OpTime]:
        """The ops that take longest."""
        timed = [op for op in self.ops if op.us and op.graph == self.entry]
        return sorted(timed, key=lambda op: -(op.us or 0.0))[:count]

    def by_kind(self) -> list[tuple[str, int, float, int]]:
        """For each kind, longest first: how many ops, their time, their MACs."""
        kinds: dict[str, list[OpTime]] = defaultdict(list)
        for op in self.ops:
            if op.graph == self.entry:
                kinds[op.kind].append(op)
        rows = [
            (kind, len(ops), sum(op.us or 0.0 for op in ops), sum(op.macs for op in ops))
            for kind, ops in kinds.items()
        ]
        return sorted(rows, key=lambda row: -row[2])

    def to_rows(self) -> list[Row]:
        """One row per op, for a data frame."""
        return [op.row() for op in self.ops]

    def facts(self) -> dict[str, object]:
        """The numbers without slices and samples, and without model and host."""
        return {
            "target": self.target,
            "run_us": self.run_us,
            "overhead": self.overhead,
            "profiled_us": median(self.profiled_us),
            "ops_us": self.ops_us,
            "runs": len(self.runs),
            "samples_us": self.plain_us,
            "ops": self.to_rows(),
            "unmatched": [asdict(other) for other in self.unmatched],
            "best_gmacs": self.best_gmacs,
            "note": self.note,
        }

    def to_json(self) -> dict[str, object]:
        """The profile as `--json` prints it, without slices and samples of ops."""
        machine = None if self.host is None else self.host.facts()
        about = {"host": machine, "warnings": self.warnings}
        return {"schema": 1, "model": self.model, **self.facts(), **about}


# Runs with and without profiling take turns, so that the difference is the cost of profiling.

# How often both sessions are opened anew: the place of a model in memory makes it faster or slower.
_LOADS = 4
_TURN_RUNS = 5  # runs before the other session has its turn; one more before them is not counted
_LEAST_RUNS, _MOST_TIMED_RUNS = 20, 400
USUAL_SECONDS = 2.0


@dataclass
class Gathered:
    """The measurements of all loads: times of both kinds of runs, and the runs op by op."""

    model: Model
    note: str
    timeline: Timeline
    plain_us: list[float] = field(default_factory=list[float])
    profiled_us: list[float] = field(default_factory=list[float])
    runs: list[Run] = field(default_factory=list[Run])


_Pair = tuple[Session, Session]  # one model, opened without and with profiling


def gather(
    source: Source, target: Target, runs: int | None = None, seconds: float = USUAL_SECONDS
) -> Gathered:
    """Profiles this many runs, or for about this many seconds."""
    gathered: Gathered | None = None
    model = read_once(source)
    loads = _LOADS if runs is None else min(_LOADS, runs)
    for number in range(loads):
        with _open_pair(model, target, plain_first=number % 2 == 0) as pair:
            one_run_us = _warm_up(pair)
            if gathered is None:
                plain, profiled = pair
                note = plain.note or profiled.note
                gathered = Gathered(profiled.model, note, Timeline(profiled.model))
            wanted = _runs_of_each(one_run_us, seconds) if runs is None else runs
            share = wanted // loads + (number < wanted % loads)
            for done in range(0, share, _TURN_RUNS):
                _turns(pair, gathered, min(_TURN_RUNS, share - done))
    assert gathered is not None
    return gathered


def _runs_of_each(one_run_us: float, seconds: float) -> int:
    """The number of runs of each kind that fills half of the time."""
    return min(_MOST_TIMED_RUNS, max(_LEAST_RUNS, round(seconds * 1e6 / 2 / one_run_us)))


@contextmanager
def _open_pair(source: ReadModel, target: Target, *, plain_first: bool) -> Generator[_Pair]:
    """The model opened twice."""
    with ExitStack() as stack:
        opened: dict[bool, Session] = {}
        for profiled in (False, True) if plain_first else (True, False):
            session = stack.enter_context(Session(source, target, profile=profiled))
            if not profiled and session.copies:  # compare the same runtime with itself
                session = stack.enter_context(Session(source, target, profile=True))
            fill_inputs(session)
            opened[profiled] = session
        with pause_collection():
            yield opened[False], opened[True]


def _warm_up(pair: _Pair) -> float:
    """Warms up; returns the approximate microseconds of a run. Raises where the model has no
    profile."""
    plain, profiled = pair
    for session in (profiled, plain):
        with quiet():  # a model that needs the classic interpreter says so on stderr,
            session.run()
            session.run()  # sometimes only at the second run
    try:
        profiled.start_profile()
        profiled.stop_profile()
    except CannotRun as error:
        cure = phrase("litesmith bench times the run as a whole")
        if profiled.has_late_outputs:
            cure = phrase("if they are only free, apply fold(shapes=true) first; {cure}", cure)
        raise CannotRun("{error}; {cure}", error, cure) from None
    return max(1.0, min(time_call(plain.run) for _ in range(3)))


def _turns(pair: _Pair, gathered: Gathered, count: int) -> None:
    """Does this many runs without profiling, then as many with it."""
    plain, profiled = pair
    plain.run()  # not counted: it pays for the caches that the other session left
    gathered.plain_us += [time_call(plain.run) for _ in range(count)]
    profiled.run()
    for _ in range(count):
        profiled.start_profile()
        gathered.profiled_us.append(time_call(profiled.run))
        gathered.runs += gathered.timeline.runs(moments(profiled.stop_profile()))


def profile_ops(
    model: Source,
    on: str | Target = "cpu:1",
    *,
    runs: int | None = None,
    seconds: float = USUAL_SECONDS,
) -> Profile:
    """Times every op of a model on a CPU target, in this many runs or for this many seconds."""
    target = Target.parse(on)
    if target.kind not in ("cpu", "custom"):
        raise CannotRun("no profile on {target}: only cpu targets tell the time of each op", target)
    if runs is not None and not 1 <= runs <= _MOST_RUNS:
        given = argument("runs", runs)
        raise BadInput("{runs}: give a number from 1 to {most_runs}", given, _MOST_RUNS)
    gathered = gather(model, target, runs, seconds)
    if not gathered.runs:
        raise CannotRun(
            "no profile on {target}: the runtime reports no events for this model", target
        )
    # The yardstick is the best speed of the CPU, whichever kernels the target chose.
    return _result(gathered, target, best_gmacs(Target("cpu", target.threads)))


def _result(gathered: Gathered, target: Target, best: dict[str, float]) -> Profile:
    runs = gathered.runs
    times = _times(runs)
    strangers = _unmatched(runs)
    entry = runs[0].entry
    own = sum(one.us for (graph, _), one in times.items() if graph == entry)
    total = own + sum(other.us for other in strangers)
    return Profile(
        str(target),
        _op_times(gathered.model, times, total, best),
        tuple(strangers),
        tuple(gathered.plain_us),
        tuple(gathered.profiled_us),
        tuple(runs),
        best,
        _note(gathered, times),
    )


def _note(gathered: Gathered, times: dict[tuple[int, int], "_Time"]) -> str:
    entry = gathered.runs[0].entry
    called = any(graph != entry for graph, _ in times)
    parts = any(op.custom.startswith(f"{LITESMITH}:") for op in gathered.model.main.ops)
    whole = phrase("each CUSTOM {litesmith}:N is some of the model's ops in one program", LITESMITH)
    inner = phrase("the time of an op that calls a graph contains what profiling that graph costs")
    sentences = gathered.note, inner if called else "", whole if parts else ""
    return "; ".join(text for text in sentences if text)


@dataclass
class _Time:
    """The time of one op in each run, its kernel, and which runs are usual ones."""

    samples_us: list[float]
    kernel: str
    tag: str
    usual: list[int]

    @property
    def us(self) -> float:
        return fmean(self.samples_us[number] for number in self.usual)


def usual_runs(runs: Sequence[Run]) -> list[int]:
    """The numbers of the middle half of the runs, by the time of all their ops."""
    totals = [sum(part.us for part in run.slices if part.graph == run.entry) for run in runs]
    cut = len(runs) // 4
    return sorted(range(len(runs)), key=totals.__getitem__)[cut : len(runs) - cut]


def _times(runs: Sequence[Run]) -> dict[tuple[int, int], _Time]:
    """The time of every timed op, by graph and index."""
    found: dict[tuple[int, int], _Time] = {}
    usual = usual_runs(runs)
    for number, run in enumerate(runs):
        for part in run.slices:
            if part.index is not None:
                key = part.graph, part.index
                if key not in found:
                    found[key] = _Time([0.0] * len(runs), part.kernel, part.tag, usual)
                found[key].samples_us[number] += part.us
    return found


def _unmatched(runs: Sequence[Run]) -> list[Unmatched]:
    samples: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(runs))
    for number, run in enumerate(runs):
        for part in run.slices:
            if part.index is None and part.graph == run.entry:
                samples[part.tag][number] += part.us
    usual = usual_runs(runs)
    return [Unmatched(tag, fmean(us[n] for n in usual)) for tag, us in samples.items()]


def _op_times(
    model: Model, times: dict[tuple[int, int], _Time], total_us: float, best: dict[str, float]
) -> tuple[OpTime, ...]:
    """Every op, its time compared with the total and with the best speed of this CPU."""
    found: list[OpTime] = []
    for number, graph in enumerate(model.graphs):
        absent = absences(graph, {index for owner, index in times if owner == number})
        late = late_tensors(graph)  # without known sizes, the work of an op is not known
        for index, op in enumerate(graph.ops):
            outcome = times.get((number, index)) or absent[index]
            share = outcome.us / total_us if outcome.us and total_us else 0.0
            macs = 0 if late.intersection(op_tensors(op)) else op_macs(op)
            timed = _op_time((number, index), op, outcome, macs, best[arithmetic(op)])
            found.append(replace(timed, share=share))
    return tuple(found)


def _op_time(
    place: tuple[int, int], op: Op, outcome: _Time | Absence, macs: int, best: float
) -> OpTime:
    us = outcome.us
    gmacs = macs / us / 1e3 if macs and us and us >= _LEAST_US else None
    is_timed = isinstance(outcome, _Time)
    return OpTime(
        *place,
        kind=plain(op.label),
        name=plain(op.outputs[0].name) if op.outputs else "",
        us=us,
        share=0.0,
        kernel=outcome.kernel if is_timed else "",
        detail=outcome.tag if is_timed else "",
        macs=macs,
        gmacs=gmacs,
        of_best=None if gmacs is None else gmacs / best,
        fused_into=None if is_timed else outcome.fused_into,
        why="" if is_timed else outcome.why,
        samples_us=tuple(outcome.samples_us) if is_timed else (),
    )


# The best arithmetic speed of this CPU, with which the speed of an op is compared.


@cache
def best_gmacs(target: Target) -> dict[str, float]:
    """GMAC/s of the fastest run of a matrix product, float32 and int8, on a target."""
    return {name: _fastest(model, target) for name, model in _products().items()}


def arithmetic(op: Op) -> str:
    """Which of the two yardsticks applies to an op: its weights decide."""
    places = [tensor for tensor in op.inputs[1:2] if tensor is not None]
    return "float32" if not places or places[0].dtype.startswith("float") else "int8"


def _products() -> dict[str, Model]:
    random = np.random.default_rng(0)
    b = Builder()
    x = b.input("x", (1, _SIDE, _SIDE, _CHANNELS))
    weights = random.normal(0, 0.1, (_CHANNELS, 1, 1, _CHANNELS)).astype(np.float32)
    whole = b.model(b.op("CONV_2D", x, weights, np.zeros(_CHANNELS, np.float32)))
    b = Builder()
    x = b.input("x", (1, _SIDE, _SIDE, _CHANNELS), "int8", Quant.of(0.05))
    codes = random.integers(-127, 128, (_CHANNELS, 1, 1, _CHANNELS)).astype(np.int8)
    scales = np.full(_CHANNELS, 0.01, np.float32)
    w = b.const(codes, quant=Quant.of(scales))
    bias = b.const(np.zeros(_CHANNELS, np.int32), quant=Quant.of(scales * np.float32(0.05)))
    return {
        "float32": whole,
        "int8": b.model(b.op("CONV_2D", x, w, bias, quant=Quant.of(0.2), version=3)),
    }


def _fastest(model: Model, target: Target) -> float:
    with Session(model, target) as session:
        end = perf_counter() + _PEAK_SECONDS
        times: list[float] = []
        while len(times) < _PEAK_RUNS or perf_counter() < end:
            start = perf_counter()
            session.run()
            times.append(perf_counter() - start)
    return op_macs(model.main.ops[0]) / min(times) / 1e9
