"""Files that are trusted only if this user wrote them: sealed with a key that nobody else can read.

Files that are kept between runs are loaded as code, or change models. Without a seal, whoever can
write into the folder could plant either. The seal covers the content and the file's name, and is
checked before a byte of the content is used.
"""

import hmac
import os
import secrets
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from litesmith.errors import BadInput
from litesmith.native.user_cache import VARIABLE, folder
from litesmith.operating_system import is_endless, settings_folder
from litesmith.phrases import phrase
from litesmith.unfinished import open_part
from litesmith.units import plain

# The key as a text, for a folder that several machines or users share: whoever knows the key can
# run code as each of them.
KEY_VARIABLE = "LITESMITH_CACHE_KEY"

_LEAST_TEXT, _BYTES = 16, 32
_START = b"litesmith sealed 1\n"


def read_sealed(path: Path) -> memoryview | None:
    """The content of a sealed file; None where there is none, or where the seal is not ours."""
    key = None if why_not_kept() else _key()
    if key is None:
        return None
    try:
        whole = memoryview(b"" if is_endless(path) else path.read_bytes())
    except OSError:
        return None
    start, content = len(_START), whole[len(_START) + _BYTES :]
    if bytes(whole[:start]) != _START:
        return None
    seal = whole[start : start + _BYTES]
    return content if hmac.compare_digest(seal, _seal(key, path.name, content)) else None


def write_sealed(path: Path, content: bytes | memoryview) -> None:
    """Writes content with a seal; raises BadInput or OSError where it cannot be written."""
    from litesmith.tflite.file import write_whole  # this module is slow to import

    key = None if why_not_kept() else _key()
    if key is not None:
        for place in (folder(), path.parent):
            if place is not None:
                place.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, [_START, _seal(key, path.name, content), content])


def why_not_kept() -> str:
    """Why nothing can be kept, and the way out; "" where files are kept, or are not meant to be."""
    place = folder()
    if place is None:
        return ""
    if os.environ.get(KEY_VARIABLE):
        return ""
    why = _why_shared(place)
    if why:
        return phrase(
            "{place}: nothing is kept in this folder, because {why}; `chmod 700` it if it is "
            "yours, or name another folder with {variable}; a shared folder needs {key}",
            plain(str(place)),
            why,
            VARIABLE,
            KEY_VARIABLE,
        )
    if _key() is not None:
        return ""
    return phrase(
        "nothing is kept: {place} has no key that only you can read; remove it, and a new one is "
        "made, or give {key}",
        plain(str(key_file() or "~")),
        KEY_VARIABLE,
    )


def _why_shared(place: Path) -> str:
    """Why others may have written into a folder; "" where they cannot. A folder that others can
    only read is closed to them.
    """
    try:
        status = place.stat()
    except OSError:  # no folder yet
        return ""
    if not hasattr(os, "geteuid"):  # on Windows, only its user can write into a profile
        return ""
    if status.st_uid != os.geteuid():
        return phrase("it belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return phrase("others can write into it")
    if status.st_mode & 0o077:
        with suppress(OSError):
            place.chmod(0o700)
    return ""


def key_file() -> Path | None:
    """The path of this user's key, which is never in the folder that it protects."""
    place = settings_folder()
    return None if place is None else place / "cache.key"


def _key() -> bytes | None:
    """The given key, else this user's own key, which is made if missing; None where there is no
    usable key.
    """
    given = os.environ.get(KEY_VARIABLE, "")
    if given:
        if len(given) < _LEAST_TEXT:
            raise BadInput(
                "{key}: anyone could guess it; give at least {least} characters of chance",
                KEY_VARIABLE,
                _LEAST_TEXT,
            )
        return sha256(given.encode("utf-8", "surrogateescape")).digest()
    place = key_file()
    if place is None:
        return None
    try:
        return _own_key(place)
    except FileNotFoundError:
        with suppress(OSError):
            _make_key(place)
            return _own_key(place)
    except OSError:
        return None
    return None


def _own_key(place: Path) -> bytes | None:
    """The key in a file that nobody else can read; None where others can."""
    handle = os.open(place, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        is_private = not hasattr(os, "geteuid") or (
            status.st_uid == os.geteuid() and not status.st_mode & 0o077
        )
        content = file.read(_BYTES + 1) if is_private and stat.S_ISREG(status.st_mode) else b""
    return content if len(content) == _BYTES else None


def _make_key(place: Path) -> None:
    """Writes a random key, whole or not at all; of two processes that make one, the first wins."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # a leftover is removed by the next process that makes a key
    handle, name = open_part(place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_BYTES))
        try:
            os.link(name, place)
        except FileExistsError:
            return
        except (AttributeError, OSError):  # a file system, or a phone, without links
            os.replace(name, place)
    finally:
        Path(name).unlink(missing_ok=True)


def _seal(key: bytes, name: str, content: bytes | memoryview) -> bytes:
    made = hmac.new(key, digestmod="sha256")
    # fixed lengths, so that no name can continue into the content
    made.update(sha256(name.encode()).digest())
    made.update(content)
    return made.digest()
