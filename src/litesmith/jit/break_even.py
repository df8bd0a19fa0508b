"""From which share of zeros a sparse layer is faster than XNNPACK's dense one, by its shape.

Models of times with constants that were fitted to runs: 9 shapes of 1×1 layers at 80, 90 and 95 %,
each met within 23 %, and 5 of fully connected ones with 1 and 8 rows. `bench/operators.py` shows
them beside the machine's own times.
"""

from typing import NamedTuple

FEW = 16  # below so many rows a layer is computed row by row


class Costs(NamedTuple):
    """Nanoseconds on one thread of an AVX-512 machine (Zen 4, 3.7 GHz)."""

    dense: float  # of a product in the dense kernel
    product: float  # of a product that is computed, in blocks of four inputs
    inputs: float  # of an input of a row: turned
    outputs: float  # of an output of a row: its loop begun, turned back


MANY_ROWS = Costs(dense=0.0176, product=0.0325, inputs=0.066, outputs=0.25)
FEW_ROWS = Costs(dense=0.026, product=0.085, inputs=0.0, outputs=4.0)
_READ = 0.045  # of a weight that the dense kernel reads for a few rows alone
_APART = 3_000  # of a layer that XNNPACK must stop for


def gain(rows: int, inputs: int, channels: int, zeros: float) -> float:
    """How many times faster than dense a layer is with that share of zero blocks."""
    dense, fixed, products = _times(rows, inputs, channels)
    return dense / (fixed + products * (1 - zeros))


def break_even(rows: int, inputs: int, channels: int) -> float | None:
    """The share of zero blocks from which sparse is faster; None where it never is."""
    dense, fixed, products = _times(rows, inputs, channels)
    return None if dense < fixed else max(1 - (dense - fixed) / products, 0.0)


def dense_us(rows: int, inputs: int, channels: int) -> float:
    """Microseconds of the dense layer."""
    return _times(rows, inputs, channels)[0] / 1000


def _times(rows: int, inputs: int, channels: int) -> tuple[float, float, float]:
    """Of the dense layer; of a sparse one, what zeros do not change and what they do."""
    products = inputs * channels
    costs, padded = (FEW_ROWS, rows) if rows < FEW else (MANY_ROWS, _padded(rows))
    dense = costs.dense * products * rows + (_READ * products if rows < FEW else 0)
    fixed = padded * (costs.inputs * inputs + costs.outputs * channels) + _APART
    return dense, fixed, costs.product * products * padded


def _padded(rows: int) -> int:
    """Rows that are computed: 32 at a time, or 16."""
    size = 32 if rows >= 32 else 16
    return -(-rows // size) * size
