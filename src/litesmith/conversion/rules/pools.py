"""Rules for pools: the maximum, the mean, the norm of the values in a window."""

from collections.abc import Sequence
from math import ceil, floor, prod
from typing import NamedTuple

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.layers import Frame, framed, is_same, window
from litesmith.conversion.rules.shapes import cut_out, padded
from litesmith.conversion.rules.values import like
from litesmith.ir.types import Array, Tensor

# The largest number of places in a window whose places are requested.
_MOST_PLACES = 64


def pool(kind: str) -> Rule:
    def rule(lower: Lowering, node: Node) -> Tensor | tuple[Tensor, Tensor]:
        x = lower.first(node)
        kernel = node.integers("kernel_shape")
        strides, dilations, frame = window(node, x.shape[2:], kernel)
        up = bool(node.integer("ceil_mode"))
        counted = bool(node.integer("count_include_pad"))
        if len(node.outputs) > 1 and node.outputs[1]:
            across = bool(node.integer("storage_order"))
            return _with_places(lower, x, Window(kernel, strides, dilations, frame), up, across)
        return pooled(lower, x, kind, kernel, strides, dilations, frame, up, counted)

    return rule


class Window(NamedTuple):
    """How a pool reads each dimension."""

    kernel: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    frame: Frame


def _with_places(
    lower: Lowering, x: Tensor, how: Window, up: bool, across: bool
) -> tuple[Tensor, Tensor]:
    """The largest values and where they lie in the whole tensor, by a slice for each place."""
    if prod(how.kernel) > _MOST_PLACES:
        raise Unsupported(
            "it asks where the largest of {count} values lies, and LiteRT's pool does not tell; "
            "export without the second output",
            prod(how.kernel),
        )
    sizes = x.shape[2:]
    counts = [
        _windows(n, (k - 1) * d + 1, s, f, up) for n, k, s, d, f in zip(sizes, *how, strict=True)
    ]
    wide, index = _framed_places(lower, x, how, counts, across)
    best: Tensor | None = None
    place: Tensor | None = None
    for tap in np.ndindex(*how.kernel):
        cut = [(0, d, 1) for d in x.shape[:2]]
        for i, t in enumerate(tap):
            begin, step = t * how.dilations[i], how.strides[i]
            cut.append((begin, begin + (counts[i] - 1) * step + 1, step))
        part = cut_out(lower, wide, cut)
        where = lower.const(index[tuple(slice(*c) for c in cut)])
        if best is None or place is None:
            best, place = part, lower.op("ADD", where, _zeros(lower, part))
            continue
        place = lower.op("SELECT_V2", lower.op("GREATER", part, best), where, place)
        best = lower.op("MAXIMUM", best, part)
    assert best is not None and place is not None
    return best, lower.cast(place, "int64")


def _zeros(lower: Lowering, x: Tensor) -> Tensor:
    return lower.const(np.zeros(x.shape, np.int32))


def _framed_places(
    lower: Lowering, x: Tensor, how: Window, counts: Sequence[int], across: bool
) -> tuple[Tensor, Array]:
    """The tensor with all that its windows reach, and the number of each of its values."""
    sizes = x.shape[2:]
    ends = [
        max((c - 1) * s + (k - 1) * d + 1 - n - f[0], 0)
        for c, n, k, s, d, f in zip(counts, sizes, *how, strict=True)
    ]
    frame = [(0, 0), (0, 0), *((f[0], e) for f, e in zip(how.frame, ends, strict=True))]
    numbers = np.arange(prod(sizes), dtype=np.int32)
    numbers = numbers.reshape(sizes[::-1]).T if across else numbers.reshape(sizes)
    blocks = np.arange(prod(x.shape[:2]), dtype=np.int32).reshape(*x.shape[:2], *[1] * len(sizes))
    index = np.pad(blocks * prod(sizes) + numbers, frame)
    return padded(lower, x, frame, "constant", lower.const(_lowest(x))), index


def _lowest(x: Tensor) -> Array:
    info = np.finfo(np.float32) if x.dtype == "float32" else np.iinfo(x.dtype)
    return np.array(info.min, x.dtype)


