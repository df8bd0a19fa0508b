"""Kernels that work on each element by itself, with broadcasting."""

import math
from collections.abc import Callable

import numpy as np

from litesmith.ir.types import Array, Record
from litesmith.numeric.arrays import Kernel, activate, clamp, demand
from litesmith.phrases import phrase

Unary = Callable[[Array], Array]
Binary = Callable[[Array, Array], Array]


def unary(compute: Unary, dtypes: str = "float32", result: str = "") -> Kernel:
    """A kernel of one array; the result has the array's type unless another is named."""

    def kernel(options: Record, x: Array) -> Array:
        demand(dtypes, x)
        return np.asarray(compute(x), result or x.dtype)

    return kernel


def binary(compute: Binary, dtypes: str, result: str = "") -> Kernel:
    """A kernel of two arrays of one type that broadcast, with a fused activation."""

    def kernel(options: Record, x: Array, y: Array) -> Array:
        demand(dtypes, x, y)
        return activate(options, np.asarray(compute(x, y), result or x.dtype))

    return kernel


def clamped(low: float, high: float) -> Unary:
    return lambda x: clamp(x, low, high)


def hard_swish(x: Array) -> Array:
    return x * clamp(x + np.float32(3), 0, 6) / np.float32(6)


def maximum(x: Array, y: Array) -> Array:
    # Written with the runtime's own comparison, which decides the result for NaN.
    return np.where(x > y, x, y)


def minimum(x: Array, y: Array) -> Array:
    return np.where(x < y, x, y)


def divide(x: Array, y: Array) -> Array:
    """Real division; of integers, rounded towards zero."""
    if x.dtype.kind == "f":
        return x / y
    _refuse_zeros(y)
    sign = np.sign(x.astype(np.int64)) * np.sign(y)
    return sign * (np.abs(x.astype(np.int64)) // np.abs(y.astype(np.int64)))


def floor_divide(x: Array, y: Array) -> Array:
    _refuse_zeros(y)
    return np.floor(x / y) if x.dtype.kind == "f" else x // y


def floor_modulo(x: Array, y: Array) -> Array:
    _refuse_zeros(y)
    return np.mod(x, y)


def _refuse_zeros(divisor: Array) -> None:
    if not divisor.all():
        raise ValueError(phrase("a divisor is 0"))


def power(x: Array, y: Array) -> Array:
    if y.dtype.kind == "i" and y.size and int(y.min()) < 0:
        raise ValueError(phrase("an integer to the power of {min}", y.min()))
    return np.power(x, y)


def shift_right(x: Array, y: Array) -> Array:
    """Arithmetic shift; shifts beyond the width count as the width."""
    return x >> np.clip(y, 0, 8 * x.itemsize - 1)


_erf = np.frompyfunc(math.erf, 1, 1)


def gelu(options: Record, x: Array) -> Array:
    demand("float32", x)
    wide = x.astype(np.float64)
    if options["approximate"]:
        inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
        return (0.5 * wide * (1 + np.tanh(inner))).astype(np.float32)
    exact = np.asarray(_erf(wide / math.sqrt(2)), np.float64)
    return (0.5 * wide * (1 + exact)).astype(np.float32)


def leaky_relu(options: Record, x: Array) -> Array:
    demand("float32", x)
    return np.where(x > 0, x, x * np.float32(options.number("alpha")))


def prelu(options: Record, x: Array, alpha: Array) -> Array:
    demand("float32", x, alpha)
    return np.where(x >= 0, x, x * alpha)


def add_n(options: Record, *arrays: Array) -> Array:
    demand("float32 int32", *arrays)
    if len(arrays) < 2 or len({array.shape for array in arrays}) > 1:
        raise ValueError(phrase("two or more arrays of one shape are needed"))
    total = arrays[0]
    for array in arrays[1:]:
        total = np.asarray(total + array)
    return total


def select(options: Record, condition: Array, x: Array, y: Array) -> Array:
    """A condition of the same shape, or one for each entry of the first dimension."""
    demand(str(x.dtype), x, y)
    demand("bool", condition)
    if x.shape != y.shape:
        raise ValueError(phrase("shapes {shape} and {shape2}", x.shape, y.shape))
    if condition.shape != x.shape:
        if condition.size != 1 and condition.shape != x.shape[:1]:
            raise ValueError(phrase("conditions {shape} for {shape2}", condition.shape, x.shape))
        condition = condition.reshape(condition.size, *(1,) * (x.ndim - 1))
    return np.where(condition, x, y).reshape(x.shape)


def select_v2(options: Record, condition: Array, x: Array, y: Array) -> Array:
    demand(str(x.dtype), x, y)
    demand("bool", condition)
    return np.where(condition, x, y)


def cast(options: Record, x: Array) -> Array:
    """Casts between plain types. Outside an integer's range, versions of the runtime differ."""
    target = np.dtype(options.word("out_data_type").lower())
    if target.kind not in "biufc" or x.dtype.kind not in "biufc":
        raise ValueError(phrase("a cast from {dtype} to {target}", x.dtype, target))
    if x.dtype.kind == "f" and target.kind in "iu":
        limits = np.iinfo(target)
        whole = np.trunc(x.astype(np.float64))
        if not ((whole >= limits.min) & (whole < float(limits.max) + 1)).all():
            raise ValueError(phrase("values that {target} cannot hold", target))
    return (x if target.kind == "c" else np.real(x)).astype(target)


def dequantize(options: Record, x: Array) -> Array:
    """Half precision to float32; integers would need the tensor's scale."""
    demand("float16", x)
    return x.astype(np.float32)


def fake_quant(options: Record, x: Array) -> Array:
    """Rounds to the grid of a quantized tensor whose interval is nudged so that 0 is on the
    grid.
    """
    demand("float32", x)
    low, high = np.float32(options.number("min")), np.float32(options.number("max"))
    bits = options.integer("num_bits")
    if not (2 <= bits <= 16 and low <= 0 <= high and low < high) or options["narrow_range"]:
        raise ValueError(
            phrase(
                "{bits} bits for values from {low} to {high}, or a narrow range", bits, low, high
            )
        )
    first, last = np.float32(0), np.float32(2**bits - 1)
    scale = (high - low) / (last - first)
    zero = np.clip(_round_half_up(first - low / scale), first, last)
    bottom, top = (first - zero) * scale, (last - zero) * scale
    steps = _round_half_up((np.clip(x, bottom, top) - bottom) / scale)
    return steps * scale + bottom


def _round_half_up(values: Array | np.float32) -> Array:
    """To the nearest integer; none of the values is negative."""
    return np.floor(np.asarray(values) + np.float32(0.5))


def bucketize(options: Record, x: Array) -> Array:
    demand("float32 int32 int64", x)
    stored = options["boundaries"]
    if not isinstance(stored, (tuple, np.ndarray)):
        raise ValueError(phrase("no boundaries"))
    boundaries = np.asarray(stored, np.float32)
    if (np.diff(boundaries) < 0).any() or np.isnan(x.astype(np.float64)).any():
        raise ValueError(phrase("boundaries {boundaries} and values are not in order", boundaries))
    return np.searchsorted(boundaries, x, side="right").astype(np.int32)
