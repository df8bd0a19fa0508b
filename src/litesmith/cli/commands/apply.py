"""The command apply."""

from pathlib import Path
from typing import Annotated, Unpack

import litesmith
from litesmith.cli.options.declare import argument, option
from litesmith.cli.options.shared_options import (
    DataSource,
    Json,
    ModelFile,
    Ops,
    OutFile,
    TrainingCount,
    TrainingPlan,
)
from litesmith.cli.text.deliver import MISSES_WHAT_WAS_ASKED, deliver
from litesmith.cli.text.progress_text import Terminal


def apply(
    model: ModelFile,
    recipe: Annotated[
        str,
        argument(
            metavar="RECIPE",
            help='Steps, as in "cleanup | fuse": borders, cleanup, cluster, correct, equalize, '
            "fold, fuse, prune, qat, quantize, replace, rewrite, round, sparsify, upgrade. "
            '"" copies; the recipe.json of a search makes its result again.',
        ),
    ],
    out: OutFile,
    data: DataSource = None,
    reference: Annotated[
        Path | None,
        option(
            "--reference",
            metavar="FLOAT",
            help="The float model that a quantized MODEL was made from, for correct and round.",
        ),
    ] = None,
    samples: TrainingCount = None,
    ops: Ops = None,
    as_json: Json = False,
    **plan: Unpack[TrainingPlan],
) -> int:
    """Apply a recipe to a model and write the result; the empty recipe is a faithful copy."""
    from litesmith.cli.text.apply_text import print_applied

    with Terminal(quiet=as_json) as progress:
        result = litesmith.apply(
            model,
            recipe,
            data,
            out=out,
            reference=reference,
            samples=samples,
            progress=progress,
            **plan,
        )
    deliver(result, print_applied, as_json)
    return 0 if result.is_as_asked else MISSES_WHAT_WAS_ASKED
