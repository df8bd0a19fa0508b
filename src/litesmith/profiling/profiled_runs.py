"""Runs with and without profiling, taken in turns, so that one tells what the other costs."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from litesmith.errors import CannotRun
from litesmith.ir.types import Model
from litesmith.phrases import phrase
from litesmith.profiling.events import Run, Timeline, moments
from litesmith.run.core.target import Target
from litesmith.run.litert.capi import quiet
from litesmith.run.session import Session, Source, fill_inputs
from litesmith.timing.clock import pause_collection, time_call

# Both sessions are opened anew so often: where a model lies in memory makes it faster or slower.
_LOADS = 4
_TURN_RUNS = 5  # runs before the other session has its turn; one more before them is not counted
_SECONDS, _LEAST_RUNS, _MOST_RUNS = 2.0, 20, 400


@dataclass
class Gathered:
    """What the loads have measured: raw times of both sorts, the runs op by op."""

    model: Model
    note: str
    timeline: Timeline
    plain_us: list[float] = field(default_factory=list[float])
    profiled_us: list[float] = field(default_factory=list[float])
    runs: list[Run] = field(default_factory=list[Run])


_Pair = tuple[Session, Session]  # one model, opened without and with profiling


def gather(source: Source, target: Target, runs: int | None = None) -> Gathered:
    """Profiles so many runs, or for about two seconds."""
    gathered: Gathered | None = None
    loads = _LOADS if runs is None else min(_LOADS, runs)
    for number in range(loads):
        with _opened(source, target, plain_first=number % 2 == 0) as pair:
            one_run_us = _warm_up(pair)
            if gathered is None:
                plain, profiled = pair
                note = plain.note or profiled.note
                gathered = Gathered(profiled.model, note, Timeline(profiled.model))
            wanted = _wanted(one_run_us) if runs is None else runs
            share = wanted // loads + (number < wanted % loads)
            for done in range(0, share, _TURN_RUNS):
                _turns(pair, gathered, min(_TURN_RUNS, share - done))
    assert gathered is not None
    return gathered


def _wanted(one_run_us: float) -> int:
    """Runs of each sort that fill half of the time."""
    return min(_MOST_RUNS, max(_LEAST_RUNS, round(_SECONDS * 1e6 / 2 / one_run_us)))


@contextmanager
def _opened(source: Source, target: Target, *, plain_first: bool) -> Generator[_Pair]:
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
    """About how many microseconds a run takes; raises where the model has no profile."""
    plain, profiled = pair
    for session in (profiled, plain):
        with quiet():  # a model that turns out to need the classic interpreter says so on stderr,
            session.run()
            session.run()  # some of them at the second run
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
    """So many runs without profiling, then so many with it."""
    plain, profiled = pair
    plain.run()  # not counted: it pays for what the other left in the caches
    gathered.plain_us += [time_call(plain.run) for _ in range(count)]
    profiled.run()
    for _ in range(count):
        profiled.start_profile()
        gathered.profiled_us.append(time_call(profiled.run))
        gathered.runs += gathered.timeline.runs(moments(profiled.stop_profile()))
