"""`compare`: is one model as good as another, and faster?"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from litesmith.accuracy.metrics import Function, metric_name
from litesmith.anatomy.source_file import SourceFile
from litesmith.arguments import check_types
from litesmith.data.lint import lint_evaluation
from litesmith.data.preparation import Preparing, read_preparation
from litesmith.data.samples import Data
from litesmith.data.sources import Given
from litesmith.front.given_data import open_evaluation
from litesmith.front.made_model import Place, read_place
from litesmith.graph_view.gather_view import ViewRequest, gather_view
from litesmith.operating_system import quote
from litesmith.pages.graph.findings_page import findings_text
from litesmith.phrases import phrase
from litesmith.progress import WARNING, Note, Progress, silent, tell_once
from litesmith.regression.comparison import (
    Compared,
    CompareSettings,
    compare_models,
    load_source,
    misfit,
)
from litesmith.run.core.target import Target
from litesmith.run.session import Source
from litesmith.run.trial_run import probe_source
from litesmith.tflite.file import write_whole
from litesmith.timing.latency import Rule


@check_types
def compare(
    a: Source,
    b: Source,
    data: Given | None = None,
    *,
    on: str | Target = "cpu:1",
    metric: str | Function = "auto",
    seconds: float | None = None,
    samples: int | None = None,
    page: Place | None = None,
    progress: Progress = silent,
    **preparing: Unpack[Preparing],
) -> Compared:
    """Whether B is as accurate as A, how much faster it is, and how much smaller.

    >>> litesmith.compare("model.tflite", "int8.tflite", "val.npz", seconds=0.1).verdict
    '...'

    Without data there is no accuracy, and random inputs show how far the outputs drift. The two
    take turns for so many `seconds`, or else until the interval is narrow. `page` is an .html file
    with the verdict and both graphs.
    """
    Rule(seconds=seconds)  # refuses a wrong number before the work
    target = Target.parse(on)
    preparation = read_preparation(**preparing)
    models = load_source(a), load_source(b)
    place = read_place(page, a)
    if place is not None:
        read_place(place, b)
    opened: Data | None = None
    if data is not None and not misfit(*models):
        opened = open_evaluation(data, models[0], preparation, progress, samples=samples)
        for problem in lint_evaluation(opened, models[1]):
            what, why, fix = problem.what, problem.why, problem.fix
            told = phrase("for {name}: {what}: {why}; {fix}", _name(b), what, why, fix)
            progress(Note(told, WARNING))
    for source in (a, b):
        probe_source(source, target)
    settings = CompareSettings(target, metric_name(metric), seconds, progress)
    found = compare_models(a, b, opened, settings)
    known = () if opened is None else opened.notes
    tell_once(found.accuracy.notes if found.accuracy else (), known, progress)
    if place is not None:
        _write_page(place, (a, b), opened, found, ViewRequest(target, 1.0, progress=progress))
    return found


def _write_page(
    place: Path,
    models: tuple[Source, Source],
    data: Data | None,
    found: Compared,
    request: ViewRequest,
) -> None:
    """The verdict and both graphs."""
    sources = [SourceFile(load_source(one), _path(one)) for one in models]
    named = replace(request, source=quote(str(sources[0].path or "FLOAT.tflite")))
    view = gather_view(sources, data, named)
    heading = phrase("{a} and {b}", found.names[0], found.names[1])
    write_whole(place, [findings_text(heading, found.verdict, (), view).encode()])


def _path(source: Source) -> Path | None:
    return Path(source) if isinstance(source, str | os.PathLike) else None


def _name(source: Source) -> str:
    return str(source) if isinstance(source, str | os.PathLike) else "B"
