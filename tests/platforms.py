"""Which systems a test can run on."""

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest


def _can_link() -> bool:
    """Windows lets few users make links, and Wine makes none that Python takes for one."""
    with tempfile.TemporaryDirectory() as folder, suppress(OSError):
        link = Path(folder) / "link"
        link.symlink_to(Path(folder) / "nothing")
        return link.is_symlink()
    return False


posix = pytest.mark.skipif(
    os.name != "posix", reason="Windows has no signals, modes, pipes with names and POSIX shells"
)
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has it")
# A Windows of Wine's also shows what Linux has in /proc.
has_proc = pytest.mark.skipif(
    os.name != "posix" or not os.path.isdir("/proc/self/fd"), reason="no files of processes"
)
links = pytest.mark.skipif(not _can_link(), reason="no symbolic links")
