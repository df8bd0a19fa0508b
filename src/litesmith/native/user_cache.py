"""The platform's folder for compiled code and everything else that can be made again."""

import os
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

from litesmith.operating_system import cache_folder

# The variable that names another folder; if it is empty, nothing is kept.
VARIABLE = "LITESMITH_CACHE"

_SOURCES, _SHARED = Path(__file__).parents[1], "native"


def folder() -> Path | None:
    """The cache folder, which need not exist yet; None where nothing is kept."""
    if VARIABLE in os.environ:
        return Path(os.environ[VARIABLE]) if os.environ[VARIABLE] else None
    return cache_folder()


def code_folder(room: str) -> Path | None:
    """The folder for the compiled functions of a room; None where nothing is kept."""
    place = folder()
    return None if place is None else place / "jit" / room


def weights_folder() -> Path | None:
    """The folder for fetched weights; None where nothing is kept."""
    place = folder()
    return None if place is None else place / "weights"


def weights_files() -> Iterator[Path]:
    """The files of kept weights, each named by its digest."""
    place = weights_folder()
    if place is not None:
        yield from place.glob("*.weights")


@cache
def sources_digest(room: str) -> str:
    """A digest of every source file behind a room's compiled code: those of this room and its
    own.
    """
    content = sha256()
    for name in sorted({_SHARED, room}):
        for path in sorted((_SOURCES / name).rglob("*.py")):
            content.update(path.read_bytes())
    return content.hexdigest()[:16]


def compiled_files() -> Iterator[Path]:
    """All compiled files in the cache."""
    place = folder()
    if place is not None:
        yield from (place / "jit").rglob("*loop*.nb[ci]")


def forget_others(place: Path, room: str) -> None:
    """Removes compiled code of a room that was made from other sources."""
    for path in place.glob("*loop*.nb[ci]"):
        if sources_digest(room) not in path.name:
            path.unlink(missing_ok=True)
