"""Work in a process of its own: its memory, its noise and its crashes stay there."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from litesmith.errors import CannotRun, LitesmithError
from litesmith.operating_system import crash_name, end_by_crash, limit_child
from litesmith.phrases import phrase
from litesmith.temporary import temporary_file
from litesmith.units import plain

# The environment variable for the longest time of one native call, in seconds.
CALL_SECONDS = "LITESMITH_CALL_SECONDS"
_CALL_SECONDS = 600.0
_MOST_SECONDS = 2e6  # the longest that every system can wait for: 2^31 ms


def call_seconds() -> float:
    """The longest time of one native call, in this process or in a child of it."""
    try:
        seconds = float(os.environ.get(CALL_SECONDS, ""))
    except ValueError:
        return _CALL_SECONDS
    return min(seconds, _MOST_SECONDS) if seconds > 0 else _CALL_SECONDS


def run_program(
    command: Sequence[str],
    seconds: float,
    *,
    stderr: int = subprocess.DEVNULL,
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes] | None:
    """Runs a program without input, and returns its output; None where it had to be stopped after
    this many seconds."""
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=folder,
            env=env,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None


class Crashed(CannotRun):
    """Native code died in a child process, of what `how` names."""

    def __init__(self, path: str | os.PathLike[str], words: str, how: str) -> None:
        super().__init__(
            "{path}: the runtime crashed on {words} ({name}); the model is damaged, or the "
            "runtime has a bug; litesmith targets MODEL has other places to run it",
            path,
            words,
            how,
        )
        self.how = how


def ask(module: str, path: str | os.PathLike[str], *words: str, seconds: float) -> object:
    """The JSON that the module prints for these words, run as a program for at most this many
    seconds."""
    # -P: modules come from where the package is, not from the folder the user happens to be in.
    command = [sys.executable, "-P", "-m", module, os.fspath(path), *words]
    seconds = min(seconds, call_seconds())
    child = run_program(command, seconds, stderr=subprocess.PIPE)
    if child is None:
        raise CannotRun(
            "{path}: took over {seconds:g} s in a child process; it was stopped", path, seconds
        )
    crash = crash_name(child.returncode)
    if crash:
        raise Crashed(path, " ".join(words), crash)
    if child.returncode:
        (*_, cause) = ("", *child.stderr.decode(errors="replace").split("\n")[:-1])
        raise RuntimeError(
            phrase(
                "{module} failed in a child process, status {returncode}: {cause}",
                module,
                child.returncode,
                plain(cause),
            )
        )
    told = json.loads(child.stdout.splitlines()[-1])  # custom ops may print before it
    if "refused" in told:
        raise CannotRun(told["refused"])
    return told["result"]


def answer(measure: Callable[..., object]) -> None:
    """The child's side: calls the function with the program's words and prints its result."""
    limit_child()
    try:
        with end_by_crash():
            told = {"result": measure(*sys.argv[1:])}
    except LitesmithError as error:
        told = {"refused": str(error)}
    print(json.dumps(told))


_SECONDS = 300.0
_told: dict[tuple[str, ...], str] = {}  # by digest and words, what a child said that survived


def survive(
    content: bytes | memoryview, program: Sequence[str], words: Sequence[str], *, who: str
) -> str:
    """What a child process prints about the model, the program's first word; "" where it ends with
    status 1. Raises where it dies of it. What was survived once is not tried again."""
    key = sha256(content).hexdigest(), *program, *words
    if key not in _told:
        with temporary_file(content, prefix="litesmith-trial-") as path:
            _told[key] = _said(path, [*program, str(path), *words], who)
    return _told[key]


def _said(path: Path, words: list[str], who: str) -> str:
    # -P: else modules beside the program would be taken for packages of their names.
    # Where a module was found from a relative folder, it must be found from the other one too.
    folders = [os.path.abspath(folder) for folder in sys.path if folder]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    # A dump of its memory is gone with the folder.
    child = run_program([sys.executable, "-P", *words], _SECONDS, folder=path.parent, env=env)
    if child is None:
        raise CannotRun("{who} took over {seconds:g} s to open the model; use cpu", who, _SECONDS)
    if child.returncode not in (0, 1):  # 1: it will say to us what it said to the child
        status = child.returncode
        how = crash_name(status) or phrase("status {status}", status)
        raise CannotRun(
            "{who} crashes on the model ({how}), which is a bug of its own; use cpu", who, how
        )
    return "" if child.returncode else child.stdout.decode(errors="replace")
