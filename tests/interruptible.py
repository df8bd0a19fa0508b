"""A fresh Python that Ctrl-C reaches.

A shell starts a background job with interrupts ignored, and the job's children inherit that. The
product must keep it so, as `nohup litesmith tune … &` is meant to go on. A test that interrupts its
child therefore gives the child the default back.
"""

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def started(
    *words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_default_interrupts,
    )


def _default_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
