"""The command diff."""

from pathlib import Path
from typing import Annotated

import litesmith
from litesmith.cli.options.declare import argument
from litesmith.cli.options.shared_options import Json
from litesmith.cli.text.deliver import deliver


def diff(
    a: Annotated[Path, argument(metavar="A", help="The .tflite file before.")],
    b: Annotated[Path, argument(metavar="B", help="The .tflite file after.")],
    as_json: Json = False,
) -> None:
    """What changed in the graph between two models."""
    from litesmith.cli.text.diff_text import print_diff

    deliver(litesmith.diff(a, b), print_diff, as_json)
