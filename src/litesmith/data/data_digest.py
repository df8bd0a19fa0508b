"""Whether a file or folder of data has changed, before anything in it is decoded."""

from hashlib import file_digest, sha256
from itertools import chain
from pathlib import Path

from litesmith.data.images import ENDINGS
from litesmith.tasks.sound import ENDINGS as SOUND_ENDINGS

_ENDINGS = ENDINGS | {*SOUND_ENDINGS}


def data_digest(place: Path) -> str:
    """The digest of a file's bytes. For a folder, the digest of the names and sizes of the images
    and clips in it and in its subfolders, without opening them. "" where nothing exists."""
    if place.is_file():
        with place.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    if not place.is_dir():
        return ""
    files = [path for path in chain(place.glob("*"), place.glob("*/*")) if _is_item(path)]
    rows = sorted(f"{path.relative_to(place).as_posix()}\0{path.stat().st_size}" for path in files)
    return sha256("\n".join(rows).encode(errors="surrogateescape")).hexdigest()


def _is_item(path: Path) -> bool:
    return path.suffix.lower() in _ENDINGS and path.is_file()
