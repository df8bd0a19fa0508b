"""The command report: what a command left in a folder, as a page."""

from pathlib import Path
from typing import Annotated

import click

from litesmith.cli.options.declare import argument, option
from litesmith.units import plain


def report(
    folder: Annotated[
        Path,
        argument(
            metavar="DIR", help="The folder that tune, or bench -o, wrote.", show_default=False
        ),
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
            help="Where to write it. [DIR/report.html, DIR/report.md]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Rebuild the report of a folder from its records alone, and say where it is."""
    from litesmith.pages.folder_kinds import write_markdown, write_report

    place = (write_markdown if markdown else write_report)(folder, out)
    click.echo(plain(str(place)))
