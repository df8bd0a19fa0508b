"""Files that are believed only where this user wrote them: sealed with a key nobody else can read.

What is kept between runs is loaded as code, or changes models. Whoever can write into the folder
could plant both, were it not for the seal: it covers the content and the file's name, and is
checked before a byte of the content is looked at.
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

# The key as a text, for a folder that several machines or users share: whoever knows it can have
# code run by all who use it.
KEY_VARIABLE = "LITESMITH_CACHE_KEY"

_LEAST_TEXT, _BYTES = 16, 32
_START = b"litesmith sealed 1\n"


def read_sealed(path: Path) -> memoryview | None:
    """What was written under this name; None where nothing was, or by someone else."""
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
    """Keeps it for later; raises BadInput or OSError where it cannot be written."""
    from litesmith.tflite.file import write_whole  # which takes a while to import

    key = None if why_not_kept() else _key()
    if key is not None:
        for place in (folder(), path.parent):
            if place is not None:
                place.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, [_START, _seal(key, path.name, content), content])


def why_not_kept() -> str:
    """Why nothing is kept, and the way out; "" where it is, or where nothing is to be kept."""
    place = folder()
    if place is None:
        return ""
    if os.environ.get(KEY_VARIABLE):
        return ""
    why = _why_shared(place)
    if why:
        return phrase(
            "{place}: is not used to keep anything, since {why}; `chmod 700` it if it is yours, or "
            "name another with {variable}; a shared one needs {key}",
            plain(str(place)),
            why,
            VARIABLE,
            KEY_VARIABLE,
        )
    if _key() is not None:
        return ""
    return phrase(
        "nothing is kept: {place} has no key that only you can read; remove it and it is made "
        "anew, or give {key}",
        plain(str(key_file() or "~")),
        KEY_VARIABLE,
    )


def _why_shared(place: Path) -> str:
    """Why others may have written into a folder; one that is only readable is closed to them."""
    try:
        status = place.stat()
    except OSError:  # there is none yet
        return ""
    if not hasattr(os, "geteuid"):  # Windows, where a profile is its user's
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
    """Where the key of this user lies: never in the folder that it is for."""
    place = settings_folder()
    return None if place is None else place / "cache.key"


def _key() -> bytes | None:
    """The key that was given, else this user's own, made where there is none; None for no key."""
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
    """A key of chance, whole or not at all; of two processes that make one, the first wins."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = open_part(place.parent)  # which the next that makes one removes, if left
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
    made.update(sha256(name.encode()).digest())  # of one length: no name can run into a content
    made.update(content)
    return made.digest()
