"""The time and the error of each op: measured where the model runs, otherwise predicted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from litesmith.accuracy.scoring import MOST_DB
from litesmith.anatomy.known_times import is_integer, is_slow_integer, known_us
from litesmith.anatomy.source_file import SourceFile
from litesmith.data.samples import Data
from litesmith.diagnosis.float_pairs import find_twins
from litesmith.diagnosis.op_losses import FORM, MOVES, WEIGHTS, OpLoss, decibels, losses
from litesmith.errors import LitesmithError
from litesmith.graph_view.loss_path import Noise
from litesmith.graph_view.op_facts import Place
from litesmith.ir.ops import OPS
from litesmith.ir.types import Model
from litesmith.passes.core.step import Context
from litesmith.passes.quantizing.scales import Range, covered, form_of
from litesmith.passes.tidy.fold import Fold
from litesmith.phrases import phrase
from litesmith.profiling.op_times import OpTime, profile_ops
from litesmith.run.core.placement import MEASURED, PREDICTED
from litesmith.run.core.target import Target
from litesmith.run.trial_run import probe

XNNPACK, BUILTIN = "xnnpack", "builtin"


class TimeFact(NamedTuple):
    """The time of one op; None, with the reason in `why`, where it has no time of its own.

    kernel      the kernel: xnnpack, builtin, custom, litesmith; "" where unknown
    fused_into  the op of the same graph that does its work
    """

    us: float | None
    kernel: str
    fused_into: int | None = None
    why: str = ""


@dataclass(frozen=True)
class Timing:
    """The times of a model's ops; `how` is MEASURED or PREDICTED, `run_us` the time of a run."""

    how: str
    ops: Mapping[Place, TimeFact]
    run_us: float | None = None
    note: str = ""


def time_ops(source: SourceFile, target: Target, *, seconds: float | None) -> Timing:
    """Profiles a model for this many seconds; predicts times for None, or where the model does not
    run."""
    if seconds is None:
        return predict_times(source.model)
    try:
        if source.path is not None and source.is_file:
            probe(source.path, target)
        found = profile_ops(source.origin, target, seconds=seconds)
    except LitesmithError as error:
        return predict_times(source.model, phrase("not measured: {error}", error))
    if [(op.graph, op.index) for op in found.ops] != _places(source.model):
        return predict_times(
            source.model,
            phrase("not measured: what {target} runs is not the ops of the file", target),
        )
    ops = {(op.graph, op.index): _time_fact(op) for op in found.ops}
    return Timing(MEASURED, ops, found.run_us, found.note)


def _places(model: Model) -> list[Place]:
    return [(n, index) for n, graph in enumerate(model.graphs) for index in range(len(graph.ops))]


def _time_fact(op: OpTime) -> TimeFact:
    return TimeFact(op.us if op.kernel else None, op.kernel, op.fused_into, op.why)


def predict_times(model: Model, note: str = "") -> Timing:
    """Times from kind, form and size: they compare ops, and do not tell how long a run is."""
    ops: dict[Place, TimeFact] = {}
    for number, graph in enumerate(model.graphs):
        for index, op in enumerate(graph.ops):
            kernel = "custom" if op.is_custom else BUILTIN if is_slow_integer(op) else XNNPACK
            us = None if op.is_custom else known_us(op, is_integer=is_integer(op))
            ops[number, index] = TimeFact(us, kernel)
    return Timing(PREDICTED, ops, None, note)


class ErrorFact(NamedTuple):
    """What an op of the second model adds to its error, in dB of signal over noise.

    alone_db  of the error that the op adds to exact inputs
    total_db  of its output, with the errors of all earlier ops
    seen      the range of the first model's values on the data
    covered   the range that the second model's codes stand for
    noise     the same noise, as a share of the signal and absolute
    why       why there is no error of its own
    """

    alone_db: float | None
    total_db: float | None
    noise: Noise
    seen: Range | None = None
    covered: Range | None = None
    why: str = ""


@dataclass(frozen=True)
class OpErrors:
    """The errors of the ops of the second model's main graph, by index.

    samples  the number of samples behind the errors; `is_random` where they are made up
    note     why there are no errors
    """

    ops: Mapping[int, ErrorFact] = field(default_factory=dict[int, ErrorFact])
    samples: int = 0
    is_random: bool = False
    note: str = ""


def error_ops(a: Model, b: Model, data: Data) -> OpErrors:
    """The distance of each op of B from its counterpart in A."""
    try:
        reference = Fold(float16=True).apply(a, Context()).model
        seen = losses(b, reference, find_twins(b, reference), data)
    except LitesmithError as error:
        return OpErrors(note=phrase("no errors of single ops: {error}", error))
    ops = _error_facts(b, seen)
    return OpErrors(ops, len(data), data.items.is_random)


def _error_facts(model: Model, seen: Sequence[OpLoss]) -> dict[int, ErrorFact]:
    found: dict[int, ErrorFact] = {}
    for loss in seen:
        if loss.twin.op is None or loss.twin.place in found:
            continue
        moves = OPS[model.main.ops[loss.twin.place].kind].moves_data
        alone = _as_decibels(loss.noise(FORM) + loss.noise(WEIGHTS))
        form = form_of(loss.twin.ours)
        found[loss.twin.place] = ErrorFact(
            None if moves else alone,
            _as_decibels(loss.noise("total")),
            total_noise(loss),
            (loss.low, loss.high) if loss.low <= loss.high else None,
            None if form is None or loss.twin.quant is None else covered(form),
            MOVES if moves else "",
        )
    return found


def total_noise(loss: OpLoss) -> Noise:
    """The noise of an op's output, including that of all earlier ops."""
    return Noise(loss.noise("total"), loss.total.power)


def _as_decibels(noise: float) -> float:
    """Noise as a share of the signal, in dB; exact values get the largest number."""
    return round(min(decibels(1.0, noise), MOST_DB), 1)
