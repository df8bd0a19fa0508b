"""The command targets."""

from pathlib import Path
from typing import Annotated

import litesmith
from litesmith.cli.options.declare import argument, option
from litesmith.cli.options.shared_options import Json, Ops
from litesmith.cli.text.deliver import deliver


def targets(
    model: Annotated[
        Path | None, argument(metavar="[MODEL]", help="A .tflite file, to see what each takes.")
    ] = None,
    compile: Annotated[
        bool, option("--compile", help="Ask the compilers that are installed, not rules: slower.")
    ] = False,
    ops: Ops = None,
    as_json: Json = False,
) -> None:
    """Every accelerator: usable here or why not, and which ops of a model it takes."""
    from litesmith.cli.text.targets_text import print_targets

    deliver(litesmith.targets(model, compile=compile), print_targets, as_json)
