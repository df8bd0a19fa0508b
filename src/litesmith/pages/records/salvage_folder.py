"""Reads the files of a folder as far as possible: another version, a crash or a person may have
written them.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from litesmith.errors import BadInput, LitesmithError, os_reason
from litesmith.evidence.codec import Malformed, Salvaged, is_object, parse, read_record, salvage
from litesmith.evidence.folder import RECORDS
from litesmith.phrases import phrase
from litesmith.tflite.file import digest

T = TypeVar("T")


def read_summary(kind: type[T], path: Path) -> Salvaged[T]:
    """The record that a command wrote; raises where it is damaged."""
    command = RECORDS[path.name]
    try:
        shown = parse(read_record(path))
    except (OSError, Malformed) as error:
        why = os_reason(error) if isinstance(error, OSError) else error
        raise BadInput(
            "{path}: cannot be read ({why}); run `litesmith {command}` again", path, why, command
        ) from None
    if not is_object(shown):
        raise BadInput(
            "{path}: is not what `litesmith {command}` writes; run it again", path, command
        )
    found, losses = salvage(kind, shown)
    return Salvaged(found, _name_losses(path, losses))


def read_inside(kind: type[T], folder: Path, digest: str) -> Salvaged[T | None]:
    """The bulky details of a model; None where there are none, or where the digest is no plain file
    name.
    """
    if not digest.isalnum():
        return Salvaged(None, ())
    return read_optional(kind, folder / "evidence" / f"{digest}.json")


def read_optional(kind: type[T], path: Path) -> Salvaged[T | None]:
    """A file that need not be there, nor be whole."""
    try:
        found, losses = salvage(kind, parse(read_record(path)))
    except FileNotFoundError:
        return Salvaged(None, ())
    except (OSError, Malformed) as error:
        why = os_reason(error) if isinstance(error, OSError) else str(error)
        return Salvaged(None, (f"{path.name}: {why}",))
    return Salvaged(found, _name_losses(path, losses))


def find_changed(files: Iterable[tuple[Path, str]]) -> tuple[str, ...]:
    """A sentence for each file that differs from the one measured, by its digest; a missing file
    does not count as different."""
    return tuple(
        phrase(
            "{path}: this is not the file that was measured, so this page does not describe it",
            path,
        )
        for path, wanted in files
        if wanted and _is_changed(path, wanted)
    )


def _is_changed(path: Path, wanted: str) -> bool:
    try:
        return path.is_file() and digest(path) != wanted
    except (OSError, ValueError, LitesmithError):  # such a file cannot be opened
        return False


def _name_losses(path: Path, losses: Sequence[str]) -> tuple[str, ...]:
    return tuple(phrase("{name}: {why}", path.name, why) for why in losses)
