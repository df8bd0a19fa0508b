"""What each part of a quantized model adds to its error, compared with the float model.

One pass over the data runs both models in one graph. An error has one of two sources, separated for
each op: the form of its output (rounded to a step, cut at the ends of the range), computed from the
float model's values alone; and its weights, computed by the float layer with the stored numbers in
place of its own. Both start from exact inputs: no error of an earlier op counts.

What the error of some ops does to the output is measured on the float model with only these ops
quantized, run beside the float model as it is (`DriftJudge`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.accuracy import scoring
from litesmith.calibration.observe import exposing, tools, waves
from litesmith.data.samples import Data, Sample, as_stored
from litesmith.diagnosis.float_pairs import (
    Joined,
    Pair,
    Twin,
    find_twins,
    has_stored_weights,
    join_models,
    renumber,
    to_codes,
    to_real,
    with_stored_weights,
)
from litesmith.ir.edit import regraph
from litesmith.ir.ops import OPS
from litesmith.ir.softmax_scores import ends_in_softmax, scores_of, trace_back
from litesmith.ir.types import Array, Graph, Model, Op, Quant, Tensor
from litesmith.phrases import phrase
from litesmith.run.litert.numpy_walker import dequantize

Float64s = NDArray[np.float64]

# The number of values per tensor and sample to examine: rows of all channels, evenly spread.
_MOST_VALUES = 1 << 17


def decibels(signal: float, noise: float) -> float:
    """The ratio of two powers, at most 200 dB."""
    return float(scoring.decibels(np.array([signal, noise])))


@dataclass
class ChannelErrors:
    """Errors added up, channel by channel."""

    count: int = 0
    total: Float64s = field(default_factory=lambda: np.zeros(1))
    squares: Float64s = field(default_factory=lambda: np.zeros(1))

    def add(self, rows: Array) -> None:
        """Adds errors, an array (values of a channel, channels)."""
        self.count += len(rows)
        self.total = self.total + rows.sum(axis=0, dtype=np.float64)
        self.squares = self.squares + np.einsum("ij,ij->j", rows, rows, dtype=np.float64)

    @property
    def power(self) -> float:
        """The mean square of all errors."""
        return float(self.squares.mean()) / max(self.count, 1)

    @property
    def mean_share(self) -> float:
        """The share of the power that is due to the channels' mean errors."""
        whole = float(self.squares.sum())
        return float((self.total**2).sum()) / max(self.count, 1) / whole if whole else 0.0


@dataclass(eq=False)
class OpLoss:
    """The errors observed in a twin.

    signal   the float model's values
    total    the quantized model's errors, including those of all earlier ops
    form     the errors of the form alone; `cut` has those of values outside its range
    weights  the errors of the stored weights alone, where the op has weights
    """

    twin: Twin
    signal: ChannelErrors = field(default_factory=ChannelErrors)
    total: ChannelErrors = field(default_factory=ChannelErrors)
    form: ChannelErrors = field(default_factory=ChannelErrors)
    cut: ChannelErrors = field(default_factory=ChannelErrors)
    weights: ChannelErrors = field(default_factory=ChannelErrors)
    low: float = inf
    high: float = -inf
    cut_samples: int = 0
    channel_peak: Float64s = field(default_factory=lambda: np.zeros(1))
    peaks: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    def noise(self, part: str) -> float:
        """The power of a part's error as a share of the signal's."""
        power = self.signal.power
        errors: ChannelErrors = getattr(self, part)
        return errors.power / power if power > 0 else 0.0

    def add(self, name: str, theirs: Array, ours: Array) -> None:
        low, high = float(theirs.min()), float(theirs.max())
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.peaks.append((max(-low, high), name))
        wanted = _rows(theirs)
        self.signal.add(wanted)
        self.channel_peak = np.maximum(self.channel_peak, np.abs(wanted).max(axis=0))
        self.total.add(_rows(as_real(ours, self.twin.ours)) - wanted)
        quant = self.twin.quant
        if quant is not None:
            self._add_form(wanted, quant)

    def _add_form(self, wanted: Array, quant: Quant) -> None:
        scale, zero = np.float32(quant.scale[0]), float(quant.zero_point[0])
        ends = np.iinfo(self.twin.ours.dtype)
        codes = np.rint(wanted / scale) + np.float32(zero)
        kept = np.clip(codes, ends.min, ends.max)
        self.form.add((kept - np.float32(zero)) * scale - wanted)
        beyond = (codes - kept) * scale
        self.cut.add(beyond)
        self.cut_samples += bool(beyond.any())


