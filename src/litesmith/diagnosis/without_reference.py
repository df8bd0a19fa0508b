"""What a quantized file and data reveal of its losses without the float model."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from litesmith.calibration.observe import AT_ONCE, exposing, tools, waves
from litesmith.data.samples import Data, as_stored
from litesmith.diagnosis.causes import FULL_BIAS
from litesmith.diagnosis.float_pairs import op_place
from litesmith.diagnosis.slowness import NOT_MEASURED, Diagnosis
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Model, Op, Tensor
from litesmith.numeric.affine import rows_of
from litesmith.numeric.arrays import ACTIVATIONS
from litesmith.passes.core.layers import Layer, layers_of
from litesmith.passes.quantizing.scales import covered, form_of
from litesmith.phrases import phrase
from litesmith.units import percent_text

# Codes at an end of the type are too many in more than this share of samples, and, where a tensor
# has many values, above this share of all codes.
_FULL_SAMPLES, _FULL_CODES, _FEW = 0.2, 0.005, 2000
_FEW_CODES = 1 / 8  # of all codes, from the lowest that is used to the highest
_FULL_WEIGHTS = 0.1  # of a channel's weights, at the end of their type
_REQUANTIZE = "litesmith quantize FLOAT --to int8 --data DATA -o OUT.tflite"


@dataclass(eq=False)
class SeenCodes:
    """The codes that a tensor held on the data."""

    place: int
    op: Op
    tensor: Tensor
    low: int = 2**31
    high: int = -(2**31)
    values: int = 0
    full: int = 0
    samples: int = 0
    full_samples: int = 0
    ends: tuple[int, ...] = ()

    def add(self, stored: Array) -> None:
        self.low, self.high = min(self.low, int(stored.min())), max(self.high, int(stored.max()))
        full = sum(int(np.count_nonzero(stored == end)) for end in self.ends)
        self.values += stored.size
        self.full += full
        self.samples += 1
        self.full_samples += full > 0

    @property
    def where(self) -> str:
        return op_place(self.place, self.op, self.op.outputs[0])


def diagnose_without_reference(model: Model, data: Data) -> list[Diagnosis]:
    """Findings of which the cost is unknown."""
    return [*_in_the_file(model), *_in_runs(seen_codes(model, data))]


def seen_codes(model: Model, data: Data, at_once: int = AT_ONCE) -> list[SeenCodes]:
    """The codes of every integer tensor that an op writes; `at_once` limits the bytes of tensors
    observed in one run."""
    found = [
        SeenCodes(place, op, t, ends=_open_ends(op, t))
        for place, op in enumerate(model.main.ops)
        for t in op.outputs
        if t.dtype in ("int8", "uint8", "int16") and form_of(t) is not None and t.elements
    ]
    for wave in waves(found, lambda codes: codes.tensor.nbytes, at_once):
        exposed = exposing(model, [codes.tensor for codes in wave])
        with tools(data).opened(exposed) as run:
            for sample in data:
                results = run(list(map(as_stored, exposed.main.inputs, sample.inputs)))
                for codes, stored in zip(wave, results, strict=True):
                    codes.add(stored)
    return found


def _open_ends(op: Op, tensor: Tensor) -> tuple[int, ...]:
    """The ends of the type that no activation explains: values there may have been cut off."""
    form = form_of(tensor)
    activation = op.option("fused_activation_function")
    name = activation if isinstance(activation, str) else op.kind
    if form is None or OPS[op.kind].saturates or op.kind == "QUANTIZE":
        return ()
    bounds, (low, high) = ACTIVATIONS.get(name, ACTIVATIONS["NONE"]), covered(form)
    info = np.iinfo(form[0])
    # Zero at the lowest code is the natural end of values that are never negative.
    least = () if low <= bounds[0] + form[1] or low == 0 else (int(info.min),)
    most = () if high >= bounds[1] - form[1] else (int(info.max),)
    return least + most


def _in_runs(found: list[SeenCodes]) -> Iterator[Diagnosis]:
    full = [c for c in found if _is_full(c)]
    if full:
        worst = max(full, key=lambda c: c.full_samples / c.samples)
        yield _finding(
            phrase("codes at the end of their type"),
            [c.where for c in full],
            phrase(
                "values were cut off there; {where}: {share} of its codes, in {share2} of the "
                "samples",
                worst.where,
                percent_text(worst.full / worst.values),
                percent_text(worst.full_samples / worst.samples),
            ),
        )
    narrow = [c for c in found if c.high - c.low < _FEW_CODES * _count(c.tensor)]
    if narrow:
        worst = min(narrow, key=lambda c: c.high - c.low)
        yield _finding(
            phrase("few codes of the type are used"),
            [c.where for c in narrow],
            phrase(
                "an outlier or other data made the range; {where}: {high} of {count} codes",
                worst.where,
                worst.high - worst.low + 1,
                _count(worst.tensor),
            ),
        )


def _is_full(codes: SeenCodes) -> bool:
    often = codes.full_samples > _FULL_SAMPLES * codes.samples
    return often and (codes.tensor.elements < _FEW or codes.full > _FULL_CODES * codes.values)


def _count(tensor: Tensor) -> int:
    return 2 ** (8 * np.dtype(tensor.dtype).itemsize)


def _in_the_file(model: Model) -> Iterator[Diagnosis]:
    layers = list(layers_of(model.main).values())
    places = {op: place for place, op in enumerate(model.main.ops)}
    for what, why, is_at_fault in RULES:
        found = [layer for layer in layers if is_at_fault(layer)]
        if found:
            yield _finding(
                what,
                [op_place(places[layer.op], layer.op, layer.op.outputs[0]) for layer in found],
                why,
            )


def _has_full_bias(layer: Layer) -> bool:
    bias = layer.bias
    if bias is None or bias.dtype != "int32":
        return False
    return bool((np.abs(bias.values().astype(np.int64)) >= FULL_BIAS).any())


def _has_full_weights(layer: Layer) -> bool:
    if layer.weight.dtype != "int8" or layer.weight.quant is None:
        return False
    rows = rows_of(layer.weight.values(), layer.axis)
    shares = (np.abs(rows.astype(np.int16)) >= 127).mean(axis=1)
    return rows.shape[1] >= 32 and bool((shares > _FULL_WEIGHTS).any())


RULES: tuple[tuple[str, str, Callable[[Layer], bool]], ...] = (
    (
        phrase("a bias at the end of int32"),
        phrase("its scale is too small, so that it was cut off"),
        _has_full_bias,
    ),
    (
        phrase("many weights at the end of their type"),
        phrase("their scale is too small, so that they were cut off"),
        _has_full_weights,
    ),
)


def _finding(what: str, where: list[str], why: str) -> Diagnosis:
    more = phrase(" and {count} more", len(where) - 3) if len(where) > 3 else ""
    costs = phrase("{not_measured}: --against FLOAT.tflite would tell", NOT_MEASURED)
    return Diagnosis(what, ", ".join(where[:3]) + more, why, costs, _REQUANTIZE)
