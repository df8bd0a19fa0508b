"""Contenders that take turns in one process, so that what slows one slows all.

Times of two separate runs differ by load, clock and luck. What follows was learned by comparing
models with themselves:

* A load opens every contender anew, because where a model happens to lie in memory makes it faster
  or slower for as long as it lives there. Loads come in pairs with mirrored orders: who is loaded
  first lies better.
* In a round each contender has one turn of a few milliseconds; the next round has the mirrored
  order, which cancels the cost of coming second.
* The first run of a turn is not counted: it pays for what the others left in the caches.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter_ns, process_time

import numpy as np

from litesmith.measure.clock import no_collection, timed
from litesmith.measure.host import energy_joules
from litesmith.run.inputs import fill_inputs
from litesmith.run.session import Session
from litesmith.run.target import Target

_TURN_SECONDS = 0.003
_MOST_RUNS_A_TURN = 64
_MOST_SAMPLES_A_LOAD = 1000
_WINDOW_SECONDS = 0.004
_MOST_WARM_UP_SECONDS = 1.0
_STEADY = 0.98  # a window that is less than 2 % faster than the best so far ends the warm-up
_SETTLING_SECONDS = 0.02  # a run longer than this hides what the caches lost


@dataclass(frozen=True)
class Contender:
    """A model on a target, under the name that reports show."""

    name: str
    source: str | bytes
    target: Target
    digest: str


@dataclass(frozen=True)
class Quota:
    """How long a load lasts: so many seconds, or so many counted runs of each contender."""

    seconds: float = 0.1
    runs: int | None = None
    warmup_runs: int | None = None  # None: until steady


@dataclass(frozen=True)
class Turn:
    """The times of consecutive runs, and where in its round the turn came."""

    times_us: tuple[float, ...]
    position: int
    cpu_us: float  # of all threads of the process, for each run
    joules: float | None  # of the whole machine, for each run


@dataclass(frozen=True)
class Load:
    """One contender from opening to closing."""

    create_us: float
    first_us: float
    warmup_us: tuple[float, ...]
    turns: tuple[Turn, ...]
    note: str

    @property
    def median_us(self) -> float:
        return median(self.samples_us)

    @property
    def samples_us(self) -> tuple[float, ...]:
        """Counted runs; of more than a thousand, an evenly spaced thousand."""
        every = [time for turn in self.turns for time in turn.times_us]
        step = -(-len(every) // _MOST_SAMPLES_A_LOAD)
        return tuple(every[::step])


@dataclass
class _Seat:
    """A contender while it is loaded."""

    session: Session
    create_us: float
    first_us: float
    warmup_us: list[float]
    turns: list[Turn] = field(default_factory=list)

    @property
    def run_seconds(self) -> float:
        """About how long a run takes, from the end of the warm-up."""
        return median(self.warmup_us[-5:] or [self.first_us]) / 1e6

    def left(self) -> Load:
        return Load(
            self.create_us,
            self.first_us,
            tuple(self.warmup_us),
            tuple(self.turns),
            self.session.note,
        )


def one_load(
    contenders: Sequence[Contender],
    order: Sequence[int],
    quota: Quota,
    random: np.random.Generator,
) -> tuple[Load, ...]:
    """Opens all contenders in this order, lets them take turns, and closes them."""
    start = perf_counter_ns()
    with ExitStack() as stack, no_collection():
        seats: dict[int, _Seat] = {}
        for place in order:
            seats[place] = _seated(contenders[place], quota.warmup_runs)
            stack.enter_context(seats[place].session)
        spent = (perf_counter_ns() - start) / 1e9
        _play([seats[place] for place in range(len(contenders))], quota, spent, random)
        return tuple(seats[place].left() for place in range(len(contenders)))


def _seated(contender: Contender, warmup_runs: int | None) -> _Seat:
    start = perf_counter_ns()
    session = Session(contender.source, contender.target)
    create_us = (perf_counter_ns() - start) / 1e3
    try:
        fill_inputs(session)
        first_us = timed(session.run)
        return _Seat(session, create_us, first_us, _warm_up(session.run, warmup_runs))
    except BaseException:
        session.close()
        raise


def _warm_up(run: Callable[[], None], runs: int | None) -> list[float]:
    """Runs so many times, or until a window of runs is no faster than the ones before it."""
    if runs is not None:
        return [timed(run) for _ in range(runs)]
    times: list[float] = []
    best = float("inf")
    while sum(times) < _MOST_WARM_UP_SECONDS * 1e6:
        window: list[float] = []
        while sum(window) < _WINDOW_SECONDS * 1e6:
            window.append(timed(run))
        times += window
        if median(window) > _STEADY * best:
            break
        best = min(best, median(window))
    return times


def _play(seats: Sequence[_Seat], quota: Quota, spent: float, random: np.random.Generator) -> None:
    """Rounds of turns until the quota is filled."""
    runs = [
        min(_MOST_RUNS_A_TURN, max(1, round(_TURN_SECONDS / seat.run_seconds))) for seat in seats
    ]
    settle = [len(seats) > 1 and seat.run_seconds < _SETTLING_SECONDS for seat in seats]
    for turn_runs, order in _rounds(seats, runs, quota, spent, random):
        for position, place in enumerate(order):
            turn = _turn(seats[place].session.run, turn_runs[place], position, settle[place])
            seats[place].turns.append(turn)


def _rounds(
    seats: Sequence[_Seat],
    runs: list[int],
    quota: Quota,
    spent: float,
    random: np.random.Generator,
) -> Iterator[tuple[list[int], list[int]]]:
    """For each round the runs of every turn and the order; every second order is a mirror."""
    if quota.runs is not None:
        share = min(runs)
        shares = [min(share, quota.runs - done) for done in range(0, quota.runs, share)]
        turns = [[number] * len(seats) for number in shares]
    else:
        a_round = sum(n * seat.run_seconds for n, seat in zip(runs, seats, strict=True))
        # Opening may take longer than its load was meant to; half of that time is for runs.
        fitting = max(quota.seconds - spent, quota.seconds / 2) / a_round
        turns = [runs] * max(1, 2 * round(fitting / 2))
    order: list[int] = []
    for number, turn_runs in enumerate(turns):
        order = order[::-1] if number % 2 else random.permutation(len(seats)).tolist()
        yield turn_runs, order


def _turn(run: Callable[[], None], runs: int, position: int, settle: bool) -> Turn:
    if settle:
        run()
    joules, cpu = energy_joules(), process_time()
    times = tuple(timed(run) for _ in range(runs))
    cpu_us = (process_time() - cpu) * 1e6 / runs
    after = None if joules is None else energy_joules()
    used = None if joules is None or after is None or after < joules else (after - joules) / runs
    return Turn(times, position, cpu_us, used)
