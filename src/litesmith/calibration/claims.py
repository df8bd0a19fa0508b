"""Claims about a written file, checked on that file: integers only, XNNPACK only, near the
original."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from litesmith.accuracy.scoring import MOST_DB
from litesmith.calibration.context import RandomSamples
from litesmith.calibration.outside_xnnpack import outside_xnnpack
from litesmith.data.answers import Outputs, outputs_of
from litesmith.data.sample_splits import look_at_some
from litesmith.data.samples import Data, Sample
from litesmith.errors import CannotRun, LitesmithError
from litesmith.ir.dtype import DTYPES
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Model, Op, op_tensors
from litesmith.passes.core.step import Skip
from litesmith.phrases import phrase
from litesmith.tasks.detectors import POSTPROCESS
from litesmith.tflite.file import load
from litesmith.units import plain

# The number of samples to run a result on.
_TRIED = 8

# Below this, in dB, an output is no longer the same answer.
_BROKEN_DB = 3.0

_NOT_LOOKED = phrase("it was not profiled: litesmith profile tells")


class OpGroup(NamedTuple):
    """Ops of one kind that share a reason, "" where none is known."""

    kind: str
    ops: int
    why: str = ""


class OutputDrift(NamedTuple):
    """The distance of one output from the float model's.

    snr_db   None where the float model outputs only zeros, so that there is no ratio
    is_lost  True where it is NaN or infinite and the float model's is not
    """

    output: str
    snr_db: float | None
    is_lost: bool

    @property
    def is_broken(self) -> bool:
        return self.is_lost or (self.snr_db is not None and self.snr_db < _BROKEN_DB)


@dataclass(frozen=True)
class Claims:
    """The findings about a written file.

    failure      why it does not run; "" where it does
    float_ops    the ops that compute in float; none in a fully integer file
    conversions  QUANTIZE and DEQUANTIZE ops between float and integers inside the model
    outside      the ops that ran outside XNNPACK; None where the runtime could not tell
    unknown      why it could not
    drift        the drift of each output from the float model
    tried        the number of samples that it was tried on
    """

    failure: str
    float_ops: tuple[OpGroup, ...]
    conversions: int
    outside: tuple[OpGroup, ...] | None
    unknown: str
    drift: tuple[OutputDrift, ...]
    tried: int

    @property
    def is_integer(self) -> bool:
        """True where no float tensor is left but inputs and outputs of the model itself."""
        return not self.float_ops and not self.conversions

    @property
    def in_xnnpack(self) -> bool:
        return self.outside == () and not self.failure

    @property
    def is_useless(self) -> bool:
        """True where the file does not run, or outputs no numbers."""
        return bool(self.failure) or any(drift.is_lost for drift in self.drift)

    @property
    def worst(self) -> OutputDrift | None:
        """The output that has drifted most."""
        known = [d for d in self.drift if d.snr_db is not None or d.is_lost]
        return min(known, key=lambda d: (not d.is_lost, d.snr_db or 0.0)) if known else None

    def facts(self) -> dict[str, object]:
        """For JSON."""
        return {
            "runs": not self.failure,
            "failure": self.failure,
            "fully_integer": self.is_integer,
            "float_ops": [group._asdict() for group in self.float_ops],
            "conversions": self.conversions,
            "in_xnnpack": None if self.outside is None else self.in_xnnpack,
            "outside_xnnpack": [group._asdict() for group in self.outside or ()],
            "unknown": self.unknown,
            "snr_db": None if self.worst is None else self.worst.snr_db,
            "outputs": [drift._asdict() for drift in self.drift],
            "samples": self.tried,
        }


def check_claims(
    written: Path,
    original: Model,
    data: Data | None,
    skipped: Sequence[Skip] = (),
    file: Path | None = None,
    *,
    profiled: bool = True,
    tried: bool = True,
) -> Claims:
    """Examines a written file, and runs it beside the model from which it was made.

    `skipped` holds the reasons for what was left alone; `file` is the original's own file, which
    need not be written again. Without `profiled`, nothing is claimed about XNNPACK; without
    `tried`, the file is not run at all.
    """
    model = load(written)
    in_float = [op for graph in model.graphs for op in _float_ops(graph, graph is model.main)]
    computing = [op for op in in_float if not OPS[op.kind].rescales]
    reasons = {skip.where: skip.why for skip in skipped}
    counts = Counter((plain(op.label), reasons.get(op_name(op), "")) for op in computing)
    groups = tuple(OpGroup(kind, count, why) for (kind, why), count in counts.most_common())
    conversions = len(in_float) - len(computing)
    if not tried:
        return Claims("", groups, conversions, None, _NOT_LOOKED, (), 0)
    few = data if data is not None else RandomSamples(original, _TRIED)
    try:
        drift, count = _drift(written, original, few, file or original)
        outside, unknown = _outside(written) if profiled else (None, _NOT_LOOKED)
        return Claims("", groups, conversions, outside, unknown, drift, count)
    except LitesmithError as error:  # the file is there, so that its report must be
        return Claims(str(error), groups, conversions, None, str(error), (), 0)


def _float_ops(graph: Graph, is_main: bool) -> Iterator[Op]:
    """The ops that touch float tensors, except conversions at the model's inputs and outputs."""
    for op in graph.ops:
        if not any(DTYPES[t.dtype].is_float for t in op_tensors(op)):
            continue
        at_border = (op.kind == "QUANTIZE" and op.inputs[0] in graph.inputs) or (
            op.kind == "DEQUANTIZE" and op.outputs[0] in graph.outputs
        )
        if not (is_main and at_border):
            yield op


