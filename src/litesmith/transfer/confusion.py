"""Which classes a classifier confuses: counts for every pair of classes, and its worst mistakes."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from PIL import Image

from litesmith.accuracy.metrics import METRICS, value_of
from litesmith.accuracy.paired import Estimate, Groups
from litesmith.accuracy.scoring import credit
from litesmith.data.answers import outputs_of
from litesmith.data.audio import rate_of, waveform
from litesmith.data.groups import number_groups
from litesmith.data.images import Picture, picture
from litesmith.data.sample_splits import row_groups
from litesmith.data.samples import Sample, are_pixels
from litesmith.ir.types import Array
from litesmith.run.session import Source
from litesmith.tasks.sound import USUAL_BANDS, Features, compute_features
from litesmith.tasks.task import Words
from litesmith.transfer.head import Tell, answer_rows
from litesmith.transfer.labelled_data import Labelled

MOST_MISTAKES = 24

_THUMB, _QUALITY = 112, 75

# The number of words of a text to leave out in turn.
_MOST_WORDS = 60

# A softmax rounds smaller probabilities to 0, which has no logarithm.
_LEAST_CHANCE = 1e-7


class DecidingWord(NamedTuple):
    """A word of a text, and how much more probable it made the model's answer; below 0 where it
    made the answer less probable."""

    word: str
    weight: float


@dataclass(frozen=True)
class Mistake:
    """An item that the model put into a wrong class.

    confidence  the probability that the model gave to its answer
    words       the words of a text, each with its effect
    thumbnail   a small JPEG as base64, for a clip its spectrogram; "" for other items
    """

    name: str
    true: str
    said: str
    confidence: float
    thumbnail: str = ""
    words: tuple[DecidingWord, ...] = ()


@dataclass(frozen=True, eq=False)
class Confusion:
    """The answers of a classifier on data that it did not learn from.

    chances  the probability of each class: (items, classes)
    labels   the class of each item
    groups   the group of each item; None where every item is independent
    """

    names: tuple[str, ...]
    chances: Array
    labels: Array
    mistakes: tuple[Mistake, ...]
    groups: Groups = None

    @property
    def right(self) -> Array:
        """1 for every right answer; less where several classes are equally likely."""
        return credit(self.chances, self.labels)

    @property
    def losses(self) -> Array:
        """The log loss of each item."""
        own = self.chances[np.arange(len(self.labels)), self.labels]
        return -np.log(np.maximum(own, _LEAST_CHANCE))

    @property
    def value(self) -> Estimate:
        """The share of right answers, with its 95 % interval."""
        return value_of(METRICS["top1"], self.right[:, None], self.groups)

    @property
    def table(self) -> Array:
        """The number of items of each class (rows) for each answer (columns)."""
        count = len(self.names)
        flat = self.labels * count + self.chances.argmax(axis=1)
        return np.bincount(flat, minlength=count * count).reshape(count, count)

    def of_class(self, place: int) -> Estimate | None:
        """The share of right answers in one class; None where the class has no items."""
        is_own = self.labels == place
        own = self.right[is_own]
        groups = None if self.groups is None else number_groups(self.groups[is_own])
        return value_of(METRICS["top1"], own[:, None], groups) if len(own) else None


def confusion(model: Source, found: Labelled, tell: Tell | None = None) -> Confusion:
    """The answers of a model to all items of some data."""
    rows = answer_rows(model, found.data, tell)
    chances = rows.reshape(len(rows), -1).astype(np.float64)
    groups = row_groups(found.data, len(chances))
    mistakes = _with_words(model, found, _mistakes(found, chances))
    return Confusion(found.names, chances, found.labels, mistakes, groups)


def _mistakes(found: Labelled, chances: Array) -> tuple[Mistake, ...]:
    """The mistakes, most confident first."""
    said: list[int] = chances.argmax(axis=1).tolist()
    labels: list[int] = found.labels.tolist()
    sure = chances.max(axis=1)
    wrong = np.flatnonzero(np.not_equal(said, labels))
    order = sorted(wrong.tolist(), key=lambda row: (-sure[row], found.data.digests[row]))
    return tuple(
        Mistake(
            found.data.names[row],
            found.names[labels[row]],
            found.names[said[row]],
            float(sure[row]),
            _thumbnail(found, row),
        )
        for row in order[:MOST_MISTAKES]
    )


def _with_words(
    model: Source, found: Labelled, mistakes: tuple[Mistake, ...]
) -> tuple[Mistake, ...]:
    """The mistakes with the decisive words, where the items are texts."""
    words = found.data.rows.words
    if words is None or found.data.batch > 1:
        return mistakes
    places = {name: found.data.chosen[row] for row, name in enumerate(found.data.names)}
    return tuple(
        replace(one, words=_deciding_words(model, words, places[one.name], found.names, one.said))
        for one in mistakes
    )


def _deciding_words(
    model: Source, words: Words, place: int, names: Sequence[str], said: str
) -> tuple[DecidingWord, ...]:
    """The words with the largest effect: how much the probability of a class falls when each is
    left out.
    """
    text = words.texts[place].split()[:_MOST_WORDS]
    variants = [text, *(text[:n] + text[n + 1 :] for n in range(len(text)))]
    samples = [
        Sample(tuple(array[None] for array in words.arrays(" ".join(one)))) for one in variants
    ]
    answers = outputs_of([model], samples, lambda _, outputs: outputs[0][0].reshape(-1).copy())
    whole, *without = [float(row[names.index(said)]) for row in answers]
    return tuple(DecidingWord(word, whole - one) for word, one in zip(text, without, strict=True))


def _thumbnail(found: Labelled, row: int) -> str:
    """A small picture of an item, for a clip its spectrogram; "" for other items."""
    tensor = found.data.model.main.inputs[0]
    arrays, _ = found.data.rows.read(found.data.chosen[row])
    wanted = picture(tensor)
    if found.data.rows.averages:
        image = Image.fromarray(_spectrogram(arrays[0], found)).resize((_THUMB, _THUMB // 2))
    elif wanted is None or len(arrays) != 1 or not are_pixels(tensor, arrays[0]):
        return ""
    else:
        image = Image.fromarray(_upright(arrays[0], wanted))
    image.thumbnail((_THUMB, _THUMB))
    content = io.BytesIO()
    image.save(content, "JPEG", quality=_QUALITY)
    return base64.b64encode(content.getvalue()).decode()


def _spectrogram(values: Array, found: Labelled) -> Array:
    """The loudness of each pitch of a clip as grey: time runs to the right, high pitches are on
    top."""
    if waveform(found.data.model.main.inputs[0]):
        rate, _ = rate_of(found.data.model, found.data.preparation)
        loud = compute_features(
            values.reshape(-1).astype(np.float64), rate, Features("logmel", USUAL_BANDS)
        )
    else:
        loud = values.reshape([side for side in values.shape if side > 1])
    low, high = float(loud.min()), float(loud.max())
    shares = (loud - low) / max(high - low, 1e-6)
    return np.flip((255 * shares).astype(np.uint8).T, 0)


def _upright(pixels: Array, wanted: Picture) -> Array:
    """Height, width and colours in Pillow's order."""
    if wanted.channel_axis == -3:
        pixels = pixels.transpose(1, 2, 0)
    return pixels[..., 0] if pixels.ndim == 3 and pixels.shape[-1] == 1 else pixels
