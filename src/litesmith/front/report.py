"""`report`: what a command left in a folder, as a page."""

import os
from dataclasses import dataclass
from pathlib import Path

from litesmith.arguments import check_types
from litesmith.display import show_html, show_line
from litesmith.pages.folder_kinds import changed_files, write_markdown, write_report


@dataclass(frozen=True, repr=False)
class Reported:
    """A page that was written, which can be opened as its path can.

    path     where it is
    changed  which files are not those that were measured, a sentence each
    """

    path: Path
    changed: tuple[str, ...] = ()

    __repr__ = show_line

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def _repr_html_(self) -> str:
        return show_html(self, self.changed)

    @property
    def is_as_asked(self) -> bool:
        """False where a file is not the one that was measured: the page is not about it."""
        return not self.changed

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.changed

    @property
    def sentence(self) -> str:
        return str(self.path)

    def to_rows(self) -> list[dict[str, object]]:
        """One row, for a data frame."""
        return [{"path": str(self.path), "as_measured": self.is_as_asked}]


@check_types
def report(
    folder: str | os.PathLike[str],
    *,
    markdown: bool = False,
    out: str | os.PathLike[str] | None = None,
) -> Reported:
    """Rebuilds the report of a folder from its records alone; gives the page, with its `path`. It
    says first which files are no longer those that were measured, and so does `changed`.

    >>> litesmith.report("model-tuned").path.name
    'report.html'
    """
    changed = changed_files(Path(folder))
    write = write_markdown if markdown else write_report
    return Reported(write(Path(folder), None if out is None else Path(out)), changed)
