"""The command report: what a command left in a folder, as a page."""

from pathlib import Path
from typing import Annotated

import typer

from litesmith.units import plain


def report(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The folder that tune, or bench -o, wrote.", show_default=False
        ),
    ],
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Markdown with pictures, for a pull request.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
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
    typer.echo(plain(str(place)))
