"""The command choose: several models measured on one's own data and machine, and one picked."""

from pathlib import Path
from typing import Annotated, Unpack

import litesmith
from litesmith.cli.options.declare import argument, option, typed_command
from litesmith.cli.options.shared_options import (
    COSTS,
    LOCAL,
    DataSource,
    Effort,
    EngineName,
    Json,
    MaxLatency,
    MaxSize,
    MetricName,
    On,
    Preparing,
    SampleCount,
    Seconds,
    TrustData,
)
from litesmith.cli.text.deliver import MISSES_WHAT_WAS_ASKED, deliver, say
from litesmith.cli.text.progress_text import pass_on

Candidates = Annotated[
    list[str] | None,
    argument(
        metavar="CANDIDATE",
        help="Files, patterns in quotes, or catalogue names as mobilenet_v2:0.5@160.",
    ),
]
MaxMemory = Annotated[
    str | None,
    option("--max-memory", metavar="20MB", help="Most memory a model may take at its peak."),
]
MinAccuracy = Annotated[
    str | None, option("--min-accuracy", metavar="80%", help="Least share of right answers.")
]
Minimize = Annotated[
    str | None,
    option(
        "--minimize",
        metavar=COSTS,
        help="What to make small.",
        show_default="the most accurate is picked; with --min-accuracy alone the fastest",
    ),
]
Retrain = Annotated[
    bool, option("--retrain", help="Candidates are backbones: each learns your classes first.")
]
Val = Annotated[
    str | None,
    option(
        "--val",
        metavar="D3",
        help="With --retrain: other data to judge by.",
        show_default="val/ in --data, or a fifth of it",
    ),
]
Quantized = Annotated[
    bool, option("--quantized", help="Also try an int8 form of each float candidate.")
]
Calibrate = Annotated[
    str | None,
    option(
        "--calibrate",
        metavar="D2",
        help="With --quantized: other data to calibrate on.",
        show_default="a fifth of --data",
    ),
]
OutFolder = Annotated[Path, option("-o", "--output", metavar="DIR", help="Folder to write.")]


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
    out: OutFolder = Path("chosen"),
    samples: SampleCount = None,
    engine: EngineName = LOCAL,
    as_json: Json = False,
    **preparing: Unpack[Preparing],
) -> int:
    """Compare models on your data and machine: accuracy against size and latency; pick one."""
    from litesmith.cli.text.choose_text import Live, print_chosen

    with Live(quiet=as_json) as live:
        found = litesmith.choose(
            candidates or (),
            data,
            max_latency=max_latency,
            max_size=max_size,
            max_memory=max_memory,
            min_accuracy=min_accuracy,
            minimize=minimize,
            on=on,
            retrain=retrain,
            val=val,
            quantized=quantized,
            effort=effort,
            calibrate=calibrate,
            metric=metric,
            seconds=seconds,
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
    deliver(found, print_chosen, as_json)
    return 0 if found.pick is not None else MISSES_WHAT_WAS_ASKED
