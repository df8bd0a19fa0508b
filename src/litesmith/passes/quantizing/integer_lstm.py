"""An LSTM that is one op, in the integers of the runtime's kernel.

Data, weights and the output are int8, each weight with one scale; the cell is int16, its scale a
power of two; what the gates add up is int16 with 12 bits behind the point, so that it ends at ±8.
LiteRT's tflite/kernels/lstm_eval.cc computes it, of which TensorFlow Lite Micro has the plain form.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil, log2

import numpy as np

from litesmith.ir.types import Array, Op, Quant, Tensor, constant_numbers
from litesmith.numeric.affine import bias_codes, keep_bias_inside, largest_code, weight_scales
from litesmith.passes.core.layers import coded_weight, most_bias, stored_weight
from litesmith.passes.core.lstm import (
    BIASES,
    CELL,
    INPUT_WEIGHTS,
    NORMS,
    PEEPHOLES,
    PROJECTION,
    PROJECTION_BIAS,
    RECURRENT_WEIGHTS,
    STATE,
    Lstm,
)
from litesmith.passes.quantizing.scales import Form, Range
from litesmith.phrases import phrase

# The steps of what the gates add up, and of the output before a projection, which is between −1 and
# 1 by nature.
_GATE_STEP, _HIDDEN_STEP = 2.0**-12, 2.0**-7

# The steps that a cell may have, as powers of two: the kernel's tanh has so many bits.
_LEAST_POWER, _MOST_POWER = -15, -9

# What the kernel looks for among the op's intermediate tensors; the last says how the output is
# stored before a projection.
_GATES = ("input", "forget", "cell", "output")


def why_float(lstm: Lstm) -> str:
    """Why an LSTM cannot compute in integers; "" where it can."""
    activation = lstm.op.option("fused_activation_function")
    if activation != "TANH":
        return phrase("its fused activation {activation} has no integer form", activation)
    if lstm.has(NORMS):
        return phrase("its gates are normalized; it stays float")
    if lstm.has(PEEPHOLES) and lstm.part(PROJECTION) is not None:
        return phrase("it has peepholes and a projection; it stays float")
    places = (*INPUT_WEIGHTS, *RECURRENT_WEIGHTS, *PEEPHOLES, *BIASES, PROJECTION, PROJECTION_BIAS)
    for tensor in filter(None, map(lstm.part, places)):
        if constant_numbers(tensor) is None:
            return phrase("its weights or bias are computed, or it has several; it stays float")
        if tensor.dtype != "float32":
            return phrase("its weights are {dtype} already", tensor.dtype)
    matrices = map(lstm.part, (*INPUT_WEIGHTS, *RECURRENT_WEIGHTS))
    if any(weight is not None and len(weight.shape) != 2 for weight in matrices):
        return phrase("its recurrent weights are diagonal; it stays float")
    states = lstm.need(STATE), lstm.need(CELL)
    if not all(tensor.variable and tensor.dtype == "float32" for tensor in states):
        return phrase("its states are no variables of its own; it stays float")
    return ""


def output_form(lstm: Lstm, ranges: Mapping[Tensor, Range]) -> dict[Tensor, Form]:
    """The form of what an LSTM gives, which is its state too: without a zero point, so that zeros
    are a state's codes at the start."""
    (output,) = lstm.op.outputs
    peak = max(map(abs, ranges[output])) or 1.0
    return {output: ("int8", float(np.float32(peak / largest_code(8))), 0)}


def integer_lstm(lstm: Lstm, data: Tensor, output: Tensor, cell: Range) -> Op:
    """The op on integers, given what it reads and writes in integers and the range of its cell."""
    given, made = _step(data), _step(output)
    power = _power_of(max(map(abs, cell)))
    inputs: dict[int, Tensor] = {0: data}
    for gate in range(4):
        weight, bias = lstm.part(INPUT_WEIGHTS[gate]), lstm.part(BIASES[gate])
        if weight is not None and bias is not None:
            inputs |= _with_bias(weight, bias, given, (INPUT_WEIGHTS[gate], BIASES[gate]))
            inputs[RECURRENT_WEIGHTS[gate]] = _coded(lstm.need(RECURRENT_WEIGHTS[gate]), made)
    for place in PEEPHOLES:
        if (peephole := lstm.part(place)) is not None:
            inputs[place] = _in_int16(peephole)
    hidden = made
    if (projection := lstm.part(PROJECTION)) is not None:
        hidden = _HIDDEN_STEP
        width = np.zeros(projection.shape[0], np.float32)
        bias = lstm.part(PROJECTION_BIAS) or Tensor(
            f"{projection.name}/bias", width.shape, data=width
        )
        inputs |= _with_bias(projection, bias, hidden, (PROJECTION, PROJECTION_BIAS))
    state, held = lstm.need(STATE), lstm.need(CELL)
    inputs[STATE] = replace(state, dtype="int8", quant=output.quant)
    inputs[CELL] = replace(held, dtype="int16", quant=Quant.of(2.0**power))
    return replace(
        lstm.op,
        inputs=tuple(inputs.get(place, t) for place, t in enumerate(lstm.op.inputs)),
        outputs=(output,),
        intermediates=tuple(_intermediates(output.name, hidden)),
    )


def _step(tensor: Tensor) -> float:
    assert tensor.quant is not None
    return float(tensor.quant.scale[0])


def _power_of(peak: float) -> int:
    """The power of two whose int16 codes reach so far."""
    power = ceil(log2(max(peak, 2.0**-20) / np.iinfo(np.int16).max))
    return min(max(power, _LEAST_POWER), _MOST_POWER)


def _with_bias(
    weight: Tensor, bias: Tensor, step: float, places: tuple[int, int]
) -> dict[int, Tensor]:
    """A weight and what is added to its products, at the step of these."""
    numbers = bias.values()
    scales = keep_bias_inside(_scale(weight.values(), step), numbers, step, most_bias("int8"))
    coded = coded_weight(weight, "int8", scales, 0)
    products = Quant.of(step * _step(coded))
    codes = bias_codes(numbers, products.scale, "int32")
    return {places[0]: coded, places[1]: stored_weight(bias, codes, "int32", products)}


def _scale(values: Array, step: float) -> np.ndarray:
    """The one scale of a weight; one of nothing but zeros has that of the sums it adds to."""
    return weight_scales(values, None, 8) if values.any() else np.array([_GATE_STEP / step])


def _coded(weight: Tensor, step: float) -> Tensor:
    return coded_weight(weight, "int8", _scale(weight.values(), step), 0)


def _in_int16(weight: Tensor) -> Tensor:
    scales = weight_scales(weight.values(), None, 16).astype(np.float32)
    codes = np.rint(weight.values() / scales)
    return stored_weight(weight, codes, "int16", Quant.of(scales))


def _intermediates(name: str, hidden: float) -> Iterator[Tensor]:
    for gate in _GATES:
        yield Tensor(f"{name}/{gate}_gate", (0,), "int16", quant=Quant.of(_GATE_STEP))
    yield Tensor(f"{name}/hidden", (0,), "int8", quant=Quant.of(hidden))
