"""Boxes: their overlaps, and the choice of one among several that show the same object.

A box is (left, top, right, bottom) in shares of the image, so the size of the image need not be
known.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Boxes = NDArray[np.float64]  # (boxes, 4)

# Defaults: the overlap from which two boxes show the same object, and the least score of a
# detection.
SAME_THING, LEAST_SCORE = 0.5, 0.005

# The largest number of candidates of one class that are compared, the most confident first.
_MOST = 1000


class Detections(NamedTuple):
    """What a detector finds in an image, the most confident first.

    boxes    (n, 4)
    scores   (n,)
    classes  (n,) numbers of the model's classes
    """

    boxes: Boxes
    scores: NDArray[np.float64]
    classes: NDArray[np.int64]


def from_centres(boxes: Boxes) -> Boxes:
    """Boxes that are given by centre and size."""
    centres, sizes = boxes[..., :2], boxes[..., 2:4]
    return np.concatenate([centres - sizes / 2, centres + sizes / 2], axis=-1)


def overlaps(boxes: Boxes, others: Boxes, crowds: NDArray[np.bool_] | None = None) -> Boxes:
    """For every pair of boxes, the share of their union that both cover; where the other box is a
    crowd, the share of the box itself."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    both = np.maximum(high - low, 0.0).prod(axis=-1)
    own, theirs = areas(boxes)[:, None], areas(others)[None, :]
    either = own + theirs - both
    if crowds is not None:
        either = np.where(crowds[None, :], own, either)
    return np.divide(both, either, out=np.zeros_like(both), where=either > 0)


def areas(boxes: Boxes) -> NDArray[np.float64]:
    return np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0).prod(axis=-1)


def detections(
    boxes: Boxes, scores: NDArray[np.float64], same: float = SAME_THING, least: float = LEAST_SCORE
) -> Detections:
    """Selects detections from boxes with a score for each class (boxes, classes): boxes with a
    sufficient score, clipped to the image; of boxes of one class that overlap by `same` or more,
    the best."""
    boxes = np.clip(boxes, 0.0, 1.0)
    places, classes = np.nonzero(scores > least)  # NaN is above nothing
    sure = scores[places, classes]
    kept = [
        own[one]
        for number in np.unique(classes)
        for own in [_order_by_score(np.flatnonzero(classes == number), sure)]
        for one in _suppress(boxes[places[own]], same)
    ]
    order = np.array(kept, np.int64)
    order = order[np.argsort(-sure[order], kind="stable")]
    return Detections(boxes[places[order]], sure[order], classes[order])


def _order_by_score(some: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    return some[np.argsort(-scores[some], kind="stable")][:_MOST]


def _suppress(boxes: Boxes, same: float) -> list[int]:
    """The numbers of the boxes that overlap no better box by `same` or more."""
    near = overlaps(boxes, boxes) > same
    kept: list[int] = []
    free = np.ones(len(boxes), bool)
    for number in range(len(boxes)):
        if free[number]:
            kept.append(number)
            free &= ~near[number]
    return kept


def in_order(boxes: Boxes, scores: NDArray[np.float64], classes: NDArray[np.int64]) -> Detections:
    """The detections of a model that selects them itself, without those of too low a score."""
    known = (scores > LEAST_SCORE) & np.isfinite(boxes).all(axis=-1)
    order = np.flatnonzero(known)
    order = order[np.argsort(-scores[order], kind="stable")]
    return Detections(boxes[order], scores[order], classes[order])
