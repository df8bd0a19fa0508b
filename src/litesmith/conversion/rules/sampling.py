"""Rules that read images between their pixels, and that take windows apart and together."""

import itertools
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.scattering import scattered
from litesmith.conversion.rules.shapes import cut_out, padded
from litesmith.conversion.rules.values import like
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


def _taps(
    lower: Lowering, along: Tensor, size: int, mode: str, padding: str, aligned: bool
) -> list[tuple[Tensor, Tensor]]:
    """Of one axis the indices that are read, each with its weight."""
    low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
    half = (size - 1) / 2 if aligned else size / 2
    place = lower.op("ADD", lower.op("MUL", along, like(along, half)), like(along, (size - 1) / 2))
    if mode == "nearest":
        place = lower.op("ROUND", place)
    if padding == "border":
        outside = lower.op(
            "LOGICAL_OR",
            lower.op("LESS", place, like(place, low)),
            lower.op("GREATER", place, like(place, high)),
        )
        place = lower.op("SELECT_V2", outside, _clamped(lower, place, size), place)
    if padding == "reflection":
        place = _reflected(lower, place, low, high)
    if mode == "nearest":
        return [_tap(lower, lower.op("ROUND", place), None, size, padding, low, high)]
    start = lower.op("FLOOR", place)
    rest = lower.op("SUB", place, start)
    first = -1 if mode == "cubic" else 0
    taps: list[tuple[Tensor, Tensor]] = []
    for i, factors in enumerate(_TAPS[mode]):
        index = lower.op("ADD", start, like(start, i + first))
        weight = _polynomial(lower, rest, factors)
        taps.append(_tap(lower, index, weight, size, padding, low, high))
    return taps


def _tap(
    lower: Lowering,
    index: Tensor,
    weight: Tensor | None,
    size: int,
    padding: str,
    low: float,
    high: float,
) -> tuple[Tensor, Tensor]:
    """A whole place that lies inside, and its weight; none where zeros lie outside."""
    if padding == "reflection":
        index = lower.op("ROUND", _reflected(lower, index, low, high))
    inside = _clamped(lower, index, size)
    if weight is None:
        weight = lower.op("ADD", lower.op("MUL", inside, like(inside, 0)), like(inside, 1))
    if padding == "zeros":
        weight = lower.op("MUL", weight, lower.cast(lower.op("EQUAL", inside, index), "float32"))
    return lower.cast(inside, "int32"), weight


def _clamped(lower: Lowering, x: Tensor, size: int) -> Tensor:
    return lower.op("MINIMUM", lower.op("MAXIMUM", x, like(x, 0)), like(x, size - 1))


def _reflected(lower: Lowering, x: Tensor, low: float, high: float) -> Tensor:
    """A place thrown back by the edges, as often as needed."""
    span = high - low
    if not span:
        return lower.op("MUL", x, like(x, 0))
    turn = lower.op("FLOOR_MOD", lower.op("SUB", x, like(x, low)), like(x, 2 * span))
    back = lower.op("ABS", lower.op("SUB", turn, like(x, span)))
    return lower.op("SUB", like(x, high), back)


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
    window: dict[str, Any] = {
        "filter_height": ratio,
        "filter_width": ratio,
        "stride_h": ratio,
        "stride_w": ratio,
    }
    kind = "MAX_POOL_2D" if largest else "AVERAGE_POOL_2D"
    return lower.channels_first(lower.op(kind, total, padding="VALID", **window))


def _samples(
    lower: Lowering, rois: Tensor, side: int, size: int, count: int, scale: float, half: bool
) -> list[tuple[Tensor, Tensor]]:
    """Where boxes are sampled along one axis: the pixels before and behind, and their weights."""
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
    "GridSample": grid_sample,
    "MaxUnpool": max_unpool,
    "RoiAlign": roi_align,
}
