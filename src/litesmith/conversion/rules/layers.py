"""Rules for convolutions."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.shapes import cut_out, padded
from litesmith.conversion.rules.windows import Window, add_frame, read_window, same_frame
from litesmith.ir.types import Tensor

_AXES = ("d", "h", "w")


class Filters(NamedTuple):
    """What a convolution multiplies by: weights O, I, spatial …, in groups, and adds."""

    weight: Tensor
    bias: Tensor | None
    groups: int


def conv(lower: Lowering, node: Node) -> Tensor:
    x, weight, bias = lower.inputs(node, 3)[:3]
    x, weight = lower.need(x), lower.need(weight)
    window = read_window(node, x.shape[2:], weight.shape[2:])
    return convolve(lower, x, Filters(weight, bias, node.integer("group", 1)), window)


def convolve(lower: Lowering, x: Tensor, filters: Filters, window: Window) -> Tensor:
    """A convolution in the source's order: N, C, spatial …"""
    rank = len(x.shape)
    weight, bias, groups = filters
    if x.dtype != "float32":
        x_float, weight = lower.cast(x, "float32"), lower.cast(weight, "float32")
        filters = Filters(weight, bias and lower.cast(bias, "float32"), groups)
        return lower.cast(convolve(lower, x_float, filters, window), x.dtype)
    last = lower.channels_last(x)
    if rank == 3:  # a line is an image of height 1
        last = lower.reshape(last, (last.shape[0], 1, *last.shape[1:]))
        weight = lower.reshape(weight, (*weight.shape[:2], 1, weight.shape[2]))
        filters = filters._replace(weight=weight)
        _, strides, dilations, frame = window
        window = Window(weight.shape[2:], [1, *strides], [1, *dilations], [(0, 0), *frame])
    if rank == 5:
        return lower.channels_first(_conv_3d(lower, last, filters, window))
    if rank not in (3, 4):
        raise Unsupported("a convolution over {count} dimensions; LiteRT has 1, 2 and 3", rank - 2)
    made = _conv_2d(lower, last, filters, window)
    if rank == 3:
        made = lower.reshape(made, (made.shape[0], *made.shape[2:]))
    return lower.channels_first(made)


def _options(window: Window, padding: str) -> dict[str, Any]:
    """The window as LiteRT's ops have it among their options."""
    options: dict[str, Any] = {"padding": padding}
    names = _AXES[-len(window.kernel) :]
    for name, stride, dilation in zip(names, window.strides, window.dilations, strict=True):
        options |= {f"stride_{name}": stride, f"dilation_{name}_factor": dilation}
    return options


def _conv_2d(lower: Lowering, last: Tensor, of: Filters, window: Window) -> Tensor:
    weight, bias, groups = of
    channels, is_same = last.shape[-1], window.frame == same_frame(window, last.shape[1:3])
    if not is_same:
        last = add_frame(lower, last, window.frame)
    options = _options(window, "SAME" if is_same else "VALID")
    if bias is None:
        bias = lower.const(np.zeros(weight.shape[0], np.float32))
    if groups > 1 and groups == channels:
        filters = lower.transpose(weight, (1, 2, 3, 0))
        multiplier = weight.shape[0] // channels
        return lower.op(
            "DEPTHWISE_CONV_2D", last, filters, bias, depth_multiplier=multiplier, **options
        )
    filters = lower.transpose(weight, (0, 2, 3, 1))
    if groups == 1 or filters.is_const:  # the kernel finds the groups by the filters' depth
        return lower.op("CONV_2D", last, filters, bias, **options)
    parts = _split(lower, last, 3, groups)
    pieces, offsets = _split(lower, filters, 0, groups), _split(lower, bias, 0, groups)
    made = [
        lower.op("CONV_2D", p, f, b, **options)
        for p, f, b in zip(parts, pieces, offsets, strict=True)
    ]
    return lower.op("CONCATENATION", *made, axis=3)


def _conv_3d(lower: Lowering, last: Tensor, of: Filters, window: Window) -> Tensor:
    weight, bias, groups = of
    last = add_frame(lower, last, window.frame)
    filters, options = lower.transpose(weight, (2, 3, 4, 1, 0)), _options(window, "VALID")
    if groups == 1:
        return lower.op("CONV_3D", last, filters, bias, **options)
    parts, pieces = _split(lower, last, 4, groups), _split(lower, filters, 4, groups)
    made = [lower.op("CONV_3D", p, f, None, **options) for p, f in zip(parts, pieces, strict=True)]
    joined = lower.op("CONCATENATION", *made, axis=4)
    return joined if bias is None else lower.op("ADD", joined, bias)


def _split(lower: Lowering, x: Tensor, axis: int, count: int) -> Sequence[Tensor]:
    """Equal parts of a tensor along an axis."""
    return [x] if count == 1 else lower.ops("SPLIT", np.array(axis, np.int32), x, num_splits=count)


def conv_transpose(lower: Lowering, node: Node) -> Tensor:
    x, weight, bias = lower.inputs(node, 3)[:3]
    x, weight = lower.need(x), lower.need(weight)
    sizes, kernel = x.shape[2:], weight.shape[2:]
    count, groups = len(sizes), node.integer("group", 1)
    strides = list(node.integers("strides", [1] * count))
    dilations = list(node.integers("dilations", [1] * count))
    extra = node.integers("output_padding", [0] * count)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = list(node.integers("pads", [0] * (2 * count)))
    full = [(n - 1) * s + r for n, s, r in zip(sizes, strides, reach, strict=True)]
    wanted = node.integers("output_shape")
    how = node.word("auto_pad", "NOTSET")
    if wanted or how in ("SAME_UPPER", "SAME_LOWER"):
        wanted = wanted[-count:] or tuple(n * s for n, s in zip(sizes, strides, strict=True))
        for i in range(count):
            total = max(full[i] + extra[i] - wanted[i], 0)
            less = total // 2
            pads[i], pads[i + count] = (
                (total - less, less)
                if how != "SAME_UPPER" and how != "NOTSET"
                else (less, total - less)
            )
    else:
        wanted = tuple(full[i] + extra[i] - pads[i] - pads[i + count] for i in range(count))
    weight = _dilated(lower, weight, dilations)
    places = [(pads[i], wanted[i]) for i in range(count)]
    return _spread(lower, x, Filters(weight, bias, groups), strides, places)


