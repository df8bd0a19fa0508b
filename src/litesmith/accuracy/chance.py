"""Whether a model beats guessing on labelled data; if not, which setting would."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from litesmith.accuracy.paired import wilson
from litesmith.data.answers import Outputs, outputs_of
from litesmith.data.guess_norm import class_count
from litesmith.data.images import picture
from litesmith.data.opened_samples import OpenedSamples
from litesmith.data.preparation import NORMS
from litesmith.data.readers import Item
from litesmith.data.samples import Data, Sample
from litesmith.ir.types import Array, Model
from litesmith.phrases import join, phrase
from litesmith.units import percent_text, plain

# The numbers of samples after which the answers are judged: a model that knows something shows it
# early; only a model that seems to guess is run on all of them.
_LOOKS = (64, 128, 256, 512)
_TRIED = 128  # samples for each setting that might help

# The number of random permutations of the labels, and the largest share of them that may do as well
# as the model: at one of several looks, and at the last.
_DEALS = 2000
_SURELY, _LIKELY = 0.002, 0.01

# The least gain over guessing that makes a model useful: a fifth of a guess's standard deviation
# (60 % right of two classes, 16 % of ten), and at least three points. The model gets the benefit of
# the doubt: only the upper end of its interval must reach this gain.
_GAIN, _LEAST_GAIN = 0.2, 0.03

# A model with this share of right answers needs no advice. Another setting is advised where its
# interval exceeds the model's own by at least the second number.
_FINE, _CLEARLY = 0.5, 0.05

# The simpler of two settings is advised where it is at most this much worse.
_LEVEL = 0.02

# The range of scaled pixels, with the factor and shift that restore the pixels.
_SCALED = (((0.0, 1.0), (255.0, 0.0)), ((-1.0, 1.0), (127.5, 127.5)), ((0.0, 255.0), (1.0, 0.0)))


class Answers(NamedTuple):
    """The class that a model chose for each sample (−1 for NaN), and the right class."""

    chosen: Array
    labels: Array

    @property
    def right(self) -> float:
        """The share of answers that are right."""
        return float(np.mean(np.equal(self.chosen, self.labels)))


def at_chance(model: Model, data: Data) -> str | None:
    """Says in one line that a model does no better than guessing on labelled data, or far worse
    than with another setting, and names that setting; None where neither is the case.

    Only classifiers with class labels are judged. 64 samples are run where the model is fine, up to
    512 where it seems to guess, and 128 for each setting that might help.
    """
    seen = _answer_enough(model, data) if class_count(model) is not None else None
    if seen is None or (seen.right >= _FINE and _luck(seen) <= _SURELY):
        return None
    guessing = is_guessing(seen)
    best, tried = _best_way(model, data, seen)
    if not guessing and best is None:
        return None
    most = np.unique(seen.labels, return_counts=True)[1].max() / len(seen.labels)
    found = phrase(
        "{share} of {count} labelled samples right", percent_text(seen.right), len(seen.labels)
    )
    found = (
        phrase(
            "no better than guessing, {found}, and always answering one class gives {share}",
            found,
            percent_text(most),
        )
        if guessing
        else phrase("badly, {found}", found)
    )
    way_out = (
        phrase(
            "none of these is better: {tried}; is the data made for this model, and are its "
            "labels right?",
            join(tried, ", "),
        )
        if best is None
        else phrase("with {how} it would be {share}", best.how, percent_text(best.answers.right))
    )
    return phrase("{source}: the model does {found}; {way_out}", plain(data.source), found, way_out)


def _answer_enough(model: Model, data: Data) -> Answers | None:
    """Answers to samples until the model has shown that it knows something."""
    seen = Answers(np.empty(0, np.int64), np.empty(0, np.int64))
    for part in _parts(data):
        more = _answers(model, part)
        if more is None:
            return None
        chosen, labels = (np.concatenate(both) for both in zip(seen, more, strict=True))
        seen = Answers(chosen, labels)
        if _luck(seen) <= _SURELY:
            break
    return seen if len(seen.labels) else None


def is_guessing(answers: Answers) -> bool:
    """True where the answers say nothing about the labels, and there are enough answers to tell.

    Permuting the labels keeps how often each class is right and how often it is chosen. So a model
    that always answers the most frequent class is guessing, and a model that finds a few of the
    rare ones is not.
    """
    if not len(answers.labels):
        return False
    chance = _by_chance(answers)
    useful = chance + max(_LEAST_GAIN, _GAIN * np.sqrt(chance * (1 - chance)))
    return _interval(answers)[1] < useful <= 1 and _luck(answers) > _LIKELY


def _by_chance(answers: Answers) -> float:
    """The expected share of right answers when the labels are permuted."""
    both = np.intersect1d(answers.chosen, answers.labels)
    sides = (answers.chosen, answers.labels)
    return float(sum(np.prod([np.mean(np.equal(side, n)) for side in sides]) for n in both))


def _luck(answers: Answers) -> float:
    """The probability of as many right answers when the labels are permuted."""
    deals = np.random.default_rng(0).permuted(np.tile(answers.labels, (_DEALS, 1)), axis=1)
    right = (deals == answers.chosen).sum(axis=1)
    as_many = int((right >= (answers.chosen == answers.labels).sum()).sum())
    return (1 + as_many) / (1 + _DEALS)


def _parts(data: Data) -> Iterator[Iterable[Sample]]:
    """Samples from all over the data, one look at a time."""
    starts = (0, *_LOOKS[:-1])
    stored = data.items.stored
    if stored is None:
        samples = iter(data)
        for start, end in zip(starts, _LOOKS, strict=True):
            yield list(islice(samples, end - start))
        return
    few = stored.spread(_LOOKS[-1])
    order = np.random.default_rng(0).permutation(len(few)).tolist()
    for start, end in zip(starts, _LOOKS, strict=True):
        yield few.at(order[start:end])


def _answers(model: Model, samples: Iterable[Sample]) -> Answers | None:
    """The model's class for each sample; None where a label is not a class."""
    found = list(outputs_of([model], samples, _answer))
    if any(pair is None for pair in found):
        return None
    pairs = np.array(found, np.int64).reshape(-1, 2)
    return Answers(pairs[:, 0], pairs[:, 1])


