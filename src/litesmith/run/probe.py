"""One trial run of an unknown file in a child process, so that native code that crashes takes
nothing with it."""

import os
import signal
import subprocess
import sys

from litesmith.errors import CannotRun, LitesmithError
from litesmith.run.session import Session
from litesmith.run.target import Target

_REFUSED = 3  # the child's exit status for a clear refusal, which it prints
_SECONDS = 120


def probe(path: str | os.PathLike[str], target: str | Target = "cpu:1") -> None:
    """Raises CannotRun where opening the model or running it once fails or kills the process."""
    try:
        child = subprocess.run(
            [sys.executable, "-m", "litesmith.run.probe", os.fspath(path), str(target)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CannotRun(
            f"{path}: one run on {target} took over {_SECONDS} s; it was stopped"
        ) from None
    if child.returncode == _REFUSED:
        raise CannotRun(child.stdout.decode("utf-8", "replace").strip())
    if child.returncode:
        raise CannotRun(
            f"{path}: the runtime crashed on {target} ({_death(child.returncode)}); "
            "the model is damaged, or the runtime has a bug"
        )


def _death(status: int) -> str:
    if status < 0:
        return signal.Signals(-status).name
    return f"exit status {status}"


def _main(path: str, target: str) -> int:
    try:
        with Session(path, target) as session:
            session.run()
    except LitesmithError as error:
        print(str(error))
        return _REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
