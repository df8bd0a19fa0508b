"""`evaluate`: how good a model's answers are, and whether another's are better."""

import os
from dataclasses import replace
from typing import Unpack

from litesmith.accuracy.evaluate import Evaluation, evaluate_all, preparation_text
from litesmith.accuracy.metrics import Function, metric_name
from litesmith.anatomy.source_file import Source, open_source
from litesmith.arguments import argument, check_types, refuse_below
from litesmith.data.preparation import Preparing, read_preparation
from litesmith.data.sources import Given
from litesmith.errors import BadInput
from litesmith.front.given_data import open_evaluation
from litesmith.progress import Progress, silent, tell_once
from litesmith.run.core.target import Target
from litesmith.run.trial_run import probe
from litesmith.workers.engine import LOCAL, Engine, open_engine, refuse_engine


@check_types
def evaluate(
    model: Source,
    data: Given | None = None,
    *,
    against: Source | None = None,
    metric: str | Function = "auto",
    on: str | Target = "cpu:1",
    samples: int | None = None,
    engine: str | Engine | None = LOCAL,
    progress: Progress = silent,
    **options: Unpack[Preparing],
) -> Evaluation:
    """The accuracy of a model; with `against`, also its paired difference from another.

    >>> found = litesmith.evaluate("int8.tflite", "val.npz", against="model.tflite")
    >>> found.low < found.value < found.high
    True

    `metric` is a name in METRICS, a function of yours or its name `module:function`, called for
    each sample with the list of outputs (real numbers) and the label (or None); the mean of what it
    returns is taken.
    "auto" chooses: top1 for integer labels that are classes of the model, auc for 0 and 1 where it
    has one score only, miou for class maps, rmse for other labels; without labels that suit the
    model agreement with the reference for one that ends in SOFTMAX, else the SNR.

    `engine="ray"` has the workers of a Ray cluster do it, each with some of the samples.
    """
    if data is None:
        raise BadInput(
            "eval needs data; give {data} and a folder, .npz, .npy or module:function",
            argument("data"),
        )
    refuse_below("samples", samples, 1)
    if isinstance(engine, str):
        refuse_engine(engine)
    source = open_source(model)
    prepared = read_preparation(**options)
    opened = open_evaluation(data, source.model, prepared, progress, samples=samples)
    target = Target.parse(on)
    for one in (model, against):
        if isinstance(one, str | os.PathLike):
            probe(one, target)
    with open_engine(engine) as found:
        (evaluation,) = evaluate_all(
            [model],
            opened,
            against=against,
            metric=metric_name(metric),
            on=target,
            engine=found,
            progress=progress,
        )
    tell_once(evaluation.notes, opened.notes, progress)
    return replace(evaluation, preparation=preparation_text(opened), model=str(source.path or ""))
