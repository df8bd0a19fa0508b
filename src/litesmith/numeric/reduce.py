"""Kernels that combine the elements along some dimensions."""

from collections.abc import Callable

import numpy as np

from litesmith.ir.shape_rule import from_front
from litesmith.ir.types import Array, Record
from litesmith.numeric.arrays import Kernel, demand, integer, integers
from litesmith.phrases import phrase

Fold = Callable[[Array, tuple[int, ...], bool], Array]


def reducer(fold: Fold, dtypes: str) -> Kernel:
    """A kernel of an array and the axes to reduce, which may be negative or repeated."""

    def kernel(options: Record, x: Array, axes: Array) -> Array:
        demand(dtypes, x)
        gone = tuple(sorted({from_front(axis, x.ndim) for axis in integers(axes)}))
        return np.asarray(fold(x, gone, bool(options["keep_dims"])), x.dtype)

    return kernel


def _wide(x: Array) -> type[np.float64] | type[np.int64]:
    return np.float64 if x.dtype.kind == "f" else np.int64


def total(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    """Integers wrap around at the width of their type."""
    return x.sum(axes, _wide(x), keepdims=keep).astype(x.dtype)


def mean(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    """The mean; of integers, rounded towards zero."""
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    if count == 0:
        raise ValueError(phrase("the mean of no elements"))
    added = x.sum(axes, _wide(x), keepdims=keep)
    return added / count if x.dtype.kind == "f" else np.sign(added) * (np.abs(added) // count)


def product(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return x.prod(axes, _wide(x), keepdims=keep).astype(x.dtype)


def largest(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return _ordered(x).max(axes, keepdims=keep)


def smallest(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return _ordered(x).min(axes, keepdims=keep)


def every(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.asarray(x.all(axes, keepdims=keep))


def some(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.asarray(x.any(axes, keepdims=keep))


def _ordered(x: Array) -> Array:
    if x.dtype.kind == "f" and np.isnan(x).any():
        raise ValueError(phrase("not-a-number has no place in an order"))
    return x


def first_place(find: Callable[[Array, int], Array]) -> Kernel:
    """A kernel for the place of an extreme along an axis; the first of equals wins."""

    def kernel(options: Record, x: Array, axis: Array) -> Array:
        demand("bool float32 int8 int32 uint8", x)
        dtype = options.word("output_type").lower()
        if dtype not in ("int32", "int64"):
            raise ValueError(phrase("indices as {dtype}", dtype))
        return np.asarray(find(_ordered(x), from_front(integer(axis), x.ndim)), dtype)

    return kernel


def top_k(options: Record, x: Array, count: Array) -> tuple[Array, Array]:
    """The largest along the last dimension in falling order, the first of equals first."""
    demand("float32 int8 int16 int32 int64 uint8", x)
    most = integer(count)
    if x.ndim < 1 or not 0 <= most <= x.shape[-1]:
        raise ValueError(phrase("the top {most} of {shape}", most, x.shape))
    # A stable sort of the reversed array, reversed again, keeps equals in their order.
    rising = np.argsort(_ordered(x)[..., ::-1], axis=-1, kind="stable")
    places = (x.shape[-1] - 1 - rising[..., ::-1])[..., :most]
    return np.take_along_axis(x, places, -1), places.astype(np.int32)


def cumulative_sum(options: Record, x: Array, axis: Array) -> Array:
    demand("float32 int32 int64", x)
    along = from_front(integer(axis), x.ndim)
    ordered = np.flip(x, along) if options["reverse"] else x
    sums = np.cumsum(ordered, along, x.dtype)
    if options["exclusive"]:
        sums = np.roll(sums, 1, along)
        np.moveaxis(sums, along, 0)[:1] = 0
    return np.flip(sums, along) if options["reverse"] else sums


def softmax(options: Record, x: Array) -> Array:
    scaled = (x.astype(np.float64) - _peak(x)) * options.number("beta")
    powers = np.exp(scaled)
    return (powers / powers.sum(-1, keepdims=True)).astype(np.float32)


def log_softmax(options: Record, x: Array) -> Array:
    shifted = x.astype(np.float64) - _peak(x)
    return (shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))).astype(np.float32)


def _peak(x: Array) -> Array:
    demand("float32", x)
    if x.ndim < 1 or not np.isfinite(x).all():
        raise ValueError(phrase("an array of finite numbers is needed"))
    return x.max(-1, keepdims=True)


def l2_normalize(options: Record, x: Array) -> Array:
    demand("float32", x)
    if options.word("fused_activation_function") != "NONE":
        raise ValueError("a fused activation")
    length = np.sqrt(np.square(x, dtype=np.float64).sum(-1, keepdims=True))
    return (x / np.maximum(length, 1e-6)).astype(np.float32)


def local_response(options: Record, x: Array) -> Array:
    """Divides by a power of the squares summed over neighbouring channels."""
    demand("float32", x)
    radius = options.integer("radius")
    if radius < 0 or x.ndim != 4:
        raise ValueError(phrase("radius {radius} for shape {shape}", radius, x.shape))
    sums = np.cumsum(np.square(x, dtype=np.float64), -1)
    sums = np.pad(sums, [(0, 0)] * 3 + [(1, 0)])
    channels = range(x.shape[-1])
    ends = [min(channel + radius + 1, len(channels)) for channel in channels]
    begins = [max(channel - radius, 0) for channel in channels]
    near = sums[..., ends] - sums[..., begins]
    scale = options.number("bias") + options.number("alpha") * near
    return (x * scale ** -options.number("beta")).astype(np.float32)


def rfft_2d(options: Record, x: Array, lengths: Array) -> Array:
    demand("float32", x)
    height, width = integers(lengths)
    if min(height, width) < 1 or (height & (height - 1)) or (width & (width - 1)):
        raise ValueError(phrase("lengths {height} and {width} are no powers of two", height, width))
    return np.fft.rfft2(x, (height, width)).astype(np.complex64)
