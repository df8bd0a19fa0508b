"""Layers that could be computed without their zeros: their parts, their codes, their expected
times.

Times are models with constants fitted to runs on one machine, multiplied by what was learned of
this machine (`cost_factors.py`); `bench/operators.py` shows them beside the machine's own times.
Sums of int8 products become codes in float32, as in XNNPACK's kernels on x86.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import CannotApply
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import options_or_defaults
from litesmith.ir.types import Array, Op, Quant, Tensor, constant_numbers
from litesmith.kernels.programs.cost_factors import Factors, factors
from litesmith.operating_system import has_float_codes
from litesmith.run.litert.own_kernels import SparseLayer

FEW = 16  # below so many rows a layer is computed row by row


class Costs(NamedTuple):
    """Nanoseconds on one thread of an AVX-512 machine (Zen 4, 3.7 GHz)."""

    dense: float  # of a product in the dense kernel
    read: float  # of a weight that the dense kernel reads
    ends: float  # of an output of a row in the dense kernel
    product: float  # of a product that is computed, in blocks of four inputs
    inputs: float  # of an input of a row: turned
    outputs: float  # of an output of a row: its loop begun, turned back
    together: int  # rows that are computed at once


# float32: 9 shapes of 1×1 layers at 80, 90 and 95 % zeros, each met within 23 %.
# int8: 12 shapes at 50 % too, the dense ones met within 1 %, the others within 29 %.
MANY_ROWS = {
    "float32": Costs(0.0176, 0, 0, 0.0325, 0.066, 0.25, 32),
    "int8": Costs(0.0044, 0, 0.127, 0.0065, 0.041, 0.106, 16),
}
# Fully connected layers with 1 and 8 rows, 5 shapes of float32; with 1, 4 and 8 rows, 8 of int8.
FEW_ROWS = {
    "float32": Costs(0.026, 0.045, 0, 0.085, 0, 4.0, 1),
    "int8": Costs(0.0075, 0.005, 0, 0.025, 0, 0.9, 1),
}
_STORED = 0.235  # of a product in the runtime's own sparse kernel, float32
_APART = 3_000  # of a layer that XNNPACK must stop for


def gain(rows: int, inputs: int, channels: int, zeros: float, dtype: str = "float32") -> float:
    """The expected speed-up over a dense layer with this share of zero blocks."""
    dense, sparse = expected_ns(rows, inputs, channels, zeros, dtype, _factors(rows, dtype))
    return dense / (sparse + _APART)


def gain_over_stored(rows: int, inputs: int, channels: int, zeros: float) -> float:
    """The expected speed-up of a float32 layer over the runtime's own sparse kernel."""
    factors = _factors(rows, "float32")
    _, sparse = expected_ns(rows, inputs, channels, zeros, "float32", factors)
    stored = _STORED * rows * inputs * channels * (1 - zeros) * factors.dense
    return stored / (sparse + _APART)


def break_even(rows: int, inputs: int, channels: int, dtype: str = "float32") -> float | None:
    """The share of zero blocks from which sparse is faster; None where it never is."""
    factors = _factors(rows, dtype)
    dense, fixed = expected_ns(rows, inputs, channels, 1.0, dtype, factors)
    products = expected_ns(rows, inputs, channels, 0.0, dtype, factors)[1] - fixed
    left = dense - fixed - _APART
    return None if left < 0 else max(1 - left / products, 0.0)


def dense_us(rows: int, inputs: int, channels: int, dtype: str = "float32") -> float:
    """Microseconds of the dense layer."""
    return expected_ns(rows, inputs, channels, 1.0, dtype, _factors(rows, dtype))[0] / 1000


def _factors(rows: int, dtype: str) -> Factors:
    return factors(dtype, rows < FEW)


