"""Labels: one for each item, and class numbers where they are these in another form."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from litesmith.errors import BadInput
from litesmith.ir.types import Array
from litesmith.phrases import phrase

# No model has more classes; a larger number stands for something else.
MOST_CLASSES = 2**31


class Labels(NamedTuple):
    """The class number of each item, or None where labels are something else, and what was done."""

    classes: Array | None = None
    notes: tuple[str, ...] = ()


def label_rows(labels: Array, count: int, source: str) -> Array:
    """One label for each item: shape (items, …)."""
    if labels.dtype.kind not in "biuf":
        raise BadInput("{source}: labels are {dtype}; give numbers", source, labels.dtype)
    if labels.ndim >= 2 and len(labels) != count and labels.shape[0] * labels.shape[1] == count:
        labels = labels.reshape(count, *labels.shape[2:])
    if labels.ndim == 0 or len(labels) != count:
        given = len(labels) if labels.ndim else 1
        raise BadInput(
            "{source}: {given} labels for {count} items; give one for each", source, given, count
        )
    return labels[:, 0] if labels.shape[1:] == (1,) and labels.dtype.kind in "iu" else labels


def split_label(label: Array, count: int, source: str) -> Array:
    """The same for what a generator gave beside the inputs."""
    if count == 1 and label.shape[:1] != (1,):
        label = label[None]
    return label_rows(label, count, source)


def joined_labels(labels: Sequence[Array]) -> Array | None:
    """Labels of a generator's items as one array; None where they are maps or differ in shape."""
    if not labels or labels[0].ndim > 1 or len({label.shape for label in labels}) > 1:
        return None
    return np.stack(labels)


def as_classes(every: Array | None) -> Labels:
    """Class numbers where every label is a whole number, or a row with a single one among zeros."""
    if every is None or every.ndim > 2:
        return Labels()
    if every.ndim == 2 and every.shape[1] == 1:
        every = every[:, 0]
    if every.ndim == 2:
        return _from_one_hot(every)
    if every.dtype.kind in "iu":
        return Labels(every.astype(np.int64))
    if every.dtype.kind != "f" or not ((every >= 0) & (every < MOST_CLASSES)).all():
        return Labels()
    if not (every == np.floor(every)).all():
        return Labels()
    told = phrase("labels are whole numbers stored as {dtype}, taken as class numbers", every.dtype)
    return Labels(every.astype(np.int64), (told,))


def _from_one_hot(labels: Array) -> Labels:
    if not np.isin(labels, (0, 1)).all() or not (labels.sum(axis=1) == 1).all():
        return Labels()
    told = phrase("labels are one-hot rows, taken as class numbers")
    return Labels(labels.argmax(axis=1).astype(np.int64), (told,))
