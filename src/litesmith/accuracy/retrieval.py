"""How often the nearest embedding is of the same class."""

import numpy as np

from litesmith.accuracy.paired import Influence, Rows
from litesmith.errors import BadInput

# The number of rows compared with all others at a time.
_AT_ONCE = 512


def nearest_of_same_class(rows: Rows) -> Rows:
    """For each row (class, embedding of length 1): 1 where the nearest other row has the same
    class; among equally near rows, the share that has."""
    classes, values = rows[:, 0], rows[:, 1:]
    right = np.zeros(len(rows))
    for start in range(0, len(rows), _AT_ONCE):
        own = np.arange(start, min(start + _AT_ONCE, len(rows)))
        near = values[own] @ values.T
        near[np.arange(len(own)), own] = -np.inf
        best = near == near.max(axis=1, keepdims=True)
        same = classes[own][:, None] == classes[None, :]
        right[own] = (best & same).sum(axis=1) / best.sum(axis=1)
    right[~values.any(axis=1)] = 0.0  # nothing is near NaN
    return right


def retrieval(rows: Rows) -> Influence:
    """The mean over rows whose class has another row; rows of other classes can only be found
    wrongly. A row found for another row counts for that other row alone."""
    if len(rows) < 2:
        raise BadInput("retrieval needs at least two samples")
    _, which, counts = np.unique(rows[:, 0], return_inverse=True, return_counts=True)
    has_other = counts[which] > 1
    if not has_other.any():
        raise BadInput("retrieval needs two samples of some class; each class has one alone")
    right = nearest_of_same_class(rows)
    mean = float(right[has_other].mean())
    moved = np.where(has_other, right - mean, 0.0) * (len(rows) / has_other.sum())
    return Influence(mean, moved, float(has_other.sum()))
