"""The op at which the runtime crashes: each op of the main graph runs as a model of its own, in a
child process that says which one comes next."""

import os
import sys
from contextlib import suppress
from dataclasses import replace

from litesmith.errors import LitesmithError
from litesmith.ir.edit import regraph, with_main
from litesmith.ir.types import Model, Op
from litesmith.operating_system import crash_name, end_by_crash
from litesmith.run.core.child_process import run_program
from litesmith.run.session import Session, fill_inputs
from litesmith.tflite.file import load

_SECONDS = 60.0


def find_crashing_op(path: str | os.PathLike[str], target: str) -> int | None:
    """The number of the first op of the main graph whose kernel crashes; None where none does by
    itself."""
    words = "litesmith.run.crashing_op", os.fspath(path), target
    child = run_program([sys.executable, "-P", "-m", *words], _SECONDS)
    if child is None or not crash_name(child.returncode):
        return None
    numbers = [int(line) for line in child.stdout.split() if line.isdigit()]
    return numbers[-1] if numbers else None


def _alone(model: Model, op: Op) -> Model:
    """The op with what flows into it as inputs; its constants and its state stay its own."""
    flowing = [t for t in op.inputs if t is not None and not t.is_const and not t.variable]
    inputs = list(dict.fromkeys(flowing))
    graph = regraph(model.main, ops=[op], inputs=inputs, outputs=op.outputs)
    return with_main(replace(model, signatures=(), metadata=()), graph)


def _run_each(path: str, target: str) -> None:
    model = load(path)
    for number, op in enumerate(model.main.ops):
        print(number, flush=True)
        with suppress(LitesmithError), Session(_alone(model, op), target) as session:
            fill_inputs(session)
            session.run()


if __name__ == "__main__":
    with end_by_crash():
        _run_each(*sys.argv[1:])
