"""The command catalogue."""

from pathlib import Path
from typing import Annotated

import litesmith
from litesmith.cli.options.declare import argument, option
from litesmith.cli.options.shared_options import Json
from litesmith.cli.text.deliver import deliver


def catalogue(
    name: Annotated[
        str,
        argument(
            metavar="[NAME]",
            help="A network: NAME[:WIDTH][@RESOLUTION][/CLASSES], as in mobilenet_v2:0.5@160.",
        ),
    ] = "",
    out: Annotated[
        Path | None, option("-o", "--output", metavar="FILE", help="The .tflite file to write.")
    ] = None,
    classes: Annotated[
        int | None, option("--classes", metavar="N", help="Number of classes to tell apart.")
    ] = None,
    weights: Annotated[
        Path | None,
        option(
            "--weights",
            metavar="FILE",
            help="Weights of yours: a .tflite, a torch state dict (.pt, .pth) or an .npz.",
        ),
    ] = None,
    head: Annotated[
        bool, option("--head/--no-head", help="Take the classifier of the weights too.")
    ] = True,
    seed: Annotated[int, option("--seed", metavar="N", help="Random seed of the weights.")] = 0,
    as_json: Json = False,
) -> None:
    """Networks by name: list them, look at one, or write it as a .tflite."""
    from litesmith.cli.text.catalogue_text import print_catalogue

    found = litesmith.catalogue(
        name, out=out, classes=classes, weights=weights, head=head, seed=seed
    )
    deliver(found, print_catalogue, as_json)
