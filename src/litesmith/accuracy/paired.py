"""The 95 % interval of a metric, and of the difference of two models on the same samples.

Every metric is a function of the means over rows of some statistics (a single 0 or 1 for a share).
Rows of a group, such as copies, may go wrong together: an interval is as wide as that of the number
of independent rows with the same information. Where every row is its own group, the interval is
that of independent rows. No interval depends on random draws: the same rows give the same interval.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]  # (rows, statistics)
Groups = NDArray[np.int64] | None  # the group of each row; None: every row is its own
Finish = Callable[[Rows], Rows]  # means of the statistics, last axis -> the metric

_Z = 1.959963984540054  # the normal distribution's 97.5 % point


class Estimate(NamedTuple):
    """A value with its 95 % interval; unbounded ends are infinite."""

    value: float
    low: float
    high: float


class Clusters(NamedTuple):
    """The groups of some rows: the number of rows, the equivalent number of groups of equal size,
    and the factor by which an interval widens because the groups are few."""

    rows: int
    alike: float
    wider: float

    def count_like(self, errors: Rows, groups: Groups) -> float:
        """The number of independent rows that are as informative, given each row's distance from
        the mean.

        Errors that add up within a group reduce the number. While there are few errors to judge by,
        the rows of a group are assumed to go wrong together: one such pair of groups is added to
        the observed ones.
        """
        if groups is None:
            return float(self.rows)
        sums = np.bincount(groups, errors)
        # the contribution of one group to the errors, and to their sums
        size = self.rows / self.alike
        alone = float(np.square(errors).sum()) + 2 * size
        together = float(np.square(sums).sum()) + 2 * size**2
        return min(self.rows, self.rows * alone / together)


def clusters(rows: int, groups: Groups) -> Clusters:
    """Describes the groups of some rows."""
    if groups is None:
        return Clusters(rows, rows, 1.0)
    sizes = np.bincount(groups).astype(np.float64)
    alike = rows**2 / float(np.square(sizes).sum())
    usual = student(rows - 1)
    return Clusters(rows, alike, student(alike - 1) / usual if math.isfinite(usual) else 1.0)


def share(hits: Rows, groups: Groups = None) -> Estimate:
    """The mean of numbers from 0 to 1, treated as zeros and ones, with Wilson's score interval."""
    value = _mean(hits)
    found = clusters(len(hits), groups)
    return Estimate(value, *wilson(value, found.count_like(hits - value, groups) / found.wider**2))


def wilson(value: float, count: float) -> tuple[float, float]:
    """Wilson's score interval for a share of `count` independent rows."""
    if count <= 0:
        return 0.0, 1.0
    middle = (value + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = _Z * math.sqrt(value * (1 - value) / count + _Z**2 / (4 * count**2))
    half /= 1 + _Z**2 / count
    # The ends should touch a value of 0 or 1 exactly; rounding may miss it.
    return min(max(middle - half, 0.0), value), max(min(middle + half, 1.0), value)


def share_difference(hits: Rows, reference: Rows, groups: Groups = None) -> Estimate:
    """The share of ones minus a reference's share on the same rows.

    Bonett and Price's adjusted Wald interval: only rows where the two differ are informative, and
    both of their counts are increased by one, so that the interval holds where such rows are few or
    none.
    """
    change = hits - reference
    value = _mean(change)
    found = clusters(len(hits), groups)
    count = found.count_like(change - value, groups)
    won, lost = (_mean(np.maximum(side, 0)) * count for side in (change, -change))
    up, down = (won + 1) / (count + 2), (lost + 1) / (count + 2)
    half = _Z * found.wider * math.sqrt((up + down - (up - down) ** 2) / (count + 2))
    low, high = max(up - down - half, -1.0), min(up - down + half, 1.0)
    return Estimate(value, low, high)


def _mean(values: Rows) -> float:
    """The mean, equal to the last digit whatever the order."""
    return math.fsum(values) / len(values)


class Influence(NamedTuple):
    """A metric's value, and how far each row pulls that value; the mean pull is about 0.

    alike  the number of rows to assume where no row pulls
    """

    value: float
    pulls: Rows  # (rows,)
    alike: float
    groups: Groups = None

    @property
    def error(self) -> float:
        """The standard error of the value; infinite for a single row or group."""
        pulls = self.pulls - self.pulls.mean()
        sums = pulls if self.groups is None else np.bincount(self.groups, pulls)
        if len(sums) < 2:
            return math.inf
        spread = float(np.square(sums).sum()) * len(sums) / (len(sums) - 1)
        return math.sqrt(spread) / len(pulls)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the error."""
        return clusters(len(self.pulls), self.groups).alike - 1


def jackknife(rows: Rows, finish: Finish) -> Influence:
    """The change of the metric as each row is left out."""
    count, total = len(rows), rows.sum(axis=0)
    value = float(finish(total / count))
    if count == 1 or not np.isfinite(total).all():
        return Influence(value, np.zeros(count), count)
    without = finish((total - rows) / (count - 1))
    return Influence(value, (count - 1) * (value - without), count)


def estimate(found: Influence, least: float = -math.inf, most: float = math.inf) -> Estimate:
    """Student's interval around the value, limited to the metric's range."""
    if not math.isfinite(found.value):
        return Estimate(found.value, least, most)
    half = student(found.freedom) * found.error
    if math.isnan(half):
        return Estimate(found.value, least, most)
    return Estimate(found.value, max(found.value - half, least), min(found.value + half, most))


def bounded_estimate(found: Influence) -> Estimate:
    """The interval of a metric from 0 to 1: Wilson's, for the number of rows that gives the same
    error."""
    rest = found.value * (1 - found.value)
    lying = clusters(len(found.pulls), found.groups)
    alike = found.alike * lying.alike / lying.rows
    count = rest / found.error**2 if found.error > 0 and rest > 0 else alike
    return Estimate(found.value, *wilson(found.value, max(1.0, count) / lying.wider**2))


def difference(found: Influence, reference: Influence) -> Estimate:
    """The metric minus a reference's on the same rows; pulls that both share cancel."""
    value = found.value - reference.value
    if not math.isfinite(value):  # one infinite value decides; with two, nothing is known
        return Estimate(value, value, value)
    pulls = found.pulls - reference.pulls
    return estimate(Influence(value, pulls, found.alike, found.groups))


def bounded_difference(found: Influence, reference: Influence) -> Estimate:
    """The difference of a metric from 0 to 1. Two rows are added, one that only each model gets
    right, so that the interval holds where no row distinguishes the models."""
    plain = difference(found, reference)
    if not math.isfinite(plain.high - plain.low):
        return plain
    lying = clusters(len(found.pulls), found.groups)
    count = max(1.0, found.alike * lying.alike / lying.rows)
    half = math.hypot((plain.high - plain.low) / 2, _Z * math.sqrt(2) * lying.wider / (count + 2))
    return Estimate(plain.value, max(plain.value - half, -1.0), min(plain.value + half, 1.0))


def student(freedom: float) -> float:
    """Student's 97.5 % point, by the Cornish-Fisher expansion; infinite below 1 degree of freedom.

    >>> round(student(10), 2)
    2.23
    """
    if freedom < 1:
        return math.inf
    terms = (
        (_Z**3 + _Z) / 4,
        (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / 96,
        (3 * _Z**7 + 19 * _Z**5 + 17 * _Z**3 - 15 * _Z) / 384,
        (79 * _Z**9 + 776 * _Z**7 + 1482 * _Z**5 - 1920 * _Z**3 - 945 * _Z) / 92160,
    )
    return _Z + sum(term / freedom**power for power, term in enumerate(terms, 1))
