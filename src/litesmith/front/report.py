"""`report`: what a command left in a folder, as a page."""

import os
from pathlib import Path

from litesmith.arguments import check_types
from litesmith.pages.folder_kinds import write_markdown, write_report


@check_types
def report(
    folder: str | os.PathLike[str],
    *,
    markdown: bool = False,
    out: str | os.PathLike[str] | None = None,
) -> Path:
    """Rebuilds the report of a folder from its records alone; gives the path of the page.

    >>> litesmith.report("model-tuned")                                 # doctest: +SKIP
    PosixPath('model-tuned/report.html')
    """
    write = write_markdown if markdown else write_report
    return write(Path(folder), None if out is None else Path(out))
