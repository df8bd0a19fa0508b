"""Large grids by a sample: every pair of values by default, every combination with `-m full`.

    @pytest.mark.parametrize(("name", "recipe", "threads"), pairwise(NAMES, RECIPES, (1, 4)))

The sample depends on nothing but the grid: it is the same on every machine and in every process.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from heapq import heapify, heapreplace
from itertools import combinations, product
from typing import TypeVar

import pytest

Row = tuple[Hashable, ...]
R = TypeVar("R", bound=Row)


def pairwise(*axes: Iterable[Hashable]) -> list[object]:
    """All combinations of the axes; those that meet no new pair of values are `full`."""
    rows = list(product(*axes))
    pairs = combinations(range(len(axes)), 2)
    return sampled(rows, *(lambda row, a=a, b=b: (row[a], row[b]) for a, b in pairs))


def sampled(rows: Sequence[R], *views: Callable[[R], Hashable]) -> list[object]:
    """Parameters of a test; those that show no new value of a view are `full`."""
    kept = set(covering(rows, *views))
    return [
        pytest.param(*row, marks=() if place in kept else pytest.mark.full)
        for place, row in enumerate(rows)
    ]


def covering(rows: Sequence[R], *views: Callable[[R], Hashable]) -> list[int]:
    """The places of rows that together show every value of every view: again and again the row
    with the most that is new, the first of equals."""
    left = [{(number, view(row)) for number, view in enumerate(views)} for row in rows]
    # What a row adds only ever shrinks: one that is first although it was counted last is it.
    waiting = [(-len(values), place) for place, values in enumerate(left)]
    heapify(waiting)
    shown: set[tuple[int, Hashable]] = set()
    chosen: list[int] = []
    while waiting and waiting[0][0]:
        counted, best = waiting[0]
        left[best] -= shown
        if len(left[best]) == -counted:
            chosen.append(best)
            shown |= left[best]
        heapreplace(waiting, (-len(left[best] - shown), best))
    return sorted(chosen)
