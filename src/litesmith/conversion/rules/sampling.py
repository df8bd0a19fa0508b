"""Rules that read images between their pixels, and that take windows apart and together."""

import itertools
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.scattering import scattered
from litesmith.conversion.rules.shapes import cut_out, padded
from litesmith.conversion.rules.values import like
from litesmith.conversion.rules.windows import read_window
from litesmith.ir.types import Tensor

_CUBIC = -0.75

# The weights of the neighbours of a place, as polynomials in its distance from the one before it.
_TAPS: dict[str, tuple[tuple[float, ...], ...]] = {
    "linear": ((1, -1), (0, 1)),
    "cubic": (
        (0, _CUBIC, -2 * _CUBIC, _CUBIC),
        (1, 0, -_CUBIC - 3, _CUBIC + 2),
        (0, -_CUBIC, 2 * _CUBIC + 3, -_CUBIC - 2),
        (0, 0, _CUBIC, -_CUBIC),
    ),
}


def affine_grid(lower: Lowering, node: Node) -> Tensor:
    theta, size = lower.inputs(node, 2)[:2]
    theta, told = lower.need(theta), lower.told(node)
    sizes = told[1:-1] if told else lower.integers(size, "sizes")[2:]
    aligned = bool(node.integer("align_corners"))
    lines = [np.linspace(-1, 1, n) if aligned else (np.arange(n) * 2 + 1) / n - 1.0 for n in sizes]
    grid = np.meshgrid(*lines, indexing="ij")[::-1]
    rows = np.stack([*grid, np.ones(sizes)], -1).reshape(1, -1, len(sizes) + 1)
    made = lower.op("BATCH_MATMUL", rows.astype(np.float32), theta, adj_y=True)
    return lower.reshape(made, (theta.shape[0], *sizes, len(sizes)))


def grid_sample(lower: Lowering, node: Node) -> Tensor:
    x, grid = (lower.need(t) for t in lower.inputs(node, 2))
    sizes, rank = x.shape[2:], len(x.shape)
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(
        node.word("mode", "linear"), node.word("mode", "linear")
    )
    if mode == "cubic" and len(sizes) > 2:
        raise Unsupported("cubic sampling of volumes would read 64 places; use linear")
    padding, aligned = node.word("padding_mode", "zeros"), bool(node.integer("align_corners"))
    axes: list[list[tuple[Tensor, Tensor]]] = []
    for i, size in enumerate(sizes):
        place = grid.shape[-1] - 1 - i
        cut = [*((0, d, 1) for d in grid.shape[:-1]), (place, place + 1, 1)]
        along = lower.reshape(cut_out(lower, grid, cut), grid.shape[:-1])
        axes.append(_taps(lower, along, size, mode, padding, aligned))
    flat = lower.reshape(lower.channels_last(x), (x.shape[0] * prod(sizes), x.shape[1]))
    batch = np.arange(x.shape[0], dtype=np.int32).reshape(-1, *[1] * (rank - 2))
    total = _sum_of_taps(lower, flat, lower.const(batch), axes, sizes)
    return lower.channels_first(total)


class _Edge(NamedTuple):
    """An axis that is read: its length, its ends, and what lies beyond."""

    size: int
    padding: str = "zeros"
    low: float = 0
    high: float = 0


def _taps(
    lower: Lowering, along: Tensor, size: int, mode: str, padding: str, aligned: bool
) -> list[tuple[Tensor, Tensor]]:
    """The indices that are read along one axis, each with its weight; positions lie in [-1, 1]."""
    half = (size - 1) / 2 if aligned else size / 2
    place = lower.op("ADD", lower.op("MUL", along, like(along, half)), like(along, (size - 1) / 2))
    if mode == "nearest":
        place = lower.op("ROUND", place)
    edge = _Edge(size, padding, 0 if aligned else -0.5, size - 1 if aligned else size - 0.5)
    if padding == "border":
        outside = lower.op(
            "LOGICAL_OR",
            lower.op("LESS", place, like(place, edge.low)),
            lower.op("GREATER", place, like(place, edge.high)),
        )
        place = lower.op("SELECT_V2", outside, _clamped(lower, place, size), place)
    if padding == "reflection":
        place = _reflected(lower, place, edge)
    if mode == "nearest":
        return [_tap(lower, lower.op("ROUND", place), None, edge)]
    return _neighbours(lower, place, mode, edge)


def _neighbours(
    lower: Lowering, place: Tensor, mode: str, edge: _Edge
) -> list[tuple[Tensor, Tensor]]:
    """The indices around a place, each with its weight."""
    start = lower.op("FLOOR", place)
    rest = lower.op("SUB", place, start)
    first = -1 if mode == "cubic" else 0
    taps: list[tuple[Tensor, Tensor]] = []
    for i, factors in enumerate(_TAPS[mode]):
        index = lower.op("ADD", start, like(start, i + first))
        taps.append(_tap(lower, index, _polynomial(lower, rest, factors), edge))
    return taps


