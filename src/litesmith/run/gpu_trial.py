"""A model tried on the GPU in a process of its own, which may die of it: which ops it takes, and
how far its results are from the CPU's."""

import math
import os
from pathlib import Path

import numpy as np

from litesmith.errors import CannotRun
from litesmith.ir.types import Array
from litesmith.run.core.child_process import answer
from litesmith.run.core.target import Target
from litesmith.run.litert.compiled_model import CompiledRunner, NeedsInterpreter
from litesmith.run.litert.gpu_messages import LEFT_OUT, taken_nodes
from litesmith.run.session import random_values
from litesmith.tflite.file import load


def _try_out(path: str, *words: str) -> object:
    """Returns the difference, given a target and the number of a signature; otherwise the ops
    taken."""
    return difference(path, *words) if words else taken(path)


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


def difference(path: str, target: str, signature: str) -> float | None:
    """How far the floats and 8-bit values are apart at most, as a share of the largest one of their
    output; None where there is nothing to compare. Other results are choices, which may differ."""
    content, number = Path(path).read_bytes(), int(signature)
    found = _results(content, Target.parse(target), number)
    try:
        wanted = _results(content, Target(), number)
    except CannotRun:
        return None
    pairs = zip(found, wanted, strict=True)
    return max((_apart(ours, right) for ours, right in pairs if _is_number(right)), default=None)


def _results(content: bytes, target: Target, signature: int) -> list[Array]:
    try:
        runner = CompiledRunner(content, target, signature=signature)
        random = np.random.default_rng(0)
        for port in runner.inputs:
            port.array[...] = random_values(random, port.array)
        runner.run()
    except NeedsInterpreter as reason:
        raise CannotRun(str(reason)) from None
    return [port.array.copy() for port in runner.outputs]


def _is_number(array: Array) -> bool:
    return array.dtype.kind == "f" or (array.dtype.itemsize == 1 and array.dtype.kind in "iu")


def _apart(ours: Array, right: Array) -> float:
    known = np.isfinite(right)
    ours, right = (np.where(known, array, 0).astype(np.float64) for array in (ours, right))
    if not np.isfinite(ours).all():
        return math.inf
    largest = float(np.abs(right).max(initial=0)) or 1.0
    return float(np.abs(ours - right).max(initial=0)) / largest


if __name__ == "__main__":
    answer(_try_out)