def _outside(written: Path) -> tuple[tuple[OpGroup, ...] | None, str]:
    """The ops that ran outside XNNPACK in a profiled run, or the reason why there is no profile."""
    try:
        found = outside_xnnpack(written)
    except CannotRun as error:
        return None, str(error)
    if found is None:
        return None, phrase("the runtime reports no events for this model")
    return tuple(OpGroup(kind, count) for kind, count in found.items()), ""


def _drift(
    written: Path, original: Model, data: Data, source: Path | Model
) -> tuple[tuple[OutputDrift, ...], int]:
    few = look_at_some(data, _TRIED)
    tallies = list(outputs_of([written, source], few, _powers, workers=1))
    names = [plain(tensor.name) for tensor in original.main.outputs]
    if not tallies or any(len(tally) != len(names) for tally in tallies):
        return (), len(tallies)
    columns = zip(names, zip(*tallies, strict=True), strict=True)
    drift = tuple(_drift_of(name, [p for p in powers if p]) for name, powers in columns)
    ranked = {t for op in original.main.ops if op.custom == POSTPROCESS for t in op.outputs}
    return tuple(
        # boxes in another order are no error; `eval` tells how good they are
        one._replace(snr_db=None) if tensor in ranked else one
        for tensor, one in zip(original.main.outputs, drift, strict=True)
    ), len(tallies)


class _Power(NamedTuple):
    """The power of one output of the float model, of the difference, and whether all is lost."""

    signal: float
    noise: float
    is_lost: bool


def _powers(_: Sample, answers: Sequence[Outputs]) -> list[_Power | None]:
    """For each output; None where the two cannot be compared."""
    return [_power(ours, wanted) for ours, wanted in zip(*answers, strict=False)]


def _power(ours: np.ndarray, wanted: np.ndarray) -> _Power | None:
    are_numbers = all(array.dtype.kind in "fiub" for array in (ours, wanted))
    if ours.shape != wanted.shape or not are_numbers:
        return None
    a, b = ours.astype(np.float64), wanted.astype(np.float64)
    if not np.isfinite(b).all():
        return None
    if not np.isfinite(a).all():
        return _Power(0.0, 0.0, True)
    return _Power(float(np.square(b).sum()), float(np.square(a - b).sum()), False)


def _drift_of(name: str, powers: Sequence[_Power]) -> OutputDrift:
    signal, noise = sum(p.signal for p in powers), sum(p.noise for p in powers)
    lost = any(p.is_lost for p in powers)
    if lost or not signal:
        return OutputDrift(name, None, lost)
    ratio = MOST_DB if not noise else 10 * float(np.log10(signal / noise))
    return OutputDrift(name, min(ratio, MOST_DB), lost)