def pooled(
    lower: Lowering,
    x: Tensor,
    kind: str,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    frame: Frame,
    up: bool,
    counted: bool,
) -> Tensor:
    """A pool over N, C, spatial …; `counted` where the frame counts in an average."""
    dtype = x.dtype
    if dtype != "float32":
        inner = pooled(
            lower, lower.cast(x, "float32"), kind, kernel, strides, dilations, frame, up, counted
        )
        return lower.cast(inner, dtype)
    last, sizes = lower.channels_last(x), x.shape[2:]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    counts = [
        _windows(n, r, s, p, up) for n, r, s, p in zip(sizes, reach, strides, frame, strict=True)
    ]
    # How far the last windows reach beyond the frame.
    beyond = [
        max((c - 1) * s + r - n - p[0] - p[1], 0)
        for c, s, r, n, p in zip(counts, strides, reach, sizes, frame, strict=True)
    ]
    whole = [(p[0], p[1] + b) for p, b in zip(frame, beyond, strict=True)]
    plain = all(d == 1 for d in dilations)
    if (
        len(sizes) == 2
        and plain
        and is_same(sizes, kernel, strides, dilations, whole)
        and not (counted and any(map(any, whole)) and kind == "AVERAGE_POOL_2D")
    ):
        return lower.channels_first(_pool_2d(lower, last, kind, kernel, strides, "SAME"))
    filling = lower.const(_lowest(x)) if kind == "MAX_POOL_2D" else None
    wide = framed(lower, last, whole, filling)
    made = _valid_pool(lower, wide, kind, kernel, strides, dilations)
    if kind == "AVERAGE_POOL_2D" and any(map(any, whole)):
        weights = _share(sizes, kernel, strides, dilations, frame, counts, counted)
        if not np.all(weights == 1):
            made = lower.op("MUL", made, weights[None, ..., None])
    made = cut_out(
        lower, made, [(0, made.shape[0], 1), *((0, c, 1) for c in counts), (0, made.shape[-1], 1)]
    )
    return lower.channels_first(made)


def _windows(size: int, reach: int, stride: int, frame: tuple[int, int], up: bool) -> int:
    """The number of windows along a dimension."""
    room = (size + sum(frame) - reach) / stride
    count = (ceil(room) if up else floor(room)) + 1
    if count < 1:
        raise Unsupported(
            "its window of {reach} is larger than the {size} values under it; give larger sizes: "
            "--shape",
            reach,
            size,
        )
    if up and (count - 1) * stride >= size + frame[0]:  # it would lie in the frame entirely
        count -= 1
    return count


def _pool_2d(
    lower: Lowering,
    x: Tensor,
    kind: str,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: str,
) -> Tensor:
    return lower.op(
        kind,
        x,
        filter_height=kernel[0],
        filter_width=kernel[1],
        stride_h=strides[0],
        stride_w=strides[1],
        padding=padding,
    )


