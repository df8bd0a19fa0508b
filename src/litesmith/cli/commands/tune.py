"""The command tune: from a model and a budget to the best file within it."""

from pathlib import Path
from typing import Annotated, Unpack

import litesmith
from litesmith.cli.options.declare import option, typed_command
from litesmith.cli.options.shared_options import (
    COSTS,
    LOCAL,
    DataSource,
    EngineName,
    Json,
    MaxLatency,
    MaxSize,
    MetricName,
    ModelFile,
    Preparing,
    SampleCount,
    TrustData,
)
from litesmith.cli.text.deliver import MISSES_WHAT_WAS_ASKED, deliver, say
from litesmith.cli.text.progress_text import pass_on

MaxDrop = Annotated[
    str | None,
    option(
        "--max-drop",
        metavar="1pt|1%",
        help="Loss of the task's metric to allow: points, or a share of the float model's value.",
    ),
]
MinAgreement = Annotated[
    str | None,
    option(
        "--min-agreement",
        metavar="98%",
        help="Without labels: least share of samples with the float model's class.",
    ),
]
MinSnr = Annotated[
    str | None,
    option(
        "--min-snr",
        metavar="20dB",
        help="Without classes: least SNR of the outputs against the float model's.",
    ),
]
Minimize = Annotated[str, option("--minimize", metavar=COSTS, help="What to make small.")]
On = Annotated[
    str,
    option(
        "--on",
        metavar="TARGETS",
        help="Where to run, as in cpu:1,cpu:4, gpu, ssh://pi@host/cpu:4, ethos-u55-128.",
    ),
]
Minutes = Annotated[
    float | None,
    option("--minutes", metavar="N", help="Longest search time.", show_default="no limit"),
]
Runs = Annotated[
    int | None,
    option(
        "--runs",
        metavar="N",
        min=1,
        help="Number of runs to time each candidate in.",
        show_default="until steady",
    ),
]
Calibrate = Annotated[
    str | None,
    option(
        "--calibrate",
        metavar="D2",
        help="Other data to calibrate and train on.",
        show_default="a fifth of --data",
    ),
]
NoTrain = Annotated[bool, option("--no-train", help="Train nothing, even where it helps.")]
Resume = Annotated[bool, option("--resume", help="Continue the search that -o holds.")]
OutFolder = Annotated[
    Path | None,
    option("-o", "--output", metavar="DIR", help="Folder to write.", show_default="MODEL-tuned"),
]


def tune(
    model: ModelFile,
    data: DataSource = None,
    max_drop: MaxDrop = None,
    min_agreement: MinAgreement = None,
    min_snr: MinSnr = None,
    metric: MetricName = "auto",
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
    engine: EngineName = LOCAL,
    as_json: Json = False,
    **preparing: Unpack[Preparing],
) -> int:
    """Find the fastest (or smallest) file within a budget, and prove it."""
    from litesmith.cli.text.tune_text import Live, print_found

    with Live(quiet=as_json) as live:
        found = litesmith.tune(
            model,
            data,
            max_drop=max_drop,
            min_agreement=min_agreement,
            min_snr=min_snr,
            metric=metric,
            minimize=minimize,
            max_size=max_size,
            max_latency=max_latency,
            on=on,
            calibrate=calibrate,
            minutes=minutes,
            runs=runs,
            training=None if no_train else litesmith.Training(),
            resume=resume,
            trust_data=trust_data,
            out=out,
            samples=samples,
            engine=engine,
            command=typed_command(),
            progress=pass_on(live.show),
            **preparing,
        )
    for warning in found.warnings:
        say("warning", warning)
    deliver(found, print_found, as_json)
    return 0 if found.best is not None else MISSES_WHAT_WAS_ASKED
