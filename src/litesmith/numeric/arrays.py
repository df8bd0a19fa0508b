"""What kernels share: the element types that they take, and the activations fused into them.

A kernel raises ValueError for everything that it cannot compute exactly as the runtime does.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from litesmith.ir.types import Array, Record
from litesmith.phrases import phrase
from litesmith.temporary import temporary_room


def along(values: Array, rank: int, axis: int) -> Array:
    """One value a channel, shaped to broadcast: (channels,) -> (1, …, channels, …, 1)."""
    if values.size == 1:
        return values.reshape((1,) * rank)
    return values.reshape(tuple(-1 if place == axis else 1 for place in range(rank)))


Result = Array | tuple[Array, ...]
Kernel = Callable[..., Result]

# Smaller integers mostly stand for real numbers by a scale, which kernels do not receive.
NUMBERS = "float32 int32 int64"

_MOST_ELEMENTS = 2**30

ACTIVATIONS: dict[str, tuple[float, float]] = {
    "NONE": (-np.inf, np.inf),
    "RELU": (0, np.inf),
    "RELU6": (0, 6),
    "RELU_N1_TO_1": (-1, 1),
}


def demand(dtypes: str, *arrays: Array) -> None:
    """Refuses arrays of other types than these, and arrays of different types."""
    for array in arrays:
        if str(array.dtype) not in dtypes.split():
            raise ValueError(
                phrase("an array of {dtype}; the kernel takes {dtypes}", array.dtype, dtypes)
            )
        if array.dtype != arrays[0].dtype:
            raise ValueError(phrase("arrays of {dtype} and {dtype2}", arrays[0].dtype, array.dtype))


def integers(array: Array) -> tuple[int, ...]:
    """The values of a setting, flattened."""
    if array.dtype.kind not in "iu":
        raise ValueError(phrase("a setting of {dtype} where integers belong", array.dtype))
    return tuple(map(int, array.reshape(-1).tolist()))


def integer(array: Array) -> int:
    """The value of a setting that is one number."""
    (value,) = integers(array)
    return value


def within(places: Array, size: int) -> Array:
    """Indices as int64; refuses indices outside, negative ones included, as the runtime does."""
    if places.dtype.kind not in "iu":
        raise ValueError(phrase("indices of {dtype}", places.dtype))
    if places.size and (int(places.min()) < 0 or int(places.max()) >= size):
        raise ValueError(
            phrase("indices from {min} to {max} of {size}", places.min(), places.max(), size)
        )
    return places.astype(np.int64)


def refuse_excess(shape: Sequence[int]) -> None:
    """Refuses an array that would only exhaust the memory: no real file has one of this size."""
    if prod(shape) > _MOST_ELEMENTS:
        raise ValueError(phrase("an array of shape {shape} is too large", tuple(shape)))


def activate(options: Record, array: Array) -> Array:
    """The fused activation, where the op has one.

    Kernels with this option, even NONE, differ in infinite results: the runtime's own kernels give
    the largest finite number instead, XNNPACK's do not.
    """
    name = "fused_activation_function"
    activation = options.word(name) if name in options else "NONE"
    if activation not in ACTIVATIONS:
        raise ValueError(
            phrase(
                "fused activation {activation!r}; there are {activations}",
                activation,
                ", ".join(ACTIVATIONS),
            )
        )
    if name in options and array.dtype.kind == "f" and np.isinf(array).any():
        raise ValueError(phrase("a result is infinite"))
    return clamp(array, *ACTIVATIONS[activation])


def clamp(array: Array, low: float, high: float) -> Array:
    """Values clipped to an interval, in the same element type; NaN stays."""
    if low > -np.inf:
        array = np.maximum(array, np.array(low, array.dtype))
    if high < np.inf:
        array = np.minimum(array, np.array(high, array.dtype))
    return array


def array_on_disk(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An array in an anonymous temporary file, of which the system caches as much as fits."""
    with temporary_room(), tempfile.TemporaryFile(prefix="litesmith-") as file:
        size = prod(shape) * dtype.itemsize
        if hasattr(os, "posix_fallocate"):  # a full disk raises now and does not crash later
            os.posix_fallocate(file.fileno(), 0, size)
        return np.memmap(file, dtype, "w+", shape=tuple(shape))
