"""The option --ops: custom ops and delegates of the user's own."""

from typing import Annotated

from litesmith.cli.options.declare import option
from litesmith.ops.registry import load

Ops = Annotated[
    list[str] | None,
    option(
        "--ops",
        metavar="FILE",
        load=load,
        help="A Python file or module that registers custom ops or delegates.",
        show_default=False,
    ),
]
