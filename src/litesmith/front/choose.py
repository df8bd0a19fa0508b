"""`choose`: several models measured on the user's data and machine, and one picked."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from litesmith.accuracy.metrics import Function, metric_name
from litesmith.arguments import check_types, refuse_below
from litesmith.data.preparation import UNTOUCHED, Preparation, Preparing, read_preparation
from litesmith.data.sources import Given
from litesmith.front.resize import Shape, shape_texts
from litesmith.pages.folder_kinds import write_report
from litesmith.phrases import phrase
from litesmith.progress import Note, Status, silent
from litesmith.run.core.target import Target
from litesmith.search.choosing.candidates import list_candidates
from litesmith.search.choosing.choose_models import (
    DEFAULT_FOLDER,
    Chosen,
    carry_out,
    one_target,
)
from litesmith.search.choosing.choose_run import ChooseTask, ChooseView
from litesmith.search.choosing.pick import CEILINGS, Requirements
from litesmith.search.choosing.shared_data import GivenData
from litesmith.search.trial.budget import Typed
from litesmith.workers.engine import LOCAL, Engine, open_engine, refuse_engine

ChooseProgress = Callable[[ChooseView | Status | Note], None]


@check_types
def choose(
    candidates: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    data: Given | None = None,
    *,
    max_latency: Typed | None = None,
    max_size: Typed | None = None,
    max_memory: Typed | None = None,
    min_accuracy: Typed | None = None,
    minimize: str | None = None,
    on: str | Target = "cpu:1",
    retrain: bool = False,
    pretrained: bool = False,
    val: Given | None = None,
    quantized: bool = False,
    effort: str = "default",
    calibrate: Given | None = None,
    metric: str | Function = "auto",
    seconds: float | None = None,
    trust_data: bool = False,
    out: str | os.PathLike[str] = DEFAULT_FOLDER,
    samples: int | None = None,
    shape: Shape | None = None,
    preparation: Preparation = UNTOUCHED,
    engine: str | Engine | None = LOCAL,
    command: str = "",
    progress: ChooseProgress = silent,
    **options: Unpack[Preparing],
) -> Chosen:
    """Measures models on data and this machine, and names the one to take.

    >>> found = litesmith.choose(
    ...     ["model.tflite", "int8.tflite"], "val.npz", max_latency="10ms", seconds=0.1
    ... )
    >>> found.reason
    '...'

    Candidates are files, patterns as `models/*.tflite`, or names of the catalogue, which have
    random weights or `pretrained` ones, fetched by pip. Without data time, size and memory are
    compared. `shape` gives the inputs of files these sizes first, as in {"x": (1, 1280)}. The
    folder `out` has the evidence, what was made and the report. `engine="ray"` has the workers of
    a Ray cluster make, time and score them. `command` is what the user typed, for the records.
    """
    refuse_below("samples", samples, 1)
    if isinstance(engine, str):
        refuse_engine(engine)
    ceilings = dict(zip(CEILINGS, (max_latency, max_size, max_memory), strict=True))
    asked = Requirements.parse(ceilings, min_accuracy, minimize)
    target = one_target(on)
    prepared = read_preparation(preparation, **options)
    texts = [candidates] if isinstance(candidates, str | os.PathLike) else list(candidates)
    if pretrained:
        progress(Status(phrase("fetching the weights")))
    request = ChooseTask(
        list_candidates(texts, () if shape is None else shape_texts(shape), pretrained=pretrained),
        Path(out),
        asked,
        None if data is None else GivenData(data, prepared, samples),
        calibrate,
        target,
        quantized,
        effort,
        metric_name(metric),
        seconds,
        trust_data,
        command,
        retrain,
        val,
    )
    with open_engine(engine) as cluster:
        found = carry_out(replace(request, engine=cluster), progress)
    for note in found.notes:
        progress(Note(note))
    if not found.fresh:
        progress(Note(phrase("nothing was measured again: all is on record")))
    return replace(found, report=write_report(found.folder))
