"""`cache`: what is kept between runs, and where."""

from dataclasses import dataclass
from pathlib import Path

from litesmith.arguments import check_types
from litesmith.calibration.observed_cache import VARIABLE, Kept, clear, folder, held
from litesmith.display import show_html, show_line
from litesmith.errors import BadInput
from litesmith.phrases import phrase
from litesmith.units import bytes_text, plain


@dataclass(frozen=True, repr=False)
class CacheState:
    """What is kept between runs, or was until it was cleared.

    folder   None where nothing is kept
    cleared  True where the files have been removed
    """

    folder: Path | None
    files: int = 0
    bytes: int = 0
    cleared: bool = False

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        if self.folder is None:
            return phrase(
                "nothing is kept: {variable} is empty, or there is no home folder", VARIABLE
            )
        place, what = (
            plain(str(self.folder)),
            phrase("{files} files, {size}", self.files, bytes_text(self.bytes)),
        )
        return (
            phrase("removed {what} from {place}", what, place)
            if self.cleared
            else f"{place}: {what}"
        )

    def to_rows(self) -> list[dict[str, object]]:
        shown = "" if self.folder is None else str(self.folder)
        return [{"folder": shown, "files": self.files, "bytes": self.bytes}]


@check_types
def cache(action: str = "") -> CacheState:
    """What is kept between runs and where; with the action "clear" it is removed."""
    if action not in ("", "clear"):
        raise BadInput("cache {action}: there is only clear", action)
    place = folder()
    if place is None:
        return CacheState(None)
    kept: Kept = clear() if action else held()
    return CacheState(place, kept.files, kept.nbytes, bool(action))
