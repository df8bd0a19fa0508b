"""The command choose: several models measured on one's own data and machine, and one picked."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from litesmith.cli.commands.tune import MaxLatency, MaxSize
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
    say,
)
from litesmith.cli.options.declare import argument, option
from litesmith.cli.options.engine_option import EngineName, refuse_unusable
from litesmith.cli.options.shared_options import Effort, Json, MetricName, On
from litesmith.cli.text.choose_text import Live, notes_of, print_json, print_text
from litesmith.cli.text.deliver import MISSES_WHAT_WAS_ASKED
from litesmith.pages.folder_kinds import write_report
from litesmith.phrases import phrase
from litesmith.search.choosing.candidates import list_candidates
from litesmith.search.choosing.choose_models import DEFAULT_FOLDER, carry_out, one_target
from litesmith.search.choosing.choose_run import Request
from litesmith.search.choosing.pick import CEILINGS, Requirements
from litesmith.search.choosing.shared_data import Source
from litesmith.search.trial.budget import MINIMIZE
from litesmith.workers.engine import LOCAL, open_engine

Candidates = Annotated[
    list[str] | None,
    argument(
        metavar="CANDIDATE",
        help="Files, patterns in quotes, or catalogue names as mobilenet_v2:0.5@160.",
        show_default=False,
    ),
]
MaxMemory = Annotated[
    str | None,
    option("--max-memory", metavar="20MB", help="At its peak.", show_default=False),
]
MinAccuracy = Annotated[
    str | None,
    option("--min-accuracy", metavar="80%", help="The least share right.", show_default=False),
]
Minimize = Annotated[
    str | None,
    option(
        "--minimize",
        metavar="|".join(MINIMIZE),
        help="What is to be small. [the most accurate; with --min-accuracy alone the fastest]",
        show_default=False,
    ),
]
Retrain = Annotated[bool, option("--retrain", help="Each learns your classes first: backbones.")]
Val = Annotated[
    str | None,
    option(
        "--val",
        metavar="D3",
        help="With --retrain: other data to judge by. [val/ in --data, or a fifth of it]",
        show_default=False,
    ),
]
Quantized = Annotated[
    bool, option("--quantized", help="Also an int8 form of each float candidate.")
]
Calibrate = Annotated[
    str | None,
    option(
        "--calibrate",
        metavar="D2",
        help="With --quantized: other data to calibrate on. [a fifth of --data]",
        show_default=False,
    ),
]
Seconds = Annotated[
    float | None,
    option("--seconds", help="Time them for so long. [until steady]", show_default=False),
]
OutFolder = Annotated[
    Path,
    option("-o", "--output", metavar="DIR", help="The folder to write."),
]


def choose(
    candidates: Candidates = None,
    data: DataSource = None,
    max_latency: MaxLatency = None,
    max_size: MaxSize = None,
    max_memory: MaxMemory = None,
    min_accuracy: MinAccuracy = None,
    minimize: Minimize = None,
    on: On = "cpu:1",
    retrain: Retrain = False,
    val: Val = None,
    quantized: Quantized = False,
    effort: Effort = "default",
    calibrate: Calibrate = None,
    metric: MetricName = "auto",
    seconds: Seconds = None,
    trust_data: TrustData = False,
    out: OutFolder = DEFAULT_FOLDER,
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
    """Compare models on your data and machine: accuracy against size and latency; pick one."""
    refuse_unusable(engine)
    ceilings = dict(zip(CEILINGS, (max_latency, max_size, max_memory), strict=True))
    asked = Requirements.parse(ceilings, min_accuracy, minimize)
    target = one_target(on)
    options = ImageOptions(mean, std, norm, resize, crop, label_offset)
    source = None if data is None else Source(data, options.preparation(), samples)
    request = Request(
        list_candidates(candidates or ()),
        out,
        asked,
        source,
        calibrate,
        target,
        quantized,
        effort,
        metric,
        seconds,
        trust_data,
        shlex.join(["litesmith", *sys.argv[1:]]),
        retrain,
        val,
    )
    with open_engine(engine) as cluster:
        return carried_out(replace(request, engine=cluster), as_json=as_json)


def carried_out(request: Request, *, as_json: bool = False) -> int:
    """Measures, writes the report, and prints what came out; the exit status."""
    with Live(quiet=as_json) as live:
        found = carry_out(request, live.show)
    page = write_report(found.folder)
    for warning in found.warnings:
        say("warning", warning)
    for note in notes_of(found):
        say("note", note)
    if not found.fresh:
        say("note", phrase("nothing was measured again: all is on record"))
    (print_json if as_json else print_text)(found, page)
    return 0 if found.pick is not None else MISSES_WHAT_WAS_ASKED
