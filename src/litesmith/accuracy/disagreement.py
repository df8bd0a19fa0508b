"""The items that a model and its reference answer most differently, for display."""

import base64
import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from litesmith.accuracy.metrics import Metric
from litesmith.accuracy.scoring import ScoredSample
from litesmith.data.answers import Outputs, outputs_of
from litesmith.data.images import picture
from litesmith.data.samples import Data, Sample
from litesmith.evidence.measurement import AnswerRow, DisagreementRow, MarkRow
from litesmith.ir.types import Array, Model
from litesmith.run.core.target import Target
from litesmith.run.session import Source
from litesmith.tasks.task import Answer, Scorer, Shown

# The number of items shown, and the size and quality of their pictures.
_MOST, _SIDE, _QUALITY = 6, 160, 75

# The number of marks drawn for an answer, and of letters shown.
_MOST_MARKS, _MOST_LETTERS = 20, 400

# The colours of classes on a mask; class 0 is left transparent.
_COLOURS = np.array(
    (
        *((0, 0, 0, 0), (230, 159, 0, 150), (86, 180, 233, 150), (0, 158, 115, 150)),
        *((240, 228, 66, 150), (0, 114, 178, 150), (213, 94, 0, 150), (204, 121, 167, 150)),
    ),
    np.uint8,
)


class _Compared(NamedTuple):
    """An item with the score and answer of each model."""

    apart: float
    row: DisagreementRow


def disagreements(
    model: Source, reference: Model, data: Data, metric: Metric, target: Target
) -> tuple[DisagreementRow, ...]:
    """The items that lose or gain most by the metric of a task, largest difference first; none
    where the data belongs to no task."""
    scorer = data.items.scorer
    if scorer is None or data.items.batch != 1:
        return ()

    def keep(sample: Sample, answers: Sequence[Outputs]) -> _Compared | None:
        return _compare(sample, answers, data, reference, metric, scorer)

    found = [one for one in outputs_of([model, reference], data, keep, on=target) if one]
    apart = sorted((one for one in found if one.apart > 0), key=lambda one: -one.apart)
    return tuple(one.row for one in apart[:_MOST])


def _compare(
    sample: Sample,
    answers: Sequence[Outputs],
    data: Data,
    reference: Model,
    metric: Metric,
    scorer: Scorer,
) -> _Compared | None:
    if sample.label is None:
        return None
    sample_facts = sample.label, None, sample.name, sample.inputs
    scores = [
        float(metric.finish(metric.statistics(ScoredSample(outputs, *sample_facts)))[0])
        for outputs in answers
    ]
    shown = [
        _answer_row(scorer.tell(Answer(outputs, sample.label, sample.inputs, sample.name)), score)
        for outputs, score in zip(answers, scores, strict=True)
    ]
    row = DisagreementRow(sample.name, thumbnail(sample, data, reference), shown[1], shown[0])
    return _Compared(abs(scores[0] - scores[1]), row)


def _answer_row(shown: Shown, score: float) -> AnswerRow:
    marks = tuple(
        MarkRow(tuple(round(side, 4) for side in mark.box), mark.words, mark.is_point)
        for mark in shown.marks[:_MOST_MARKS]
    )
    mask = "" if shown.mask is None else class_map(shown.mask)
    return AnswerRow(score, shown.text[:_MOST_LETTERS], marks, mask)


def class_map(classes: Array) -> str:
    """A class map in colours, as a PNG to lay over its image."""
    numbers = np.where(classes > 0, (classes - 1) % (len(_COLOURS) - 1) + 1, 0)
    image = Image.fromarray(_COLOURS[numbers])
    return _encode(image.resize((_SIDE, _SIDE), Image.Resampling.NEAREST), "PNG")


def thumbnail(sample: Sample, data: Data, model: Model) -> str:
    """A small picture of an image as it was before its preparation; "" for data that is no
    image."""
    tensor, preparation = model.main.inputs[0], data.items.preparation
    wanted = picture(tensor)
    if wanted is None or len(sample.inputs) != 1 or preparation is None:
        return ""
    values: NDArray[np.float32] = sample.inputs[0][0].astype(np.float32)
    if wanted.channel_axis == -3:
        values = values.transpose(1, 2, 0)
    if preparation.is_chosen:
        norm = preparation.as_norm()
        values = values * np.array(norm.std, np.float32) + np.array(norm.mean, np.float32)
        values = values[..., ::-1] if norm.reverse else values
    pixels: NDArray[np.uint8] = np.clip(np.round(values), 0, 255).astype(np.uint8)
    is_grey = pixels.ndim == 3 and pixels.shape[-1] == 1
    image = Image.fromarray(pixels[..., 0] if is_grey else pixels)
    return _encode(image.resize((_SIDE, _SIDE)), "JPEG")


def _encode(image: Image.Image, kind: str) -> str:
    content = io.BytesIO()
    image.save(content, kind, quality=_QUALITY)
    return base64.b64encode(content.getvalue()).decode()
