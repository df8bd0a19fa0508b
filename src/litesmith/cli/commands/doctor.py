"""The command doctor."""

from pathlib import Path
from typing import Annotated, Unpack

import litesmith
from litesmith.cli.options.declare import option
from litesmith.cli.options.shared_options import (
    DataSource,
    Json,
    ModelFile,
    On,
    Preparing,
    SampleCount,
)
from litesmith.cli.text.deliver import deliver
from litesmith.cli.text.progress_text import Terminal


def doctor(
    model: ModelFile,
    data: DataSource = None,
    against: Annotated[
        Path | None,
        option(
            "--against", metavar="FLOAT", help="The float .tflite that a quantized one stands for."
        ),
    ] = None,
    on: On = "cpu:1",
    accelerator: Annotated[
        str | None,
        option(
            "--for",
            metavar="edgetpu|ethos-u55|hexagon|gpu|…",
            help="What keeps the model from running there whole, and the recipe for that.",
        ),
    ] = None,
    samples: SampleCount = None,
    bundle: Annotated[
        Path | None,
        option("--bundle", metavar="OUT.zip", help="File with what shows another person the same."),
    ] = None,
    keep_custom_options: Annotated[
        bool,
        option(
            "--keep-custom-options",
            help="Keep the options of custom ops in the bundle; else they are zeros.",
        ),
    ] = False,
    overlay: Annotated[
        Path | None,
        option(
            "--overlay",
            metavar="FILE.json",
            help="File for Model Explorer: the time of each op, with --data its error.",
        ),
    ] = None,
    as_json: Json = False,
    **preparing: Unpack[Preparing],
) -> None:
    """Why a model is slow; with data, where it loses accuracy; and the command that acts on it."""
    from litesmith.cli.text.doctor_text import print_doctor

    with Terminal(quiet=as_json) as progress:
        result = litesmith.doctor(
            model,
            data,
            against=against,
            on=on,
            accelerator=accelerator,
            samples=samples,
            bundle=bundle,
            keep_custom_options=keep_custom_options,
            overlay=overlay,
            progress=progress,
            **preparing,
        )
    deliver(result, print_doctor, as_json)
