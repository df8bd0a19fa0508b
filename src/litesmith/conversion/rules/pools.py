"""Rules for pools: the maximum, the mean, the norm of the values in a window."""

from collections.abc import Sequence
from math import ceil, floor, prod
from typing import NamedTuple

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.shapes import cut_out, padded
from litesmith.conversion.rules.values import like
from litesmith.conversion.rules.windows import (
    Frame,
    Window,
    add_frame,
    read_window,
    same_frame,
)
from litesmith.ir.types import Array, Tensor

# The largest number of places in a window whose places are requested.
_MOST_PLACES = 64


class Pool(NamedTuple):
    """A pool of one kind of LiteRT's.

    ceil          True where a last window may reach beyond the frame
    counts_frame  True where values of the frame count in an average
    """

    kind: str
    window: Window
    ceil: bool = False
    counts_frame: bool = False


def pool_rule(kind: str) -> Rule:
    def rule(lower: Lowering, node: Node) -> Tensor | tuple[Tensor, Tensor]:
        x = lower.first(node)
        window = read_window(node, x.shape[2:], node.integers("kernel_shape"))
        ceil, counts_frame = node.integer("ceil_mode"), node.integer("count_include_pad")
        of = Pool(kind, window, bool(ceil), bool(counts_frame))
        if len(node.outputs) > 1 and node.outputs[1]:
            return _with_places(lower, x, of, across=bool(node.integer("storage_order")))
        return pool(lower, x, of)

    return rule


def _with_places(lower: Lowering, x: Tensor, of: Pool, *, across: bool) -> tuple[Tensor, Tensor]:
    """The largest values and where they lie in the whole tensor, by a slice for each place."""
    window = of.window
    if prod(window.kernel) > _MOST_PLACES:
        raise Unsupported(
            "it asks where the largest of {count} values lies, and LiteRT's pool does not tell; "
            "export without the second output",
            prod(window.kernel),
        )
    counts = _counts(of, x.shape[2:])
    wide, index = _framed_places(lower, x, window, counts, across)
    best: Tensor | None = None
    place: Tensor | None = None
    for tap in np.ndindex(*window.kernel):
        cut = [(0, d, 1) for d in x.shape[:2]]
        for i, t in enumerate(tap):
            begin, step = t * window.dilations[i], window.strides[i]
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
    lower: Lowering, x: Tensor, window: Window, counts: Sequence[int], across: bool
) -> tuple[Tensor, Array]:
    """The tensor with all that its windows reach, and the number of each of its values."""
    sizes = x.shape[2:]
    ends = [
        max((c - 1) * s + r - n - f[0], 0)
        for c, n, r, s, f in zip(
            counts, sizes, window.reach, window.strides, window.frame, strict=True
        )
    ]
    frame = [(0, 0), (0, 0), *((f[0], e) for f, e in zip(window.frame, ends, strict=True))]
    numbers = np.arange(prod(sizes), dtype=np.int32)
    numbers = numbers.reshape(sizes[::-1]).T if across else numbers.reshape(sizes)
    blocks = np.arange(prod(x.shape[:2]), dtype=np.int32).reshape(*x.shape[:2], *[1] * len(sizes))
    index = np.pad(blocks * prod(sizes) + numbers, frame)
    return padded(lower, x, frame, "constant", lower.const(_lowest(x))), index


def _lowest(x: Tensor) -> Array:
    info = np.finfo(np.float32) if x.dtype == "float32" else np.iinfo(x.dtype)
    return np.array(info.min, x.dtype)


def pool(lower: Lowering, x: Tensor, of: Pool) -> Tensor:
    """A pool over N, C, spatial …"""
    if x.dtype != "float32":
        return lower.cast(pool(lower, lower.cast(x, "float32"), of), x.dtype)
    last, sizes, window = lower.channels_last(x), x.shape[2:], of.window
    counts = _counts(of, sizes)
    whole = window._replace(frame=_whole_frame(window, sizes, counts))
    if _has_same_padding(of, whole, sizes):
        return lower.channels_first(_pool_2d(lower, last, of.kind, whole, "SAME"))
    filling = lower.const(_lowest(x)) if of.kind == "MAX_POOL_2D" else None
    wide = add_frame(lower, last, whole.frame, filling)
    made = _valid_pool(lower, wide, of.kind, window)
    if of.kind == "AVERAGE_POOL_2D" and any(map(any, whole.frame)):
        weights = _share(of, sizes, counts)
        if not np.all(weights == 1):
            made = lower.op("MUL", made, weights[None, ..., None])
    made = cut_out(
        lower, made, [(0, made.shape[0], 1), *((0, c, 1) for c in counts), (0, made.shape[-1], 1)]
    )
    return lower.channels_first(made)


