"""The memory that a model needs of its own: a child process opens it, runs it, and looks."""

import contextlib
import os
import sys
from pathlib import Path

from litesmith.ir.build import Builder
from litesmith.run.core.child_process import answer, ask
from litesmith.run.core.target import Target
from litesmith.run.session import Session, fill_inputs
from litesmith.temporary import temporary_file
from litesmith.tflite.write import to_bytes

_RUNS = 2
_SECONDS = 120.0


def peak_bytes(source: str | os.PathLike[str] | bytes | memoryview, target: Target) -> int | None:
    """How far opening the model and running it twice raises the peak of resident memory.

    A fresh process runs a model of one op first, so that the interpreter, the runtime's library
    and its fixed costs are in the start value; then it resets the peak (Linux lets it, elsewhere
    the growth of ru_maxrss is a lower bound) and opens the model. Pages of the mapped file count
    once they are touched. None where the system does not tell a peak.
    """
    if isinstance(source, bytes | memoryview):
        with temporary_file(source) as path:
            return peak_bytes(path, target)
    told = ask("litesmith.timing.memory", source, str(target), seconds=_SECONDS)
    return told if isinstance(told, int) else None


def _resident_peak() -> int | None:
    """The most bytes that were resident since the start, or since the last reset."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _reset_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _run(source: str | bytes, target: str) -> None:
    with Session(source, target) as session:
        fill_inputs(session)
        for _ in range(_RUNS):
            session.run()


def _smallest() -> bytes:
    b = Builder()
    x = b.input("x", (1, 4))
    return to_bytes(b.model(b.op("ADD", x, x)))


def _growth(path: str, target: str) -> int | None:
    _run(_smallest(), target)
    _reset_peak()
    before = _resident_peak()
    _run(path, target)
    after = _resident_peak()
    return None if before is None or after is None else after - before


if __name__ == "__main__":
    answer(_growth)
