"""What samples tell: percentiles, intervals, and whether one thing is faster than another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from litesmith.evidence.measurement import Interval, median_interval
from litesmith.phrases import phrase

# Numbers by name: one row of a table, or of a data frame.
Row = dict[str, object]

# Less than this is not worth a word: a verdict needs the whole interval beyond it.
MARGIN = 0.01

FASTER: str = phrase("faster")
SLOWER: str = phrase("slower")
SAME: str = phrase("no difference seen")
UNKNOWN = phrase("too few runs to tell")


def percentile(samples: Sequence[float], rank: float) -> float:
    """The value that `rank` per cent of the samples do not exceed, between neighbours if need be.

    >>> percentile([1, 2, 3], 50)
    2.0
    """
    return float(np.percentile(np.asarray(samples, float), rank))


def spread(samples: Sequence[float]) -> float:
    """How much samples vary: the range of the middle half as a share of the median."""
    low, middle, high = np.percentile(np.asarray(samples, float), (25, 50, 75)).tolist()
    return (high - low) / middle if middle else 0.0


def relative_width(samples: Sequence[float]) -> float:
    """The width of the median's 95 % interval as a share of the median."""
    low, high = median_interval(samples)
    middle = median(samples) if samples else 0.0
    return (high - low) / middle if middle else math.inf


@dataclass(frozen=True)
class Ratio:
    """Time of b / time of a, once for each block of the run, and what follows from them.

    Within a block the two take turns, so that what slows both cancels; between blocks both are
    loaded anew, so that the luck of a place in memory shows as spread, not as a difference.
    """

    blocks: tuple[float, ...]

    @property
    def value(self) -> float:
        """The median, between two neighbours by their geometric mean: b / a is 1 / (a / b)."""
        return math.exp(median(map(math.log, self.blocks)))

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the ratio: infinite where there are fewer than six blocks."""
        low, high = median_interval(self.blocks)
        return max(low, 0.0), high

    @property
    def verdict(self) -> str:
        """Of b against a."""
        low, high = self.interval
        if high == math.inf:
            return UNKNOWN
        if low > 1 + MARGIN:
            return SLOWER
        return FASTER if high < 1 - MARGIN else SAME


def turns_ratio(a: Sequence[float], b: Sequence[float], a_led: Sequence[bool]) -> float:
    """Time of b / time of a from turns side by side, some led by a and some by b.

    The medians of both sorts are averaged, which cancels the cost of coming second.
    """
    logs = [math.log(late / early) for early, late in zip(a, b, strict=True)]
    by_lead = [
        [log for log, led in zip(logs, a_led, strict=True) if led == who] for who in (True, False)
    ]
    middles = [median(group) for group in by_lead if group]
    return math.exp(sum(middles) / len(middles))
