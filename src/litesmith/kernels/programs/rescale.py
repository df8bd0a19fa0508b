"""Scales as integers and functions of one int16 as tables, by the arithmetic of the runtime's
kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import CannotApply
from litesmith.ir.types import Array
from litesmith.phrases import phrase

Longs = NDArray[np.int64]

# The ends of a tile: sums only, a shift of 64-bit products, a product in double precision.
PARTIAL, FIXED, DOUBLE = 0, 1, 2

VECTOR_BYTES = 384  # of the table, for 16 channels: multipliers, sums to begin with, shifts


class Factor(NamedTuple):
    """A positive number as multiplier / 2³¹ × 2^shift."""

    multiplier: int
    shift: int


def rounded(value: float) -> int:
    """To the nearest integer, halves away from zero."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def factor(number: float) -> Factor:
    """A scale as the kernels hold it: 31 bits and a power of two; nothing below 2⁻³¹ or so."""
    if number == 0:
        return Factor(0, 0)
    fraction, shift = math.frexp(number)
    fixed = rounded(fraction * 2**31)
    if fixed == 2**31:
        fixed, shift = fixed // 2, shift + 1
    return Factor(0, 0) if shift < -31 else Factor(fixed, shift)


def small(number: float, what: str) -> Factor:
    """The factor of a number that the kernel wants below one."""
    if not 0 < number < 1:
        raise CannotApply(
            "{what}: its factor is {number:.3g}; the kernel has it below 1", what, number
        )
    return factor(number)


def by_channel(scales: Sequence[float]) -> tuple[Longs, Longs]:
    """The 16-bit multipliers of wide sums and how far their products are shifted right."""
    factors = [factor(scale) for scale in scales]
    multipliers = [0x7FFF if m >= 0x7FFF0000 else (m + (1 << 15)) >> 16 for m, _ in factors]
    shifts = [15 - shift for _, shift in factors]
    if min(shifts) < 1:
        raise CannotApply("a factor of {count:.3g} from sums to outputs is too large", max(scales))
    return np.array(multipliers, np.int64), np.array(shifts, np.int64)


def fixed_table(scales: Sequence[float], bias: Longs) -> Longs:
    """Rows of (multiplier, sum to begin with, shift), one a channel: (3, channels).

    ((sum + bias) × m + half) >> s is (sum × m + c) >> s, exactly, in integers that wrap around.
    """
    multipliers, shifts = by_channel(scales)
    with np.errstate(over="ignore"):
        begin = bias * multipliers + (np.int64(1) << (shifts - 1))
    return np.stack([multipliers, begin, shifts])


def double_table(scales: Sequence[float], bias: Longs) -> Longs:
    """The table for a kernel that multiplies in double precision: (1, bias, the scale's bits)."""
    factors = np.array(scales, np.float64).view(np.int64)
    return np.stack([np.ones_like(bias), bias, factors])


