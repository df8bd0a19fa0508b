"""Rules for layers with weights and for windows: convolutions, products, pools, resizing."""

from collections.abc import Sequence
from math import ceil, floor, prod

import numpy as np

from litesmith.conversion.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.rules.shapes import cut_out, padded
from litesmith.conversion.rules.values import like
from litesmith.conversion.source import Node
from litesmith.ir.types import Array, Tensor, Value

_LOWEST = float(np.finfo(np.float32).min)
_NAMES = ("h", "w")

Frame = list[tuple[int, int]]


def _window(
    node: Node, sizes: Sequence[int], kernel: Sequence[int]
) -> tuple[list[int], list[int], Frame]:
    """Strides, dilations and the frame of a window, as the node says it."""
    count = len(sizes)
    strides = list(node.integers("strides", [1] * count))
    dilations = list(node.integers("dilations", [1] * count))
    pads = node.integers("pads", [0] * (2 * count))
    how = node.word("auto_pad", "NOTSET")
    if how in ("SAME_UPPER", "SAME_LOWER"):
        frame: Frame = []
        for size, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
            total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
            less = total // 2
            frame.append((less, total - less) if how == "SAME_UPPER" else (total - less, less))
        return strides, dilations, frame
    if how == "VALID":
        return strides, dilations, [(0, 0)] * count
    return strides, dilations, [(pads[i], pads[i + count]) for i in range(count)]


