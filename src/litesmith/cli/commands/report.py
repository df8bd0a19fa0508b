"""The command report."""

from pathlib import Path
from typing import Annotated

import click

import litesmith
from litesmith.cli.options.declare import argument, option
from litesmith.units import plain


def report(
    folder: Annotated[
        Path, argument(metavar="DIR", help="The folder that tune, choose, retrain or bench wrote.")
    ],
    markdown: Annotated[
        bool, option("--markdown", help="Markdown with pictures, for a pull request.")
    ] = False,
    out: Annotated[
        Path | None,
        option(
            "-o",
            "--output",
            metavar="FILE",
            help="The file to write.",
            show_default="DIR/report.html or DIR/report.md",
        ),
    ] = None,
) -> None:
    """Rebuild the report of a folder from its records alone, and say where it is."""
    click.echo(plain(str(litesmith.report(folder, markdown=markdown, out=out))))
