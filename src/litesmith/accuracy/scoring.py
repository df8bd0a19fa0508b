"""From one sample to the statistics of a metric, and from their means to its value.

The highest score chooses the class. Where several classes share it, each counts in part, as if one
were drawn at random: a model that scores everything equally knows nothing, whichever class comes
first.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.accuracy.paired import Influence, Rows
from litesmith.data.answers import Outputs
from litesmith.errors import BadInput
from litesmith.ir.types import Array
from litesmith.phrases import phrase

# Float32 cannot distinguish a higher ratio of powers from equality.
MOST_DB = 200.0

# The label of ignored pixels in the PASCAL VOC and Cityscapes sets.
_IGNORED = 255


class ScoredSample(NamedTuple):
    """One sample as a metric sees it: the outputs as real numbers, rows first."""

    outputs: Outputs
    label: Array | None
    reference: Outputs | None = None
    name: str = ""
    inputs: Outputs = ()


# From means to the metric. A metric with `first` is a plain mean.


def first(means: Rows) -> Rows:
    return means[..., 0]


def ratio(means: Rows) -> Rows:
    """The first mean divided by the second; 0 where the second is 0."""
    counted, there = means[..., 0], means[..., 1]
    return np.divide(counted, there, out=np.zeros_like(counted), where=there > 0)


def root(means: Rows) -> Rows:
    return np.sqrt(means[..., 0])


def mean_iou(means: Rows) -> Rows:
    """Mean IoU from the means of each class's intersection, union and labelled area; classes
    without labels are left out."""
    both, either, wanted = np.split(means, 3, axis=-1)
    seen = wanted > 0
    shares = np.divide(both, either, out=np.zeros_like(both), where=seen)
    return shares.sum(axis=-1) / np.maximum(seen.sum(axis=-1), 1)


def decibels(means: Rows) -> Rows:
    """The SNR from the means of each output's power and its error's power, for the worst output."""
    signal, noise = np.split(means, 2, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = 10 * np.log10(signal / noise)
    ratios = np.where(noise > 0, ratios, MOST_DB)
    return np.clip(ratios, -MOST_DB, MOST_DB).min(axis=-1)


# From a sample to statistics.


def _among_top(case: ScoredSample, most: int) -> Rows:
    """1 where fewer than `most` classes score above the label's class; in part for a tie."""
    labels = _class_labels(case)
    chosen = _class_column(case.outputs, len(labels))
    if chosen is not None:
        if most > 1:
            raise BadInput("the model answers with one class, not with scores; use the metric top1")
        return _column(chosen == labels)
    scores = _scores(case, len(labels))
    classes = int(scores.shape[1])
    if labels.min(initial=0) < 0 or labels.max(initial=0) >= classes:
        wrong = labels[(labels < 0) | (labels >= classes)][0]
        raise BadInput(
            "sample {name!r} has the label {wrong}; the model has the classes 0 to "
            "{classes}; do they belong together, and is the label offset right?",
            case.name,
            wrong,
            classes - 1,
        )
    return credit(scores, labels, most)[:, None]


def credit(scores: Array, labels: Array, most: int = 1) -> Rows:
    """The probability that each label is among the `most` highest scores of its row, where ties are
    broken at random; 0 where a score is NaN."""
    own = scores[np.arange(len(labels)), labels][:, None]
    before = np.greater(scores, own).sum(axis=1)
    tied = np.equal(scores, own).sum(axis=1)
    known = ~np.isnan(scores).any(axis=1)
    return np.where(known, np.clip((most - before) / np.maximum(tied, 1), 0, 1), 0.0)


def ties(case: ScoredSample) -> Rows:
    """1 for each row where several classes share the highest score; nothing where there are no
    scores."""
    rows = 0 if case.label is None else len(case.label)
    if not rows or _class_column(case.outputs, rows) is not None:
        return np.zeros((0, 1))
    scores = _scores(case, rows)
    at_top = np.equal(scores, scores.max(axis=1, keepdims=True)).sum(axis=1)
    return _column(at_top > 1)


top1, top5 = partial(_among_top, most=1), partial(_among_top, most=5)