def _whole_frame(window: Window, sizes: Sequence[int], counts: Sequence[int]) -> Frame:
    """The frame with what the last windows reach beyond it."""
    frame: Frame = []
    for n, c, s, r, (before, after) in zip(
        sizes, counts, window.strides, window.reach, window.frame, strict=True
    ):
        beyond = max((c - 1) * s + r - n - before - after, 0)
        frame.append((before, after + beyond))
    return frame


def _has_same_padding(of: Pool, whole: Window, sizes: Sequence[int]) -> bool:
    """True where an op of LiteRT with SAME padding gives exactly this pool."""
    if len(sizes) != 2 or any(d != 1 for d in whole.dilations):
        return False
    if of.kind == "AVERAGE_POOL_2D" and of.counts_frame and any(map(any, whole.frame)):
        return False
    return whole.frame == same_frame(whole, sizes)


def _counts(of: Pool, sizes: Sequence[int]) -> list[int]:
    """The number of windows along each dimension."""
    _, strides, _, frame = of.window
    rows = zip(sizes, of.window.reach, strides, frame, strict=True)
    return [_windows(size, reach, stride, pair, of.ceil) for size, reach, stride, pair in rows]


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


def _pool_2d(lower: Lowering, x: Tensor, kind: str, window: Window, padding: str) -> Tensor:
    return lower.op(
        kind,
        x,
        filter_height=window.kernel[0],
        filter_width=window.kernel[1],
        stride_h=window.strides[0],
        stride_w=window.strides[1],
        padding=padding,
    )


def _valid_pool(lower: Lowering, x: Tensor, kind: str, window: Window) -> Tensor:
    """A pool without a frame over N, spatial …, C, of any number of dimensions."""
    kernel, strides, dilations, _ = window
    if any(d != 1 for d in dilations):
        return _sparse_pool(lower, x, kind, window)
    spatial = x.shape[1:-1]
    if len(spatial) == 2:
        return _pool_2d(lower, x, kind, window, "VALID")
    if len(spatial) == 1:
        image = lower.reshape(x, (x.shape[0], 1, *x.shape[1:]))
        made = _pool_2d(lower, image, kind, _plain((1, *kernel), (1, *strides)), "VALID")
        return lower.reshape(made, (made.shape[0], *made.shape[2:]))
    if len(spatial) != 3:
        raise Unsupported("a pool over {count} dimensions; LiteRT has 1, 2 and 3", len(spatial))
    batch, depth, channels = x.shape[0], spatial[0], x.shape[-1]
    images = lower.reshape(x, (batch * depth, *spatial[1:], channels))
    flat = _pool_2d(lower, images, kind, _plain(kernel[1:], strides[1:]), "VALID")
    height, width = flat.shape[1:3]
    upright = lower.reshape(flat, (batch, depth, height * width, channels))
    made = _pool_2d(lower, upright, kind, _plain((kernel[0], 1), (strides[0], 1)), "VALID")
    return lower.reshape(made, (batch, made.shape[1], height, width, channels))


def _plain(kernel: Sequence[int], strides: Sequence[int]) -> Window:
    """A window without gaps or a frame."""
    return Window(kernel, strides, [1] * len(kernel), [(0, 0)] * len(kernel))


def _sparse_pool(lower: Lowering, x: Tensor, kind: str, window: Window) -> Tensor:
    """A pool whose window has gaps: along one axis after another, a slice for each place."""
    kernel, strides, dilations, _ = window
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


def _share(of: Pool, sizes: Sequence[int], counts: Sequence[int]) -> Array:
    """The factor by which an average over whole windows is corrected for places outside the
    image."""
    kernel, strides, dilations, frame = of.window
    total = np.ones((), np.float64)
    for axis, (before, after) in enumerate(frame):
        n, k = sizes[axis], kernel[axis]
        begins = np.arange(counts[axis]) * strides[axis]
        places = np.add.outer(begins, np.arange(k) * dilations[axis] - before)
        low, high = (-before, n + after) if of.counts_frame else (0, n)
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
    window = read_window(node, x.shape[2:], node.integers("kernel_shape"))
    of = Pool("AVERAGE_POOL_2D", window, bool(node.integer("ceil_mode")), counts_frame=True)
    mean = pool(lower, _powered(lower, x, p), of)
    # A window beyond the frame has fewer values; its sum includes zeros.
    share = _share(of, x.shape[2:], mean.shape[2:])
    total = lower.op("MUL", mean, (prod(window.kernel) / share).astype(np.float32))
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
    "AveragePool": pool_rule("AVERAGE_POOL_2D"),
    "GlobalAveragePool": global_pool("MEAN"),
    "GlobalLpPool": global_lp_pool,
    "GlobalMaxPool": global_pool("REDUCE_MAX"),
    "LpPool": lp_pool,
    "MaxPool": pool_rule("MAX_POOL_2D"),
}
