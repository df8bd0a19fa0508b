"""The command eval."""

from pathlib import Path
from typing import Annotated, Unpack

import litesmith
from litesmith.cli.options.declare import option
from litesmith.cli.options.shared_options import (
    LOCAL,
    DataSource,
    EngineName,
    Json,
    MetricName,
    ModelFile,
    On,
    Ops,
    Preparing,
    SampleCount,
    refuse_files_elsewhere,
)
from litesmith.cli.text.deliver import deliver
from litesmith.cli.text.progress_text import Terminal


def evaluate(
    model: ModelFile,
    data: DataSource = None,
    against: Annotated[
        Path | None,
        option("--against", metavar="REF", help="A .tflite file to compare with by sample."),
    ] = None,
    metric: MetricName = "auto",
    on: On = "cpu:1",
    samples: SampleCount = None,
    ops: Ops = None,
    engine: EngineName = LOCAL,
    as_json: Json = False,
    **preparing: Unpack[Preparing],
) -> None:
    """Accuracy with its interval, or drift from a reference where there are no labels."""
    from litesmith.cli.text.evaluate_text import print_evaluation

    refuse_files_elsewhere(ops, engine)
    with Terminal(quiet=as_json) as progress:
        result = litesmith.evaluate(
            model,
            data,
            against=against,
            metric=metric,
            on=on,
            samples=samples,
            engine=engine,
            progress=progress,
            **preparing,
        )
    deliver(result, lambda found: print_evaluation(found, against), as_json)