def miou(case: ScoredSample) -> Rows:
    labels = _label(case)
    if labels.dtype.kind not in "iub":
        raise BadInput("miou needs integer class maps as labels; they are {dtype}", labels.dtype)
    chosen, classes = _class_map(case)
    if labels.ndim == chosen.ndim + 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    if labels.shape != chosen.shape:
        raise BadInput(
            "sample {name!r} has a class map of shape {shape}; the model answers with "
            "{shape2}: give labels of that size",
            case.name,
            labels.shape,
            chosen.shape,
        )
    labels = labels.astype(np.int64)
    counts = (labels >= 0) & (labels != _IGNORED)
    if int(labels[counts].max(initial=0)) >= classes:
        raise BadInput(
            "sample {name!r} has the label {max}; the model has the classes 0 to {classes}, "
            "and only {ignored} and negative labels do not count",
            case.name,
            labels[counts].max(),
            classes - 1,
            _IGNORED,
        )
    images = zip(chosen, labels, counts, strict=True)
    return np.stack([_overlap(c[n], t[n], classes) for c, t, n in images])


def _overlap(chosen: Array, labels: Array, classes: int) -> Rows:
    """Intersections, unions and labels by class; a chosen class of −1 means none."""
    both = np.bincount(labels[chosen == labels], minlength=classes)
    wanted = np.bincount(labels, minlength=classes)
    either = wanted - both + np.bincount(chosen[chosen >= 0], minlength=classes)
    return np.concatenate([both, either, wanted]).astype(np.float64)


def _class_map(case: ScoredSample) -> tuple[NDArray[np.int64], int]:
    """The class of every pixel and the number of classes: the highest score of (rows, h, w,
    classes), a score above one half of (rows, h, w, 1), integers (rows, h, w) as they are."""
    for output in filter(np.size, case.outputs):
        if output.ndim == 3 and output.dtype.kind in "iub":
            return output.astype(np.int64), _IGNORED + 1
        if output.ndim == 4 and output.shape[-1] == 1:
            chosen = (output[..., 0] > 0.5).astype(np.int64)
            return np.where(np.isnan(output[..., 0]), -1, chosen), 2
        if output.ndim == 4:
            return _chosen(output), output.shape[-1]
    raise BadInput(
        "miou needs an output (rows, height, width, classes); {shapes}", _shapes(case.outputs)
    )


def auc(case: ScoredSample) -> Rows:
    """The score of the positive class with the label; NaN counts as worst."""
    labels = _class_labels(case)
    if not np.isin(labels, (0, 1)).all():
        wrong = labels[~np.isin(labels, (0, 1))][0]
        raise BadInput("auc needs labels 0 and 1; sample {name!r} has {wrong}", case.name, wrong)
    fitting = [one for one in case.outputs if one.size in (len(labels), 2 * len(labels))]
    columns = [one.reshape(len(labels), -1).astype(np.float64) for one in fitting]
    if not columns:
        raise BadInput(
            "auc needs an output with one or two scores; {shapes}", _shapes(case.outputs)
        )
    scores = columns[0][:, -1] - (columns[0][:, 0] if columns[0].shape[1] == 2 else 0.0)
    scores = np.where(np.isnan(scores), np.where(labels == 1, -np.inf, np.inf), scores)
    return np.stack([scores, labels.astype(np.float64)], axis=1)


def anomaly(case: ScoredSample) -> Rows:
    """The reconstruction error of an autoencoder with the label, where 1 means unusual."""
    labels = _class_labels(case)
    for given in case.inputs:
        for output in case.outputs:
            is_like = output.size == given.size and not output.size % len(labels)
            if is_like and output.dtype.kind == "f":
                off = np.square(output.reshape(len(labels), -1) - given.reshape(len(labels), -1))
                return auc(case._replace(outputs=(off.mean(axis=1, keepdims=True),)))
    return auc(case)  # the output is a score already