def _is_same(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    frame: Frame,
) -> bool:
    """True where LiteRT's SAME padding is this frame."""
    for size, k, s, d, (before, after) in zip(
        sizes, kernel, strides, dilations, frame, strict=True
    ):
        total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
        if (before, after) != (total // 2, total - total // 2):
            return False
    return True


def _framed(lower: Lowering, x: Tensor, frame: Frame, filling: Tensor | None = None) -> Tensor:
    """A tensor N, spatial …, C in a frame."""
    return padded(lower, x, [(0, 0), *frame, (0, 0)], "constant", filling)


def conv(lower: Lowering, node: Node) -> Tensor:
    x, weight, bias = lower.inputs(node, 3)[:3]
    x, weight = lower.need(x), lower.need(weight)
    kernel = weight.shape[2:]
    strides, dilations, frame = _window(node, x.shape[2:], kernel)
    return convolved(lower, x, weight, bias, strides, dilations, frame, node.integer("group", 1))


def convolved(
    lower: Lowering,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    strides: Sequence[int],
    dilations: Sequence[int],
    frame: Frame,
    groups: int,
) -> Tensor:
    """A convolution in the source's order: N, C, spatial …; weights O, I, spatial …"""
    rank = len(x.shape)
    if x.dtype != "float32":
        whole = convolved(
            lower,
            lower.cast(x, "float32"),
            lower.cast(weight, "float32"),
            bias and lower.cast(bias, "float32"),
            strides,
            dilations,
            frame,
            groups,
        )
        return lower.cast(whole, x.dtype)
    last = lower.channels_last(x)
    if rank == 3:  # a line is an image of height 1
        last = lower.reshape(last, (last.shape[0], 1, *last.shape[1:]))
        weight = lower.reshape(weight, (*weight.shape[:2], 1, weight.shape[2]))
        strides, dilations, frame = [1, *strides], [1, *dilations], [(0, 0), *frame]
    if rank == 5:
        made = _conv_3d(lower, last, weight, bias, strides, dilations, frame, groups)
        return lower.channels_first(made)
    if rank not in (3, 4):
        raise Unsupported("a convolution over {count} dimensions; LiteRT has 1, 2 and 3", rank - 2)
    made = _conv_2d(lower, last, weight, bias, strides, dilations, frame, groups)
    if rank == 3:
        made = lower.reshape(made, (made.shape[0], *made.shape[2:]))
    return lower.channels_first(made)


def _conv_2d(
    lower: Lowering,
    last: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    strides: Sequence[int],
    dilations: Sequence[int],
    frame: Frame,
    groups: int,
) -> Tensor:
    kernel, channels = weight.shape[2:], last.shape[-1]
    same = _is_same(last.shape[1:3], kernel, strides, dilations, frame)
    if not same:
        last = _framed(lower, last, frame)
    options: dict[str, Value] = {"padding": "SAME" if same else "VALID"}
    for name, stride, dilation in zip(_NAMES, strides, dilations, strict=True):
        options |= {f"stride_{name}": stride, f"dilation_{name}_factor": dilation}
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
    parts = lower.ops("SPLIT", np.array(3, np.int32), last, num_splits=groups)
    pieces = lower.ops("SPLIT", np.array(0, np.int32), filters, num_splits=groups)
    offsets = lower.ops("SPLIT", np.array(0, np.int32), bias, num_splits=groups)
    made = [
        lower.op("CONV_2D", p, f, b, **options)
        for p, f, b in zip(parts, pieces, offsets, strict=True)
    ]
    return lower.op("CONCATENATION", *made, axis=3)


def _conv_3d(
    lower: Lowering,
    last: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    strides: Sequence[int],
    dilations: Sequence[int],
    frame: Frame,
    groups: int,
) -> Tensor:
    last = _framed(lower, last, frame)
    filters = lower.transpose(weight, (2, 3, 4, 1, 0))
    options: dict[str, Value] = {"padding": "VALID"}
    for name, stride, dilation in zip(("d", *_NAMES), strides, dilations, strict=True):
        options |= {f"stride_{name}": stride, f"dilation_{name}_factor": dilation}
    if groups == 1:
        return lower.op("CONV_3D", last, filters, bias, **options)
    parts = lower.ops("SPLIT", np.array(4, np.int32), last, num_splits=groups)
    pieces = lower.ops("SPLIT", np.array(4, np.int32), filters, num_splits=groups)
    made = [lower.op("CONV_3D", p, f, None, **options) for p, f in zip(parts, pieces, strict=True)]
    joined = lower.op("CONCATENATION", *made, axis=4)
    return joined if bias is None else lower.op("ADD", joined, bias)


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
    return _spread(
        lower, x, weight, bias, strides, [(pads[i], wanted[i]) for i in range(count)], groups
    )


def _dilated(lower: Lowering, weight: Tensor, dilations: Sequence[int]) -> Tensor:
    """Filters with zeros between their values."""
    if all(d == 1 for d in dilations):
        return weight
    values = lower.known(weight, "filters")
    sizes = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilations, strict=True)]
    wide = np.zeros((*weight.shape[:2], *sizes), values.dtype)
    wide[(slice(None), slice(None), *(slice(None, None, d) for d in dilations))] = values
    return lower.const(wide)


def _spread(
    lower: Lowering,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    strides: Sequence[int],
    places: Sequence[tuple[int, int]],
    groups: int,
) -> Tensor:
    """A transposed convolution; of each dimension of the full result a part from a place on."""
    rank, last = len(x.shape), lower.channels_last(x)
    if rank == 3:
        last = lower.reshape(last, (last.shape[0], 1, *last.shape[1:]))
        weight = lower.reshape(weight, (*weight.shape[:2], 1, weight.shape[2]))
        strides, places = [1, *strides], [(0, 1), *places]
    if rank not in (3, 4, 5):
        raise Unsupported("a transposed convolution over {count} dimensions", rank - 2)
    parts = (
        [last]
        if groups == 1
        else lower.ops(
            "SPLIT", np.array(rank if rank == 3 else rank - 1, np.int32), last, num_splits=groups
        )
    )
    pieces = (
        [weight]
        if groups == 1
        else lower.ops("SPLIT", np.array(0, np.int32), weight, num_splits=groups)
    )
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
    # An image whose part is what SAME padding gives needs no cut.
    same = all(
        size == n * s and k >= s and begin == (k - s) // 2
        for (begin, size), n, s, k in zip(places, spatial, strides, kernel, strict=True)
    )
    sizes = (
        [size for _, size in places]
        if same
        else [max(f, b + s) for f, (b, s) in zip(full, places, strict=True)]
    )
    exact = sizes if same else full
    shape = np.array([last.shape[0], *exact, weight.shape[1]], np.int32)
    options: dict[str, Value] = {"padding": "SAME" if same else "VALID"}
    if len(spatial) == 3:
        for name, stride in zip(("d", *_NAMES), strides, strict=True):
            options[f"stride_{name}"] = stride
        made = lower.op(
            "CONV_3D_TRANSPOSE", shape, lower.transpose(weight, (2, 3, 4, 1, 0)), last, **options
        )
    else:
        options |= {"stride_h": strides[0], "stride_w": strides[1]}
        made = lower.op(
            "TRANSPOSE_CONV", shape, lower.transpose(weight, (1, 2, 3, 0)), last, **options
        )
    if same:
        return made
    beyond = [max(b + s - f, 0) for f, (b, s) in zip(full, places, strict=True)]
    made = _framed(lower, made, [(0, b) for b in beyond])
    cut = [(0, last.shape[0], 1), *((b, b + s, 1) for b, s in places), (0, weight.shape[1], 1)]
    return cut_out(lower, made, cut)


