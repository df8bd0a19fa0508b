"""Guesses the normalisation and the label offset of a model, where the user states neither."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from litesmith.anatomy.footprint import op_macs
from litesmith.data.answers import Answering, main_session
from litesmith.data.images import Picture, channel_axis, picture
from litesmith.data.preparation import NORMS, Norm, Preparation, normalize
from litesmith.data.samples import Sample
from litesmith.errors import CannotRun
from litesmith.ir.ops import OPS
from litesmith.ir.softmax_scores import softmax_of
from litesmith.ir.types import Array, Model, Tensor
from litesmith.phrases import phrase
from litesmith.run.session import Session
from litesmith.tflite.read_metadata import metadata
from litesmith.units import number_text, percent_text

# How many samples a guess looks at, and how many MACs it may compute: about two seconds of one
# core.
MOST_TRIED, _LEAST_TRIED, _MOST_MACS = 32, 8, 100e9

# The number of output values to look at; a segmentation has millions, which all say the same.
_MOST_VALUES = 100_000

# Shifting an image by this share of its width should hardly change the answer.
_SHIFT = 0.01

# The leads of the best normalisation over the next from which it counts as certain.
_CLEARLY = 1.2  # in information, as a factor
_CLEARLY_RIGHT = 0.15  # as a share of the labels
_CLEARLY_TOLD = 0.25  # and at least this share of the information that classes can carry

# Normalisations this close to the best are level with it: the most common of them is taken.
_LEVEL = 0.85

# Ranges that differ by less than this share of their width are the same.
_SAME_RANGE = 0.03

NOT_SURE = phrase(", which is not sure")

_BYTES = {"uint8": 0, "int8": 128}  # the number that turns a stored value into a pixel


class Choice(NamedTuple):
    """A complete preparation, and notes on the decisions made for the user."""

    preparation: Preparation
    notes: tuple[str, ...] = ()


class TriedItems(NamedTuple):
    """A few items for a guess: the pixels of each without a batch dimension, and their classes if
    known."""

    pixels: Sequence[Array]
    classes: Array | None


def class_count(model: Model) -> int | None:
    """The number of classes that the first output distinguishes; None where it is no list of
    scores."""
    shape = model.main.outputs[0].shape if model.main.outputs else ()
    first = model.main.inputs[0].shape if model.main.inputs else ()
    rows = first[0] if first else 1
    if len(shape) < 2 or shape[-1] < 2:
        return None
    return shape[-1] if np.prod(shape[:-1], dtype=np.int64) in (1, rows) else None


def from_model(model: Model, place: int) -> Choice | None:
    """The normalisation that the model itself states for one of its inputs."""
    described = metadata(model)
    notes = (described.problem,) if described.problem else ()
    norm = described.inputs[place] if place < len(described.inputs) else None
    if norm is not None:
        made = Preparation(norm.mean, norm.std)
        text = phrase("normalisation {formula}: from the model's metadata", made.as_norm().formula)
        return Choice(made, (*notes, text))
    tensor = model.main.inputs[place]
    if tensor.quant is not None and tensor.dtype in _BYTES and tensor.quant.scale.size == 1:
        zero = float(tensor.quant.zero_point[0]) + _BYTES[tensor.dtype]
        made = Preparation((zero,), (1 / float(tensor.quant.scale[0]),))
        text = phrase(
            "pixels go into the {dtype} input as they are: its own scale says so", tensor.dtype
        )
        return Choice(made, (*notes, text))
    name = _by_range(model, tensor)
    if name:
        text = phrase(
            "normalisation {name} ({formula}): the range of its first scale says so",
            name,
            NORMS[name].formula,
        )
        return Choice(Preparation(norm=name), (*notes, text))
    return Choice(Preparation(), notes) if notes else None


def _by_range(model: Model, tensor: Tensor) -> str:
    """The only normalisation that fills the range in which the model quantizes a float input; ""
    where none does."""
    readers = [op for op in model.main.ops if tensor in op.inputs]
    if [op.kind for op in readers] != ["QUANTIZE"]:
        return ""
    taken = readers[0].outputs[0]
    if taken.quant is None or taken.dtype not in _BYTES or taken.quant.scale.size != 1:
        return ""
    zero = float(taken.quant.zero_point[0]) + _BYTES[taken.dtype]
    span = np.array([0 - zero, 255 - zero]) * float(taken.quant.scale[0])
    fits = [
        n
        for n, norm in NORMS.items()
        if np.abs(span - _pixels(norm)).max() < _SAME_RANGE * np.ptp(span)
    ]
    return fits[0] if len(fits) == 1 else ""


def _pixels(norm: Norm) -> Array:
    """The values of the darkest and the brightest pixel after normalisation."""
    ends = (np.array([[0.0], [255.0]]) - norm.mean) / norm.std
    return np.array([ends.min(), ends.max()])


def guess(model: Model, tried: TriedItems, offsets: Sequence[int]) -> Choice:
    """Chooses the normalisation under which the model does best on a few images."""
    tensor = model.main.inputs[0]
    wanted = picture(tensor)
    if len(model.main.inputs) > 1 or wanted is None or not tried.pixels:
        return _unsure("raw", phrase("nothing says how to scale the pixels"))
    try:
        with _session(model) as session:
            outputs = {n: _outputs(session, model, n, tried.pixels) for n in norms_to_try(wanted)}
            if tried.classes is not None:
                scores = {n: _score_norm(y, tried.classes, offsets) for n, y in outputs.items()}
                if max(scores.values())[0] > _by_chance(tried.classes):
                    return _choose_by_labels(scores, len(tried.pixels))
            return _choose_without_labels(session, model, outputs, tried.pixels)
    except CannotRun as error:
        return _unsure("tf", phrase("the model could not be tried ({error})", error))


def tried_count(model: Model) -> int:
    """The number of images that a guess may look at for a model of this size."""
    macs = sum(op_macs(op) or 0 for op in model.main.ops)
    affordable = int(_MOST_MACS / (len(NORMS) * max(macs, 1)))
    return min(MOST_TRIED, max(_LEAST_TRIED, affordable))


def right_offset(model: Model, samples: Iterable[Sample], classes: Array) -> tuple[int, bool]:
    """The label offset, 0 or 1, that makes more labels right, and whether by more than one label. A
    tie gives 1, the offset that was suspected.
    """
    try:
        with _session(model) as session:
            outputs = first_outputs(session, samples)
    except CannotRun:
        return 1, False
    best = outputs.argmax(axis=1)
    plain, raised = (int((best == classes[: len(best)] + offset).sum()) for offset in (0, 1))
    return int(raised >= plain), abs(plain - raised) > 1


def possible_offsets(model: Model, classes: Array | None) -> tuple[int, ...]:
    """The possible label offsets: two where the model has one class more than the labels need."""
    count = class_count(model)
    if classes is None or count is None or not classes.size or int(classes.min()) < 0:
        return (0,)
    needed = int(classes.max()) + 1
    # ImageNet with a background class; a folder may hold only some of the classes.
    has_background = needed + 1 == count or (count == 1001 and needed <= 1000)
    return (0, 1) if has_background else (0,)


def first_outputs(session: Session, samples: Iterable[Sample]) -> Array:
    """The first output of each sample's first row, as real numbers: shape (samples, values)."""
    answering = Answering(session)
    rows: list[Array] = []
    for sample in samples:
        real = np.atleast_1d(answering(sample)[0])
        rows.append(real[:1].reshape(-1)[:_MOST_VALUES].astype(np.float64))
    least = min(map(len, rows))  # images of different sizes may have outputs of different sizes
    return np.stack([row[:least] for row in rows])