def labels_f1(case: ScoredSample) -> Rows:
    """For rows with any number of labels: twice the right labels, with the sum of predicted and
    true ones. A score above one half predicts a label; scores outside 0 to 1 are taken for logits.
    """
    labels = _label(case)
    flat = labels.reshape(len(labels), -1)
    if not np.isin(flat, (0, 1)).all():
        raise BadInput(
            "labels_f1 needs labels of zeros and ones; sample {name!r} has none", case.name
        )
    for output in case.outputs:
        if output.size == flat.size and output.dtype.kind == "f":
            scores = output.reshape(flat.shape)
            is_logit = bool((scores < 0).any() or (scores > 1).any())
            predicted = scores > (0.0 if is_logit else 0.5)
            right = (predicted & (flat == 1)).sum(axis=1)
            return np.stack([2.0 * right, predicted.sum(axis=1) + flat.sum(axis=1)], axis=1)
    raise BadInput(
        "no output has a score for each of {count} labels; {shapes}",
        flat.shape[1],
        _shapes(case.outputs),
    )


def embedding_rows(case: ScoredSample) -> Rows:
    """The class of each row with the model's embedding, scaled to length 1."""
    labels = _class_labels(case)
    first = case.outputs[0]
    if not first.size or first.size % len(labels):
        raise BadInput("{shapes}; the first has no row for each label", _shapes(case.outputs))
    values = first.reshape(len(labels), -1).astype(np.float64)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    values = np.nan_to_num(np.divide(values, lengths, out=np.zeros_like(values), where=lengths > 0))
    return np.concatenate([labels[:, None].astype(np.float64), values], axis=1)


def auc_influence(rows: Rows) -> Influence:
    """DeLong's components: for each score, the share of the other class that it is ranked correctly
    against."""
    scores, positive = rows[:, 0], rows[:, 1] == 1
    high, low = np.sort(scores[positive]), np.sort(scores[~positive])
    if not len(high) or not len(low):
        missing = (
            phrase("there is no negative one") if len(high) else phrase("there is no positive one")
        )
        raise BadInput("auc needs samples of both classes; {missing}", missing)
    right = np.empty(len(rows))
    right[positive] = _below(low, scores[positive])
    right[~positive] = 1 - _below(high, scores[~positive])
    value = float(right[positive].mean())
    weights = np.where(positive, len(rows) / len(high), len(rows) / len(low))
    return Influence(value, (right - value) * weights, min(len(high), len(low)))


def _below(ordered: Rows, scores: Rows) -> Rows:
    """The share of the ordered scores below each score; equal ones count half."""
    left, right = (np.searchsorted(ordered, scores, side) for side in ("left", "right"))
    return (left + right) / (2 * len(ordered))


def mae(case: ScoredSample) -> Rows:
    return np.abs(_errors(case)).mean(axis=1, keepdims=True)


def rmse(case: ScoredSample) -> Rows:
    return np.square(_errors(case)).mean(axis=1, keepdims=True)


def _errors(case: ScoredSample) -> Rows:
    """Output minus label; NaN counts as infinitely far."""
    label = _label(case)
    wanted = label.reshape(len(label), -1).astype(np.float64)
    for output in case.outputs:
        if output.size == wanted.size:
            found = output.reshape(wanted.shape).astype(np.float64) - wanted
            return np.where(np.isnan(found), np.inf, found)
    raise BadInput(
        "sample {name!r} has a label of shape {shape}; {shapes}",
        case.name,
        label.shape,
        _shapes(case.outputs),
    )


def cosine(case: ScoredSample) -> Rows:
    """The cosine of the output that has changed most; 0 where one side is NaN or zero and the other
    is not.
    """
    found = [_row_cosine(a, b) for a, b in _pairs(case)]
    return np.min(found, axis=0)[:, None]


