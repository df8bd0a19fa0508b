"""Samples that two models answer differently, and the layer where the models diverge."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from litesmith.accuracy.disagreement import class_map, disagreements, thumbnail
from litesmith.accuracy.metrics import choose_metric, metric_for
from litesmith.accuracy.scoring import decibels
from litesmith.data.answers import Outputs, outputs_of
from litesmith.data.sample_splits import take_some
from litesmith.data.samples import Data, DataView, Items, Sample
from litesmith.diagnosis.float_pairs import find_twins
from litesmith.diagnosis.op_losses import losses
from litesmith.errors import LitesmithError
from litesmith.evidence.measurement import AnswerRow, DisagreementRow
from litesmith.graph_view.loss_path import loss_path
from litesmith.graph_view.op_measures import total_noise
from litesmith.ir.types import Array, Model
from litesmith.passes.core.step import Context
from litesmith.passes.tidy.fold import Fold
from litesmith.phrases import phrase
from litesmith.run.core.target import Target
from litesmith.units import percent_text, score_text

# The numbers of samples compared and shown.
_LOOKED_AT, _MOST = 64, 6


class DifferingSample(NamedTuple):
    """A sample that the models answer differently; `place` is the op of B where they diverge."""

    row: DisagreementRow
    place: int | None


def differing_samples(
    a: Model, b: Model, data: Data, target: Target
) -> tuple[DifferingSample, ...]:
    """The samples that the models answer most differently, each with the layer where the models
    diverge.
    """
    few = take_some(data, _LOOKED_AT)
    rows = _by_task(a, b, few, target) or _by_outputs(a, b, few, target)
    wanted = {row.name for row in rows}
    samples = {sample.name: sample for sample in few if sample.name in wanted} if rows else {}
    places = _DivergenceFinder(a, b, few)
    return tuple(DifferingSample(row, places.of(samples.get(row.name))) for row in rows)


def _by_task(a: Model, b: Model, data: Data, target: Target) -> tuple[DisagreementRow, ...]:
    if data.items.scorer is None:
        return ()
    try:
        name, _ = choose_metric(a, data, next(iter(data)), "auto", has_reference=True)
        return disagreements(b, a, data, metric_for(name, data), target)
    except LitesmithError:  # the task has no metric for these labels
        return ()


class _Difference(NamedTuple):
    apart: float
    row: DisagreementRow


def _by_outputs(a: Model, b: Model, data: Data, target: Target) -> tuple[DisagreementRow, ...]:
    """Compares the first outputs: another class, other classes of pixels, or other numbers."""

    def keep(sample: Sample, answers: Sequence[Outputs]) -> _Difference | None:
        if not all(answers):
            return None
        before, after = np.atleast_1d(answers[0][0], answers[1][0])
        if before.shape != after.shape or not before.size:
            return None
        apart, rows = _compare(before, after)
        return _Difference(apart, DisagreementRow(sample.name, thumbnail(sample, data, a), *rows))

    found = [one for one in outputs_of([a, b], data, keep, on=target) if one is not None]
    worst = sorted((one for one in found if one.apart > 0), key=lambda one: -one.apart)
    return tuple(one.row for one in worst[:_MOST])


def _compare(before: Array, after: Array) -> tuple[float, tuple[AnswerRow, AnswerRow]]:
    classes = before.shape[-1]
    if before.ndim <= 2 and before.size == classes > 1:
        return _compare_classes(before.reshape(-1), after.reshape(-1))
    if before.ndim == 4 and before.shape[0] == 1 and classes > 1 and min(before.shape[1:3]) > 4:
        return _compare_maps(before[0].argmax(-1), after[0].argmax(-1))
    return _compare_numbers(before, after)


def _compare_classes(before: Array, after: Array) -> tuple[float, tuple[AnswerRow, AnswerRow]]:
    """Another class counts as a larger difference than any difference of the scores."""
    tops = int(before.argmax()), int(after.argmax())
    shares = _shares(before), _shares(after)
    rows = [
        AnswerRow(None, phrase("class {number}, {share}", top, percent_text(float(own[top]))))
        for top, own in zip(tops, shares, strict=True)
    ]
    gap = float(np.abs(shares[0] - shares[1]).max())
    return (1.0 if tops[0] != tops[1] else 0.0) + gap, (rows[0], rows[1])


def _shares(scores: Array) -> Array:
    """Scores as probabilities."""
    is_whole = scores.min() >= 0 and abs(float(scores.sum()) - 1) < 0.05
    if is_whole:
        return scores
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def _compare_maps(before: Array, after: Array) -> tuple[float, tuple[AnswerRow, AnswerRow]]:
    share = float((before != after).mean())
    sentence = phrase("{share} of the pixels have another class", percent_text(share))
    return share, (
        AnswerRow(None, "", mask=class_map(before)),
        AnswerRow(None, sentence, mask=class_map(after)),
    )


def _compare_numbers(before: Array, after: Array) -> tuple[float, tuple[AnswerRow, AnswerRow]]:
    real = before.astype(np.float64)
    signal, noise = float(np.square(real).mean()), float(np.square(after - real).mean())
    sentence = phrase(
        "{ratio} against A", score_text(float(decibels(np.array([signal, noise]))), "dB")
    )
    return noise / max(signal, 1e-30), (AnswerRow(None), AnswerRow(None, sentence))


@dataclass(frozen=True, eq=False)
class _OneSample(DataView):
    """One sample of some data."""

    sample: Sample

    @property
    def items(self) -> Items:
        return Items(is_random=self.data.items.is_random)

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Sample]:
        yield self.sample


class _DivergenceFinder:
    """Finds the op of B from which on its values on one sample differ from A's."""

    def __init__(self, a: Model, b: Model, data: Data) -> None:
        self._model, self._data = b, data
        try:
            self._reference = Fold(float16=True).apply(a, Context()).model
            self._twins = find_twins(b, self._reference)
        except LitesmithError:  # the errors of single ops cannot be separated
            self._twins = []

    def of(self, sample: Sample | None) -> int | None:
        if sample is None or not self._twins:
            return None
        one = _OneSample(self._data, sample)
        try:
            found = losses(self._model, self._reference, self._twins, one)
        except LitesmithError:
            return None
        noises = {loss.twin.place: total_noise(loss) for loss in found if loss.twin.op}
        return loss_path(self._model.main, noises).worst