def _session(model: Model) -> Session:
    return main_session(model, f"cpu:{min(4, os.cpu_count() or 1)}")


def norms_to_try(wanted: Picture) -> list[str]:
    """The normalisations to try, most common first."""
    names = ("tf", "unit", "torch", "raw")
    return [n for n in names if wanted.channels == 3 or len(NORMS[n].mean) == 1]


def _outputs(session: Session, model: Model, name: str, pixels: Iterable[Array]) -> Array:
    return first_outputs(session, normalized_samples(model, name, pixels))


def normalized_samples(model: Model, name: str, pixels: Iterable[Array]) -> Iterator[Sample]:
    """Yields each item under a normalisation, repeated to fill the model's batch."""
    tensor = model.main.inputs[0]
    for one in pixels:
        item = normalize(one, NORMS[name], channel_axis(tensor))
        is_batch = item.ndim == len(tensor.shape)
        yield Sample((item if is_batch else np.repeat(item[None], max(1, tensor.shape[0]), 0),))


def _score_norm(outputs: Array, classes: Array, offsets: Sequence[int]) -> tuple[float, float]:
    """The share of right labels, and the mean probability of the right class."""
    chances = _as_chances(outputs)
    right = [np.clip(classes + offset, 0, outputs.shape[1] - 1) for offset in offsets]
    rows, best = np.arange(len(outputs)), outputs.argmax(axis=1)
    accuracy = max(float(np.mean(np.equal(best, classes + offset))) for offset in offsets)
    return accuracy, max(float(chances[rows, r].mean()) for r in right)


