"""Statistics of a tensor over many samples, and the range to quantize it with.

Every statistic is a minimum, a maximum, a count or an exact sum, so that the order of the samples
does not matter, and its size does not grow with their number.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.types import Array
from litesmith.phrases import phrase

Floats = NDArray[np.float32]
Range = tuple[float, float]

WHAT = frozenset({"range", "channels", "mean", "histogram"})

# The 14 leading bits of a float32 (sign, exponent and 5 bits of the fraction) number its bucket. No
# range is needed in advance, and a bucket is never wider than 1/32 of its values.
_SHIFT = 18
BUCKETS = 1 << (32 - _SHIFT)

# The number of samples with the largest and the smallest values whose extremes are kept.
EXTREMES = 16

# Values are rounded to multiples of 2**-32 before they are summed: these add up exactly in float64,
# so in any order, up to 2**21. Adding and subtracting this number rounds to them.
_ROUNDER = 1.5 * 2.0 ** (52 - 32)
_EXACT_UP_TO = 2.0**21

# The size of the pieces of work, which stay in a core's cache.
_PIECE = 1 << 15


class Seen:
    """Statistics of one tensor; `what` says which are gathered besides its range.

    range      the lowest and highest value, and the extremes of the samples that reach farthest
    channels   the lowest and highest value of each channel, the last dimension
    mean       the mean of the samples, in the tensor's own shape
    histogram  how often each value occurred

    A sample with an infinite value or NaN counts only in `spoiled`.
    """

    def __init__(self, what: frozenset[str] = WHAT) -> None:
        if not what <= WHAT:
            raise ValueError(
                phrase(
                    "{what}: the statistics that can be gathered are {what2}",
                    sorted(what - WHAT),
                    sorted(WHAT),
                )
            )
        self.what = what
        self.samples = self.spoiled = 0
        self.low, self.high = inf, -inf
        # Extremes of single samples: the smallest minima, ascending, and the largest maxima,
        # descending.
        self.lows: tuple[float, ...] = ()
        self.highs: tuple[float, ...] = ()
        self.channel_low: Floats | None = None
        self.channel_high: Floats | None = None
        self.histogram: NDArray[np.int64] | None = None
        self._total: NDArray[np.float64] | None = None

    def add(self, sample: Array) -> None:
        """Adds one sample: the tensor's value in one run of the model."""
        values = np.ascontiguousarray(sample, np.float32)
        if values.size == 0:
            self.samples += 1
            return
        low, high = float(values.min()) + 0.0, float(values.max()) + 0.0  # −0 becomes 0
        if not (np.isfinite(low) and np.isfinite(high)):
            self.spoiled += 1
            return
        self.samples += 1
        self._stretch((low,), (high,))
        if "channels" in self.what:
            self._stretch_channels(*_channel_range(values))
        if "mean" in self.what:
            self._sum(values)
        if "histogram" in self.what:
            self._count(_counted(values))

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean of the samples, in the tensor's shape."""
        if self._total is None:
            raise ValueError(phrase("no mean was gathered, or there was no sample"))
        return self._total / self.samples

    @property
    def is_mergeable(self) -> bool:
        """True where the sum is exact, so that no order or grouping of the samples changes it."""
        return "mean" not in self.what or self.samples * self._farthest < _EXACT_UP_TO

    @property
    def _farthest(self) -> float:
        return max(abs(self.low), abs(self.high)) if self.lows else 0.0

    @property
    def channel_peak(self) -> Floats:
        """The largest magnitude in each channel."""
        if self.channel_low is None or self.channel_high is None:
            raise ValueError(phrase("no channels were gathered, or there was no sample"))
        return np.maximum(np.abs(self.channel_low), np.abs(self.channel_high))

    def state(self) -> dict[str, Array]:
        """All statistics as arrays by name, from which `restored` makes the same object."""
        arrays: dict[str, Array | None] = {
            "counts": np.array([self.samples, self.spoiled]),
            "lows": np.array(self.lows),
            "highs": np.array(self.highs),
            "channel_low": self.channel_low,
            "channel_high": self.channel_high,
            "histogram": self.histogram,
            "total": self._total,
        }
        return {name: array for name, array in arrays.items() if array is not None}

    @staticmethod
    def restored(what: frozenset[str], state: Mapping[str, Array]) -> "Seen":
        """Makes the statistics from a `state`; ValueError or KeyError for anything else."""
        return Seen.merged(what, [state])

    @staticmethod
    def merged(what: frozenset[str], states: Sequence[Mapping[str, Array]]) -> "Seen":
        """The statistics of all samples from the states of their parts, equal to those of one
        pass.
        """
        whole = Seen(what)
        for state in states:
            samples, spoiled = (int(count) for count in state["counts"])
            whole.samples += samples
            whole.spoiled += spoiled
            lows, highs = (tuple(map(float, state[name])) for name in ("lows", "highs"))
            if not lows:
                continue
            whole._stretch(lows, highs)
            if "channels" in what:
                ends = (np.array(state[f"channel_{end}"], np.float32) for end in ("low", "high"))
                whole._stretch_channels(*ends)
            if "histogram" in what:
                whole._count(np.array(state["histogram"], np.int64).reshape(BUCKETS))
            if "mean" in what:
                total = np.array(state["total"], np.float64)
                whole._total = whole._total_of(total.shape) + total
        return whole

    def _total_of(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """The sum of the samples so far, all of which must have this shape."""
        if self._total is None:
            self._total = np.zeros(shape)
        if self._total.shape != shape:
            raise ValueError(
                phrase("samples of shapes {shape} and {shape2}: no mean", self._total.shape, shape)
            )
        return self._total

    def _stretch(self, lows: tuple[float, ...], highs: tuple[float, ...]) -> None:
        self.low, self.high = min(self.low, *lows, inf), max(self.high, *highs, -inf)
        self.lows = tuple(sorted((*self.lows, *lows))[:EXTREMES])
        self.highs = tuple(sorted((*self.highs, *highs), reverse=True)[:EXTREMES])

    def _stretch_channels(self, low: Floats, high: Floats) -> None:
        if self.channel_low is None or self.channel_high is None:
            self.channel_low, self.channel_high = low.copy(), high.copy()
        elif self.channel_low.size != low.size:
            raise ValueError(
                phrase("samples of {size} and of {size2} channels", self.channel_low.size, low.size)
            )
        else:
            np.minimum(self.channel_low, low, out=self.channel_low)
            np.maximum(self.channel_high, high, out=self.channel_high)

    def _sum(self, values: Array) -> None:
        total, flat = self._total_of(values.shape).reshape(-1), values.reshape(-1)
        for start in range(0, flat.size, _PIECE):
            piece = flat[start : start + _PIECE].astype(np.float64)
            piece += _ROUNDER
            piece -= _ROUNDER
            total[start : start + _PIECE] += piece

    def _count(self, counts: NDArray[np.int64]) -> None:
        self.histogram = counts if self.histogram is None else self.histogram + counts


def _channel_range(values: Floats) -> tuple[Floats, Floats]:
    rows = values.reshape(-1, values.shape[-1] if values.ndim else 1)
    zero = np.float32(0)  # −0 becomes 0, so that it does not matter which of them comes first
    return _by_channel(np.minimum, rows) + zero, _by_channel(np.maximum, rows) + zero


def _by_channel(farther: np.ufunc, rows: Floats) -> Floats:
    """The extreme of each column; short rows are first joined into wide ones, which is far faster
    to compare.
    """
    count, channels = rows.shape
    fold = max(1, min(count, 1024 // max(channels, 1)))
    whole = count - count % fold
    wide: Floats = farther.reduce(rows[:whole].reshape(-1, fold * channels), axis=0)
    rest = rows[whole:]
    return farther.reduce(np.concatenate([wide.reshape(fold, channels), rest]), axis=0)


def _counted(values: Floats) -> NDArray[np.int64]:
    counts = np.zeros(BUCKETS, np.int64)
    bits = values.reshape(-1).view(np.uint32)
    for start in range(0, bits.size, _PIECE):
        places = (bits[start : start + _PIECE] >> _SHIFT).astype(np.int64)
        counts += np.bincount(places, minlength=BUCKETS)
    return counts


def _edges() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where each bucket of finite numbers begins and ends; the order is from −∞ to ∞."""
    starts = (np.arange(BUCKETS // 2 + 1, dtype=np.uint64) << _SHIFT).astype(np.uint32)
    finite = starts[starts <= np.float32(np.inf).view(np.uint32)].view(np.float32)
    edges = finite.astype(np.float64)
    edges[-1] = float(np.finfo(np.float32).max)
    return np.concatenate([-edges[:0:-1], edges[:-1]]), np.concatenate([-edges[-2::-1], edges[1:]])


def spread(seen: Seen) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """The buckets that are not empty, ascending: start, end and count of each."""
    if seen.histogram is None:
        raise ValueError(phrase("no histogram was gathered, or there was no sample"))
    starts, ends = _edges()
    half = BUCKETS // 2
    finite = starts.size // 2
    counts = np.concatenate([seen.histogram[half : half + finite][::-1], seen.histogram[:finite]])
    held = counts > 0
    low, high = np.clip(starts[held], seen.low, seen.high), np.clip(ends[held], seen.low, seen.high)
    return low, high, counts[held]


def minmax(seen: Seen, steps: int) -> Range:
    """The range of all values."""
    return seen.low, seen.high


def percentile(seen: Seen, steps: int, percent: float = 99.99) -> Range:
    """The range without this percentage of outermost values on either side."""
    starts, ends, counts = spread(seen)
    passed = np.cumsum(counts)
    borders = np.stack([starts, ends], axis=1).reshape(-1)
    reached = np.stack([passed - counts, passed], axis=1).reshape(-1) / counts.sum()
    low, high = np.interp([1 - percent / 100, percent / 100], reached, borders)
    return float(low), float(high)


def mse(seen: Seen, steps: int) -> Range:
    """The part of the range with the least squared error by rounding and clipping."""
    starts, ends, counts = spread(seen)
    values = (starts + ends) / 2
    share = counts / counts.sum()
    low, high = min(seen.low, 0.0), max(seen.high, 0.0)
    parts = np.geomspace(0.05, 1, 49)
    best, chosen = inf, (low, high)
    for _ in range(2):  # one side after the other; so many rounds suffice in practice
        for place in (0, 1):
            for part in parts:
                tried = (part * low, chosen[1]) if place == 0 else (chosen[0], part * high)
                error = _error(values, share, tried, steps)
                if error < best:
                    best, chosen = error, tried
    return chosen


def _error(
    values: NDArray[np.float64], share: NDArray[np.float64], tried: Range, steps: int
) -> float:
    """The mean squared error of values on a grid of `steps` over a range that contains 0.

    Zero is stored exactly, so values within half a step of it become zero.
    """
    step = (tried[1] - tried[0]) / steps
    inside = np.minimum(values**2, step**2 / 12)
    clipped = values - np.clip(values, *tried)
    return float(((inside + clipped**2) * share).sum())


ESTIMATORS: dict[str, Callable[[Seen, int], Range]] = {
    "minmax": minmax,
    "mse": mse,
    "percentile": percentile,
}


def estimate(how: str, seen: Seen, steps: int, bounds: Range = (-inf, inf)) -> Range:
    """The range to quantize with, by an estimator; it contains 0 and stays inside the activation's
    bounds.
    """
    if seen.spoiled:
        raise ValueError(phrase("{spoiled} samples hold infinite values or NaN", seen.spoiled))
    if seen.low > seen.high:
        return 0.0, 0.0  # no sample, or an empty tensor
    low, high = ESTIMATORS[how](seen, steps)
    return float(min(max(low, bounds[0]), 0)), float(max(min(high, bounds[1]), 0))