def _valid_pool(
    lower: Lowering,
    x: Tensor,
    kind: str,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Tensor:
    """A pool without a frame over N, spatial …, C, of any number of dimensions."""
    if any(d != 1 for d in dilations):
        return _sparse_pool(lower, x, kind, kernel, strides, dilations)
    spatial = x.shape[1:-1]
    if len(spatial) == 2:
        return _pool_2d(lower, x, kind, kernel, strides, "VALID")
    if len(spatial) == 1:
        image = lower.reshape(x, (x.shape[0], 1, *x.shape[1:]))
        made = _pool_2d(lower, image, kind, (1, *kernel), (1, *strides), "VALID")
        return lower.reshape(made, (made.shape[0], *made.shape[2:]))
    if len(spatial) != 3:
        raise Unsupported("a pool over {count} dimensions; LiteRT has 1, 2 and 3", len(spatial))
    batch, depth, channels = x.shape[0], spatial[0], x.shape[-1]
    images = lower.reshape(x, (batch * depth, *spatial[1:], channels))
    flat = _pool_2d(lower, images, kind, kernel[1:], strides[1:], "VALID")
    height, width = flat.shape[1:3]
    upright = lower.reshape(flat, (batch, depth, height * width, channels))
    made = _pool_2d(lower, upright, kind, (kernel[0], 1), (strides[0], 1), "VALID")
    return lower.reshape(made, (batch, made.shape[1], height, width, channels))


def _sparse_pool(
    lower: Lowering,
    x: Tensor,
    kind: str,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Tensor:
    """A pool whose window has gaps: along one axis after another, a slice for each place."""
    for axis, (k, s, d) in enumerate(zip(kernel, strides, dilations, strict=True), start=1):
        count = (x.shape[axis] - (k - 1) * d - 1) // s + 1
        total: Tensor | None = None
        for begin in range(0, k * d, d):
            cut = [(0, size, 1) for size in x.shape]
            cut[axis] = (begin, begin + (count - 1) * s + 1, s)
            part = cut_out(lower, x, cut)
            join = "MAXIMUM" if kind == "MAX_POOL_2D" else "ADD"
            total = part if total is None else lower.op(join, total, part)
        assert total is not None
        x = total
    return x if kind == "MAX_POOL_2D" else lower.op("MUL", x, like(x, 1 / prod(kernel)))


def _share(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    frame: Frame,
    counts: Sequence[int],
    counted: bool,
) -> Array:
    """The factor by which an average over whole windows is corrected for places outside the
    image."""
    total = np.ones((), np.float64)
    for axis, (before, after) in enumerate(frame):
        n, k = sizes[axis], kernel[axis]
        begins = np.arange(counts[axis]) * strides[axis]
        places = np.add.outer(begins, np.arange(k) * dilations[axis] - before)
        low, high = (-before, n + after) if counted else (0, n)
        inside = ((places >= low) & (places < high)).sum(1)
        total = np.multiply.outer(total, k / np.maximum(inside, 1))
    return total.astype(np.float32)


def global_pool(kind: str) -> Rule:
    def rule(lower: Lowering, node: Node) -> Tensor:
        x = lower.first(node)
        axes = np.arange(2, len(x.shape), dtype=np.int32)
        return lower.op(kind, x, axes, keep_dims=True)

    return rule


def global_lp_pool(lower: Lowering, node: Node) -> Tensor:
    x, p = lower.first(node), node.integer("p", 2)
    axes = np.arange(2, len(x.shape), dtype=np.int32)
    return _root(lower, lower.op("SUM", _powered(lower, x, p), axes, keep_dims=True), p)


def lp_pool(lower: Lowering, node: Node) -> Tensor:
    x, p = lower.first(node), node.integer("p", 2)
    kernel = node.integers("kernel_shape")
    strides, dilations, frame = window(node, x.shape[2:], kernel)
    up = bool(node.integer("ceil_mode"))
    mean = pooled(
        lower, _powered(lower, x, p), "AVERAGE_POOL_2D", kernel, strides, dilations, frame, up, True
    )
    # A window beyond the frame has fewer values; its sum includes zeros.
    counts = mean.shape[2:]
    share = _share(x.shape[2:], kernel, strides, dilations, frame, counts, True)
    total = lower.op("MUL", mean, (prod(kernel) / share).astype(np.float32))
    return _root(lower, total, p)


def _powered(lower: Lowering, x: Tensor, p: int) -> Tensor:
    if p == 2:
        return lower.op("MUL", x, x)
    size = lower.op("ABS", x)
    return size if p == 1 else lower.op("POW", size, like(x, p))


def _root(lower: Lowering, x: Tensor, p: int) -> Tensor:
    if p == 1:
        return x
    return lower.op("SQRT", x) if p == 2 else lower.op("POW", x, like(x, 1 / p))


RULES: dict[str, Rule] = {
    "AveragePool": pool("AVERAGE_POOL_2D"),
    "GlobalAveragePool": global_pool("MEAN"),
    "GlobalLpPool": global_lp_pool,
    "GlobalMaxPool": global_pool("REDUCE_MAX"),
    "LpPool": lp_pool,
    "MaxPool": pool("MAX_POOL_2D"),
}
