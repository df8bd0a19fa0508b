"""Recipes with data and training: turns a user's data into the context of steps."""

import os
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

from litesmith.calibration.context import CALIBRATION_SAMPLES, context_of
from litesmith.data.sample_splits import part_of, take_some
from litesmith.data.samples import Data
from litesmith.errors import CannotApply
from litesmith.installing import install_command
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import Recipe
from litesmith.passes.core.step import (
    Context,
    Learn,
    LearnedRounding,
    Masks,
    Skip,
    Step,
    Tools,
    Tune,
    Tuned,
)
from litesmith.passes.quantizing.qat import Qat
from litesmith.passes.shrinking.cluster import Cluster
from litesmith.passes.shrinking.prune import Prune
from litesmith.phrases import phrase
from litesmith.progress import Progress, silent
from litesmith.training.settings import HELD_OUT, Training, TrainingRecord, Watch


def training_context(
    model: Model,
    data: Data,
    recipe: Recipe,
    training: Training | None = None,
    *,
    reference: Model | str | os.PathLike[str] | None = None,
    record: TrainingRecord | None = None,
    watch: Watch | None = None,
    progress: Progress = silent,
) -> Context:
    """The context of steps: observations of the data, and training on it.

    Ranges and means come from a part of the samples, which suffices, and never from those that
    judge a training: a model fitted to these would look better than it is.
    """
    if not trainings(recipe):
        context = context_of(data, reference, progress=progress)
        return replace(context, learn=lazy_rounding())
    if not has_torch():
        context = context_of(take_some(data, CALIBRATION_SAMPLES), reference, progress=progress)
        why = phrase(
            "training needs torch, which is not installed; {install}", install_command("train")
        )
        return replace(context, why_fixed=why)
    learned = part_of(data, HELD_OUT, held_out=False, most=CALIBRATION_SAMPLES)
    context = context_of(learned, reference, progress=progress)
    settings = training or Training()
    later = _lazy_tune(model, data, settings, trainings(recipe), record or TrainingRecord(), watch)
    return replace(context, tune=later, learn=lazy_rounding())


def lazy_rounding() -> Learn | None:
    """Learned rounding that imports torch once it is used; None without torch."""
    if not has_torch():
        return None

    def learn(model: Model, reference: Model, tools: Tools) -> LearnedRounding:
        try:
            from litesmith.training.learned_rounding import learn_rounding
        except ImportError as error:
            why = phrase("no rounding was learned: torch cannot be used ({error})", error)
            return LearnedRounding(model, skipped=(Skip("round", why),))
        try:
            return learn_rounding(model, reference, tools)
        except CannotApply as error:
            why = phrase("no rounding was learned: {error}", error)
            return LearnedRounding(model, skipped=(Skip("round", why),))

    return learn


def has_torch() -> bool:
    """Whether torch is installed, without importing it."""
    return find_spec("torch") is not None


def trainings(recipe: Recipe) -> int:
    """The number of steps in a recipe that train where they can."""
    return sum(map(_trains, recipe))


def _trains(step: Step) -> bool:
    if isinstance(step, Prune | Cluster):
        return step.tune is not False
    return isinstance(step, Qat)


def _lazy_tune(
    original: Model,
    data: Data,
    training: Training,
    stages: int,
    record: TrainingRecord,
    watch: Watch | None,
) -> Tune:
    """A `Tune` that imports torch on its first call."""

    @cache
    def tuner() -> Tune:
        try:
            from litesmith.training.step_tuner import Tuner
        except ImportError as error:
            raise CannotApply("training: torch cannot be used ({error}); mend it", error) from None
        return Tuner(original, data, training, stages, record, watch)

    def tune(model: Model, *, origin: Model | None = None, masks: Masks | None = None) -> Tuned:
        return tuner()(model, origin=origin, masks=masks)

    return tune
