"""How often what a model finds nearest is of the same class: a measure of embeddings."""

import numpy as np

from litesmith.accuracy.paired import Influence, Rows
from litesmith.errors import BadInput

# Rows that are compared with all others at a time.
_AT_ONCE = 512


def found(rows: Rows) -> Rows:
    """Of each row (class, embedding of length 1), 1 where the nearest other has its class; of
    several that are as near, their share."""
    classes, values = rows[:, 0], rows[:, 1:]
    right = np.zeros(len(rows))
    for start in range(0, len(rows), _AT_ONCE):
        own = np.arange(start, min(start + _AT_ONCE, len(rows)))
        near = values[own] @ values.T
        near[np.arange(len(own)), own] = -np.inf
        best = near == near.max(axis=1, keepdims=True)
        same = classes[own][:, None] == classes[None, :]
        right[own] = (best & same).sum(axis=1) / best.sum(axis=1)
    right[~values.any(axis=1)] = 0.0  # of what is NaN nothing is near
    return right


def retrieval(rows: Rows) -> Influence:
    """The mean of that over the rows whose class has another one; the rest are only found wrongly.
    A row that is found for another counts for that other alone."""
    if len(rows) < 2:
        raise BadInput("retrieval needs at least two samples")
    _, which, counts = np.unique(rows[:, 0], return_inverse=True, return_counts=True)
    has_other = counts[which] > 1
    if not has_other.any():
        raise BadInput("retrieval needs two samples of some class; each class has one alone")
    right = found(rows)
    mean = float(right[has_other].mean())
    moved = np.where(has_other, right - mean, 0.0) * (len(rows) / has_other.sum())
    return Influence(mean, moved, float(has_other.sum()))