def _tap(
    lower: Lowering, index: Tensor, weight: Tensor | None, edge: _Edge
) -> tuple[Tensor, Tensor]:
    """A whole place that lies inside, and its weight; none where zeros lie outside."""
    if edge.padding == "reflection":
        index = lower.op("ROUND", _reflected(lower, index, edge))
    inside = _clamped(lower, index, edge.size)
    if weight is None:
        weight = lower.op("ADD", lower.op("MUL", inside, like(inside, 0)), like(inside, 1))
    if edge.padding == "zeros":
        weight = lower.op("MUL", weight, lower.cast(lower.op("EQUAL", inside, index), "float32"))
    return lower.cast(inside, "int32"), weight


def _clamped(lower: Lowering, x: Tensor, size: int) -> Tensor:
    return lower.op("MINIMUM", lower.op("MAXIMUM", x, like(x, 0)), like(x, size - 1))


def _reflected(lower: Lowering, x: Tensor, edge: _Edge) -> Tensor:
    """A place thrown back by the edges, as often as needed."""
    span = edge.high - edge.low
    if not span:
        return lower.op("MUL", x, like(x, 0))
    turn = lower.op("FLOOR_MOD", lower.op("SUB", x, like(x, edge.low)), like(x, 2 * span))
    back = lower.op("ABS", lower.op("SUB", turn, like(x, span)))
    return lower.op("SUB", like(x, edge.high), back)


def _polynomial(lower: Lowering, x: Tensor, factors: Sequence[float]) -> Tensor:
    total = lower.op("MUL", x, like(x, factors[-1]))
    for factor in factors[-2:0:-1]:
        total = lower.op("ADD", total, like(x, factor)) if factor else total
        total = lower.op("MUL", total, x)
    return lower.op("ADD", total, like(x, factors[0])) if factors[0] else total


def _sum_of_taps(
    lower: Lowering,
    flat: Tensor,
    batch: Tensor,
    axes: Sequence[Sequence[tuple[Tensor, Tensor]]],
    sizes: Sequence[int],
) -> Tensor:
    """The weighted sum of all neighbours; `flat` holds a row of channels for each pixel."""
    total: Tensor | None = None
    for taps in itertools.product(*axes):
        index, weight = batch, None
        for (along, share), size in zip(taps, sizes, strict=True):
            index = lower.op("MUL", index, np.array(size, np.int32))
            index = lower.op("ADD", index, along)
            weight = share if weight is None else lower.op("MUL", weight, share)
        assert weight is not None
        weight = lower.reshape(weight, (*weight.shape, 1))
        part = lower.op("MUL", lower.op("GATHER", flat, index, axis=0), weight)
        total = part if total is None else lower.op("ADD", total, part)
    assert total is not None
    return total


def deform_conv(lower: Lowering, node: Node) -> Tensor:
    x, weight, offset, bias, mask = lower.inputs(node, 5)[:5]
    x, weight, offset = lower.need(x), lower.need(weight), lower.need(offset)
    if len(x.shape) != 4:
        raise Unsupported("a convolution over {count} dimensions; LiteRT has 1, 2 and 3", 3)
    kernel, strides, dilations, frame = read_window(node, x.shape[2:], weight.shape[2:])
    shares, groups = node.integer("offset_group", 1), node.integer("group", 1)
    parts = _channels_in(lower, lower.channels_last(x), shares)
    sides = offset.shape[2:]
    columns: list[Tensor] = []
    for k, tap in enumerate(np.ndindex(*kernel)):
        begins = [t * d - f[0] for t, d, f in zip(tap, dilations, frame, strict=True)]
        lines = [b + s * np.arange(n) for b, s, n in zip(begins, strides, sides, strict=True)]
        base = [g.astype(np.float32) for g in np.meshgrid(*lines, indexing="ij")]
        read: list[Tensor] = []
        for share, part in enumerate(parts):
            place = share * weight.shape[2] * weight.shape[3] + k
            seen = _moved_sample(lower, part, offset, 2 * place, base)
            if mask is not None:
                seen = lower.op("MUL", seen, _channel(lower, mask, place, keep=True))
            read.append(seen)
        columns.append(read[0] if shares == 1 else lower.op("CONCATENATION", *read, axis=3))
    return lower.channels_first(_by_filters(lower, columns, weight, bias, groups))


