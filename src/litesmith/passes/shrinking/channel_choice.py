"""Which channels to remove for a wanted speed: first the cheapest by the times of ops, then
improved by the effect on the model's outputs, and proven in turns with the whole model."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from litesmith.errors import CannotApply
from litesmith.passes.shrinking.channel_loss import Float64s
from litesmith.passes.shrinking.channel_times import WidthTimes
from litesmith.units import number_text

# The loss in the model's outputs with some levels of its units; less is better.
Judge = Callable[[Sequence[int]], float]

# The measured speed-up over the whole model with some levels.
Proof = Callable[[Sequence[int]], float]

# A speed missed by less than the first share counts as reached: runs differ by as much. A speed
# exceeded by more than the second share gave away more than was asked for.
_NEAR, _BEYOND = 0.01, 0.02

# How often times are corrected by measurements, before the search and within it.
_MOST_PROOFS, _MOST_SEARCHES = 3, 3

# The largest change of a unit, as a divisor of its number of levels; and the chance that another
# unit is free to gain channels meanwhile.
_FARTHEST, _FREED = 5, 0.3


class ChosenLevels(NamedTuple):
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
) -> ChosenLevels:
    """The cheapest levels with which the model is measured to reach the speed-up, and little more;
    with a judge, the best of many tries."""
    target, none = times.whole / speedup, [0] * len(costs)
    found: list[ChosenLevels] = []

    def cheapest(target: float) -> list[int]:
        return _cheapest(costs, times, target, speedup, none)

    target = _prove(found, cheapest, target, proof, speedup, _MOST_PROOFS)
    if judge is None or not tries:
        return _best(found, speedup, lambda levels: -times.of(levels))
    search = _Search(costs, times, speedup, judge)

    def searched(target: float) -> list[int]:
        return search.best([one.levels for one in found], target, tries)

    _prove(found, searched, target, proof, speedup, _MOST_SEARCHES)
    return _best(found, speedup, search.minded)


def _prove(
    found: list[ChosenLevels],
    choose: Callable[[float], list[int]],
    target: float,
    proof: Proof,
    speedup: float,
    most: int,
) -> float:
    """Measures what is chosen for a time, again for the time that this was off by, until the speed
    is reached and not passed by much; returns the time to aim at."""
    for _ in range(most):
        try:
            levels = choose(target)
        except CannotApply:
            if not found:
                raise
            break  # no width is fast enough to make up for what was measured
        found.append(ChosenLevels(levels, proof(levels)))
        target *= float(np.clip(found[-1].times_as_fast / speedup, 0.8, 1.2))
        if _is_near(found[-1], speedup):
            break
    return target


def _is_near(one: ChosenLevels, speedup: float) -> bool:
    return 1 - _NEAR <= one.times_as_fast / speedup <= 1 + _BEYOND


def _best(found: Sequence[ChosenLevels], speedup: float, minded: Judge) -> ChosenLevels:
    """The choice with the least loss among those that are fast enough; the fastest where
    none is."""
    enough = [one for one in found if one.times_as_fast >= speedup * (1 - _NEAR)]
    if not enough:
        return max(found, key=lambda one: one.times_as_fast)
    return min(enough, key=lambda one: minded(one.levels))


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
    known: dict[int, Float64s] = {}  # by unit, what its levels save

    def saved(unit: int) -> Float64s:
        if unit not in known:
            known[unit] = times.saved(levels, unit)
        return known[unit]

    while (now := times.of(levels)) > target:
        free = [u for u, cost in enumerate(costs) if u not in fixed and levels[u] + 1 < len(cost)]
        steps = [(*_best_step(costs[u], saved(u), levels[u], now - target), u) for u in free]
        rate, level, unit = min(steps, key=lambda step: (step[0], step[2]), default=(np.inf, 0, 0))
        if not np.isfinite(rate):
            raise CannotApply(
                "prune: with every channel gone that may go, a run is {most} times as fast by the "
                "times of its ops, not {speedup}; ask for less",
                number_text(times.whole / now),
                number_text(speedup),
            )
        levels[unit] = level
        for other in times.beside(unit):
            known.pop(other, None)
    return _given_back(costs, times, target, levels, fixed)


def _best_step(cost: Float64s, saved: Float64s, level: int, wanted: float) -> tuple[float, int]:
    """The least that a unit pays for the time that is wanted, and the level that does so."""
    useful = np.minimum(saved[level + 1 :], wanted)  # what it saves beyond is no gain
    paid = np.maximum(cost[level + 1 :] - cost[level], 1e-12)
    rate = np.where(useful > 0, paid / np.maximum(useful, 1e-9), np.inf)
    place = int(rate.argmin())
    return float(rate[place]), level + 1 + place


def _given_back(
    costs: Sequence[Float64s],
    times: WidthTimes,
    target: float,
    levels: list[int],
    fixed: frozenset[int],
) -> list[int]:
    """Returns channels that the time does not require to remove, the most costly losses first."""
    for unit in sorted(range(len(costs)), key=lambda u: -float(costs[u][levels[u]])):
        if unit not in fixed and levels[unit]:
            fits = np.flatnonzero(times.along(levels, unit)[: levels[unit] + 1] <= target)
            levels[unit] = int(fits[0]) if len(fits) else levels[unit]
    return levels


class _Search:
    """Searches for levels with less loss at the same speed: one unit gets another level at random,
    and the others make up for the time; improvements stay."""

    def __init__(
        self,
        costs: Sequence[Float64s],
        times: WidthTimes,
        speedup: float,
        judge: Judge,
    ) -> None:
        self._costs, self._times, self._speedup, self._judge = costs, times, speedup, judge
        self._known: dict[tuple[int, ...], float] = {}
        self._random = np.random.default_rng(0)

    def minded(self, levels: Sequence[int]) -> float:
        """The loss in the outputs, computed once."""
        asked = tuple(levels)
        if asked not in self._known:
            self._known[asked] = self._judge(asked)
        return self._known[asked]

    def best(self, starts: Sequence[list[int]], target: float, tries: int) -> list[int]:
        """The best of the starts, as far as they are fast enough, and of all tries."""
        best = min((self._reaching(levels, target) for levels in starts), key=self.minded)
        for _ in range(tries):
            try:
                best = min(best, self._beside(best, target), key=self.minded)
            except CannotApply:  # the others cannot make up for one that is wider
                continue
        return best

    def _reaching(self, levels: list[int], target: float) -> list[int]:
        """These levels, with as many more or fewer channels as the time asks for."""
        if self._times.of(levels) > target:
            return _cheapest(self._costs, self._times, target, self._speedup, levels)
        return _given_back(self._costs, self._times, target, list(levels), frozenset())

    def _beside(self, levels: Sequence[int], target: float) -> list[int]:
        """A neighbouring choice: one unit a little wider or narrower, some others free to
        be wider."""
        random = self._random
        unit = int(random.integers(len(levels)))
        lower: list[int] = []
        for level, cost in zip(levels, self._costs, strict=True):
            step = 1 + int(random.integers(max(len(cost) // _FARTHEST, 1)))
            lower.append(max(level - step, 0) if random.random() < _FREED else level)
        moved = 1 + int(random.integers(max(len(self._costs[unit]) // _FARTHEST, 1)))
        sign = 1 if random.random() < 0.5 else -1
        lower[unit] = int(np.clip(levels[unit] + sign * moved, 0, len(self._costs[unit]) - 1))
        fixed = frozenset({unit})
        return _cheapest(self._costs, self._times, target, self._speedup, lower, fixed)