def _by_chance(classes: Array) -> float:
    """The share of labels that a model may get right without knowing what they mean."""
    most = float(np.unique(classes, return_counts=True)[1].max() / len(classes))
    return most + 2 * np.sqrt(most * (1 - most) / len(classes))


def _as_chances(outputs: Array) -> Array:
    """Scores as probabilities: shape (samples, classes)."""
    if outputs.min() >= 0 and np.allclose(outputs.sum(axis=1), 1, atol=0.05):
        return outputs
    raised = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def _choose_by_labels(scores: dict[str, tuple[float, float]], count: int) -> Choice:
    """Chooses the most accurate normalisation; among those within one sample of it, the most
    confident one.
    """
    near = max(scores.values())[0] - 1.5 / count
    order = sorted(scores, key=lambda n: (scores[n][0] < near, -scores[n][1]))
    name, following = order[0], max(order[1:], key=lambda n: scores[n])
    is_sure = scores[name][0] - scores[following][0] > _CLEARLY_RIGHT
    note = phrase(
        "normalisation {name} ({formula}) guessed{sure}: {share} of {count} labelled "
        "samples right, next best {following} {share2}; to pin it: --norm {name}",
        name,
        NORMS[name].formula,
        "" if is_sure else NOT_SURE,
        percent_text(scores[name][0]),
        count,
        following,
        percent_text(scores[following][0]),
    )
    return Choice(Preparation(norm=name), (note,))


def _choose_without_labels(
    session: Session, model: Model, outputs: dict[str, Array], pixels: Sequence[Array]
) -> Choice:
    """Chooses without labels: a trained model distinguishes images, and answers an image and its
    shifted twin alike."""
    scores = class_count(model) is not None and _are_scores(model)
    width = -1 if channel_axis(model.main.inputs[0]) == -3 else -2
    names = list(outputs) if scores else ["tf", "unit"]
    twins = [np.flip(p, width) if scores else _shift(p, width) for p in pixels]
    judge = _shared_information if scores else _steadiness
    found = {n: judge(outputs[n], _outputs(session, model, n, twins)) for n in names}
    level = _LEVEL * max(found.values())
    best = next(n for n in names if found[n] >= level)
    following = max((n for n in names if n != best), key=lambda n: found[n])
    ratio = found[best] / max(found[following], 1e-12)
    share_of_possible = found[best] / np.log(min(len(pixels), outputs[best].shape[1]) + 1e-12)
    is_sure = scores and ratio > _CLEARLY and share_of_possible > _CLEARLY_TOLD
    note = phrase(
        "normalisation {name} ({formula}) guessed{sure}: from how well {count} images and "
        "their {twins} agree, {score} (next {following} {score2}); "
        "to pin it: --norm {name}",
        best,
        NORMS[best].formula,
        "" if is_sure else NOT_SURE,
        len(pixels),
        phrase("mirror images") if scores else phrase("shifted copies"),
        number_text(round(found[best], 2)),
        following,
        number_text(round(found[following], 2)),
    )
    return Choice(Preparation(norm=best), (note,))


def _are_scores(model: Model) -> bool:
    """True where the first output is a softmax, possibly reshaped or quantized afterwards."""
    op = softmax_of(model.main, model.main.outputs[0])
    return op is not None and not OPS[op.kind].is_logarithm


def _shift(pixels: Array, axis: int) -> Array:
    return np.roll(pixels, max(1, round(_SHIFT * pixels.shape[axis])), axis)


def _shared_information(outputs: Array, twins: Array) -> float:
    """The information that an image's class gives about its twin's, in nats: high where answers are
    confident, differ between images and agree between twins.
    """
    joint = outputs.T @ twins
    joint = (joint + joint.T) / max(joint.sum() * 2, 1e-12)
    alone = joint.sum(axis=1)
    expected = np.outer(alone, alone)
    used = (joint > 0) & (expected > 0)
    return float((joint[used] * np.log(joint[used] / expected[used])).sum())


def _steadiness(outputs: Array, twins: Array) -> float:
    """The ratio of the distance between two images to the distance between an image and its
    twin."""
    apart = np.square(outputs - outputs.mean(axis=0)).mean()
    return float(apart / max(np.square(outputs - twins).mean(), 1e-12))


def _unsure(name: str, why: str) -> Choice:
    note = phrase(
        "normalisation {name} ({formula}) assumed: {why}; set it with --norm",
        name,
        NORMS[name].formula,
        why,
    )
    return Choice(Preparation(norm=name), (note,))


def with_norm(given: Preparation, choice: Preparation) -> Preparation:
    """The given preparation with the chosen normalisation."""
    return replace(given, mean=choice.mean, std=choice.std, norm=choice.norm)