def expected_ns(
    rows: int,
    inputs: int,
    channels: int,
    zeros: float,
    dtype: str,
    machine: Factors = Factors(),  # noqa: B008 (a value)
) -> tuple[float, float]:
    """The expected times of the dense and of the sparse layer, on the machine of the constants or
    on another."""
    products = inputs * channels
    costs = (FEW_ROWS if rows < FEW else MANY_ROWS)[dtype]
    size = costs.together if rows >= costs.together else FEW
    padded = -(-rows // size) * size
    dense = (costs.dense * rows + costs.read) * products + costs.ends * rows * channels
    fixed = padded * (costs.inputs * inputs + costs.outputs * channels)
    sparse = fixed + costs.product * products * padded * (1 - zeros)
    return dense * machine.dense, sparse * machine.sparse


# XNNPACK opens no model in which a step of the products is this many steps of the output.
_LARGEST = 256
# The smallest scale; below it a float32 has fewer bits.
_LEAST = np.finfo(np.float32).tiny

SPANS = {"NONE": (-np.inf, np.inf), "RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}


class Codes(NamedTuple):
    """The numbers that a kernel reads.

    starts   the initial sums, for data whose codes are raised by 128
    scales   the scales of the sums, one per channel
    limits   two float32, the limits of outputs minus their zero point, and that zero point as int32
    """

    starts: NDArray[np.int32]
    scales: NDArray[np.float32]
    limits: NDArray[np.int32]


def codes_of(op: Op, weights: Array, bias: Array) -> Codes:
    """For weights (channels, inputs); raises where XNNPACK would not take the layer."""
    data, weight, output = op.inputs[0], op.inputs[1], op.outputs[0]
    assert data is not None and weight is not None
    if output.dtype != "int8":
        raise CannotApply("{name!r} is {dtype}; the kernel makes int8", output.name, output.dtype)
    (step, zero), (out, out_zero) = _one(data), _one(output)
    each = np.broadcast_to(_around_zero(weight, len(weights)), (len(weights),))
    if len(op.inputs) > 2 and op.inputs[2] is not None:
        _around_zero(op.inputs[2], len(weights))
    scales = (step * each / out).astype(np.float32)
    if not scales.max() < _LARGEST:
        raise CannotApply(
            "{name!r}: a factor of {count:.3g} is too large", output.name, scales.max()
        )
    starts = bias.astype(np.int64) - (128 + zero) * weights.sum(axis=1, dtype=np.int64)
    _refuse_overflow(output, weights, starts, scales)
    options = options_or_defaults(op.kind, op.options)
    span = np.array(SPANS[options.word("fused_activation_function")], np.float32)
    kept = np.clip(np.rint(span / out + np.float32(out_zero)), -128, 127) - out_zero
    limits = np.array([*kept.astype(np.float32).view(np.int32), out_zero], np.int32)
    return Codes(starts.astype(np.int32), scales, limits)


def _refuse_overflow(output: Tensor, weights: Array, starts: Array, scales: Array) -> None:
    """Raises where a rescaled sum can be below int32, which XNNPACK turns into the highest code."""
    sides = [np.clip(weights, *side).sum(axis=1, dtype=np.int64) for side in ((-128, 0), (0, 127))]
    lowest, highest = (starts + 255 * side for side in sides)
    wraps = (lowest < -(2**31)) | (highest >= 2**31)
    if np.any(np.where(wraps, -(2.0**31), lowest) * scales < -0.999 * 2**31):
        raise CannotApply("{name!r}: its sums can be too large for int32", output.name)


def _one(tensor: Tensor) -> tuple[np.float32, int]:
    """The one scale and zero point of data."""
    quant = _quant(tensor)
    if quant.scale.size != 1:
        raise CannotApply(
            "{name!r} has {size} scales; a kernel has one", tensor.name, quant.scale.size
        )
    return np.float32(quant.scale[0]), int(quant.zero_point[0])


def _around_zero(tensor: Tensor, channels: int) -> NDArray[np.float32]:
    """The scales of a weight or a bias: one, or one for each channel."""
    quant = _quant(tensor)
    if quant.scale.size not in (1, channels) or (quant.scale.size > 1 and quant.axis != 0):
        raise CannotApply(
            "{name!r} has {size} scales for {channels} channels",
            tensor.name,
            quant.scale.size,
            channels,
        )
    if quant.zero_point.any():
        raise CannotApply("{name!r} has zero points; a kernel has none", tensor.name)
    return quant.scale.astype(np.float32)


def _quant(tensor: Tensor) -> Quant:
    """Scales that XNNPACK takes; LiteRT's own kernels, which run the others, give other bits."""
    quant = tensor.quant
    if quant is None or quant.block is not None or not quant.scale.size:
        raise CannotApply("{name!r} has no scale", tensor.name)
    if not np.all(np.isfinite(quant.scale) & (quant.scale >= _LEAST)):
        raise CannotApply("{name!r} has a scale that is too small for XNNPACK", tensor.name)
    return quant


SPARSE = ("CONV_2D", "FULLY_CONNECTED")
BLOCK = 4  # inputs whose weights are zero together


class Kind(NamedTuple):
    """What a layer of some data must have.

    bias         its type
    least_many   inputs and channels, at the least, where there are many rows
    least_few    the same for a few
    """

    bias: str
    least_many: tuple[int, int]
    least_few: tuple[int, int]


KINDS = {
    "float32": Kind("float32", (16, 16), (BLOCK, 1)),
    "int8": Kind("int32", (64, 16), (128, 16)),
}


def may_be_sparse(op: Op) -> bool:
    """True for a kind of layer that has sparse kernels, whatever its shape and weights."""
    return op.kind in SPARSE and op.inputs[0] is not None and op.inputs[0].dtype in KINDS


def sparse_facts(op: Op) -> SparseLayer:
    """The expected times of a layer without its zeros; raises where the layer has no kernel."""
    data = op.inputs[0] if may_be_sparse(op) else None  # others may read and make nothing
    if data is None:
        raise CannotApply("{name!r} is not a float32 or int8 layer", op_name(op))
    output = op.outputs[0]
    weights, bias = sparse_parts(op)
    channels, inputs = weights.shape
    rows, kind = data.elements // inputs, KINDS[data.dtype]
    least = kind.least_few if rows < FEW else kind.least_many
    if inputs % BLOCK or inputs < least[0] or channels < least[1]:
        raise CannotApply(
            "{name!r}: {inputs} inputs and {channels} channels are too few",
            output.name,
            inputs,
            channels,
        )
    if data.dtype == "int8":
        _refuse_other_bits(op, weights, bias)
    zeros = 1 - float(np.any(weights.reshape(-1, BLOCK), axis=1).mean())
    shape = rows, inputs, channels
    return SparseLayer(
        *shape,
        data.dtype,
        zeros,
        break_even(*shape, data.dtype),
        gain(*shape, zeros, data.dtype),
        dense_us(*shape, data.dtype),
    )


def _refuse_other_bits(op: Op, weights: Array, bias: Array) -> None:
    """Raises where XNNPACK would not compute a layer, or not in this way."""
    if not has_float_codes():
        raise CannotApply("sparse int8 layers have the runtime's bits on x86 and AArch64 alone")
    codes_of(op, weights, bias)


def sparse_parts(op: Op) -> tuple[Array, Array]:
    """Weights as (channels, inputs), and a bias."""
    data, output = op.inputs[0], op.outputs[0]
    assert data is not None
    weights = constant_numbers(op.inputs[1])
    if weights is None or weights.dtype != data.dtype:
        raise CannotApply("{name!r} has no constant {dtype} weights", output.name, data.dtype)
    options = options_or_defaults(op.kind, op.options)
    if op.kind == "FULLY_CONNECTED" and options.word("weights_format") != "DEFAULT":
        raise CannotApply("{name!r} has shuffled weights", output.name)
    if op.kind == "CONV_2D":
        strides = options.integer("stride_h"), options.integer("stride_w")
        if (*weights.shape[1:3], *strides) != (1, 1, 1, 1):
            raise CannotApply("{name!r} is not a convolution of 1×1 with stride 1", output.name)
        if data.shape[3] != weights.shape[3]:
            raise CannotApply("{name!r}: convolutions in groups have no kernel here", output.name)
    flat = weights.reshape(weights.shape[0], -1)
    given, kind = op.inputs[2] if len(op.inputs) > 2 else None, KINDS[data.dtype]
    bias = np.zeros(len(flat), kind.bias) if given is None else constant_numbers(given)
    if bias is None or bias.dtype != kind.bias:
        raise CannotApply("{name!r} has no constant {bias} bias", output.name, kind.bias)
    if options.word("fused_activation_function") not in SPANS:
        raise CannotApply("{name!r} has an activation without a kernel here", output.name)
    return flat, bias
