"""The time of every op of a model on a target, and of conversions, from profiles. The cache keeps
these by op, shapes, target, machine and runtime."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import NamedTuple

from litesmith.anatomy.known_times import ConversionTimes
from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Op, Quant, Tensor
from litesmith.native.sealed_file import read_sealed, write_sealed
from litesmith.native.user_cache import folder
from litesmith.passes.core.step import Context
from litesmith.passes.tidy.fold import Fold
from litesmith.phrases import phrase
from litesmith.profiling.events import XNNPACK
from litesmith.profiling.op_times import profile_ops
from litesmith.run.core.target import Target
from litesmith.run.session import Session, Source, fill_inputs, read_once
from litesmith.timing.clock import time_call
from litesmith.timing.cluster_timing import run_alone
from litesmith.timing.host import host
from litesmith.timing.statistics import percentile
from litesmith.type_guards import is_mapping
from litesmith.workers.engine import Engine

# The ending of the cache's files of times.
ENDING = ".times"

# Conversions are timed at these numbers of values; times in between are interpolated.
_SIZES = (256, 4_096, 65_536, 1_048_576)

# A model that times conversions converts back and forth: this many values in all, and no more than
# this many times.
_MOST_VALUES, _MOST_TIMES = 524_288, 8

# The place of a model in memory makes it faster or slower, so it is loaded this many times.
_LOADS = 4

# Other work on the machine can only slow an op down, so the lower quartile is its usual time.
_USUAL = 25.0

# Enough runs to tell ops apart; a profile for people takes more.
_RUNS = 40

# Times are not cached where other processes use more than this share of the cores.
_BUSY = 0.1


class OpTimes(NamedTuple):
    """Times of the main graph of a model, in microseconds.

    ops   time of each op, in order
    rest  time of a run that is spent outside the ops
    """

    ops: tuple[float, ...]
    rest: float

    @property
    def whole(self) -> float:
        return sum(self.ops) + self.rest


def op_times(
    model: Model, target: Target, runs: int | None = None, engine: Engine | None = None
) -> OpTimes:
    """The usual time of each op; raises CannotRun where the runtime does not report every op. With
    an engine, its devices measure the times, and the cache does not keep them.

    A model whose sizes depend on values cannot be profiled, so shapes are fixed first; ops that
    only compute shapes count as taking no time.
    """
    fixed = Fold(shapes=True).apply(model, Context()).model
    known = _known_times(profiled_times, fixed, target, runs, engine)
    by_name = dict(zip((_name(op) for op in fixed.main.ops), known.ops, strict=True))
    return OpTimes(tuple(by_name.get(_name(op), 0.0) for op in model.main.ops), known.rest)


def _known_times(
    measured: Callable[[Source, Target, int | None], OpTimes],
    model: Model,
    target: Target,
    runs: int | None,
    engine: Engine | None,
) -> OpTimes:
    """Returns times from the cache, or else measures them."""
    kept = None if engine else _CachedTimes(target)
    known = kept and kept.find(model)
    if known is None:
        known = run_alone(engine, phrase("profiling"), measured, model, target, runs)
        if kept:
            kept.add(model, known)
    return known


def profiled_times(source: Source, target: Target, runs: int | None = None) -> OpTimes:
    """Profiles the ops of the main graph; returns their usual times in order."""
    found = profile_ops(source, target, runs=_RUNS if runs is None else runs)
    ops = [op for op in found.ops if op.graph == 0]
    usual = [percentile(op.samples_us, _USUAL) if op.samples_us else 0.0 for op in ops]
    whole = percentile(found.plain_us, _USUAL)
    if sum(usual) > whole:  # the profiler itself takes time
        usual = [us * whole / sum(usual) for us in usual]
    rest = whole - sum(usual)
    leaving = [place for place, op in enumerate(ops) if op.kernel not in ("", XNNPACK)]
    if rest > 0 and leaving:  # the price of leaving XNNPACK and coming back
        for place in leaving:
            usual[place] += rest / len(leaving)
        rest = 0.0
    return OpTimes(tuple(usual), rest)


def time_run(
    model: Model, target: Target, runs: int | None = None, engine: Engine | None = None
) -> float:
    """The usual time of a run, also for a model that cannot be profiled."""
    return run_alone(engine, phrase("profiling"), equal_times, model, target, runs).whole


def _name(op: Op) -> str:
    return op.outputs[0].name if op.outputs else ""


def conversion_times(
    target: Target, runs: int | None = None, engine: Engine | None = None
) -> ConversionTimes:
    """Times of one conversion, the mean of both directions, from models that do nothing else. The
    times belong to the machine, not to a model, so a process measures them only once, even on a
    busy machine."""
    return _conversions(target, runs, engine) if engine else _conversions_here(target, runs)


@cache
def _conversions_here(target: Target, runs: int | None) -> ConversionTimes:
    return _conversions(target, runs, None)


def _conversions(target: Target, runs: int | None, engine: Engine | None) -> ConversionTimes:
    times: list[float] = []
    for size in _SIZES:
        model = _repeat_conversions(size)
        whole = _known_times(equal_times, model, target, runs, engine).whole
        times.append(max(whole, 0.0) / len(model.main.ops))
    return ConversionTimes(_SIZES, tuple(times))


def equal_times(source: Source, target: Target, runs: int | None = None) -> OpTimes:
    """The usual time of a whole run, divided equally among the ops. The profiler cannot time small
    conversions: it counts whole microseconds."""
    model, times = read_once(source), list[float]()
    each = ceil((_RUNS if runs is None else runs) / _LOADS)
    for _ in range(_LOADS):
        with Session(model, target) as session:
            fill_inputs(session)
            session.run()
            session.run()
            times += [time_call(session.run) for _ in range(each)]
    count = len(model.model.main.ops)
    return OpTimes((percentile(times, _USUAL) / count,) * count, 0.0)


def _repeat_conversions(size: int) -> Model:
    """A model that converts `size` values to int8 and back, several times over: side by side and
    with different scales, because the runtime merges equal conversions."""
    b = Builder()
    x = b.input("x", (1, size))
    count = min(_MOST_TIMES, max(1, _MOST_VALUES // size))
    scales = (Quant.of(0.05 + 0.001 * number) for number in range(count))
    coded = [b.op("QUANTIZE", x, dtype="int8", quant=scale) for scale in scales]
    return b.model(*(b.op("DEQUANTIZE", t, dtype="float32", version=2) for t in coded))


class _CachedTimes:
    """The cached times of one target, by a key of each op; the time that a model spends outside its
    ops has a key of all ops together."""

    def __init__(self, target: Target) -> None:
        self._place = _place(target)
        self._times: dict[str, float] = {}
        content = None if self._place is None else read_sealed(self._place)
        if content is not None:
            read: object = json.loads(bytes(content))
            if is_mapping(read):
                self._times = {
                    str(key): us for key, us in read.items() if isinstance(us, int | float)
                }

    def find(self, model: Model) -> OpTimes | None:
        """The times of a model; None unless all of its ops are in the cache."""
        keys = _keys(model)
        if any(key not in self._times for key in keys):
            return None
        *ops, rest = (self._times[key] for key in keys)
        return OpTimes(tuple(ops), rest)

    def add(self, model: Model, found: OpTimes) -> None:
        """Caches times, unless the machine is too busy for them to be reliable."""
        if self._place is None or host().busy > _BUSY:
            return
        self._times |= dict(zip(_keys(model), (*found.ops, found.rest), strict=True))
        with suppress(OSError, BadInput):  # without the cache, times are measured again
            write_sealed(self._place, json.dumps(self._times).encode())


def _place(target: Target) -> Path | None:
    place, machine = folder(), host(look_seconds=0)
    if place is None:
        return None
    about = "\n".join((str(target), machine.cpu, machine.runtime))
    return place / f"{sha256(about.encode()).hexdigest()[:16]}{ENDING}"


def _keys(model: Model) -> list[str]:
    """A key for each op of the main graph, and a last one for all of them together."""
    texts = [_describe(op) for op in model.main.ops]
    return [sha256(text.encode()).hexdigest()[:24] for text in (*texts, "\n".join(texts))]


def _describe(op: Op) -> str:
    return f"{op.label} {op.version} {op.options} {_forms(op.inputs)} {_forms(op.outputs)}"


def _forms(tensors: Sequence[Tensor | None]) -> list[tuple[str, tuple[int, ...], bool] | None]:
    return [None if t is None else (t.dtype, t.shape, t.is_const) for t in tensors]
