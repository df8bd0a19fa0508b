"""Which channels go for a wanted speed: at the least cost by the times of ops, then looked for
further by what the model's outputs mind, and proven in turns with the whole model."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from litesmith.errors import CannotApply
from litesmith.passes.shrinking.channel_loss import Float64s
from litesmith.passes.shrinking.channel_times import WidthTimes
from litesmith.units import number_text

# What the model minds with some levels of its units; less is better.
Judge = Callable[[Sequence[int]], float]

# How many times as fast as the whole model one with some levels runs, measured.
Proof = Callable[[Sequence[int]], float]

# Missed by less than this share, a speed is reached: so much differs from run to run.
_NEAR = 0.01

# So often times are corrected by what was measured.
_MOST_PROOFS, _MOST_SEARCHES = 4, 2


class Chosen(NamedTuple):
    """The level of each unit, and how many times as fast as the whole the model is with them."""

    levels: list[int]
    times_as_fast: float


def choose_levels(
    costs: Sequence[Float64s],
    times: WidthTimes,
    speedup: float,
    proof: Proof,
    judge: Judge | None = None,
    tries: int = 0,
) -> Chosen:
    """Levels with which the model is measured to be so many times as fast, at the least cost."""
    target, none = times.whole / speedup, [0] * len(costs)
    found = Chosen(none, 1.0)
    for _ in range(_MOST_PROOFS):
        found = _proven(_cheapest(costs, times, target, speedup, none), proof)
        if found.times_as_fast >= speedup * (1 - _NEAR):
            break
        target *= float(np.clip(found.times_as_fast / speedup, 0.8, 0.99))
    for _ in range(_MOST_SEARCHES if judge is not None and tries else 0):
        assert judge is not None
        levels = _search(costs, times, target, found.levels, judge, tries, speedup)
        better = _proven(levels, proof)
        if better.times_as_fast >= speedup * (1 - _NEAR):
            return better
        target *= float(np.clip(better.times_as_fast / speedup, 0.8, 0.99))
    return found


def _proven(levels: list[int], proof: Proof) -> Chosen:
    return Chosen(levels, proof(levels))


def _cheapest(
    costs: Sequence[Float64s],
    times: WidthTimes,
    target: float,
    speedup: float,
    least: Sequence[int],
    fixed: frozenset[int] = frozenset(),
) -> list[int]:
    """Levels from these on that reach a time: again and again the step that costs least for the
    time that it saves, over several widths at once where only that saves some."""
    levels = list(least)
    while (now := times.of(levels)) > target:
        best: tuple[float, int, int] | None = None
        for unit, cost in enumerate(costs):
            if unit in fixed or levels[unit] + 1 >= len(cost):
                continue
            further = slice(levels[unit] + 1, None)
            saved = now - times.along(levels, unit)[further]
            useful = np.minimum(saved, now - target)  # what it saves beyond is no gain
            paid = np.maximum(cost[further] - cost[levels[unit]], 1e-12)
            rate = np.where(useful > 0, paid / np.maximum(useful, 1e-9), np.inf)
            place = int(rate.argmin())
            step = (float(rate[place]), unit, levels[unit] + 1 + place)
            best = step if best is None or step < best else best
        if best is None or not np.isfinite(best[0]):
            raise CannotApply(
                "prune: with every channel gone that may go, a run is {most} times as fast by the "
                "times of its ops, not {speedup}; ask for less",
                number_text(times.whole / now),
                number_text(speedup),
            )
        levels[best[1]] = best[2]
    return _given_back(costs, times, target, levels, fixed)


def _given_back(
    costs: Sequence[Float64s],
    times: WidthTimes,
    target: float,
    levels: list[int],
    fixed: frozenset[int],
) -> list[int]:
    """Levels without what the time does not ask for, where most is lost first."""
    for unit in sorted(range(len(costs)), key=lambda u: -float(costs[u][levels[u]])):
        if unit not in fixed and levels[unit]:
            fits = np.flatnonzero(times.along(levels, unit)[: levels[unit] + 1] <= target)
            levels[unit] = int(fits[0]) if len(fits) else levels[unit]
    return levels


def _search(
    costs: Sequence[Float64s],
    times: WidthTimes,
    target: float,
    levels: list[int],
    judge: Judge,
    tries: int,
    speedup: float,
) -> list[int]:
    """Levels that the outputs mind less, no slower: one unit gets another level at random, the
    others make up for the time; what is better stays."""
    random = np.random.default_rng(0)
    if times.of(levels) > target:
        levels = _cheapest(costs, times, target, speedup, levels)
    best, least = levels, judge(levels)
    seen = {tuple(levels)}
    for _ in range(tries):
        unit = int(random.integers(len(costs)))
        start = list(best)
        start[unit] = int(random.integers(len(costs[unit])))
        lower = [
            int(random.integers(level + 1)) if random.random() < 0.3 else level for level in start
        ]
        lower[unit] = start[unit]
        try:
            other = _cheapest(costs, times, target, speedup, lower, frozenset({unit}))
        except CannotApply:
            continue
        if tuple(other) in seen:
            continue
        seen.add(tuple(other))
        minded = judge(other)
        if minded < least:
            best, least = other, minded
    return best
