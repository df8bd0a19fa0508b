"""A fresh Python that Ctrl-C reaches.

A shell starts a background job with interrupts ignored, and the job's children inherit that. The
product must keep it so, as `nohup litesmith tune … &` is meant to go on. A test that interrupts its
child therefore gives the child the default back.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.slowness import patient


def started(
    *words: object,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    own_group: bool = False,
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_default_interrupts if os.name == "posix" else None,
        start_new_session=own_group,
    )


def _default_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for_file(path: Path, process: subprocess.Popen[str]) -> None:
    """Until the process has made a file; a process that ends without it fails the test."""
    end = time.monotonic() + patient(120)
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, f"{path.name} was not made in time"
        time.sleep(0.005)