def _channels_in(lower: Lowering, x: Tensor, count: int) -> Sequence[Tensor]:
    last = np.array(len(x.shape) - 1, np.int32)
    return (x,) if count == 1 else lower.ops("SPLIT", last, x, num_splits=count)


def _channel(lower: Lowering, x: Tensor, place: int, keep: bool = False) -> Tensor:
    """One channel of N, C, H, W; with a last axis of 1 where it is kept."""
    cut = [(0, d, 1) for d in x.shape]
    cut[1] = (place, place + 1, 1)
    shape = (x.shape[0], *x.shape[2:])
    return lower.reshape(cut_out(lower, x, cut), (*shape, 1) if keep else shape)


def _moved_sample(
    lower: Lowering, part: Tensor, offset: Tensor, place: int, base: Sequence[np.ndarray]
) -> Tensor:
    """An image N, H, W, C read at places that two channels of offsets move."""
    batch, *sizes, channels = part.shape
    axes = [
        _neighbours(
            lower, lower.op("ADD", _channel(lower, offset, place + i), base[i]), "linear", _Edge(n)
        )
        for i, n in enumerate(sizes)
    ]
    flat = lower.reshape(part, (batch * prod(sizes), channels))
    owner = lower.const(np.arange(batch, dtype=np.int32).reshape(-1, 1, 1))
    return _sum_of_taps(lower, flat, owner, axes, sizes)


def _by_filters(
    lower: Lowering, columns: Sequence[Tensor], weight: Tensor, bias: Tensor | None, groups: int
) -> Tensor:
    """The values read at each place of the window, multiplied by the filters of its group."""
    filters = lower.transpose(weight, (0, 2, 3, 1))
    filters = lower.reshape(filters, (weight.shape[0], prod(weight.shape[1:])))
    rows = (
        [filters]
        if groups == 1
        else lower.ops("SPLIT", np.array(0, np.int32), filters, num_splits=groups)
    )
    parted = [_channels_in(lower, column, groups) for column in columns]
    made: list[Tensor] = []
    for group, row in enumerate(rows):
        own = [parts[group] for parts in parted]
        seen = own[0] if len(own) == 1 else lower.op("CONCATENATION", *own, axis=3)
        made.append(lower.op("FULLY_CONNECTED", seen, row, None, keep_num_dims=True))
    total = made[0] if groups == 1 else lower.op("CONCATENATION", *made, axis=3)
    return total if bias is None else lower.op("ADD", total, bias)


