"""Work in a process of its own: its memory, its noise and its crashes stay there."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

from litesmith.errors import CannotRun, LitesmithError
from litesmith.phrases import phrase
from litesmith.units import plain


def ask(module: str, path: str | os.PathLike[str], *words: str, seconds: float) -> object:
    """What the module prints as JSON for these words, run as a program for at most so long."""
    # -P: modules come from where the package is, not from the folder the user happens to be in.
    command = [sys.executable, "-P", "-m", module, os.fspath(path), *words]
    try:
        child = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CannotRun(
            "{path}: took over {seconds:g} s in a child process; it was stopped", path, seconds
        ) from None
    if child.returncode < 0:
        raise CannotRun(
            "{path}: the runtime crashed on {words} ({name}); the model is damaged, or the "
            "runtime has a bug",
            path,
            " ".join(words),
            signal.Signals(-child.returncode).name,
        )
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
    """The child's side: calls the function with the program's words and prints what it returns."""
    try:
        told = {"result": measure(*sys.argv[1:])}
    except LitesmithError as error:
        told = {"refused": str(error)}
    print(json.dumps(told))
