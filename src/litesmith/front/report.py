"""`report`: what a command left in a folder, as a page."""

import os
from pathlib import Path

from litesmith.arguments import check_types
from litesmith.pages.folder_kinds import changed_files, write_markdown, write_report
from litesmith.progress import WARNING, Note, Progress, silent


@check_types
def report(
    folder: str | os.PathLike[str],
    *,
    markdown: bool = False,
    out: str | os.PathLike[str] | None = None,
    progress: Progress = silent,
) -> Path:
    """Rebuilds the report of a folder from its records alone; gives the path of the page. It says
    first which files are no longer those that were measured, and so does `progress`.

    >>> litesmith.report("model-tuned")                                 # doctest: +SKIP
    PosixPath('model-tuned/report.html')
    """
    for words in changed_files(Path(folder)):
        progress(Note(words, WARNING))
    write = write_markdown if markdown else write_report
    return write(Path(folder), None if out is None else Path(out))