def laid_out(table: Longs, order: Longs | None = None) -> Longs:
    """A table as tiles read it, 48 numbers for 16 channels: even lanes, odd lanes, of each row.

    Missing channels are zero. `order` permutes lanes.
    """
    channels = -(-table.shape[1] // 16) * 16
    padded = np.zeros((3, channels), np.int64)
    padded[:, : table.shape[1]] = table
    lanes = padded if order is None else padded[:, order]
    return np.ascontiguousarray(lanes.reshape(3, -1, 8, 2).transpose(1, 0, 3, 2))


def limits(activation: str, scale: float) -> tuple[int, int]:
    """The lowest and highest int16 that a fused activation lets through."""
    known = {"NONE": (None, None), "RELU": (0.0, None), "RELU6": (0.0, 6.0)}
    known["RELU_N1_TO_1"] = (-1.0, 1.0)
    if activation not in known:
        raise CannotApply("the fused activation {activation} has no int16 kernel", activation)
    step = np.float32(scale)
    low, high = (
        None if limit is None else rounded(float(np.float32(limit) / step))
        for limit in known[activation]
    )
    return max(-32768, -32768 if low is None else low), min(32767, 32767 if high is None else high)


def packed_limits(low: int, high: int) -> int:
    """Both limits in one 64-bit word, the lowest in the low half."""
    return (high << 32) | (low & 0xFFFFFFFF)


def shifts(shift: int) -> tuple[int, int]:
    """The left shift before a product, and the right shift after it."""
    return max(shift, 0), max(-shift, 0)


def sum_words(
    scales: tuple[float, float, float], span: tuple[int, int], *, minus: bool, early: bool
) -> Longs:
    """What the tile of ADD and SUB reads: three factors with their shifts, limits, the sign.

    Terms are shifted left by 15 bits, multiplied, and shifted right with rounding. `early` joins
    both shifts before the product: so does the runtime's ADD of equal shapes, 16 at a time.
    """
    first, second, out = (float(np.float32(scale)) for scale in scales)
    twice = float(np.float32(2 * max(first, second)))
    words: list[int] = []
    for scale in (first, second):
        multiplier, shift = small(scale / twice, "a term")
        joined = 15 + shift
        late = (multiplier, 15, 0, -shift)
        words += (multiplier, max(joined, 0), max(-joined, 0), 0) if early else late
    ratio = twice / float(np.float32((1 << 15) * out))
    multiplier, shift = factor(ratio) if minus and ratio > 1 else small(ratio, phrase("the sum"))
    left, right = shifts(shift)
    words += (multiplier, left, 0, right)
    return np.array([*words, packed_limits(*span), -1 if minus else 1], np.int64)


def product_words(scales: tuple[float, float, float], span: tuple[int, int]) -> Longs:
    """The numbers that the tile of MUL reads."""
    first, second, out = (np.float32(scale) for scale in scales)
    multiplier, shift = factor(float(first * second / out))
    left, right = shifts(shift)
    return np.array([multiplier, left, 0, right, packed_limits(*span)], np.int64)


# Functions of one int16 as tables.
_INPUTS = np.arange(-32768, 32768, dtype=np.int64)

_STEPS = 24


@cache
def sigmoid_steps() -> Longs:
    """256 entries of sigmoid(n / 24) × 2¹⁶, each raised by half of what midpoints would lack.

    The last one stands for one. The runtime has these numbers as a table; the tests compare what
    comes of them for every int16.
    """

    def curve(x: Array) -> Array:
        return 65536 / (1 + np.exp(-x / _STEPS))

    n = np.arange(256)
    lacking = curve(n + 0.5) - (curve(n) + curve(n + 1)) / 2
    steps = np.floor(curve(n) + lacking / 2 + 0.5).astype(np.int64)
    steps[-1] = 65535
    return steps


def _near_power(scale: float) -> tuple[bool, int]:
    """Whether a scale counts as a power of two, and its exponent."""
    log = np.float32(np.log(np.float32(scale))) * np.float32(1 / np.log(np.float32(2)))
    near = rounded(float(log))
    return abs(float(log) - near) < 1e-3, near


def _scaled_inputs(scale: float, powers: tuple[int, ...]) -> Longs:
    """Every int16 at 1/12288, the scale of the steps' inputs; the arithmetic is 32 bits wide."""
    is_power, power = _near_power(scale)
    if is_power and 12 + power in powers:
        raise CannotApply(
            "a scale of {scale:.3g} is computed in another way, which is not here", scale
        )
    multiplier, left = float(np.float32(scale)) * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and left <= 30:
        multiplier, left = multiplier * 2, left + 1
    half = 1 << (left - 1) if left > 0 else 0
    products = (_INPUTS * int(multiplier) + half).astype(np.int32).astype(np.int64)
    return products >> left


def _interpolated(magnitudes: Longs, bits: int, full: int) -> Longs:
    """Between neighbouring steps by the low bits; `full` from the last step on."""
    steps = sigmoid_steps()
    place = np.minimum(magnitudes >> bits, 254)
    low, high = steps[place], steps[place + 1]
    between = (low << bits) + (magnitudes & ((1 << bits) - 1)) * (high - low)
    return np.where(magnitudes >> bits >= 255, full, between)


def _refuse_other_output(scale: float) -> None:
    if scale != 1 / 32768:
        raise CannotApply("an output scale of {scale:.3g}; the kernel has 1/32768", scale)


def logistic_table(scale: float, out: float) -> Longs:
    """LOGISTIC of every int16."""
    _refuse_other_output(out)
    x = _scaled_inputs(scale, (0,))
    result = _interpolated(np.abs(x), 9, 0x7FFF << 10)
    result = np.where(x >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1)
    return result >> 10


def tanh_table(scale: float, out: float) -> Longs:
    """TANH of every int16."""
    _refuse_other_output(out)
    x = _scaled_inputs(scale, (0, 1))
    result = _interpolated(np.abs(x), 8, 0xFFFF << 8)
    result = np.where(x >= 0, result - (1 << 23) + (1 << 7), -result + (1 << 23) + (1 << 7) - 1)
    return result >> 8


def _steps_of(function: Callable[[float], float], first: float, last: float) -> list[int]:
    """513 entries of a function over a range, each moved so that midpoints come out nearest."""
    step = (last - first) / 512
    scale = 65536 / (2.0 / 65535 * 65535)
    entries: list[int] = []
    for place in range(512):
        value, after = function(first + place * step), function(first + (place + 1) * step)
        middle = function(first + place * step + step / 2)
        between = rounded((after * scale + rounded(value * scale)) / 2)
        bias = rounded((between - rounded(middle * scale)) / 2)
        entries.append(min(max(rounded(value * scale) - bias, -32768), 32767))
    end = rounded(function(last) * scale)
    return [*entries, min(max(end, -32768), 32767)]


@cache
def exponential_tables() -> NDArray[np.int16]:
    """exp over [−10, 0], then 1 / (1 + x) over [0, 1]: the two tables of SOFTMAX."""
    exponentials = _steps_of(math.exp, -10.0 / 65535 * 65535, 0.0)
    reciprocals = _steps_of(lambda x: 1 / (1 + x), 0.0, 1.0 / 65535 * 65535)
    return np.array([*exponentials, *reciprocals], np.int16)
