"""The command report: what a tuning left, as a page."""

from pathlib import Path
from typing import Annotated

import typer

from litesmith.units import plain


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder that tune wrote.", show_default=False)
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
    """Rebuild the report of a tuning from its folder alone, and say where it is."""
    if markdown:
        from litesmith.report.markdown import write_markdown

        place = write_markdown(folder, out)
    else:
        from litesmith.report.page import write_report

        place = write_report(folder, out)
    typer.echo(plain(str(place)))
