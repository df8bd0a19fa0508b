"""Functions of one int16 as tables, by the arithmetic of the runtime's kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import CannotApply
from litesmith.ir.types import Array

Longs = NDArray[np.int64]

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
    """Whether a scale counts as a power of two, and which."""
    log = np.float32(np.log(np.float32(scale))) * np.float32(1 / np.log(np.float32(2)))
    near = int(math.copysign(math.floor(abs(float(log)) + 0.5), float(log)))
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


def _nearest(value: float) -> float:
    return math.copysign(math.floor(abs(value) + 0.5), value)


def _steps_of(function: Callable[[float], float], first: float, last: float) -> list[int]:
    """513 entries of a function over a range, each moved so that midpoints come out nearest."""
    step = (last - first) / 512
    scale = 65536 / (2.0 / 65535 * 65535)
    entries: list[int] = []
    for place in range(512):
        value, after = function(first + place * step), function(first + (place + 1) * step)
        middle = function(first + place * step + step / 2)
        between = _nearest((after * scale + _nearest(value * scale)) / 2)
        bias = _nearest((between - _nearest(middle * scale)) / 2)
        entries.append(int(min(max(_nearest(value * scale) - bias, -32768), 32767)))
    end = _nearest(function(last) * scale)
    return [*entries, int(min(max(end, -32768), 32767))]


@cache
def exponential_tables() -> NDArray[np.int16]:
    """exp over [−10, 0], then 1 / (1 + x) over [0, 1]: the two tables of SOFTMAX."""
    exponentials = _steps_of(math.exp, -10.0 / 65535 * 65535, 0.0)
    reciprocals = _steps_of(lambda x: 1 / (1 + x), 0.0, 1.0 / 65535 * 65535)
    return np.array([*exponentials, *reciprocals], np.int16)
