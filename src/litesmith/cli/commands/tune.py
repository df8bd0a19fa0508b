"""The command tune: from a model and a budget to the best file within it."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from litesmith.cli.options.data_options import (
    DEFAULT_CROP,
    DEFAULT_RESIZE,
    Crop,
    DataSource,
    ImageOptions,
    LabelOffset,
    Mean,
    NormName,
    Resize,
    SampleCount,
    Std,
    TrustData,
    open_evaluation,
    say,
    say_notes,
)
from litesmith.cli.options.declare import option
from litesmith.cli.options.engine_option import EngineName, refuse_unusable
from litesmith.cli.options.shared_options import Json, ModelFile
from litesmith.cli.text.deliver import MISSES_WHAT_WAS_ASKED
from litesmith.cli.text.tune_text import Live, print_json, print_text
from litesmith.errors import BadInput
from litesmith.pages.folder_kinds import write_report
from litesmith.phrases import phrase
from litesmith.search.trial.budget import MINIMIZE, Budget, Limits
from litesmith.search.trial.target_place import Place
from litesmith.search.tuning.replay import open_beside, remember
from litesmith.search.tuning.tree_walk import Request
from litesmith.search.tuning.tune_search import carry_out, default_folder
from litesmith.tflite.file import load
from litesmith.training.settings import Training
from litesmith.workers.engine import LOCAL, open_engine

MaxDrop = Annotated[
    str | None,
    option(
        "--max-drop",
        metavar="1pt|1%",
        help="What may be lost of the task's metric: points, or a share of the float model's.",
        show_default=False,
    ),
]
MinAgreement = Annotated[
    str | None,
    option(
        "--min-agreement",
        metavar="98%",
        help="Without labels: how often the class is to be the float model's.",
        show_default=False,
    ),
]
MinSnr = Annotated[
    str | None,
    option(
        "--min-snr",
        metavar="20dB",
        help="Without classes: of the outputs against the float model's.",
        show_default=False,
    ),
]
Minimize = Annotated[
    str, option("--minimize", metavar="|".join(MINIMIZE), help="What is to be small.")
]
MaxSize = Annotated[
    str | None,
    option("--max-size", metavar="4MB", help="Of the file.", show_default=False),
]
MaxLatency = Annotated[
    str | None,
    option("--max-latency", metavar="10ms", help="Of one run.", show_default=False),
]
On = Annotated[
    str,
    option(
        "--on",
        metavar="TARGETS",
        help="Where it is to run, as in cpu:1,cpu:4, gpu, ssh://pi@host/cpu:4, ethos-u55-128.",
    ),
]
Minutes = Annotated[
    float | None,
    option("--minutes", help="Search no longer than this. [no limit]", show_default=False),
]
Calibrate = Annotated[
    str | None,
    option(
        "--calibrate",
        metavar="D2",
        help="Other data to calibrate and train on. [a fifth of --data]",
        show_default=False,
    ),
]
Runs = Annotated[
    int | None,
    option(
        "--runs", help="Time each candidate in so many runs. [until steady]", show_default=False
    ),
]
NoTrain = Annotated[bool, option("--no-train", help="Train nothing, also where it helps.")]
Resume = Annotated[bool, option("--resume", help="Go on with what -o holds.")]
OutFolder = Annotated[
    Path | None,
    option(
        "-o",
        "--output",
        metavar="DIR",
        help="The folder to write. [MODEL-tuned]",
        show_default=False,
    ),
]


def tune(
    model: ModelFile,
    data: DataSource = None,
    max_drop: MaxDrop = None,
    min_agreement: MinAgreement = None,
    min_snr: MinSnr = None,
    minimize: Minimize = "latency",
    max_size: MaxSize = None,
    max_latency: MaxLatency = None,
    on: On = "cpu:1",
    calibrate: Calibrate = None,
    minutes: Minutes = None,
    runs: Runs = None,
    no_train: NoTrain = False,
    resume: Resume = False,
    trust_data: TrustData = False,
    out: OutFolder = None,
    samples: SampleCount = None,
    mean: Mean = None,
    std: Std = None,
    norm: NormName = None,
    resize: Resize = DEFAULT_RESIZE,
    crop: Crop = DEFAULT_CROP,
    label_offset: LabelOffset = None,
    engine: EngineName = LOCAL,
    as_json: Json = False,
) -> int:
    """Find the fastest (or smallest) file within a budget, and prove it."""
    if data is None:
        raise BadInput("tune needs data to choose and to prove by; give --data")
    refuse_unusable(engine)
    budget = Budget.parse(max_drop, min_agreement, min_snr)
    limits = Limits.parse(max_size, max_latency)
    targets = tuple(Place.parse(text) for text in on.split(","))
    options = ImageOptions(mean, std, norm, resize, crop, label_offset)
    content = load(model)
    opened = open_evaluation(data, content, options, samples=samples)
    other = None
    if calibrate is not None:
        other = open_beside(calibrate, opened, content, options.preparation())
        say_notes(other)
    request = Request(
        model,
        opened,
        out or default_folder(model),
        budget,
        minimize,
        limits,
        targets,
        other,
        minutes,
        None if no_train else Training(),
        resume,
        trust_data,
        shlex.join(["litesmith", *sys.argv[1:]]),
        remember(data, calibrate, options.preparation(), samples),
        runs=runs,
    )
    with open_engine(engine) as cluster:
        return carried_out(replace(request, engine=cluster), as_json=as_json)


def carried_out(request: Request, *, as_json: bool = False) -> int:
    """Searches, writes the report, and prints what came out; the exit status."""
    with Live(quiet=as_json) as live:
        found = carry_out(request, live.show)
    page = write_report(found.folder)
    for warning in found.warnings:
        say("warning", warning)
    if not found.fresh:
        say("note", phrase("nothing was measured again: all trials are on record"))
    (print_json if as_json else print_text)(found, page)
    return 0 if found.best is not None else MISSES_WHAT_WAS_ASKED
