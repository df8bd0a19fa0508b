"""Percentiles, intervals, and verdicts on which of two things is faster."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from litesmith.evidence.measurement import Interval, median_interval
from litesmith.phrases import Quantity, phrase
from litesmith.units import factor_interval, factor_text, time_text

# Numbers by name: a row of a table or of a data frame.
Row = dict[str, object]

# Smaller differences are not worth mentioning: a verdict needs the whole interval beyond this.
MARGIN = 0.01

FASTER: str = phrase("faster")
SLOWER: str = phrase("slower")
SAME: str = phrase("no difference seen")
UNKNOWN = phrase("too few runs to tell")
UNCLEAR: str = phrase("unclear: the machine was busy")

# A machine was too busy for a verdict where the ends of an interval differ by more than the first
# factor, or where a model, even in its calmest turns, waited for a core for more than the second as
# a share of its time.
_WIDE, _WAITED = 1.25, 0.1


def percentile(samples: Sequence[float], rank: float) -> float:
    """The value that `rank` per cent of the samples do not exceed, interpolated between neighbours.

    >>> percentile([1, 2, 3], 50)
    2.0
    """
    return float(np.percentile(np.asarray(samples, float), rank))


def spread(samples: Sequence[float]) -> float:
    """The spread of the samples: their interquartile range relative to the median."""
    low, middle, high = np.percentile(np.asarray(samples, float), (25, 50, 75)).tolist()
    return (high - low) / middle if middle else 0.0


def relative_width(samples: Sequence[float]) -> float:
    """The width of the median's 95 % interval, relative to the median."""
    low, high = median_interval(samples)
    middle = median(samples) if samples else 0.0
    return (high - low) / middle if middle else math.inf


def judge(low: float | None, high: float | None) -> str:
    """The verdict on b, by the interval of time of b / time of a."""
    if low is None or high is None or not math.isfinite(high):
        return UNKNOWN
    if low > 1 + MARGIN:
        return SLOWER
    return FASTER if high < 1 - MARGIN else SAME


def speed_words(ratio: float, low: float | None, high: float | None, verdict: str) -> str:
    """The speed of b in words, as in `2.31 × faster`, from time of b / time of a; no speed is
    claimed inside the margin.
    """
    verdict = verdict or judge(low, high)
    if verdict == FASTER:
        return factor_text(1 / ratio, phrase("faster"))
    if verdict == SLOWER:
        return factor_text(ratio, phrase("slower"))
    return phrase(verdict)


def speed_interval(low: float | None, high: float | None, verdict: str) -> str:
    """The interval of a speed in words, as in `[2.25, 2.37]`; "" where no speed is claimed."""
    verdict = verdict or judge(low, high)
    if low is None or high is None or not 0 < low <= high < math.inf:
        return ""
    if verdict == FASTER:
        return factor_interval(1 / high, 1 / low)
    if verdict == SLOWER:
        return factor_interval(low, high)
    ends = factor_interval(low, high)
    return phrase("{ends} × the time", ends) if verdict == SAME else ""


def times_words(a_us: float | None, b_us: float | None) -> str:
    """Two times in words, as in `1.39 ms → 793 µs`."""
    return Quantity(" → ".join(time_text(us) for us in (a_us, b_us) if us is not None))


@dataclass(frozen=True)
class Ratio:
    """Time of b / time of a for each block of the run, and what follows from these ratios.

    Within a block a and b take turns, so that a disturbance of both cancels; between blocks both
    are loaded anew, so that a lucky place in memory shows as spread, not as a difference.

    us       the times of a and of b, where they come from the same turns; the ratio is then their
             quotient
    is_busy  True where the machine was too busy to tell
    """

    blocks: tuple[float, ...]
    us: tuple[float, float] | None = None
    is_busy: bool = False

    @property
    def value(self) -> float:
        """The ratio of the times; without times, the median of the blocks (between two neighbours,
        their geometric mean, so that b / a is 1 / (a / b))."""
        if self.us is not None:
            return self.us[1] / self.us[0]
        return math.exp(median(map(math.log, self.blocks)))

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the ratio; infinite where there are fewer than six blocks."""
        return _interval_around(self.value, self.blocks)

    @property
    def verdict(self) -> str:
        """The verdict on b, compared with a."""
        found = judge(*self.interval)
        return UNCLEAR if self.is_busy and found != UNKNOWN else found

    @property
    def words(self) -> str:
        """The ratio in words, as in `1.75 × faster [1.70, 1.80]`."""
        ends = speed_interval(*self.interval, self.verdict)
        words = speed_words(self.value, *self.interval, self.verdict)
        return phrase("{words} {interval}", words, ends) if ends else words

    @property
    def times_words(self) -> str:
        """The times in words, as in `1.39 ms → 793 µs`."""
        return times_words(*(self.us or (None, None)))


def _interval_around(value: float, blocks: Sequence[float]) -> Interval:
    """The interval of the blocks' median, extended to include the value."""
    low, high = median_interval(blocks)
    return min(max(low, 0.0), value), max(high, value)


@dataclass(frozen=True)
class TurnTimes:
    """The times of all contenders of one interleaved run. Every statement about them is computed
    here, so that no two numbers of a run disagree: all are from the same turns.

    blocks  microseconds of each contender in each block
    waited  the share of its time that each contender waited for a core; 0 where that is unknown
    """

    blocks: tuple[tuple[float, ...], ...]
    waited: tuple[float, ...]

    @property
    def _usual(self) -> tuple[int, ...]:
        """The blocks that are neither the quickest nor the slowest: half of them, the same for all
        contenders."""
        totals = np.log(np.asarray(self.blocks)).sum(axis=0)
        order = np.argsort(totals, kind="stable").tolist()
        cut = len(order) // 4
        return tuple(order[cut : len(order) - cut])

    def us(self, place: int) -> float:
        """The usual time of the contender at this place."""
        usual = [math.log(self.blocks[place][block]) for block in self._usual]
        return math.exp(sum(usual) / len(usual))

    def interval_us(self, place: int) -> Interval:
        """The 95 % interval of the usual time, over blocks: the runs of one block are not
        independent."""
        return _interval_around(self.us(place), self.blocks[place])

    def ratio(self, a: int, b: int) -> Ratio:
        """Time of the contender at b / time of the contender at a."""
        pairs = zip(self.blocks[a], self.blocks[b], strict=True)
        found = Ratio(tuple(late / early for early, late in pairs), (self.us(a), self.us(b)))
        low, high = found.interval
        is_wide = math.isfinite(high) and high > _WIDE * low
        return replace(found, is_busy=is_wide or max(self.waited[a], self.waited[b]) > _WAITED)


def turns_ratio(a: Sequence[float], b: Sequence[float], a_led: Sequence[bool]) -> float:
    """Time of b / time of a from neighbouring turns, some led by a and some by b.

    The medians of both kinds are averaged, which cancels the cost of coming second.
    """
    logs = [math.log(late / early) for early, late in zip(a, b, strict=True)]
    by_lead = [
        [log for log, led in zip(logs, a_led, strict=True) if led == who] for who in (True, False)
    ]
    middles = [median(group) for group in by_lead if group]
    return math.exp(sum(middles) / len(middles))
