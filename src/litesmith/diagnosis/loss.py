"""What each part of a quantized model adds to its error, beside the float model.

One pass over the data runs both models in one graph. An error has one of two sources, told apart
for each op: the form of what it writes (rounded to a step, cut at the ends of the range), seen
from the float model's values alone; and its weights, seen from the float layer with the stored
numbers in place of its own. Both start from exact inputs: no error of an earlier op counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from litesmith.accuracy import scoring
from litesmith.calibration.observe import tools
from litesmith.data.samples import Data, as_stored
from litesmith.diagnosis.float_pairs import Joined, Twin, exposing, joined, waves
from litesmith.ir.types import Array, Model, Quant, Tensor
from litesmith.run.litert.numpy_walker import dequantize

Float64s = NDArray[np.float64]

# Values of a tensor that are looked at in a sample: rows of all channels, evenly spread.
_MOST_VALUES = 1 << 17


def decibels(signal: float, noise: float) -> float:
    """The ratio of two powers, at most 200 dB."""
    return float(scoring.decibels(np.array([signal, noise])))


@dataclass
class Errors:
    """Errors added up, channel by channel."""

    count: int = 0
    total: Float64s = field(default_factory=lambda: np.zeros(1))
    squares: Float64s = field(default_factory=lambda: np.zeros(1))

    def add(self, rows: Array) -> None:
        """Takes note of errors: -> (values of a channel, channels)."""
        self.count += len(rows)
        self.total = self.total + rows.sum(axis=0, dtype=np.float64)
        self.squares = self.squares + np.einsum("ij,ij->j", rows, rows, dtype=np.float64)

    @property
    def power(self) -> float:
        """The mean square of all."""
        return float(self.squares.mean()) / max(self.count, 1)

    @property
    def mean_share(self) -> float:
        """How much of the power is each channel's own mean."""
        whole = float(self.squares.sum())
        return float((self.total**2).sum()) / max(self.count, 1) / whole if whole else 0.0


@dataclass(eq=False)
class Loss:
    """What was seen of a twin.

    signal   the float model's values
    total    the quantized model's errors, those of all earlier ops among them
    form     the errors of the form alone; `cut` are those of values outside its range
    weights  the errors that the stored weights alone make, where the op has any
    """

    twin: Twin
    signal: Errors = field(default_factory=Errors)
    total: Errors = field(default_factory=Errors)
    form: Errors = field(default_factory=Errors)
    cut: Errors = field(default_factory=Errors)
    weights: Errors = field(default_factory=Errors)
    low: float = inf
    high: float = -inf
    cut_samples: int = 0
    outside: int = 0
    channel_peak: Float64s = field(default_factory=lambda: np.zeros(1))
    peaks: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    def noise(self, part: str) -> float:
        """The power of a part's error as a share of the signal's."""
        power = self.signal.power
        errors: Errors = getattr(self, part)
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
        count = int(np.count_nonzero(beyond))
        self.outside += count
        self.cut_samples += count > 0


def _rows(values: Array) -> Array:
    """Some of the values: -> (values of a channel, channels)."""
    rows = values.reshape(-1, values.shape[-1] if values.ndim else 1)
    step = max(1, rows.size // _MOST_VALUES)
    return rows[::step].astype(np.float32, copy=False)


def as_real(stored: Array, tensor: Tensor) -> Array:
    """What a tensor's stored numbers stand for."""
    if tensor.quant is None or stored.dtype.kind not in "iu":
        return stored
    return dequantize(stored, tensor.quant)


def losses(
    model: Model, reference: Model, found: Sequence[Twin], data: Data, *, threads: int = 0
) -> list[Loss]:
    """The loss of every twin of real numbers, in their order."""
    real = [t for t in found if t.theirs.dtype == "float32" and t.theirs.elements]
    made = joined(model, reference, real)
    gathered: list[Loss] = []
    for wave in waves(real, _size):
        gathered += _gather(made, wave, data, threads)
    return gathered


def _size(twin: Twin) -> int:
    return 2 * twin.theirs.nbytes + twin.ours.nbytes


def _gather(made: Joined, wave: Sequence[Twin], data: Data, threads: int) -> list[Loss]:
    """One pass over the data."""
    inputs = made.model.main.inputs
    wanted = dict.fromkeys(t for twin in wave for t in _looked_at(made, twin) if t not in inputs)
    gathered = [Loss(twin) for twin in wave]
    with tools(data, threads=threads).opened(exposing(made.model, list(wanted))) as run:
        for sample in data:
            fed = list(map(as_stored, inputs, sample.inputs))
            values: dict[Tensor, Array] = dict(zip(wanted, run(fed), strict=True))
            values |= zip(inputs, fed, strict=True)
            for loss in gathered:
                _add(loss, sample.name, values, made.stored)
    return gathered


def _looked_at(made: Joined, twin: Twin) -> Iterator[Tensor]:
    yield twin.theirs
    yield _ours(made, twin)
    if twin in made.stored and twin.layers:
        yield twin.layers[1].op.outputs[0]
        yield made.stored[twin]


def _ours(made: Joined, twin: Twin) -> Tensor:
    """The quantized model's tensor; an input that both share is the float model's."""
    return twin.theirs if twin.op is None and twin.quant is None else twin.ours


def _add(
    loss: Loss, name: str, values: Mapping[Tensor, Array], stored: Mapping[Twin, Tensor]
) -> None:
    twin = loss.twin
    loss.add(name, values[twin.theirs], values[twin.ours if twin.ours in values else twin.theirs])
    if twin in stored and twin.layers:
        exact = values[twin.layers[1].op.outputs[0]]
        loss.weights.add(_rows(values[stored[twin]]) - _rows(exact))
