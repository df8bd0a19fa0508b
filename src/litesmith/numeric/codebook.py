"""Codebooks: the few codes of the int8 grid that represent many numbers best.

One-dimensional k-means, solved exactly for numbers that lie in 255 bins around the codes.
"""

from collections.abc import Iterable
from math import inf

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.types import Array
from litesmith.phrases import phrase

MOST_CODE = 127
_GRID = np.arange(-MOST_CODE, MOST_CODE + 1, dtype=np.float64)

Codes = NDArray[np.int64]


def codebook(numbers: Array, k: int, fixed: Iterable[int] = ()) -> Codes:
    """At most `k` codes, ascending, with the least sum of squared distances to the numbers.

    The numbers lie between −127 and 127. The result contains the codes in `fixed`, of which there
    are at most k.
    """
    forced = sorted(set(fixed))
    if len(forced) > k:
        raise ValueError(phrase("{count} codes are fixed, and only {k} may be", len(forced), k))
    costs = _forbid_skips(_spans(numbers), forced)
    return _GRID[_shortest(costs, k)].astype(np.int64)


def nearest(numbers: Array, book: Codes) -> NDArray[np.intp]:
    """The place in an ascending book of the code nearest to each number."""
    middles = (book[1:] + book[:-1]) / 2
    return np.searchsorted(middles, numbers)


def _spans(numbers: Array) -> NDArray[np.float64]:
    """The cost of the numbers between two neighbouring codes, each assigned to the nearer one.

    -> (257, 257): one row and one column for each code, between an open start and an open end.
    """
    places = np.rint(numbers).astype(np.intp).reshape(-1) + MOST_CODE
    values = numbers.reshape(-1).astype(np.float64)
    size = _GRID.size
    count, first, second = (
        np.bincount(places, values**power, minlength=size)[:, None] for power in (0, 1, 2)
    )
    costs = np.maximum(count * _GRID**2 - 2 * first * _GRID + second, 0)  # bin, code
    upto = np.concatenate([np.zeros((1, size)), np.cumsum(costs, axis=0)])  # bins below, code
    low, high = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    middle = (low + high) // 2
    spans = np.full((size + 2, size + 2), inf)
    inner = upto[middle, low] - upto[low, low] + upto[high + 1, high] - upto[middle + 1, high]
    inner += np.minimum(costs[middle, low], costs[middle, high])
    # Both ends of a span lie in it, and each code's own bin in two spans: count it in the left one.
    inner -= costs[low, low]
    spans[1:-1, 1:-1] = np.where(low < high, inner, inf)
    codes = np.arange(size)
    spans[0, 1:-1] = upto[codes + 1, codes]
    spans[1:-1, -1] = upto[size, codes] - upto[codes + 1, codes]
    return spans


def _forbid_skips(spans: NDArray[np.float64], forced: list[int]) -> NDArray[np.float64]:
    """The spans with an infinite cost for each one that would skip a forced code."""
    for code in forced:
        place = code + MOST_CODE + 1
        spans[:place, place + 1 :] = inf
    return spans


def _shortest(spans: NDArray[np.float64], k: int) -> list[int]:
    """The places of at most `k` codes on the cheapest path from the open start to the open end."""
    inner, ends = spans[1:-1, 1:-1], spans[1:-1, -1]
    reached = [spans[0, 1:-1]]  # the cost up to each code, by the number of codes so far
    came: list[NDArray[np.intp]] = []
    for _ in range(min(k, _GRID.size) - 1):
        ways = reached[-1][:, None] + inner
        came.append(ways.argmin(axis=0))
        reached.append(ways.min(axis=0))
    totals = np.array(reached) + ends
    place = int(totals.min(axis=0).argmin())
    way = [place]
    for step in reversed(came[: int(totals[:, place].argmin())]):
        place = int(step[place])
        way.append(place)
    return way[::-1]
