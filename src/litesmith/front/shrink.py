"""`prune`, `cluster` and `qat`: one step, trained on data, and what the result costs."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Unpack

from litesmith.accuracy.evaluate import Evaluation, preparation_text
from litesmith.anatomy.source_file import Source, SourceFile, open_source
from litesmith.arguments import argument, check_types, refuse_below
from litesmith.calibration.quantize_effort import cured_recipe, tidying
from litesmith.data.preparation import read_preparation
from litesmith.data.sources import Given
from litesmith.display import show_html
from litesmith.errors import BadInput
from litesmith.front.given_data import (
    Calibration,
    open_judging,
    scoring_options,
)
from litesmith.front.made_model import (
    Json,
    MadeModel,
    OpNames,
    Place,
    read_names,
    read_place,
    score,
    score_facts,
)
from litesmith.front.recipe_job import Done, Job, carry_out, refuse_early
from litesmith.passes.core.recipe import Recipe, text_of
from litesmith.passes.quantizing.qat import Qat
from litesmith.passes.shrinking.cluster import Cluster
from litesmith.passes.shrinking.prune import Prune, refuse_slower
from litesmith.passes.shrinking.sparsify import Sparsify
from litesmith.progress import Progress, silent
from litesmith.regression.size_report import arm_facts, skipping_facts
from litesmith.training.settings import (
    RECORD_SECONDS,
    TrainingOptions,
    read_training,
    split_preparing,
)


class ShrinkOptions(TrainingOptions, total=False):
    """What prune, cluster and qat take alike; None is what is not given.

    samples       number of samples to use, spread over the classes
    eval          data to score the model and the result on
    resume        True to continue an interrupted training
    record_every  seconds between two records of a training
    runs          number of runs that both files are timed in
    trust_data    True to use data that looks wrong
    """

    samples: int | None
    eval: Given | None
    resume: bool | None
    record_every: float | None
    runs: int | None
    trust_data: bool | None


@dataclass(frozen=True, repr=False, eq=False)
class Shrinking(MadeModel):
    """A model after prune, cluster or qat, and what it costs beside the original.

    score      of the model and the original on `eval`, where that was asked for
    next_data  the options that name data to score it on
    """

    done: Done
    prunes: bool
    score: Evaluation | None
    next_data: str

    @property
    def is_as_asked(self) -> bool:
        """False where zeros or codes were lost."""
        return self.done.costs is None or self.done.costs.is_verified

    def to_json(self) -> Json:
        data, costs = self.done.data, self.done.costs
        told = self.facts()
        told |= {} if costs is None else costs.to_json()
        told |= {
            "recipe": text_of(self.done.recipe),
            "data": None if data is None else data.source,
            "samples": 0 if data is None else len(data),
            "preparation": "" if data is None else preparation_text(data),
            "trained": list(self.done.trained),
        }
        if self.prunes:
            told |= {"arm": arm_facts(self.model), "litesmith": skipping_facts(self.model)}
        return told if self.score is None else told | {"evaluation": score_facts(self.score)}

    def _repr_html_(self) -> str:
        return show_html(self, self.done.trained)


@check_types
def prune(
    model: Source,
    data: Given | None = None,
    *,
    out: Place | None = None,
    sparsity: float = Prune.sparsity,
    block: str = Prune.block,
    schedule: str = Prune.schedule,
    speedup: float | None = None,
    on: str = Prune.on,
    keep: OpNames | None = None,
    only: OpNames | None = None,
    no_tune: bool = False,
    progress: Progress = silent,
    **options: Unpack[ShrinkOptions],
) -> Shrinking:
    """Makes the weights zero that matter least, and trains those that are left.

    With `speedup` whole channels go, until a run is so many times as fast on the target `on`.

    >>> litesmith.prune("model.tflite", sparsity=0.8, no_tune=True).save("pruned.tflite")
    """
    tune, names = False if no_tune else None, (read_names(keep), read_names(only))
    refuse_slower(speedup)
    block = "channels" if speedup is not None and block == Prune.block else block
    step = Prune(sparsity, block, schedule, *names, tune, speedup or 0.0, on)
    source, place = open_source(model), read_place(out, model)
    last = (Sparsify(),) if block == "1x4" else ()
    recipe = (*tidying(source.model, (*step.keep, *step.only)), step, *last)
    return _shrink(_job(source, place, recipe, data, progress, options), options)


@check_types
def cluster(
    model: Source,
    data: Given | None = None,
    *,
    out: Place | None = None,
    clusters: int = Cluster.k,
    own: OpNames | None = None,
    per_tensor: bool = False,
    keep: OpNames | None = None,
    only: OpNames | None = None,
    no_tune: bool = False,
    progress: Progress = silent,
    **options: Unpack[ShrinkOptions],
) -> Shrinking:
    """Has the weights of each layer share few values, and trains these.

    >>> litesmith.cluster("model.tflite", clusters=16, no_tune=True).save("clustered.tflite")
    """
    owned = tuple(map(str, read_names(own)))
    names, tune = (read_names(keep), read_names(only)), False if no_tune else None
    step = Cluster(clusters, owned, not per_tensor, *names, tune=tune)
    source, place = open_source(model), read_place(out, model)
    numbered = tuple(0 for text in owned if text.partition(":")[0].isdecimal())
    recipe = (*tidying(source.model, (*step.keep, *step.only, *numbered)), step)
    return _shrink(_job(source, place, recipe, data, progress, options), options)


@check_types
def qat(
    model: Source,
    data: Given | None = None,
    *,
    out: Place | None = None,
    to: str = Qat.to,
    io: str = Qat.io,
    per_tensor: bool = False,
    keep: OpNames | None = None,
    only: OpNames | None = None,
    progress: Progress = silent,
    **options: Unpack[ShrinkOptions],
) -> Shrinking:
    """Quantizes a model, and trains what that has cost back into it.

    >>> made = litesmith.qat("model.tflite", "val.npz", epochs=1, samples=64, rate=0.01)
    >>> made.save("trained.tflite")
    """
    if data is None:
        raise BadInput(
            "qat trains on data: give {data}, or take quantize, which trains nothing",
            argument("data"),
        )
    step = Qat(to, io, read_names(keep), read_names(only), not per_tensor)
    source, place = open_source(model), read_place(out, model)
    recipe = (*tidying(source.model, (*step.keep, *step.only)), step)
    job = _job(source, place, recipe, data, progress, options)
    return _shrink(replace(job, refine=partial(cured_recipe, source.model, recipe)), options)


def _job(
    source: SourceFile,
    out: Path | None,
    recipe: Recipe,
    data: Given | None,
    progress: Progress,
    options: ShrinkOptions,
) -> Job:
    samples = options.get("samples")
    refuse_below("samples", samples, 1)
    prepared = read_preparation(**split_preparing(options))
    trusted = bool(options.get("trust_data"))
    return Job(
        source,
        out,
        recipe,
        Calibration(data, prepared, samples, trusted=trusted),
        read_training(None, **options),
        bool(options.get("resume")),
        record_every=options.get("record_every") or RECORD_SECONDS,
        runs=options.get("runs"),
        progress=progress,
    )


def _shrink(job: Job, options: ShrinkOptions) -> Shrinking:
    """Does a job, and scores what came of it."""
    refuse_early(job)
    judges = options.get("eval")
    judging = open_judging(judges, job.model, job.given.preparation, job.progress)
    done = carry_out(job, judging)
    scored = None
    if judging is not None:
        made = SourceFile(done.change.model, job.out)
        scored = score(made, job.source, judging, job.progress)
    next_data = scoring_options(judges, split_preparing(options), done.data)
    made = job.source, job.out, done.change
    return Shrinking(*made, done, job.prunes, scored, next_data)
