"""The normalisation under which a model does its task best, tried on a few images."""

from collections.abc import Callable, Sequence

import numpy as np

from litesmith.data.answers import Outputs, outputs_of
from litesmith.data.guess_norm import NOT_SURE, Choice
from litesmith.data.preparation import NORMS, Preparation
from litesmith.data.samples import Sample
from litesmith.ir.types import Model
from litesmith.phrases import phrase
from litesmith.tasks.task import Answer, Graded
from litesmith.units import percent_text

# The best choice is certain where the next one scores below this share of it; below the second
# number nothing is chosen.
_CLEARLY, _LEAST = 0.9, 0.02


def guess_by_task(
    model: Model,
    scorer: object,
    names: Sequence[str],
    prepared: Callable[[str], Sequence[Sample]],
) -> Choice | None:
    """Chooses one of the named normalisations, under which `prepared` gives the samples; None where
    the scorer cannot grade, or the model does nothing under any of them."""
    if not isinstance(scorer, Graded):
        return None

    def grade(sample: Sample, answers: Sequence[Outputs]) -> float:
        if sample.label is None:
            return 0.0
        return scorer.goodness(Answer(answers[0], sample.label, sample.inputs, sample.name))

    found = {
        name: float(np.mean(list(outputs_of([model], prepared(name), grade)))) for name in names
    }
    best, following = sorted(found, key=lambda name: -found[name])[:2]
    if not found[best] > _LEAST:
        return None
    note = phrase(
        "normalisation {name} ({formula}) guessed{sure}: the task is done {share} right on a few "
        "samples, next best {following} {share2}; to pin it: --norm {name}",
        best,
        NORMS[best].formula,
        "" if found[following] < _CLEARLY * found[best] else NOT_SURE,
        percent_text(found[best]),
        following,
        percent_text(found[following]),
    )
    return Choice(Preparation(norm=best), (note,))