def roi_align(lower: Lowering, node: Node) -> Tensor:
    x, rois, owners = (lower.need(t) for t in lower.inputs(node, 3))
    ratio = node.integer("sampling_ratio")
    if ratio < 1:
        raise Unsupported(
            "sampling_ratio 0 makes the number of samples depend on the boxes; export with 2"
        )
    half = lower.opset >= 16 and (
        node.word("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    )
    scale = node.number("spatial_scale", 1)
    counts = [node.integer("output_height", 1), node.integer("output_width", 1)]
    sides = [
        _samples(lower, rois, 1 - axis, x.shape[2 + axis], counts[axis] * ratio, scale, half)
        for axis in (0, 1)
    ]
    flat = lower.reshape(lower.channels_last(x), (x.shape[0] * prod(x.shape[2:]), x.shape[1]))
    batch = lower.reshape(lower.cast(owners, "int32"), (-1, 1, 1))
    largest = node.word("mode", "avg") == "max"
    total: Tensor | None = None
    for (row, high), (column, wide) in ((a, b) for a in sides[0] for b in sides[1]):
        index = lower.op("ADD", lower.op("MUL", batch, np.array(x.shape[2], np.int32)), row)
        index = lower.op("ADD", lower.op("MUL", index, np.array(x.shape[3], np.int32)), column)
        weight = lower.op("MUL", high, wide)
        weight = lower.reshape(weight, (*weight.shape, 1))
        part = lower.op("MUL", lower.op("GATHER", flat, index, axis=0), weight)
        join = "MAXIMUM" if largest else "ADD"
        total = part if total is None else lower.op(join, total, part)
    assert total is not None
    if ratio == 1:
        return lower.channels_first(total)
    steps: dict[str, Any] = {
        "filter_height": ratio,
        "filter_width": ratio,
        "stride_h": ratio,
        "stride_w": ratio,
    }
    kind = "MAX_POOL_2D" if largest else "AVERAGE_POOL_2D"
    return lower.channels_first(lower.op(kind, total, padding="VALID", **steps))


def _samples(
    lower: Lowering, rois: Tensor, side: int, size: int, count: int, scale: float, half: bool
) -> list[tuple[Tensor, Tensor]]:
    """The samples of boxes along one axis: the pixels before and behind each position, and their
    weights."""
    boxes = rois.shape[0]
    begin, end = (
        lower.op(
            "MUL", cut_out(lower, rois, [(0, boxes, 1), (i, i + 1, 1)]), np.array(scale, np.float32)
        )
        for i in (side, side + 2)
    )
    if half:
        begin, end = (lower.op("SUB", t, like(t, 0.5)) for t in (begin, end))
    length = lower.op("SUB", end, begin)
    if not half:
        length = lower.op("MAXIMUM", length, like(length, 1))
    steps = ((np.arange(count) + 0.5) / count).astype(np.float32).reshape(1, -1)
    place = lower.op("ADD", begin, lower.op("MUL", length, steps))
    inside = lower.op(
        "LOGICAL_AND",
        lower.op("GREATER_EQUAL", place, like(place, -1)),
        lower.op("LESS_EQUAL", place, like(place, size)),
    )
    place = _clamped(lower, place, size)
    before = lower.op("FLOOR", place)
    behind = _clamped(lower, lower.op("ADD", before, like(before, 1)), size)
    rest = lower.op("SUB", place, before)
    shown = lower.cast(inside, "float32")
    near = lower.op("MUL", lower.op("SUB", like(rest, 1), rest), shown)
    far = lower.op("MUL", rest, shown)
    shape = (boxes, count, 1) if side == 1 else (boxes, 1, count)
    return [
        (lower.reshape(lower.cast(index, "int32"), shape), lower.reshape(weight, shape))
        for index, weight in ((before, near), (behind, far))
    ]


def column_to_image(lower: Lowering, node: Node) -> Tensor:
    x, image, block = (lower.need(t) for t in lower.inputs(node, 3))
    told = lower.told(node)
    sizes = told[2:] if told else lower.integers(image, "sizes")
    kernel, count = lower.integers(block, "blocks"), len(sizes)
    strides = node.integers("strides", [1] * count)
    dilations = node.integers("dilations", [1] * count)
    pads = node.integers("pads", [0] * (2 * count))
    lines: list[np.ndarray] = []
    for i, size in enumerate(sizes):
        windows = (
            size + pads[i] + pads[i + count] - dilations[i] * (kernel[i] - 1) - 1
        ) // strides[i] + 1
        shape = [1] * (2 * count)
        shape[i], shape[i + count] = kernel[i], windows
        line = np.arange(kernel[i])[:, None] * dilations[i] + np.arange(windows) * strides[i]
        lines.append((line - pads[i]).reshape(shape))
    inside = np.logical_and.reduce(
        np.broadcast_arrays(*((v >= 0) & (v < s) for v, s in zip(lines, sizes, strict=True)))
    )
    flat = sum(v * prod(sizes[i + 1 :]) for i, v in enumerate(lines))
    valid = np.flatnonzero(inside).astype(np.int32)
    places = np.broadcast_to(flat, inside.shape).reshape(-1)[valid].astype(np.int32)
    batch, channels = x.shape[0], x.shape[1] // prod(kernel)
    columns = lower.reshape(x, (batch * channels, inside.size))
    columns = lower.op("GATHER", lower.transpose(columns, (1, 0)), valid, axis=0)
    target = np.array([prod(sizes), batch * channels], np.int32)
    made = lower.op("SCATTER_ND", places[:, None], columns, target)
    return lower.reshape(lower.transpose(made, (1, 0)), (batch, channels, *sizes))


def max_unpool(lower: Lowering, node: Node) -> Tensor:
    x, indices, wanted = lower.inputs(node, 3)[:3]
    x, indices = lower.need(x), lower.need(indices)
    kernel, count = node.integers("kernel_shape"), len(x.shape) - 2
    strides = node.integers("strides", [1] * count)
    pads = node.integers("pads", [0] * (2 * count))
    sizes = [
        (x.shape[i + 2] - 1) * strides[i] - pads[i] - pads[i + count] + kernel[i]
        for i in range(count)
    ]
    whole = (*x.shape[:2], *sizes)
    places = lower.reshape(lower.cast(indices, "int32"), (x.elements, 1))
    empty = lower.const(np.zeros(prod(whole), x.dtype))
    made = scattered(lower, empty, places, lower.reshape(x, (x.elements,)), "none")
    made = lower.reshape(made, whole)
    if wanted is None:
        return made
    target = lower.told(node) or lower.integers(wanted, "sizes")
    return padded(lower, made, [(0, t - d) for t, d in zip(target, whole, strict=True)])


RULES: dict[str, Rule] = {
    "AffineGrid": affine_grid,
    "Col2Im": column_to_image,
    "DeformConv": deform_conv,
    "GridSample": grid_sample,
    "MaxUnpool": max_unpool,
    "RoiAlign": roi_align,
}
