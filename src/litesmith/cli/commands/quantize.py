"""The command quantize."""

from typing import Annotated, Unpack

import litesmith
from litesmith.cli.options.declare import option
from litesmith.cli.options.shared_options import (
    DataSource,
    Effort,
    EvaluationData,
    Io,
    Json,
    Keep,
    ModelFile,
    Only,
    OutFile,
    PerTensor,
    Preparing,
    Scheme,
    TrustData,
)
from litesmith.cli.text.deliver import MISSES_WHAT_WAS_ASKED, deliver
from litesmith.cli.text.progress_text import Terminal


def quantize(
    model: ModelFile,
    out: OutFile,
    to: Scheme = "int8",
    data: DataSource = None,
    io: Io = "float",
    keep: Keep = None,
    only: Only = None,
    ranges: Annotated[
        str, option("--ranges", metavar="minmax|mse|percentile", help="How ranges are chosen.")
    ] = "minmax",
    per_tensor: PerTensor = False,
    block: Annotated[
        int,
        option(
            "--block", metavar="N", min=0, help="With dynamic-int4: number of inputs to a scale."
        ),
    ] = 0,
    effort: Effort = "default",
    samples: Annotated[
        int | None,
        option(
            "--samples",
            metavar="N",
            min=1,
            help="Number of samples to calibrate on, spread over the classes.",
            show_default="256",
        ),
    ] = None,
    random_data: Annotated[
        bool, option("--random-data", help="Ranges from random inputs: to measure speed only.")
    ] = False,
    eval: EvaluationData = None,
    trust_data: TrustData = False,
    as_json: Json = False,
    **preparing: Unpack[Preparing],
) -> int:
    """Make a model smaller and faster: weights, and data between the ops, as small numbers."""
    from litesmith.cli.text.quantize_text import print_quantized

    with Terminal(quiet=as_json) as progress:
        result = litesmith.quantize(
            model,
            data,
            to=to,
            out=out,
            io=io,
            keep=keep,
            only=only,
            ranges=ranges,
            per_tensor=per_tensor,
            block=block,
            effort=effort,
            samples=samples,
            random_data=random_data,
            eval=eval,
            trust_data=trust_data,
            progress=progress,
            **preparing,
        )
    deliver(result, print_quantized, as_json)
    return MISSES_WHAT_WAS_ASKED if result.claims.is_useless else 0
