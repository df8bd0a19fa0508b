"""From which share of zeros a sparse layer is faster than XNNPACK's dense one, by its shape.

Models of times with constants that were fitted to runs. `bench/operators.py` shows them beside the
machine's own times.
"""

from typing import NamedTuple

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
    """How many times faster than dense a layer is with that share of zero blocks."""
    dense, fixed, products = _times(rows, inputs, channels, dtype)
    return dense / (fixed + products * (1 - zeros))


def gain_over_stored(rows: int, inputs: int, channels: int, zeros: float) -> float:
    """How many times faster than the runtime's own sparse kernel a float32 layer is."""
    _, fixed, products = _times(rows, inputs, channels, "float32")
    return _STORED * rows * inputs * channels * (1 - zeros) / (fixed + products * (1 - zeros))


def break_even(rows: int, inputs: int, channels: int, dtype: str = "float32") -> float | None:
    """The share of zero blocks from which sparse is faster; None where it never is."""
    dense, fixed, products = _times(rows, inputs, channels, dtype)
    return None if dense < fixed else max(1 - (dense - fixed) / products, 0.0)


def dense_us(rows: int, inputs: int, channels: int, dtype: str = "float32") -> float:
    """Microseconds of the dense layer."""
    return _times(rows, inputs, channels, dtype)[0] / 1000


def _times(rows: int, inputs: int, channels: int, dtype: str) -> tuple[float, float, float]:
    """Of the dense layer; of a sparse one, what zeros do not change and what they do."""
    products = inputs * channels
    costs = (FEW_ROWS if rows < FEW else MANY_ROWS)[dtype]
    size = costs.together if rows >= costs.together else FEW
    padded = -(-rows // size) * size
    dense = (costs.dense * rows + costs.read) * products + costs.ends * rows * channels
    fixed = padded * (costs.inputs * inputs + costs.outputs * channels) + _APART
    return dense, fixed, costs.product * products * padded