def gemm(lower: Lowering, node: Node) -> Tensor:
    a, b, c = lower.inputs(node, 3)[:3]
    a, b = lower.need(a), lower.need(b)
    if a.dtype != "float32":
        raise Unsupported("a product of {dtype}; LiteRT's is of float32", a.dtype)
    if node.integer("transA"):
        a = lower.transpose(a, (1, 0))
    weight = b if node.integer("transB") else lower.transpose(b, (1, 0))
    alpha, beta = node.number("alpha", 1), node.number("beta", 1)
    if alpha != 1:
        weight = lower.op("MUL", weight, like(weight, alpha))
    if c is not None and beta != 1:
        c = lower.op("MUL", c, like(c, beta))
    if c is not None and (
        not c.is_const or c.elements != weight.shape[0] or prod(c.shape[:-1]) != 1
    ):
        return lower.op("ADD", lower.op("FULLY_CONNECTED", a, weight, None), c)
    bias = None if c is None else lower.reshape(c, (c.elements,))
    return lower.op("FULLY_CONNECTED", a, weight, bias)


def matmul(lower: Lowering, node: Node) -> Tensor:
    a, b = (lower.need(t) for t in lower.inputs(node, 2))
    return product(lower, a, b)


def product(lower: Lowering, a: Tensor, b: Tensor) -> Tensor:
    """A product of matrices, as numpy's."""
    dtype = a.dtype
    if dtype != "float32":
        return lower.cast(product(lower, lower.cast(a, "float32"), lower.cast(b, "float32")), dtype)
    front, back = len(a.shape) == 1, len(b.shape) == 1
    a = lower.reshape(a, (1, *a.shape)) if front else a
    b = lower.reshape(b, (*b.shape, 1)) if back else b
    if b.is_const and (
        len(b.shape) == 2 or (prod(b.shape[:-2]) == 1 and len(b.shape) <= len(a.shape))
    ):
        weight = lower.transpose(lower.reshape(b, b.shape[-2:]), (1, 0))
        made = lower.op("FULLY_CONNECTED", a, weight, None, keep_num_dims=len(a.shape) > 2)
    else:
        made = lower.op("BATCH_MATMUL", a, b)
    shape = list(made.shape)
    if back:
        shape = shape[:-1]
    if front:
        del shape[-1 if back else -2]
    return lower.reshape(made, shape)


# Pools


