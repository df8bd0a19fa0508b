"""How sums of int8 products become codes: in float32, as XNNPACK's kernels on x86 do it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import CannotApply
from litesmith.ir.ops import options_or_defaults
from litesmith.ir.types import Array, Op, Quant, Tensor

# XNNPACK opens no model in which a step of the products is so many steps of the output.
_LARGEST = 256
# Of a scale; below this a float32 has fewer bits.
_LEAST = np.finfo(np.float32).tiny

SPANS = {"NONE": (-np.inf, np.inf), "RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}


class Codes(NamedTuple):
    """What a kernel reads.

    starts   what the sums begin with, for data whose codes are raised by 128
    scales   of the sums, one a channel
    limits   two float32, of outputs less their zero point, and that as int32
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
    """Raises where a rescaled sum can be below int32, of which XNNPACK makes the highest code."""
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
    """Scales as XNNPACK takes them; what it leaves has other bits in LiteRT's own kernels."""
    quant = tensor.quant
    if quant is None or quant.block is not None or not quant.scale.size:
        raise CannotApply("{name!r} has no scale", tensor.name)
    if not np.all(np.isfinite(quant.scale) & (quant.scale >= _LEAST)):
        raise CannotApply("{name!r} has a scale that is too small for XNNPACK", tensor.name)
    return quant
