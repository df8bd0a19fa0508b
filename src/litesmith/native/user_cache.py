"""Where compiled code and all that can be made again is kept: the platform's folder for it."""

import os
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

# Names another folder; an empty text means that nothing is kept.
VARIABLE = "LITESMITH_CACHE"

# The rooms whose functions become machine code.
_SOURCES, _COMPILED = Path(__file__).parents[1], ("native", "kernels")


def folder() -> Path | None:
    """The folder, which need not exist yet; None for nowhere."""
    if VARIABLE in os.environ:
        return Path(os.environ[VARIABLE]) if os.environ[VARIABLE] else None
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home
        return None
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "litesmith"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"
        return Path(local) / "litesmith" / "Cache"
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if os.path.isabs(given) else home / ".cache") / "litesmith"


@cache
def sources_digest() -> str:
    """Of every file that compiled code is made from: code of other sources is not this one's."""
    content = sha256()
    for path in sorted(_SOURCES.rglob("*.py")):
        if path.relative_to(_SOURCES).parts[0] not in _COMPILED:
            continue
        content.update(path.read_bytes())
    return content.hexdigest()[:16]


def compiled_files() -> Iterator[Path]:
    """Everything that numba has put there for us."""
    place = folder()
    if place is not None:
        yield from (place / "jit").glob("*loop*.nb[ci]")


def forget_others(place: Path) -> None:
    """Removes code that was made from other sources."""
    for path in place.glob("*loop*.nb[ci]"):
        if sources_digest() not in path.name:
            path.unlink(missing_ok=True)
