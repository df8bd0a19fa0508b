"""Which systems a test can run on."""

import os
import sys

import pytest

posix = pytest.mark.skipif(
    os.name != "posix", reason="Windows has no signals, modes, pipes with names and POSIX shells"
)
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has it")
# A Windows of Wine's also shows what Linux has in /proc.
has_proc = pytest.mark.skipif(
    os.name != "posix" or not os.path.isdir("/proc/self/fd"), reason="no files of processes"
)
