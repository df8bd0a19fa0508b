"""The memory that a model itself needs, measured in a child process that opens and runs it."""

import os

from litesmith import operating_system
from litesmith.ir.build import Builder
from litesmith.operating_system import reset_peak
from litesmith.run.core.child_process import answer, ask
from litesmith.run.core.target import Target
from litesmith.run.session import Session, fill_inputs
from litesmith.temporary import temporary_file
from litesmith.tflite.write import to_bytes

_RUNS = 2
_SECONDS = 120.0


def peak_bytes(source: str | os.PathLike[str] | bytes | memoryview, target: Target) -> int | None:
    """The increase of peak resident memory from opening the model and running it twice.

    A fresh process first runs a model of one op, so that the interpreter, the runtime's library and
    its fixed costs are part of the baseline. It then resets the peak (on Linux; elsewhere the
    growth is a lower bound) and opens the model. Pages of the mapped file count once they are
    touched. None where the system does not report a peak, or an earlier one hides the model's.
    """
    if isinstance(source, bytes | memoryview):
        with temporary_file(source) as path:
            return peak_bytes(path, target)
    answer = ask("litesmith.timing.memory", source, str(target), seconds=_SECONDS)
    return answer if isinstance(answer, int) else None


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
    is_reset = reset_peak()
    before = operating_system.peak_bytes()
    _run(path, target)
    after = operating_system.peak_bytes()
    if before is None or after is None or (after == before and not is_reset):
        return None
    return after - before


if __name__ == "__main__":
    answer(_growth)
