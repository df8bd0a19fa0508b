"""The command qat."""

from typing import Annotated, Unpack

import litesmith
from litesmith.cli.options.declare import option
from litesmith.cli.options.shared_options import (
    DataSource,
    Io,
    Json,
    Keep,
    ModelFile,
    Only,
    OutFile,
    PerTensor,
    ShrinkPlan,
)
from litesmith.cli.text.deliver import MISSES_WHAT_WAS_ASKED, deliver
from litesmith.cli.text.progress_text import Terminal


def qat(
    model: ModelFile,
    out: OutFile,
    to: Annotated[
        str,
        option(
            "--to",
            metavar="dynamic|dynamic-int4|int16x8|int8|w4a8|weight-int4|weight-int8",
            help="Scheme to quantize to.",
        ),
    ] = "int8",
    data: DataSource = None,
    io: Io = "float",
    per_tensor: PerTensor = False,
    keep: Keep = None,
    only: Only = None,
    as_json: Json = False,
    **plan: Unpack[ShrinkPlan],
) -> int:
    """Quantize a model, and train what that has cost back into it."""
    from litesmith.cli.text.shrink_text import print_shrinking

    with Terminal(quiet=as_json) as progress:
        result = litesmith.qat(
            model,
            data,
            out=out,
            to=to,
            io=io,
            per_tensor=per_tensor,
            keep=keep,
            only=only,
            progress=progress,
            **plan,
        )
    deliver(result, print_shrinking, as_json)
    return 0 if result.is_as_asked else MISSES_WHAT_WAS_ASKED
