"""The command compare: is B as good as A, and faster?"""

from pathlib import Path
from typing import Annotated, Unpack

import litesmith
from litesmith.cli.options.declare import argument
from litesmith.cli.options.shared_options import (
    DataSource,
    Json,
    MetricName,
    On,
    Ops,
    Preparing,
    SampleCount,
    Seconds,
)
from litesmith.cli.text.deliver import deliver, say
from litesmith.cli.text.progress_text import Terminal

Before = Annotated[Path, argument(metavar="A", help="The .tflite file before.")]
After = Annotated[Path, argument(metavar="B", help="The .tflite file to take its place.")]


def compare(
    a: Before,
    b: After,
    data: DataSource = None,
    on: On = "cpu:1",
    metric: MetricName = "auto",
    seconds: Seconds = None,
    samples: SampleCount = None,
    ops: Ops = None,
    as_json: Json = False,
    **preparing: Unpack[Preparing],
) -> None:
    """Is B as good as A, and faster? Accuracy, time, size and drift side by side."""
    from litesmith.cli.text.compare_text import print_comparison

    with Terminal(quiet=as_json) as progress:
        found = litesmith.compare(
            a,
            b,
            data,
            on=on,
            metric=metric,
            seconds=seconds,
            samples=samples,
            progress=progress,
            **preparing,
        )
    deliver(found, print_comparison, as_json)
    for warning in found.warnings:
        say("warning", warning)
