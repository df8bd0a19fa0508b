"""Files that are not finished yet: what a process that died has left is found, and goes.

A file that is being written has a name of its own, which tells the machine and the process that
writes it. Its place is noted for the process that guards this one, if one does; and the next that
writes in the same folder removes what a dead process has left there.
"""

import os
import re
import secrets
import socket
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from litesmith.operating_system import is_running

# Where a guarded process, and those that it starts, note what they write.
NOTES = "LITESMITH_UNFINISHED"

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)  # Windows has it
_NAME = re.compile(r"\.litesmith-([0-9a-f]{8})-(\d+)-.*\.part")


def open_part(folder: Path) -> tuple[int, str]:
    """A new file in a folder, open for writing, that does not outlive this process for long."""
    remove_left(folder)
    prefix = f".litesmith-{machine()}-{os.getpid()}-"
    name = os.path.abspath(folder / f"{prefix}{secrets.token_hex(8)}.part")
    notes = os.environ.get(NOTES)
    if notes:  # before there is anything to be left
        with suppress(OSError), open(notes, "a", encoding="utf-8") as file:
            file.write(f"{name}\0")
    return os.open(name, _NEW, 0o600), name


def remove_left(folder: Path) -> None:
    """Removes what processes of this machine that are dead by now were writing in a folder."""
    for path in folder.glob(".litesmith-*.part"):
        found = _NAME.fullmatch(path.name)
        if found and found[1] == machine() and not is_running(int(found[2])):
            with suppress(OSError):
                path.unlink()


def remove_noted(notes: Path) -> None:
    """Removes every file that a process has noted and not finished."""
    with suppress(OSError):
        for name in notes.read_text(encoding="utf-8").split("\0"):
            if _NAME.fullmatch(os.path.basename(name)):
                with suppress(OSError):
                    os.unlink(name)


def machine() -> str:
    """What tells this machine from others that share its folders."""
    return sha256(socket.gethostname().encode()).hexdigest()[:8]
