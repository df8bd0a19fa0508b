"""Real numbers as integers and back: real = scale × (stored − zero_point).

Activations use the whole integer type and a zero point; weights are symmetric and narrow: as many
codes below zero as above.
"""

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.types import Array
from litesmith.numeric.arrays import along
from litesmith.phrases import phrase

Float64s = NDArray[np.float64]

# The smallest scale: no model needs a smaller one, and a product of two smaller ones would
# underflow float32.
_LEAST_SCALE = 2.0**-40


def scale_of(low: float, high: float, dtype: str) -> tuple[np.float32, int]:
    """The scale and zero point that spread an integer type over a range, which is first extended to
    contain 0.

    Zero is stored exactly. int16 is always symmetric: its kernels take no zero point. An empty
    range counts as 0 to 1, so that tensors computed from it have a scale of ordinary size.
    """
    if not (isfinite(low) and isfinite(high) and low <= high):
        raise ValueError(phrase("a range from {low} to {high} has no scale", low, high))
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    if low == high:
        high = 1.0
    span = np.iinfo(dtype)
    if dtype == "int16":
        return _stored_scale(max(-low, high) / span.max), 0
    scale = _stored_scale((high - low) / (span.max - span.min))
    zero_point = round(span.min - low / float(scale))
    return scale, min(max(zero_point, span.min), span.max)


def _stored_scale(scale: float) -> np.float32:
    return np.float32(max(scale, _LEAST_SCALE))


# The smallest and the largest code.
Ends = tuple[int, int]


def largest_code(bits: int) -> int:
    """The largest code of a weight: the type's smallest has no counterpart and is left out."""
    return 2 ** (bits - 1) - 1


def ends_of(codes: Array, bits: int) -> Ends:
    """The range of codes that a stored weight may have: it includes the smallest code only where
    the weight already has it.
    """
    most = largest_code(bits)
    return min(-most, int(codes.min(initial=0))), most


def weight_scales(weights: Array, axis: int | None, bits: int) -> Float64s:
    """The scale of each channel along the axis, or of all weights together: -> (channels,) or (1,).

    A channel of zeros has no scale of its own and takes the largest of the others.
    """
    by_channel = weights.reshape(1, -1) if axis is None else rows_of(weights, axis)
    peaks = np.abs(by_channel).max(axis=1, initial=0).astype(np.float64)
    if not np.isfinite(peaks).all():
        raise ValueError(phrase("a weight is infinite or NaN"))
    scales = peaks / largest_code(bits)
    usable = scales >= _LEAST_SCALE
    return np.where(usable, scales, scales.max() if usable.any() else 1.0)


def rows_of(weights: Array, axis: int) -> Array:
    """Weights of any rank with each channel as a row: -> (channels, weights of a channel)."""
    return np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1)


def from_rows(rows: Array, shape: tuple[int, ...], axis: int) -> Array:
    """The inverse of `rows_of`: the weights in their original shape, contiguous."""
    moved = (shape[axis], *shape[:axis], *shape[axis + 1 :])
    return np.ascontiguousarray(np.moveaxis(rows.reshape(moved), 0, axis))


def keep_bias_inside(
    scales: Float64s, bias: Array, input_scale: float, most: int = 2**30
) -> Float64s:
    """The weight scales, raised where the bias, whose scale they decide, would leave int32.

    This happens in channels that batch normalization or pruning left with a bias and almost no
    weights. A single scale for all weights is raised to what the largest bias needs.
    """
    needed = np.abs(bias.reshape(-1).astype(np.float64)) / (float(input_scale) * most)
    if scales.size == 1:
        needed = needed.max(initial=0)
    return np.maximum(scales, needed)


def quantize(
    real: Array, dtype: str, scale: Array | float, zero_point: Array | int = 0, axis: int = 0
) -> Array:
    """Stored integers of real numbers: rounded to nearest, halves to even, clipped to the type."""
    span = np.iinfo(dtype)
    scales = along(np.asarray(scale, np.float64), real.ndim, axis)
    points = along(np.asarray(zero_point, np.int64), real.ndim, axis)
    return np.clip(np.rint(real / scales) + points, span.min, span.max).astype(dtype)


def dequantize(
    stored: Array, scale: Array | float, zero_point: Array | int = 0, axis: int = 0
) -> NDArray[np.float32]:
    """Real numbers of stored integers."""
    scales = along(np.asarray(scale, np.float64), stored.ndim, axis)
    points = along(np.asarray(zero_point, np.int64), stored.ndim, axis)
    return ((stored.astype(np.int64) - points) * scales).astype(np.float32)


def weight_codes(
    weights: Array, scales: Array, axis: int, bits: int, ends: Ends | None = None
) -> NDArray[np.int8]:
    """The nearest codes of weights, one byte each: from −largest_code to largest_code, unless
    `ends` allows others.
    """
    most = largest_code(bits)
    codes = weights / along(scales.astype(np.float64), weights.ndim, axis)
    np.rint(codes, out=codes)
    np.clip(codes, *(ends or (-most, most)), out=codes)
    return codes.astype(np.int8)


def bias_codes(bias: Array, scales: Array, dtype: str) -> Array:
    """Codes of a bias, each in its own scale; int64, beside int16 activations, always holds it."""
    most = float(np.iinfo(dtype).max) if dtype == "int32" else 2.0**62
    codes = np.rint(bias.astype(np.float64) / np.asarray(scales, np.float64))
    return np.clip(codes, -most, most).astype(dtype)