def pool(kind: str) -> Rule:
    def rule(lower: Lowering, node: Node) -> Tensor:
        x = lower.first(node)
        if len(node.outputs) > 1 and node.outputs[1]:
            raise Unsupported(
                "the places of the largest values are asked for; LiteRT's pool does not tell them"
            )
        kernel = node.integers("kernel_shape")
        strides, dilations, frame = _window(node, x.shape[2:], kernel)
        rounding = ceil if node.integer("ceil_mode") else floor
        counted = bool(node.integer("count_include_pad"))
        return pooled(lower, x, kind, kernel, strides, dilations, frame, rounding is ceil, counted)

    return rule


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
    # What the last windows reach beyond the frame.
    beyond = [
        max((c - 1) * s + r - n - p[0] - p[1], 0)
        for c, s, r, n, p in zip(counts, strides, reach, sizes, frame, strict=True)
    ]
    whole = [(p[0], p[1] + b) for p, b in zip(frame, beyond, strict=True)]
    plain = all(d == 1 for d in dilations)
    if (
        len(sizes) == 2
        and plain
        and _is_same(sizes, kernel, strides, dilations, whole)
        and not (counted and any(map(any, whole)) and kind == "AVERAGE_POOL_2D")
    ):
        return lower.channels_first(_pool_2d(lower, last, kind, kernel, strides, "SAME"))
    filling = lower.const(np.float32(_LOWEST)) if kind == "MAX_POOL_2D" else None
    framed = _framed(lower, last, whole, filling)
    made = _valid_pool(lower, framed, kind, kernel, strides, dilations)
    if kind == "AVERAGE_POOL_2D" and any(map(any, whole)):
        weights = _share(sizes, kernel, strides, dilations, frame, counts, counted)
        if not np.all(weights == 1):
            made = lower.op("MUL", made, weights[None, ..., None])
    made = cut_out(
        lower, made, [(0, made.shape[0], 1), *((0, c, 1) for c in counts), (0, made.shape[-1], 1)]
    )
    return lower.channels_first(made)


def _windows(size: int, reach: int, stride: int, frame: tuple[int, int], up: bool) -> int:
    """How many windows lie along a dimension."""
    room = (size + sum(frame) - reach) / stride
    count = (ceil(room) if up else floor(room)) + 1
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
    """A pool whose window has gaps: a slice for each place in the window."""
    if prod(kernel) > 64:
        raise Unsupported(
            "a pool of {count} places with gaps between them; LiteRT's pool has none", prod(kernel)
        )
    spatial = x.shape[1:-1]
    counts = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, s, d in zip(spatial, kernel, strides, dilations, strict=True)
    ]
    total: Tensor | None = None
    for place in np.ndindex(*kernel):
        begins = [p * d for p, d in zip(place, dilations, strict=True)]
        cut = [(b, b + (c - 1) * s + 1, s) for b, c, s in zip(begins, counts, strides, strict=True)]
        part = cut_out(lower, x, [(0, x.shape[0], 1), *cut, (0, x.shape[-1], 1)])
        total = (
            part
            if total is None
            else lower.op("MAXIMUM" if kind == "MAX_POOL_2D" else "ADD", total, part)
        )
    assert total is not None
    return total if kind == "MAX_POOL_2D" else lower.op("MUL", total, like(x, 1 / prod(kernel)))


def _share(
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    frame: Frame,
    counts: Sequence[int],
    counted: bool,
) -> Array:
    """By how much an average over whole windows is to be multiplied, for what lies outside."""
    total = np.ones((), np.float64)
    for n, k, s, d, (before, after), count in zip(
        sizes, kernel, strides, dilations, frame, counts, strict=True
    ):
        places = np.arange(count)[:, None] * s + np.arange(k)[None] * d - before
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
    strides, dilations, frame = _window(node, x.shape[2:], kernel)
    up = bool(node.integer("ceil_mode"))
    mean = pooled(
        lower, _powered(lower, x, p), "AVERAGE_POOL_2D", kernel, strides, dilations, frame, up, True
    )
    # A window that reaches beyond the frame has fewer values; its sum is that of zeros too.
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
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "Gemm": gemm,
    "GlobalAveragePool": global_pool("MEAN"),
    "GlobalLpPool": global_lp_pool,
    "GlobalMaxPool": global_pool("REDUCE_MAX"),
    "LpPool": lp_pool,
    "MatMul": matmul,
    "MaxPool": pool("MAX_POOL_2D"),
}
