"""LiteRT's GPU accelerator, asked what it takes: it opens the model, in a child process.

It takes one group of connected ops, the largest, and leaves the rest to the CPU. Nothing is run:
drivers build their programs in the first run, which can take a minute on a software one.

It dies of some models, and gives wrong results for others without a word. What is known of that is
refused: no setting keeps an op on the CPU. The rest is run once in a child process first.
"""

import json
import math

from litesmith.errors import CannotRun
from litesmith.ir.ops import late_tensors
from litesmith.ir.types import Graph, Model
from litesmith.phrases import phrase
from litesmith.run.core.child_process import ask, survive
from litesmith.run.core.placement import MEASURED, Home, Placement, refuse
from litesmith.run.core.target import FULL, Target
from litesmith.run.litert.capi import STATUSES
from litesmith.run.litert.gpu_messages import reasons
from litesmith.run.rules.gpu import flaw
from litesmith.temporary import temporary_folder
from litesmith.tflite.file import save
from litesmith.type_guards import is_list_or_tuple
from litesmith.units import percent_text

TARGET = "gpu"
_SECONDS = 120.0
_TAKEN = phrase("LiteRT's GPU accelerator took it")
_FAR = 0.25  # half precision came to 0.02 at most; wrong results are seldom nearer
_ELSEWHERE = phrase("it is outside the largest group of connected ops, the only one that is taken")


def gpu_place(model: Model) -> Placement:
    """Which ops LiteRT's GPU accelerator takes when it opens the model."""
    try:
        refuse_flaws(model)
        nodes, whys = _asked(model)
    except CannotRun as error:
        return refuse(TARGET, MEASURED, model, str(why_unopened(error, model.main)))
    homes = tuple(
        Home(n, op.kind, n in nodes, _TAKEN if n in nodes else whys.get(op.kind, _ELSEWHERE))
        for n, op in enumerate(model.main.ops)
    )
    return Placement(TARGET, MEASURED, homes, min(1, len(nodes)))


def refuse_flaws(model: Model) -> None:
    """Raises on ops that the accelerator takes and is known to compute wrongly or to die of."""
    for _, place, op in model.ops():
        why = flaw(op)
        if why:
            raise CannotRun("target gpu: op {place}, {why}; use cpu", place, why)


def try_out(content: bytes | memoryview, target: Target, signature: int) -> None:
    """Raises where a child process dies of the model, or comes far from the CPU's results."""
    words = str(target), str(signature)
    said = survive(content, ["-m", "litesmith.run.gpu_trial"], words, who="target gpu: LiteRT")
    told: dict[str, object] = json.loads(said) if said else {}
    far = told.get("result")
    if not told:
        raise CannotRun(
            "target {target}: the model cannot be tried in a child process; use cpu", target
        )
    if isinstance(far, int | float) and far > _FAR:
        away = phrase("{share} of the largest value away from the CPU's", percent_text(far))
        what = phrase("not finite where the CPU's are") if far == math.inf else away
        other = "" if target.kernels == FULL else phrase("{target}:{full} or ", TARGET, FULL)
        raise CannotRun(
            "target {target}: on random inputs its results are {what}; use {other}cpu",
            target,
            what,
            other,
        )


def why_unopened(error: CannotRun, graph: Graph) -> CannotRun:
    """The error in better words, where sizes depend on values: the runtime's are a number."""
    late = late_tensors(graph)
    first = next((t for op in graph.ops for t in op.outputs if t in late), None)
    custom = [op.custom for op in graph.ops if op.custom]
    if first is None and custom and str(error).endswith(STATUSES[3]):
        return CannotRun(
            "{error}; it may be for the custom operator {custom!r}; use cpu", error, custom[0]
        )
    if first is None:
        return error
    return CannotRun(
        "target gpu: the size of {name!r} depends on values, and a GPU must know all sizes "
        "before; use cpu",
        first.name,
    )


def _asked(model: Model) -> tuple[frozenset[int], dict[str, str]]:
    """The numbers of the ops that it takes, and why it does not take some kinds."""
    with temporary_folder("litesmith-gpu-") as folder:
        path = folder / "model.tflite"
        save(model, path)
        try:
            told = ask("litesmith.run.gpu_trial", path, seconds=_SECONDS)
        except CannotRun as error:
            raise CannotRun(str(error).removeprefix(f"{path}: ").replace(" on  (", " (")) from None
    return _read(told)


def _read(told: object) -> tuple[frozenset[int], dict[str, str]]:
    if not is_list_or_tuple(told):
        raise CannotRun("target gpu: the accelerator gives no answer")
    nodes, why = told
    assert is_list_or_tuple(nodes) and is_list_or_tuple(why)
    return frozenset(n for n in nodes if isinstance(n, int)), reasons(map(str, why))
