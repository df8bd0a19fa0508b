"""COCO's average precision, from the outcome on each image, and each image's influence on it."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.accuracy.paired import Influence, Rows
from litesmith.errors import BadInput
from litesmith.tasks.matching import THRESHOLDS, WIDTH

# The recalls at which precision is read.
_RECALLS = np.linspace(0.0, 1.0, 101)


class _Ranked(NamedTuple):
    """The detections of one class at one threshold, most confident first, without ignored ones.

    images  the image of each detection
    right   whether the detection is right
    wanted  the number of objects in each image
    """

    images: NDArray[np.int64]
    right: NDArray[np.bool_]
    wanted: NDArray[np.float64]


def average_precision(rows: Rows, thresholds: int = len(THRESHOLDS)) -> Influence:
    """The mean over classes and over the first thresholds. An image's influence is the metric's
    derivative by the image's weight; classes without objects are left out."""
    found = [_value_with_pulls(ranked) for ranked in _ranked(rows, thresholds)]
    if not found:
        raise BadInput("the data has nothing to find: no image has a box that counts")
    influence = np.mean([one for _, one in found], axis=0) * len(rows)
    wanted = float(np.count_nonzero(_wanted(rows).sum(axis=1)))
    return Influence(float(np.mean([value for value, _ in found])), influence, wanted)


at_half = partial(average_precision, thresholds=1)


def of_each(rows: Rows, thresholds: int = len(THRESHOLDS)) -> Rows:
    """The average precision of each image alone; 1 for an image without objects and without
    detections."""
    return np.array([_alone(row[None], thresholds) for row in rows])


each_at_half = partial(of_each, thresholds=1)


def of_class(rows: Rows, place: int) -> Rows:
    """The same rows, with the objects of all other classes removed."""
    kept = rows.copy()
    kept[:, 1 : 1 + int(rows[0, 0])] = 0
    kept[:, 1 + place] = rows[:, 1 + place]
    return kept


def precision_curve(rows: Rows, place: int, points: int = 21) -> tuple[tuple[float, float], ...]:
    """The precision of one class at several recalls, at the first threshold."""
    ranked = next(_ranked(of_class(rows, place), 1), None)
    if ranked is None or not len(ranked.right):
        return ()
    right = np.cumsum(ranked.right)
    highest = np.maximum.accumulate((right / np.arange(1, len(right) + 1))[::-1])[::-1]
    shares = right / ranked.wanted.sum()
    wanted = np.linspace(0, 1, points)
    places = np.searchsorted(shares, wanted, side="left")
    known = [
        (float(s), float(highest[p])) for s, p in zip(wanted, places, strict=True) if p < len(right)
    ]
    return tuple(known)


def _alone(row: Rows, thresholds: int) -> float:
    values = [_value(ranked) for ranked in _ranked(row, thresholds)]
    if values:
        return float(np.mean(values))
    return float(not np.isfinite(row[0, 1 + int(row[0, 0]) :]).any())


def _wanted(rows: Rows) -> Rows:
    return rows[:, 1 : 1 + int(rows[0, 0])]


def _ranked(rows: Rows, thresholds: int) -> Iterator[_Ranked]:
    """The ranked detections of every class with objects, at each threshold."""
    wanted = _wanted(rows)
    answers = rows[:, 1 + wanted.shape[1] :].reshape(len(rows), -1, WIDTH)
    images, places = np.nonzero(np.isfinite(answers[:, :, 0]))
    classes, scores, marks = answers[images, places].T
    order = np.argsort(-scores, kind="stable")
    images, classes, marks = images[order], classes[order], marks[order].astype(np.int64)
    for number in np.flatnonzero(wanted.sum(axis=0)):
        own = np.flatnonzero(classes == number)
        for threshold in range(thresholds):
            right = (marks[own] >> threshold & 1).astype(bool)
            counts = ~(marks[own] >> (threshold + len(THRESHOLDS)) & 1).astype(bool)
            yield _Ranked(images[own][counts], right[counts], wanted[:, number])


def _value(ranked: _Ranked) -> float:
    """The mean precision at 101 recalls; precision never falls as recall does."""
    right = np.cumsum(ranked.right)
    if not len(right):
        return 0.0
    precision = right / np.arange(1, len(right) + 1)
    highest = np.maximum.accumulate(precision[::-1])[::-1]
    places = np.searchsorted(right / ranked.wanted.sum(), _RECALLS, side="left")
    return float(np.concatenate([highest, [0.0]])[np.minimum(places, len(right))].mean())


def _value_with_pulls(ranked: _Ranked) -> tuple[float, Rows]:
    """The value, and its derivative by the weight of each image.

    The value is close to the mean precision over the objects found: each object found counts with
    the highest precision at or below its rank, which every detection above that rank changes.
    """
    images, is_right, wanted = ranked
    total = wanted.sum()
    gained = np.zeros(len(wanted))
    if not len(is_right):
        return 0.0, gained
    ranks = np.arange(1, len(is_right) + 1)
    precision = np.cumsum(is_right) / ranks
    highest = np.maximum.accumulate(precision[::-1])[::-1]
    # the place of the highest precision at or below each place, and how many objects count with it
    stands = np.minimum.accumulate(np.where(precision == highest, ranks - 1, len(ranks))[::-1])[
        ::-1
    ]
    readers = np.bincount(stands[is_right], minlength=len(ranks)).astype(np.float64)
    by_right = np.cumsum((readers / ranks)[::-1])[::-1]
    by_any = np.cumsum((readers * precision / ranks)[::-1])[::-1]
    own = np.where(is_right, highest + by_right, 0.0) - by_any
    np.add.at(gained, images, own / total)
    area = float(highest[is_right].sum() / total)
    gained -= area * wanted / total
    return _value(ranked), gained - gained.mean()