def _dilated(lower: Lowering, weight: Tensor, dilations: Sequence[int]) -> Tensor:
    """Filters with zeros between their values."""
    for axis, gap in enumerate(dilations, start=2):
        if gap == 1:
            continue
        shape, size = weight.shape, weight.shape[axis]
        front, back = prod(shape[:axis]), prod(shape[axis + 1 :])
        parted = lower.reshape(weight, (front, size, 1, back))
        wide = padded(lower, parted, [(0, 0), (0, 0), (0, gap - 1), (0, 0)])
        line = lower.reshape(wide, (front, size * gap, back))
        reach = (size - 1) * gap + 1
        line = cut_out(lower, line, [(0, front, 1), (0, reach, 1), (0, back, 1)])
        weight = lower.reshape(line, (*shape[:axis], reach, *shape[axis + 1 :]))
    return weight


def _spread(
    lower: Lowering,
    x: Tensor,
    filters: Filters,
    strides: Sequence[int],
    places: Sequence[tuple[int, int]],
) -> Tensor:
    """A transposed convolution; in each dimension, a part of the full result from some place on."""
    weight, bias, groups = filters
    rank, last = len(x.shape), lower.channels_last(x)
    if rank == 3:
        last = lower.reshape(last, (last.shape[0], 1, *last.shape[1:]))
        weight = lower.reshape(weight, (*weight.shape[:2], 1, weight.shape[2]))
        strides, places = [1, *strides], [(0, 1), *places]
    if rank not in (3, 4, 5):
        raise Unsupported("a transposed convolution over {count} dimensions", rank - 2)
    parts = _split(lower, last, len(last.shape) - 1, groups)
    pieces = _split(lower, weight, 0, groups)
    made = [_spread_part(lower, p, w, strides, places) for p, w in zip(parts, pieces, strict=True)]
    joined = (
        made[0] if groups == 1 else lower.op("CONCATENATION", *made, axis=len(made[0].shape) - 1)
    )
    if bias is not None:
        joined = lower.op("ADD", joined, bias)
    if rank == 3:
        joined = lower.reshape(joined, (joined.shape[0], *joined.shape[2:]))
    return lower.channels_first(joined)


def _spread_part(
    lower: Lowering,
    last: Tensor,
    weight: Tensor,
    strides: Sequence[int],
    places: Sequence[tuple[int, int]],
) -> Tensor:
    kernel, spatial = weight.shape[2:], last.shape[1:-1]
    full = [(n - 1) * s + k for n, s, k in zip(spatial, strides, kernel, strict=True)]
    # Where SAME padding yields exactly the wanted part, nothing needs to be cut.
    same = all(
        size == n * s and k >= s and begin == (k - s) // 2
        for (begin, size), n, s, k in zip(places, spatial, strides, kernel, strict=True)
    )
    is_apart = len(spatial) == 2 and len({*kernel, *strides}) == 1 and strides[0] > 1
    # Weights that are made of codes stay those of one op, for integers.
    if same and is_apart and weight.quant is None and weight.dtype == "float32":
        return _apart(lower, last, weight)
    sizes = [size for _, size in places] if same else full
    made = _transposed(lower, last, weight, strides, sizes, "SAME" if same else "VALID")
    if same:
        return made
    beyond = [max(b + s - f, 0) for f, (b, s) in zip(full, places, strict=True)]
    made = add_frame(lower, made, [(0, b) for b in beyond])
    cut = [(0, last.shape[0], 1), *((b, b + s, 1) for b, s in places), (0, weight.shape[1], 1)]
    return cut_out(lower, made, cut)


def _transposed(
    lower: Lowering,
    last: Tensor,
    weight: Tensor,
    strides: Sequence[int],
    sizes: Sequence[int],
    padding: str,
) -> Tensor:
    """LiteRT's transposed convolution with an output of these sizes."""
    shape = np.array([last.shape[0], *sizes, weight.shape[1]], np.int32)
    names = _AXES[-len(strides) :]
    options: dict[str, Any] = {"padding": padding}
    options |= {f"stride_{name}": stride for name, stride in zip(names, strides, strict=True)}
    is_3d = len(strides) == 3
    filters = lower.transpose(weight, (2, 3, 4, 1, 0) if is_3d else (1, 2, 3, 0))
    kind = "CONV_3D_TRANSPOSE" if is_3d else "TRANSPOSE_CONV"
    return lower.op(kind, shape, filters, last, **options)


def _apart(lower: Lowering, last: Tensor, weight: Tensor) -> Tensor:
    """Windows beside each other are channels that become places: XNNPACK takes a third to a tenth
    of a TRANSPOSE_CONV's time for that."""
    block, count = weight.shape[2], weight.shape[0]
    rows = lower.transpose(weight, (2, 3, 1, 0))
    flat = lower.reshape(rows, (block * block * weight.shape[1], 1, 1, count))
    bias = np.zeros(flat.shape[0], np.float32)
    made = lower.op("CONV_2D", last, flat, bias, stride_h=1, stride_w=1, padding="VALID")
    return lower.op("DEPTH_TO_SPACE", made, block_size=block)


RULES: dict[str, Rule] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
}
