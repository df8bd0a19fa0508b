"""Kernels of sliding windows and matrix products, on float32; channels are the last dimension."""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from litesmith.ir.types import Array, Record
from litesmith.ir.window import Slide, pads, slides
from litesmith.numeric.arrays import activate, demand, integers, refuse_excess
from litesmith.phrases import phrase


def windows(x: Array, moves: Sequence[Slide], padding: str, fill: float) -> Array:
    """Every window: (batch, *sizes, channels) -> (batch, *places, channels, *window)."""
    amounts = [pads(padding, size, move) for size, move in zip(x.shape[1:-1], moves, strict=True)]
    widths = [size + sum(both) for size, both in zip(x.shape[1:-1], amounts, strict=True)]
    refuse_excess((x.shape[0], *widths, x.shape[-1], *(move.window for move in moves)))
    padded = np.pad(x, [(0, 0), *amounts, (0, 0)], constant_values=fill)
    reach = [move.reach for move in moves]
    views = sliding_window_view(padded, reach, axis=tuple(range(1, 1 + len(moves))))
    places = [slice(None, None, move.stride) for move in moves]
    inside = [slice(None, None, move.dilation) for move in moves]
    return views[(slice(None), *places, slice(None), *inside)]


def _finish(options: Record, product: Array, bias: Array | None) -> Array:
    if bias is not None:
        demand("float32", bias)
        if bias.size != product.shape[-1]:
            raise ValueError(
                phrase("{size} biases for {shape} channels", bias.size, product.shape[-1])
            )
        product = product + bias.reshape(-1)
    return activate(options, product)


def _correlate(views: Array, filters: Array) -> Array:
    """Windows times filters (out, *window, in); filters with fewer channels mean groups."""
    spatial = filters.ndim - 2
    channel = 1 + spatial
    depth = filters.shape[-1]
    groups = views.shape[channel] // depth if depth else 0
    if groups < 1 or views.shape[channel] != groups * depth or filters.shape[0] % groups:
        raise ValueError(
            phrase("{shape} channels by filters {shape2}", views.shape[channel], filters.shape)
        )
    axes = ([channel, *range(channel + 1, views.ndim)], [channel, *range(1, channel)])
    parts = [
        np.tensordot(part, own, axes)
        for part, own in zip(
            np.split(views, groups, channel), np.split(filters, groups), strict=True
        )
    ]
    return np.concatenate(parts, -1)


def conv_2d(options: Record, x: Array, filters: Array, bias: Array | None = None) -> Array:
    demand("float32", x, filters)
    moves = slides(options, filters.shape[1:-1])
    views = windows(x, moves, options.word("padding"), 0)
    return _finish(options, _correlate(views, filters), bias)


def conv_3d(options: Record, x: Array, filters: Array, bias: Array | None = None) -> Array:
    """Filters are (depth, height, width, in, out)."""
    demand("float32", x, filters)
    moves = slides(options, filters.shape[:3], "dhw")
    views = windows(x, moves, options.word("padding"), 0)
    return _finish(options, _correlate(views, np.moveaxis(filters, -1, 0)), bias)


def depthwise_conv_2d(
    options: Record, x: Array, filters: Array, bias: Array | None = None
) -> Array:
    """Filters are (1, height, width, channels by multiplier)."""
    demand("float32", x, filters)
    one, height, width, outputs = filters.shape
    channels = x.shape[-1]
    if one != 1 or channels < 1 or outputs % channels:
        raise ValueError(phrase("filters {shape} for {channels} channels", filters.shape, channels))
    views = windows(x, slides(options, (height, width)), options.word("padding"), 0)
    own = filters.reshape(height, width, channels, -1)
    product = np.einsum("nhwckl,klcm->nhwcm", views, own, optimize=True)
    return _finish(options, product.reshape(*product.shape[:3], outputs), bias)


def transpose_conv(
    options: Record, shape: Array, filters: Array, x: Array, bias: Array | None = None
) -> Array:
    """Filters are (out, height, width, in)."""
    demand("float32", x, filters)
    spread = _spread(options, integers(shape), np.moveaxis(filters, 0, -2), x)
    return _finish(options, spread, bias)