def _rows(values: Array) -> Array:
    """Some of the values, as an array (values of a channel, channels)."""
    rows = values.reshape(-1, values.shape[-1] if values.ndim else 1)
    step = max(1, rows.size // _MOST_VALUES)
    return rows[::step].astype(np.float32, copy=False)


def as_real(stored: Array, tensor: Tensor) -> Array:
    """The real values that a tensor's stored numbers stand for."""
    if tensor.quant is None or stored.dtype.kind not in "iu":
        return stored
    return dequantize(stored, tensor.quant)


def losses(model: Model, reference: Model, found: Sequence[Twin], data: Data) -> list[OpLoss]:
    """The loss of every twin of real numbers, in their order."""
    real = [t for t in found if t.theirs.dtype == "float32" and t.theirs.elements]
    made = join_models(model, reference, real)
    gathered: list[OpLoss] = []
    for wave in waves(real, lambda twin: 2 * twin.theirs.nbytes + twin.ours.nbytes):
        gathered += _gather(made, wave, data)
    return gathered


def _gather(made: Joined, wave: Sequence[Twin], data: Data) -> list[OpLoss]:
    """One pass over the data."""
    inputs = made.model.main.inputs
    wanted = dict.fromkeys(t for twin in wave for t in _observed(made, twin) if t not in inputs)
    gathered = [OpLoss(twin) for twin in wave]
    with tools(data).opened(exposing(made.model, list(wanted))) as run:
        for sample in data:
            fed = list(map(as_stored, inputs, sample.inputs))
            values: dict[Tensor, Array] = dict(zip(wanted, run(fed), strict=True))
            values |= zip(inputs, fed, strict=True)
            for loss in gathered:
                _add(loss, sample.name, values, made.stored)
    return gathered


def _observed(made: Joined, twin: Twin) -> Iterator[Tensor]:
    yield twin.theirs
    # An input shared by both models belongs to the float model.
    yield twin.theirs if twin.op is None and twin.quant is None else twin.ours
    if twin in made.stored and twin.layers:
        yield twin.layers[1].op.outputs[0]
        yield made.stored[twin]


def _add(
    loss: OpLoss, name: str, values: Mapping[Tensor, Array], stored: Mapping[Twin, Tensor]
) -> None:
    twin = loss.twin
    loss.add(name, values[twin.theirs], values[twin.ours if twin.ours in values else twin.theirs])
    if twin in stored and twin.layers:
        exact = values[twin.layers[1].op.outputs[0]]
        loss.weights.add(_rows(values[stored[twin]]) - _rows(exact))


FORM, WEIGHTS = "form", "weights"

TwinPart = tuple[Twin, str]


def quantized_parts(
    reference: Model, parts: Sequence[TwinPart]
) -> tuple[Model, dict[Tensor, Tensor]]:
    """The float model in which some ops have the forms or the weights of the quantized model, with
    the new tensor for each one whose form was changed."""
    forms = {twin.theirs: twin for twin, part in parts if part == FORM and twin.quant}
    layers = {
        twin.layers[1].op: twin.layers
        for twin, part in parts
        if part == WEIGHTS and twin.layers and has_stored_weights(twin.layers[0])
    }
    now: dict[Tensor, Tensor] = {}
    ops: list[Op] = []

    def pass_form(tensor: Tensor) -> None:
        if tensor in forms:
            twin = forms[tensor]
            codes = replace(twin.ours, name=f"{tensor.name}/codes")
            now[tensor] = replace(tensor, name=f"{tensor.name}/rounded")
            ops.extend((to_codes(tensor, codes), to_real(codes, now[tensor])))

    for tensor in reference.main.inputs:
        pass_form(tensor)
    for op in reference.main.ops:
        new = with_stored_weights(*layers[op]) if op in layers else op
        inputs = tuple(None if t is None else now.get(t, t) for t in new.inputs)
        ops.append(replace(new, inputs=inputs))
        for tensor in op.outputs:
            pass_form(tensor)
    graph = regraph(reference.main, ops=ops)
    return replace(reference, graphs=(graph, *reference.graphs[1:])), now


class Drift(NamedTuple):
    """How far a model's answers are from the float model's.

    noise    the power of the error as a share of the signal's, in the output where it is largest
    damage   the quantity to compare. For a model that chooses among classes: the divergence of its
             probabilities (Kullback and Leibler's, in nats per sample), which grows where the
             highest scores are cut off or tie, and hardly with other noise; for other models the
             noise
    """

    noise: float
    damage: float

    @property
    def decibels(self) -> float:
        return decibels(1.0, self.noise)


class DriftJudge:
    """Runs models on the same samples and compares their scores with the float model's."""

    def __init__(self, reference: Model, judged: Sequence[Twin], data: Data) -> None:
        self._reference, self._data = reference, data
        self._outputs = [twin.theirs for twin in judged]
        self._chooses = [_is_chosen_from(reference.main, tensor) for tensor in self._outputs]
        self.chooses = any(self._chooses)
        self._samples: list[Sample] = list(data)
        start = perf_counter()
        self._wanted = list(self._answers(reference, self._outputs))
        self.seconds = perf_counter() - start

    def alone(self, parts: Sequence[TwinPart]) -> Drift:
        """The drift caused by these parts, with all others exact."""
        model, now = quantized_parts(self._reference, parts)
        return self.drift(model, [now.get(t, t) for t in self._outputs])

    def drift(self, model: Model, outputs: Sequence[Tensor]) -> Drift:
        signal, noise = np.zeros((2, len(outputs)))
        divergence = 0.0
        for answer, wanted in zip(self._answers(model, outputs), self._wanted, strict=True):
            for place, (a, b) in enumerate(zip(answer, wanted, strict=True)):
                signal[place] += np.square(b).sum()
                noise[place] += np.square(a - b).sum()
                if self._chooses[place]:
                    divergence += _divergence(a, b) / len(self._wanted)
        share = float((noise / np.maximum(signal, 1e-30)).max())
        return Drift(share, divergence if self.chooses else share)

    def _answers(self, model: Model, outputs: Sequence[Tensor]) -> Iterator[list[Array]]:
        exposed = exposing(model, outputs)
        with tools(self._data).opened(exposed) as run:
            for sample in self._samples:
                results = run(list(map(as_stored, exposed.main.inputs, sample.inputs)))
                # A session's next run overwrites its memory, so results are copied.
                pairs = zip(results, outputs, strict=True)
                yield [as_real(array, tensor).astype(np.float64) for array, tensor in pairs]


def _is_chosen_from(graph: Graph, tensor: Tensor) -> bool:
    """True where a softmax turns these scores, directly or reshaped, into an output."""
    if tensor.shape[-1:] == (1,) and len(tensor.shape) < 3:
        return False
    chosen = [t for t in graph.outputs if ends_in_softmax(graph, t)]
    return any(trace_back(graph, scores_of(graph, t)) is tensor for t in chosen)


def _divergence(scores: Array, wanted: Array) -> float:
    """The divergence of the classes' probabilities from the wanted ones, summed over rows."""
    shifted = [a - a.max(axis=-1, keepdims=True) for a in (scores, wanted)]
    ours, theirs = (a - np.log(np.exp(a).sum(axis=-1, keepdims=True)) for a in shifted)
    return float((np.exp(theirs) * (theirs - ours)).sum())


MOVES, EXACT, NO_TWIN = phrase("moves values only"), "exact", phrase("not in both models")


@dataclass(frozen=True)
class OpError:
    """One op of the main graph of the user's file.

    snr_db  the float model's signal over the error that this op adds by itself; None with the
            reason in `why`
    """

    index: int
    snr_db: float | None
    why: str = ""


def op_errors(pair: Pair, data: Data) -> tuple[OpError, ...]:
    """The error of every op, given exact inputs: errors of earlier ops do not count."""
    found = find_twins(pair.model, pair.reference)
    known = renumber(found, pair.file) if pair.is_ours else found
    seen = losses(pair.model, pair.reference, known, data)
    by_place = {loss.twin.place: loss for loss in seen}
    ops = shown_model(pair).main.ops
    return tuple(_error(place, op.kind, by_place.get(place)) for place, op in enumerate(ops))


def shown_model(pair: Pair) -> Model:
    """The model whose file the user has; op numbers refer to it."""
    return pair.file if pair.is_ours else pair.model


def _error(place: int, kind: str, loss: OpLoss | None) -> OpError:
    if loss is None:
        return OpError(place, None, NO_TWIN)
    if OPS[kind].moves_data:
        return OpError(place, None, MOVES)
    snr = decibels(1.0, loss.noise(FORM) + loss.noise(WEIGHTS))
    return OpError(place, None, EXACT) if snr >= scoring.MOST_DB else OpError(place, snr)
