"""Decides which answers of a detector are right: the matching of COCO, for any measure of
similarity.

The outcome of an image is a row of numbers, so that images can be added up in any order: the number
of classes, the number of objects of each, and for every answer its class, its score, and a bit for
each threshold at which it is right or ignored.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Likeness = NDArray[np.float64]  # (answers, things)
Flags = NDArray[np.bool_]
Row = NDArray[np.float64]

# The required similarities of an answer and an object.
THRESHOLDS = np.linspace(0.5, 0.95, 10)

# Numbers of an answer in a row.
WIDTH = 3

# A value below a threshold by rounding alone counts as reaching it.
_NEARLY = 1e-10


def match_answers(likeness: Likeness, ignored: Flags, crowds: Flags) -> tuple[Flags, Flags]:
    """At each threshold, which answers are right and which do not count: (thresholds, answers).

    Answers are given the most confident first; each takes the most similar object that no earlier
    answer has taken. A crowd can be taken any number of times. An answer that only fits an ignored
    object does not count.
    """
    shape = (len(THRESHOLDS), len(likeness))
    right, out = np.zeros(shape, bool), np.zeros(shape, bool)
    if not likeness.size:
        return right, out
    order = np.argsort(ignored, kind="stable")
    likeness, ignored, crowds = likeness[:, order], ignored[order], crowds[order]
    things = len(order)
    taken = np.zeros((len(THRESHOLDS), things), bool)
    bars = np.minimum(THRESHOLDS, 1 - _NEARLY)[:, None]
    for answer in np.flatnonzero(likeness.max(axis=1) >= THRESHOLDS[0]):
        open_things = (likeness[answer] >= bars) & ~(taken & ~crowds)
        counting = open_things & ~ignored
        usable = counting | (open_things & ~counting.any(axis=1, keepdims=True))
        values = np.where(usable, likeness[answer], -1.0)
        best = things - 1 - values[:, ::-1].argmax(axis=1)  # the last of equals
        found = usable.any(axis=1)
        right[found, answer] = True
        out[:, answer] = found & ignored[best]
        taken[found, best[found]] = True
    return right, out


def image_row(
    classes: int,
    things: NDArray[np.int64],
    counts: Flags,
    answers: NDArray[np.int64],
    scores: NDArray[np.float64],
    match: Callable[[NDArray[np.int64], NDArray[np.int64]], tuple[Flags, Flags]],
    most: int = 100,
) -> Row:
    """The outcome of an image: (1, 1 + classes + 3 · answers).

    things   the class of every object; objects that do not `count` are ignored
    answers  the class of each answer, best first; `most` of a class are considered
    match    for the numbers of answers and things of one class, the result of `match_answers`
    """
    found = [np.bincount(things[counts], minlength=classes)[:classes].astype(np.float64)]
    bits = 1 << np.arange(len(THRESHOLDS), dtype=np.int64)
    for number in np.unique(answers):
        own = np.flatnonzero(answers == number)[:most]
        right, out = match(own, np.flatnonzero(things == number))
        marks = bits @ right + (bits @ out << len(THRESHOLDS))
        outcomes = np.stack([np.full(len(own), number), scores[own], marks], axis=1)
        found.append(outcomes.astype(np.float64).reshape(-1))
    return np.concatenate([[float(classes)], *found])[None]
