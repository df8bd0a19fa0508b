"""The command prune."""

from typing import Annotated, Unpack

import litesmith
from litesmith.cli.options.declare import option
from litesmith.cli.options.shared_options import (
    DataSource,
    Json,
    Keep,
    ModelFile,
    NoTune,
    Only,
    OutFile,
    ShrinkPlan,
)
from litesmith.cli.text.deliver import MISSES_WHAT_WAS_ASKED, deliver
from litesmith.cli.text.progress_text import Terminal


def prune(
    model: ModelFile,
    out: OutFile,
    sparsity: Annotated[
        float, option("--sparsity", metavar="SHARE", help="Share of zeros among pruned weights.")
    ] = 0.5,
    block: Annotated[
        str,
        option(
            "--block",
            metavar="1x1|1x4|2:4|channels",
            help="Single weights, four neighbouring inputs, two of each four, or whole channels.",
        ),
    ] = "1x1",
    schedule: Annotated[
        str,
        option(
            "--schedule",
            metavar="gradual|constant",
            help="Whether zeros come during the training, or all before it.",
        ),
    ] = "constant",
    keep: Keep = None,
    only: Only = None,
    no_tune: NoTune = False,
    data: DataSource = None,
    as_json: Json = False,
    **plan: Unpack[ShrinkPlan],
) -> int:
    """Make the weights zero that matter least, and train those that are left."""
    from litesmith.cli.text.shrink_text import print_shrinking

    with Terminal(quiet=as_json) as progress:
        result = litesmith.prune(
            model,
            data,
            out=out,
            sparsity=sparsity,
            block=block,
            schedule=schedule,
            keep=keep,
            only=only,
            no_tune=no_tune,
            progress=progress,
            **plan,
        )
    deliver(result, print_shrinking, as_json)
    return 0 if result.is_as_asked else MISSES_WHAT_WAS_ASKED
