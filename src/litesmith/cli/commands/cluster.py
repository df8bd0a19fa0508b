"""The command cluster."""

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
    PerTensor,
    ShrinkPlan,
)
from litesmith.cli.text.deliver import MISSES_WHAT_WAS_ASKED, deliver
from litesmith.cli.text.progress_text import Terminal


def cluster(
    model: ModelFile,
    out: OutFile,
    clusters: Annotated[
        int,
        option("--clusters", "-k", metavar="K", help="Number of values in a layer, 2 to 256."),
    ] = 32,
    own: Annotated[
        list[str] | None,
        option(
            "--own",
            metavar="NAME:K",
            help="Layers with a K of their own, named as in --keep: dense*:16.",
        ),
    ] = None,
    per_tensor: PerTensor = False,
    keep: Keep = None,
    only: Only = None,
    no_tune: NoTune = False,
    data: DataSource = None,
    as_json: Json = False,
    **plan: Unpack[ShrinkPlan],
) -> int:
    """Have the weights of each layer share few values, and train these."""
    from litesmith.cli.text.shrink_text import print_shrinking

    with Terminal(quiet=as_json) as progress:
        result = litesmith.cluster(
            model,
            data,
            out=out,
            clusters=clusters,
            own=own,
            per_tensor=per_tensor,
            keep=keep,
            only=only,
            no_tune=no_tune,
            progress=progress,
            **plan,
        )
    deliver(result, print_shrinking, as_json)
    return 0 if result.is_as_asked else MISSES_WHAT_WAS_ASKED