def _row_cosine(a: Rows, b: Rows) -> Rows:
    lengths = np.sqrt(np.square(a).sum(axis=1) * np.square(b).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines = (a * b).sum(axis=1) / lengths
    equal = (a == b).all(axis=1)
    return np.where(equal, 1.0, np.clip(np.nan_to_num(cosines, nan=0.0), -1.0, 1.0))


def snr(case: ScoredSample) -> Rows:
    """The power of each output of the reference, and of the difference from it."""
    pairs = _pairs(case)
    signals = [np.square(b).sum(axis=1) for _, b in pairs]
    noises = [np.nan_to_num(np.square(a - b).sum(axis=1), nan=np.inf) for a, b in pairs]
    return np.stack([*signals, *noises], axis=1)


def agreement(case: ScoredSample) -> Rows:
    """The share of a row's classes (one in all, or one per pixel) that equal the reference's."""
    assert case.reference is not None
    for output, reference in zip(case.outputs, case.reference, strict=False):
        if output.ndim >= 2 and output.size and output.shape == reference.shape:
            if output.dtype.kind in "iub":
                same = (output == reference).reshape(len(output), -1)
            elif output.shape[-1] >= 2:
                same = _same_choice(output, reference).reshape(len(output), -1)
            else:
                continue
            return same.mean(axis=1, keepdims=True)
    raise BadInput(
        "agreement needs an output with scores of classes; {shapes}", _shapes(case.outputs)
    )


def _same_choice(scores: Array, reference: Array) -> Rows:
    """1 where both have their highest scores in the same classes, less where one has more of them;
    0 at NaN."""
    tops = [np.equal(s, s.max(axis=-1, keepdims=True)) for s in (scores, reference)]
    both = (tops[0] & tops[1]).sum(axis=-1)
    most = np.maximum(*(top.sum(axis=-1) for top in tops))
    return both / np.maximum(most, 1)


def _pairs(case: ScoredSample) -> list[tuple[Rows, Rows]]:
    """Outputs beside those of the reference, (rows, values) each; a single row where the outputs
    differ in their number of rows.
    """
    assert case.reference is not None
    pairs = list(zip(case.outputs, case.reference, strict=False))
    different = [(a.shape, b.shape) for a, b in pairs if a.shape != b.shape]
    if different or len(case.outputs) != len(case.reference):
        raise BadInput(
            "the two models do not answer alike: {shapes}, and of the reference {shapes2}",
            _shapes(case.outputs),
            _shapes(case.reference),
        )
    numbers = [(a, b) for a, b in pairs if a.dtype.kind in "fiub" and a.size]
    if not numbers:
        raise BadInput("the models have no output of numbers to compare")
    counts = {len(a) if a.ndim > 1 else 1 for a, _ in numbers}
    rows = counts.pop() if len(counts) == 1 else 1
    return [(_flat(a, rows), _flat(b, rows)) for a, b in numbers]


def _flat(output: Array, rows: int) -> Rows:
    return output.reshape(rows, -1).astype(np.float64)


def _chosen(scores: Array) -> NDArray[np.int64]:
    """The class with the highest score along the last axis, the lowest of equals; −1 at NaN."""
    return np.where(np.isnan(scores).any(axis=-1), -1, scores.argmax(axis=-1))


def _scores(case: ScoredSample, rows: int) -> Array:
    """The first output that has several scores a row: (rows, classes)."""
    for output in case.outputs:
        is_list = output.ndim > 0 and output.dtype.kind == "f"
        if is_list and output.size == rows * output.shape[-1] > rows:
            return output.reshape(rows, -1)
    raise BadInput(
        "no output has scores of classes for {rows} rows; {shapes}", rows, _shapes(case.outputs)
    )


def _class_column(outputs: Outputs, rows: int) -> Array | None:
    """The class that a model chooses itself, where its first output is that."""
    first = outputs[0]
    return first.reshape(rows) if first.dtype.kind in "iub" and first.size == rows else None


def _label(case: ScoredSample) -> Array:
    if case.label is None:
        raise BadInput(
            "sample {name!r} has no label; give labels, or a reference to compare", case.name
        )
    if not case.label.ndim or not case.label.size:
        raise BadInput(
            "sample {name!r} has a label of shape {shape}, which has no row; give one for each row "
            "of the answer",
            case.name,
            case.label.shape,
        )
    return case.label


def _class_labels(case: ScoredSample) -> NDArray[np.int64]:
    label = _label(case)
    if label.dtype.kind not in "iub" or label.size != len(label):
        raise BadInput(
            "sample {name!r} has a label {dtype}{shape}; this metric needs one integer a row",
            case.name,
            label.dtype,
            label.shape,
        )
    return label.reshape(-1).astype(np.int64)


def _column(hits: Array) -> Rows:
    return hits.astype(np.float64)[:, None]


def _shapes(outputs: Outputs) -> str:
    return phrase("the outputs are {shape}", ", ".join(str(output.shape) for output in outputs))
