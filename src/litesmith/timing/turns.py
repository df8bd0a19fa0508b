"""Lets contenders take turns, so that a disturbance slows all of them.

Times of two separate runs differ by load, clock and luck. Comparing models with themselves taught
the following:

* A load opens every contender anew, because its place in memory makes a model faster or slower for
  as long as it lives there. Loads come in pairs with mirrored orders, because the model that is
  loaded first gets the better place.
* In a round each contender has one turn of a few milliseconds; the next round has the mirrored
  order, which cancels the cost of coming second.
* The first run of a turn is not counted: it pays for what the others left in the caches.
* Only the calmer half of a load's rounds counts, the same rounds for all contenders: during the
  other half another program may have had the core.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import exp, isfinite, log
from statistics import fmean, median
from time import perf_counter_ns

import numpy as np

from litesmith.run.core.target import Target
from litesmith.run.devices.address import Address
from litesmith.timing.clock import pause_collection
from litesmith.timing.loaded_models import Devices, LoadedModel, run_seconds
from litesmith.timing.statistics import TurnTimes

_TURN_SECONDS = 0.003
_MOST_RUNS_A_TURN = 64
_MOST_SAMPLES_A_LOAD = 1000
_SETTLING_SECONDS = 0.02  # in a longer run, the cost of cold caches is negligible


@dataclass(frozen=True)
class Contender:
    """A model on a target, under the name that reports show."""

    name: str
    source: str | bytes
    target: Target | Address
    digest: str


@dataclass(frozen=True)
class Quota:
    """The length of a load: seconds, or counted runs of each contender."""

    seconds: float = 0.1
    runs: int | None = None
    warmup_runs: int | None = None  # None: until steady


@dataclass(frozen=True)
class Turn:
    """The times of consecutive runs, and the position of the turn in its round."""

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
        """The counted runs; beyond a thousand, an evenly spaced thousand of them."""
        every = [time for turn in self.turns for time in turn.times_us]
        step = -(-len(every) // _MOST_SAMPLES_A_LOAD)
        return tuple(every[::step])


def one_load(
    contenders: Sequence[Contender],
    order: Sequence[int],
    quota: Quota,
    random: np.random.Generator,
    devices: Devices | None = None,
) -> tuple[Load, ...]:
    """Opens all contenders in this order, lets them take turns, and closes them.

    `devices` are already connected; without them, all contenders run here.
    """
    devices = devices or Devices()
    start = perf_counter_ns()
    with ExitStack() as stack, pause_collection():
        seats: dict[int, LoadedModel] = {}
        for place in order:
            one = contenders[place]
            seats[place] = devices.load(one.source, one.target, quota.warmup_runs)
            stack.callback(seats[place].close)
        spent = (perf_counter_ns() - start) / 1e9
        row = [seats[place] for place in range(len(contenders))]
        turns = _play(row, quota, spent, random)
        return tuple(
            Load(seat.create_us, seat.first_us, tuple(seat.warmup_us), tuple(own), seat.note)
            for seat, own in zip(row, turns, strict=True)
        )


def _play(
    seats: Sequence[LoadedModel], quota: Quota, spent: float, random: np.random.Generator
) -> list[list[Turn]]:
    """Plays rounds of turns until the quota is filled; returns the turns of each contender."""
    seconds = [run_seconds(seat) for seat in seats]
    runs = [min(_MOST_RUNS_A_TURN, max(1, round(_TURN_SECONDS / one))) for one in seconds]
    settle = [len(seats) > 1 and one < _SETTLING_SECONDS for one in seconds]
    turns: list[list[Turn]] = [[] for _ in seats]
    for turn_runs, order in _rounds(seconds, runs, quota, spent, random):
        for position, place in enumerate(order):
            taken = seats[place].take(turn_runs[place], settle[place])
            turns[place].append(Turn(taken.times_us, position, taken.cpu_us, taken.joules))
    return turns


def _rounds(
    seconds: Sequence[float],
    runs: list[int],
    quota: Quota,
    spent: float,
    random: np.random.Generator,
) -> Iterator[tuple[list[int], list[int]]]:
    """For each round, the runs of every turn and the order of the turns; every second order is a
    mirror image."""
    if quota.runs is not None:
        share = min(runs)
        shares = [min(share, quota.runs - done) for done in range(0, quota.runs, share)]
        turns = [[number] * len(seconds) for number in shares]
    else:
        a_round = sum(n * one for n, one in zip(runs, seconds, strict=True))
        # Opening may take longer than the whole load was meant to; at least half of the time is for
        # runs.
        fitting = max(quota.seconds - spent, quota.seconds / 2) / a_round
        turns = [runs] * max(1, 2 * round(fitting / 2))
    order: list[int] = []
    for number, turn_runs in enumerate(turns):
        order = order[::-1] if number % 2 else random.permutation(len(seconds)).tolist()
        yield turn_runs, order


Loads = Sequence[tuple[Load, ...]]


def times_of(contenders: Sequence[Contender], loads: Loads) -> TurnTimes:
    """Computes the times of contenders from their loads: a block is two loads with mirrored orders,
    or one load where there is a single contender."""
    step = 1 if len(contenders) == 1 else 2
    calm = [_calm_rounds(load) for load in loads]
    logs = [
        [_log_time(own.turns, rounds) for own in load]
        for load, rounds in zip(loads, calm, strict=True)
    ]
    starts = range(0, len(logs), step)
    blocks = tuple(
        tuple(exp(fmean(row[place] for row in logs[start : start + step])) for start in starts)
        for place in range(len(contenders))
    )
    waited = tuple(
        _waiting_share(
            one, [own[place].turns[n] for own, ns in zip(loads, calm, strict=True) for n in ns]
        )
        for place, one in enumerate(contenders)
    )
    return TurnTimes(blocks, waited)


def _calm_rounds(load: tuple[Load, ...]) -> list[int]:
    """The half of the rounds in which all contenders together were quickest, half of it of either
    order."""
    rows = zip(*(own.turns for own in load), strict=True)
    totals = [sum(log(median(turn.times_us)) for turn in row) for row in rows]
    kept: list[int] = []
    for first in range(min(2, len(totals))):
        own = sorted(range(first, len(totals), 2), key=totals.__getitem__)
        kept += own[: -(-len(own) // 2)]
    return sorted(kept)


def _log_time(turns: Sequence[Turn], rounds: Sequence[int]) -> float:
    """The logarithmic time of a run in these rounds; both orders count equally, which cancels the
    cost of coming second."""
    sides = [[n for n in rounds if n % 2 == side] for side in (0, 1)]
    means = [fmean(log(median(turns[n].times_us)) for n in side) for side in sides if side]
    return fmean(means)


def _waiting_share(contender: Contender, turns: Sequence[Turn]) -> float:
    """The share of a model's measured time during which it had no core; 0 where the clock is too
    coarse to tell, or on an accelerator, where a program waits anyway."""
    place = contender.target
    kind = place.kind if isinstance(place, Target) else place.target.kind
    if kind != "cpu" or not all(isfinite(turn.cpu_us) and turn.cpu_us > 0 for turn in turns):
        return 0.0
    measured_us = sum(median(turn.times_us) for turn in turns)
    return max(0.0, 1 - sum(turn.cpu_us for turn in turns) / measured_us)
