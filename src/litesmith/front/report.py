"""`report`: what commands left in their folders, as a page."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from litesmith.arguments import check_types
from litesmith.display import show_html, show_line
from litesmith.errors import BadInput
from litesmith.pages.folder_kinds import changed_files, write_markdown, write_report, write_runs


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


Place = str | os.PathLike[str]


@check_types
def report(
    folders: Place | Sequence[Place],
    *,
    markdown: bool = False,
    out: Place | None = None,
) -> Reported:
    """Rebuilds the report of a folder from its records alone, or puts the runs of several folders
    side by side; gives the page, with its `path`. It says first which files are no longer those
    that were measured, and so does `changed`.

    >>> litesmith.report("model-tuned").path.name
    'report.html'
    """
    places = _list_folders(folders)
    changed = tuple(words for folder in places for words in changed_files(folder))
    place = None if out is None else Path(out)
    if len(places) > 1:
        return Reported(write_runs(places, place, is_markdown=markdown), changed)
    write = write_markdown if markdown else write_report
    return Reported(write(places[0], place), changed)


def _list_folders(given: Place | Sequence[Place]) -> list[Path]:
    """The folders, each once."""
    listed = [given] if isinstance(given, str | os.PathLike) else given
    found = list(dict.fromkeys(map(Path, listed)))
    if not found:
        raise BadInput("no folder is given; give one that a command wrote, or several")
    return found
