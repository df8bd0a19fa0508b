"""A model opened on the GPU in a process of its own, which may die of it: which ops were taken."""

import os
from pathlib import Path

from litesmith.errors import CannotRun
from litesmith.run.core.child_process import answer
from litesmith.run.core.target import Target
from litesmith.run.litert.compiled_model import CompiledRunner, NeedsInterpreter
from litesmith.run.litert.gpu_messages import LEFT_OUT, taken_nodes
from litesmith.tflite.file import load


def taken(path: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The ops of the main graph that are taken, and why others are not. Where some are not, the
    model is opened once more, for their numbers."""
    content, ops = Path(path).read_bytes(), len(load(path).main.ops)
    try:
        first = CompiledRunner(content, Target("gpu"))
    except NeedsInterpreter as reason:
        raise CannotRun("target gpu: {reason}; use cpu", reason) from None
    share = first.share
    first.close()
    if share is None:
        return tuple(range(ops)), ()
    os.environ[LEFT_OUT] = ",".join(map(str, range(ops)))
    return taken_nodes(CompiledRunner(content, Target("gpu")).remarks), share.why


if __name__ == "__main__":
    answer(taken)