def conv_3d_transpose(
    options: Record, shape: Array, filters: Array, x: Array, bias: Array | None = None
) -> Array:
    """Filters are (depth, height, width, out, in)."""
    demand("float32", x, filters)
    return _finish(options, _spread(options, integers(shape), filters, x), bias)


def _spread(options: Record, shape: Sequence[int], filters: Array, x: Array) -> Array:
    """Adds every input value, times the filter (*window, out, in), around its place."""
    batch, *sizes, outputs = shape
    moves = slides(options, filters.shape[:-2], "dhw"[-len(sizes) :])
    if (batch, outputs) != (x.shape[0], filters.shape[-2]) or len(moves) != x.ndim - 2:
        raise ValueError(
            phrase("{shape} spread over {shape2} by {shape3}", x.shape, tuple(shape), filters.shape)
        )
    inner = zip(x.shape[1:-1], moves, strict=True)
    extent = (batch, *((n - 1) * m.stride + m.reach for n, m in inner), outputs)
    refuse_excess(extent)
    full = np.zeros(extent, x.dtype)
    for place in np.ndindex(*filters.shape[:-2]):
        begins = [at * move.dilation for at, move in zip(place, moves, strict=True)]
        steps = zip(begins, x.shape[1:-1], moves, strict=True)
        region = tuple(slice(b, b + (n - 1) * m.stride + 1, m.stride) for b, n, m in steps)
        full[(slice(None), *region)] += x @ filters[place].T
    return _remove_padding(full, sizes, moves, options.word("padding"))


def _remove_padding(
    full: Array, sizes: Sequence[int], moves: Sequence[Slide], padding: str
) -> Array:
    """The part inside the padding, with zeros where no value was written."""
    for axis, (size, move) in enumerate(zip(sizes, moves, strict=True), 1):
        before, _ = pads(padding, size, move)
        kept = np.take(full, range(before, min(before + size, full.shape[axis])), axis)
        missing = [(0, 0)] * full.ndim
        missing[axis] = (0, size - kept.shape[axis])
        full = np.pad(kept, missing)
    return full


def _pooled(options: Record, x: Array, fill: float) -> Array:
    demand("float32", x)
    size = options.integer("filter_height"), options.integer("filter_width")
    return windows(x, slides(options, size), options.word("padding"), fill)


def max_pool(options: Record, x: Array) -> Array:
    return activate(options, _pooled(options, x, -np.inf).max((-2, -1)))


def average_pool(options: Record, x: Array) -> Array:
    """Padding does not count."""
    counts = _pooled(options, np.ones_like(x), 0).sum((-2, -1), np.float64)
    total = _pooled(options, x, 0).sum((-2, -1), np.float64)
    return activate(options, (total / counts).astype(np.float32))


def l2_pool(options: Record, x: Array) -> Array:
    counts = _pooled(options, np.ones_like(x), 0).sum((-2, -1), np.float64)
    total = np.square(_pooled(options, x, 0), dtype=np.float64).sum((-2, -1))
    return activate(options, np.sqrt(total / counts).astype(np.float32))


def fully_connected(options: Record, x: Array, filters: Array, bias: Array | None = None) -> Array:
    """Filters are (out, in)."""
    demand("float32", x, filters)
    if options.word("weights_format") != "DEFAULT":
        raise ValueError("shuffled weights")
    outputs, depth = filters.shape
    product = x.reshape(-1, depth) @ filters.T
    if options["keep_num_dims"]:
        product = product.reshape(*x.shape[:-1], outputs)
    return _finish(options, product, bias)


def batch_matmul(options: Record, x: Array, y: Array) -> Array:
    demand("float32", x, y)
    if min(x.ndim, y.ndim) < 2:
        raise ValueError(phrase("shapes {shape} and {shape2} are no matrices", x.shape, y.shape))
    left = np.swapaxes(x, -1, -2) if options["adj_x"] else x
    right = np.swapaxes(y, -1, -2) if options["adj_y"] else y
    return left @ right
