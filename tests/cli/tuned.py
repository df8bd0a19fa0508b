"""`litesmith` as a child process in whose folder a search runs."""

import os
import subprocess
import sys
from pathlib import Path

from tests.forked import CAN_FORK, ROOT, forked

HURRIED = "from tests.search.choosing.taught import hurried_command; hurried_command()"


def environment() -> dict[str, str]:
    """That of this process, where the tests can be imported too."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "COLUMNS": "80", "PYTHONPATH": os.pathsep.join(paths)}


def hurried_litesmith(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    if not CAN_FORK:
        return fresh_hurried_litesmith(*words, cwd=cwd)
    typed = [*map(str, words)]
    return forked(HURRIED, typed, cwd=cwd, variables=environment(), seconds=180)


def fresh_hurried_litesmith(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HURRIED, *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(),
        timeout=180,
        check=False,
    )
