"""`tune`: from a model and a budget to the best file within it, with the proof."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from litesmith.accuracy.metrics import Function, metric_name
from litesmith.arguments import argument, check_types, refuse_below
from litesmith.data.preparation import UNTOUCHED, Preparation, Preparing, read_preparation
from litesmith.data.sources import Given
from litesmith.errors import BadInput
from litesmith.front.given_data import open_evaluation, tell_notes
from litesmith.micro.boards import find_room
from litesmith.pages.folder_kinds import write_report
from litesmith.phrases import phrase
from litesmith.progress import Note, Status, silent
from litesmith.run.core.target import Target
from litesmith.search.trial.budget import Budget, Limits, Typed
from litesmith.search.trial.target_place import Place
from litesmith.search.tuning.replay import open_beside, remember
from litesmith.search.tuning.tree_walk import TuneTask, TuneView
from litesmith.search.tuning.tune_search import Found, carry_out, default_folder
from litesmith.tflite.file import load
from litesmith.training.settings import Training
from litesmith.workers.engine import LOCAL, Engine, open_engine, refuse_engine

TuneProgress = Callable[[TuneView | Status | Note], None]


@check_types
def tune(
    model: str | os.PathLike[str],
    data: Given | None = None,
    *,
    max_drop: Typed | None = None,
    min_agreement: Typed | None = None,
    min_snr: Typed | None = None,
    metric: str | Function = "auto",
    minimize: str | None = None,
    max_size: Typed | None = None,
    max_latency: Typed | None = None,
    on: str | Sequence[str | Target] | None = None,
    fits: str | None = None,
    ram: int | str | None = None,
    flash: int | str | None = None,
    overlap: str = "none",
    calibrate: Given | None = None,
    minutes: float | None = None,
    runs: int | None = None,
    training: Training | None = None,
    resume: bool = False,
    trust_data: bool = False,
    out: str | os.PathLike[str] | None = None,
    samples: int | None = None,
    preparation: Preparation = UNTOUCHED,
    engine: str | Engine | None = LOCAL,
    command: str = "",
    progress: TuneProgress = silent,
    **options: Unpack[Preparing],
) -> Found:
    """The fastest (or smallest) file within a budget, proven on samples kept out of every choice.

    >>> found = litesmith.tune("model.tflite", "val.npz", max_drop="5pt", runs=12)
    >>> found.verdict in ("proven", "likely", "unclear", "keep", "missed")
    True

    What is to be small is `latency`, on a microcontroller `ram` (`flash` where that alone is
    given), unless `minimize` says otherwise.
    The budget is one of `max_drop` of the task's metric ("1pt" or "1%"; 0.05 of an error, in its
    unit), `min_agreement` ("98%") and `min_snr` ("20dB"); `metric` is as for `evaluate`. Each
    candidate is timed until its time is steady, or in so many `runs`.
    `training` says how to train where nothing else fits; without it nothing is trained. The folder
    `out` has every trial and the report; where it has been used before, what is on record is not
    measured again. On a microcontroller (`fits` is a board, `ram` and `flash` are sizes such as
    "256K") the file that fits is looked for, by what each way costs in accuracy; `overlap` is as
    for `export`. `engine="ray"` has the workers of a Ray cluster make, time and score the
    candidates. `command` is what the user typed, for the records.
    """
    if data is None:
        raise BadInput(
            "tune needs data, to choose a file and to prove what it costs; give {data}",
            argument("data"),
        )
    refuse_below("samples", samples, 1)
    if isinstance(engine, str):
        refuse_engine(engine)
    budget = Budget.parse(max_drop, min_agreement, min_snr)
    chip = find_room(fits, ram, flash)
    limits = Limits.parse(max_size, max_latency, chip)
    on = on or ("cpu:1" if chip is None else "micro")
    targets = tuple(map(Place.parse, on.split(",") if isinstance(on, str) else on))
    is_flash_alone = chip is not None and chip.ram is None
    usual = ("flash" if is_flash_alone else "ram") if targets[0].is_micro else "latency"
    prepared = read_preparation(preparation, **options)
    path = Path(model)
    content = load(path)
    opened = open_evaluation(data, content, prepared, progress, samples=samples)
    other = None
    if calibrate is not None:
        other = open_beside(calibrate, opened, content, prepared)
        tell_notes(other, progress)
    request = TuneTask(
        path,
        opened,
        default_folder(path) if out is None else Path(out),
        budget,
        minimize or usual,
        limits,
        targets,
        other,
        minutes,
        training,
        resume,
        trust_data,
        command,
        remember(data, calibrate, prepared, samples),
        runs=runs,
        metric=metric_name(metric),
        overlap=overlap,
    )
    with open_engine(engine) as cluster:
        found = carry_out(replace(request, engine=cluster), progress)
    if not found.fresh:
        progress(Note(phrase("nothing was measured again: all trials are on record")))
    return replace(found, report=write_report(found.folder))
