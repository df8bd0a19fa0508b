"""`litesmith` as a child process that begins where the imports are done, and ends where Python
would begin to take them down.

It is a process of its own all the same: its folder, its variables, its streams, its exit status.
A test of how Python itself starts (hash seeds, modules of the folder) takes a fresh one instead.
"""

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO

from tests.slowness import patient

ROOT = Path(__file__).resolve().parents[1]
# Nothing of the command line: what it imports may look at variables of the one command.
_IMPORTED = (
    *(
        "litesmith.pages.folder_kinds",
        "litesmith.search.choosing.choose_models",
        "litesmith.search.tuning.tune_search",
    ),
    *(
        "litesmith.regression.comparison",
        "litesmith.profiling.op_times",
        "litesmith.training.teaching.retraining",
    ),
    *("PIL.Image", "rich.console", "rich.progress", "rich.table", "click"),
)
_LARGEST = 1 << 17  # bytes of the words and variables of a command
CAN_FORK = sys.platform == "linux"  # where one socket can say it all; a fresh Python elsewhere


def forked(
    program: str,
    words: list[str],
    *,
    cwd: Path | None,
    variables: Mapping[str, str],
    seconds: float,
) -> subprocess.CompletedProcess[str]:
    """What this program of Python's prints and ends with, given these words."""
    if not CAN_FORK:
        return subprocess.run(
            [sys.executable, "-c", program, *words],
            capture_output=True,
            text=True,
            cwd=cwd,
            env=variables,
            timeout=patient(seconds),
            check=False,
        )
    asked = [program, words, str(cwd or Path.cwd()), dict(variables)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        line = _nursery(os.getpid())
        line.settimeout(patient(seconds))
        socket.send_fds(line, [json.dumps(asked).encode()], [out.fileno(), err.fileno()])
        child = int(line.recv(_LARGEST))
        try:
            status = int(line.recv(_LARGEST))
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            line.recv(_LARGEST)
            raise
        return subprocess.CompletedProcess(
            ["python", "-c", program, *words], status, _text(out), _text(err)
        )


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode().replace("\r\n", "\n")


@cache
def _nursery(_: int) -> socket.socket:
    """The line to the process that children are forked from; it ends when the line is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.Popen(
            [sys.executable, "-m", "tests.forked", str(theirs.fileno())],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
    return ours


def _serve(line: socket.socket) -> None:
    """Forks a child for each command, and tells its number and then its status."""
    for name in _IMPORTED:
        import_module(name)
    gc.freeze()
    while True:
        message, streams, *_ = socket.recv_fds(line, _LARGEST, 2)
        child = os.fork() if message else 0
        if child == 0:
            break
        for stream in streams:
            os.close(stream)
        line.send(b"%d" % child)
        line.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    line.close()
    if message:
        program, words, cwd, variables = json.loads(message)
        _become(program, words, cwd, variables, streams)


def _become(
    program: str, words: list[str], cwd: str, variables: dict[str, str], streams: list[int]
) -> None:
    for place, stream in enumerate(streams, start=1):
        os.dup2(stream, place)
        os.close(stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv[1:] = words
    sys.path[0] = cwd  # as with `python -m`
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    ends: list[object] = []
    atexit.register(_leave, ends)  # called last
    try:
        exec(program, {"__name__": "__main__"})
        ends.append(None)
    except SystemExit as end:
        ends.append(end.code)
        raise


def _leave(ends: list[object]) -> None:
    """Ends the process when all is done but the taking down; other exceptions are Python's."""
    for end in ends:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0 if end is None else end & 0xFF if isinstance(end, int) else 1)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
