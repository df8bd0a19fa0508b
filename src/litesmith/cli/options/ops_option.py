"""The option --ops: custom ops and delegates of the user's own."""

from typing import Annotated

import typer

from litesmith.ops.registry import load


def _load(given: list[str] | None) -> list[str] | None:
    """Loads them while the command line is read, so that commands find them registered."""
    for source in given or ():
        load(source)
    return given


Ops = Annotated[
    list[str] | None,
    typer.Option(
        "--ops",
        metavar="FILE",
        callback=_load,
        help="A Python file or module that registers custom ops or delegates.",
        show_default=False,
    ),
]