def _answer(sample: Sample, answers: Sequence[Outputs]) -> tuple[int, int] | None:
    """The class of a sample's first row by the model, and by its label."""
    label, scores = sample.label, answers[0][0]
    if label is None or label.dtype.kind not in "iu" or label.ndim != 1:
        return None
    row = scores.reshape(-1, scores.shape[-1])[0]
    return (-1 if np.isnan(row).any() else int(row.argmax())), int(label[0])


class OtherSetting(NamedTuple):
    """Another setting, and the model's answers with it."""

    how: str
    answers: Answers


def _best_way(model: Model, data: Data, seen: Answers) -> tuple[OtherSetting | None, list[str]]:
    """The simplest setting that makes the model right far more often, and the settings tried."""
    ways = list(_with_other_numbers(OtherSetting("", seen), model, data))
    tried = ["another --label-offset", phrase("another order of the classes")]
    for how, other in _with_other_norms(data):
        tried.append(how)
        answers = _answers(model, other)
        if answers is not None:
            way = OtherSetting(how, answers)
            ways += [way, *_with_other_numbers(way, model, data)]
    level = _interval(seen)[1] + _CLEARLY
    good = [w for w in ways if _interval(w.answers)[0] > level and _luck(w.answers) <= _SURELY]
    best = max((way.answers.right for way in good), default=0.0)
    return next((w for w in good if w.answers.right >= best - _LEVEL), None), tried


def _interval(answers: Answers) -> tuple[float, float]:
    return wilson(answers.right, max(1, len(answers.labels)))


def _with_other_norms(data: Data) -> Iterator[tuple[str, OpenedSamples]]:
    """A few samples under every other suitable normalisation, where the samples are pixels."""
    stored = data.items.stored
    wanted = None if stored is None else picture(stored.model.main.inputs[0])
    if stored is None or wanted is None:
        return
    few = stored.spread(_TRIED)
    scaled = _pixel_scale(few)
    if scaled is None:
        return
    given = "" if scaled == (1.0, 0.0) else phrase("pixels of 0 to 255 and ")

    def read_pixels(index: int) -> Item:
        return _as_pixels(few.rows.read(index), scaled)

    rows = replace(few.rows, read=read_pixels)
    for name, norm in NORMS.items():
        if name != few.preparation.norm and (wanted.channels == 3 or len(norm.mean) == 1):
            other = replace(few.preparation, mean=(), std=(), norm=name)
            yield (
                phrase("{given}--norm {name}", given, name),
                replace(few, rows=rows, preparation=other),
            )


def _pixel_scale(few: OpenedSamples) -> tuple[float, float] | None:
    """The factor and shift that turn the first input's values into pixels; None where none fits."""
    items = [few.rows.read(index)[0][0] for index in few.chosen]
    if items[0].dtype == np.uint8:
        return 1.0, 0.0
    low, high = min(float(i.min()) for i in items), max(float(i.max()) for i in items)
    for (least, most), scale in _SCALED:
        if least <= low and high <= most and high - low > (most - least) / 2:
            return scale
    return None


def _as_pixels(item: Item, scale: tuple[float, float]) -> Item:
    (first, *others), label = item
    if first.dtype == np.uint8:
        return item
    pixels = np.rint(first.astype(np.float32) * scale[0] + scale[1]).astype(np.uint8)
    return (pixels, *others), label


def _with_other_numbers(way: OtherSetting, model: Model, data: Data) -> Iterator[OtherSetting]:
    """The same answers with the classes numbered differently."""
    given = phrase("{how} and ", way.how) if way.how else ""
    chosen, labels = way.answers
    preparation = data.items.preparation
    offset = (preparation.label_offset or 0) if preparation is not None else 0
    for other in (0, 1, -1):
        if other != offset:
            moved = Answers(chosen, labels + (other - offset))
            yield OtherSetting(phrase("{given}--label-offset {other}", given, other), moved)
    count = max(class_count(model) or 0, int(labels.max()) + 1)
    rank = {int(text): place for place, text in enumerate(sorted(map(str, range(count))))}
    as_text = Answers(chosen, np.array([rank.get(int(b), -2) for b in labels], np.int64))
    yield OtherSetting(
        phrase("{given}the classes in the order of their numbers as text (0, 1, 10, 11)", given),
        as_text,
    )
    yield OtherSetting(
        phrase("{given}the classes in another order", given), _with_best_numbers(way.answers)
    )


def _with_best_numbers(answers: Answers) -> Answers:
    """Half of the answers, each replaced by the label with which it most often occurs in the other
    half.
    """
    chosen, labels = (side[::2] for side in answers)
    meant = {
        number: np.bincount(labels[chosen == number]).argmax()
        for number in set(chosen.tolist())
        if number >= 0 and labels[chosen == number].min() >= 0
    }
    others = [meant.get(number, -1) for number in answers.chosen[1::2].tolist()]
    return Answers(np.array(others, np.int64), answers.labels[1::2])
