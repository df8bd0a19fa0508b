"""Rules for ops that move, cut, join and pick values."""

from collections.abc import Sequence
from math import prod

import numpy as np

from litesmith.convert.lowering import Lowering, Rule, Unsupported
from litesmith.convert.rules.values import like
from litesmith.convert.source import Node
from litesmith.ir.types import Tensor, constant_numbers

_ENDLESS = 2**31 - 1


def positive(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    if not -rank <= axis < max(rank, 1):
        raise Unsupported("axis {axis} does not exist in a tensor of {rank} dimensions", axis, rank)
    return axis % rank if rank else 0


def constant(lower: Lowering, node: Node) -> Tensor:
    for name in ("value", "sparse_value"):
        value = node.settings.get(name)
        if isinstance(value, np.ndarray):
            return lower.const(value)
    for name, dtype in (
        ("value_int", np.int64),
        ("value_ints", np.int64),
        ("value_float", np.float32),
        ("value_floats", np.float32),
    ):
        if name in node.settings:
            return lower.const(np.array(node.settings[name], dtype))
    raise Unsupported("it holds texts, which LiteRT's CPU kernels do not compute with")


def constant_of_shape(lower: Lowering, node: Node) -> Tensor:
    value = node.settings.get("value")
    filling = (
        value.reshape(-1)[0] if isinstance(value, np.ndarray) and value.size else np.float32(0)
    )
    shape = lower.first(node)
    if constant_numbers(shape) is None:
        return lower.op(
            "FILL", lower.cast(shape, "int32"), np.array(filling), shape=(1,) * shape.shape[0]
        )
    return lower.const(np.full(lower.integers(shape, "sizes"), filling))


def reshape(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    wanted = lower.setting(node, "shape", 1)
    assert wanted is not None
    if not node.integer("allowzero"):
        wanted = tuple(
            x.shape[i] if d == 0 and i < len(x.shape) else d for i, d in enumerate(wanted)
        )
    if -1 in wanted:
        rest = prod(d for d in wanted if d != -1)
        wanted = tuple((x.elements // rest if rest else 0) if d == -1 else d for d in wanted)
    if prod(wanted) != x.elements:
        raise Unsupported("{count} values do not fill the shape {shape}", x.elements, wanted)
    return lower.reshape(x, wanted)


def flatten(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    axis = node.integer("axis", 1)
    axis = axis if axis >= 0 else axis + len(x.shape)
    return lower.reshape(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))


def squeeze(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    axes = lower.setting(node, "axes", 1)
    drop = (
        {i for i, d in enumerate(x.shape) if d == 1}
        if axes is None
        else {positive(a, len(x.shape)) for a in axes}
    )
    return lower.reshape(x, [d for i, d in enumerate(x.shape) if i not in drop])


def unsqueeze(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    axes = lower.setting(node, "axes", 1, ())
    assert axes is not None
    rank = len(x.shape) + len(axes)
    new = {positive(a, rank) for a in axes}
    sizes = iter(x.shape)
    return lower.reshape(x, [1 if i in new else next(sizes) for i in range(rank)])


def transpose(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    return lower.transpose(x, node.integers("perm", range(len(x.shape))[::-1]))


def concat(lower: Lowering, node: Node) -> Tensor:
    parts = [lower.need(t) for t in lower.inputs(node)]
    filled = [t for t in parts if t.elements] or parts[:1]
    if len(filled) == 1:
        return filled[0]
    return lower.op(
        "CONCATENATION", *filled, axis=positive(node.integer("axis"), len(parts[0].shape))
    )


def split(lower: Lowering, node: Node) -> Sequence[Tensor]:
    x = lower.first(node)
    axis = positive(node.integer("axis"), len(x.shape))
    sizes = lower.setting(node, "split", 1)
    count = node.integer("num_outputs", len(node.outputs))
    if sizes is None:
        size = -(-x.shape[axis] // count)
        sizes = [max(min(size, x.shape[axis] - i * size), 0) for i in range(count)]
    if len(sizes) == 1:
        return [x]
    if len(set(sizes)) == 1:
        return lower.ops("SPLIT", np.array(axis, np.int32), x, num_splits=len(sizes))
    return lower.ops(
        "SPLIT_V", x, np.array(sizes, np.int32), np.array(axis, np.int32), num_splits=len(sizes)
    )


def slice_(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    rank = len(x.shape)
    starts, ends = lower.setting(node, "starts", 1, ()), lower.setting(node, "ends", 2, ())
    assert starts is not None and ends is not None
    axes = lower.setting(node, "axes", 3, range(len(starts)))
    steps = lower.setting(node, "steps", 4, [1] * len(starts))
    assert axes is not None and steps is not None
    cut = [(0, d, 1) for d in x.shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        place = positive(axis, rank)
        cut[place] = slice(start, end, step).indices(x.shape[place])
        if step > 0:
            cut[place] = (cut[place][0], max(cut[place][1], cut[place][0]), step)
    return cut_out(lower, x, cut)


def cut_out(lower: Lowering, x: Tensor, cut: Sequence[tuple[int, int, int]]) -> Tensor:
    """A part of a tensor: where it begins and ends in each dimension, and the steps."""
    if all(c == (0, d, 1) for c, d in zip(cut, x.shape, strict=True)):
        return x
    values = constant_numbers(x)
    sizes = [len(range(*c)) for c in cut]
    if values is not None:
        picked = values
        for axis, c in enumerate(cut):
            picked = picked.take(np.arange(*c), axis)
        return lower.const(picked)
    if not prod(sizes):
        return lower.const(np.zeros(sizes, x.dtype))
    if all(step == 1 for _, _, step in cut):
        return lower.op(
            "SLICE", x, np.array([c[0] for c in cut], np.int32), np.array(sizes, np.int32)
        )
    backwards = [axis for axis, c in enumerate(cut) if c[2] < 0]
    if backwards:  # turned round, then cut forwards
        turned = x
        for axis in backwards:
            turned = lower.op("REVERSE_V2", turned, np.array([axis], np.int32))
        turned_cut = [
            (d - 1 - c[0], d - 1 - c[1], -c[2]) if c[2] < 0 else c
            for c, d in zip(cut, x.shape, strict=True)
        ]
        return cut_out(lower, turned, turned_cut)
    begins, ends, steps = (np.array([c[i] for c in cut], np.int32) for i in range(3))
    return lower.op("STRIDED_SLICE", x, begins, ends, steps)


def pad(lower: Lowering, node: Node) -> Tensor:
    x, _, filling = lower.inputs(node, 3)[:3]
    x = lower.need(x)
    rank = len(x.shape)
    pads = lower.setting(node, "pads", 1)
    assert pads is not None
    axes = lower.inputs(node, 4)[3]
    places = (
        [positive(a, rank) for a in lower.integers(axes, "axes")]
        if axes is not None
        else list(range(rank))
    )
    frame = [(0, 0)] * rank
    for i, axis in enumerate(places):
        frame[axis] = (pads[i], pads[i + len(places)])
    if filling is None:
        filling = lower.const(like(x, node.number("value")))
    return padded(lower, x, frame, node.word("mode", "constant"), filling)


def padded(
    lower: Lowering,
    x: Tensor,
    frame: Sequence[tuple[int, int]],
    mode: str = "constant",
    filling: Tensor | None = None,
) -> Tensor:
    """A tensor in a frame; a negative width cuts off."""
    cut = [(max(-a, 0), d - max(-b, 0), 1) for (a, b), d in zip(frame, x.shape, strict=True)]
    x = cut_out(lower, x, cut)
    widths = np.array([(max(a, 0), max(b, 0)) for a, b in frame], np.int32).reshape(-1, 2)
    if not widths.any():
        return x
    if mode == "constant":
        values = None if filling is None else constant_numbers(filling)
        if filling is None or (values is not None and not values.any() and x.dtype != "bool"):
            return lower.op("PAD", x, widths)
        return lower.op("PADV2", x, widths, lower.reshape(lower.cast(filling, x.dtype), ()))
    for axis, (before, after) in enumerate(widths.tolist()):
        x = _mirrored(lower, x, axis, before, after, mode)
    return x


def _mirrored(lower: Lowering, x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """One axis continued by what lies at its edges."""
    if not before and not after:
        return x
    size = x.shape[axis]
    places = np.arange(-before, size + after)
    if mode == "reflect" and size > max(before, after):
        widths = np.zeros((len(x.shape), 2), np.int32)
        widths[axis] = before, after
        if len(x.shape) <= 5:
            return lower.op("MIRROR_PAD", x, widths, mode="REFLECT")
    if mode == "edge":
        places = places.clip(0, size - 1)
    elif mode == "wrap":
        places = places % size
    elif size == 1:
        places = np.zeros_like(places)
    else:
        places = np.abs((places + size - 1) % (2 * size - 2) - (size - 1))
    return lower.op("GATHER", x, places.astype(np.int32), axis=axis)


def gather(lower: Lowering, node: Node) -> Tensor:
    x, indices = (lower.need(t) for t in lower.inputs(node, 2))
    axis = positive(node.integer("axis"), len(x.shape))
    return lower.op("GATHER", x, wrapped(lower, indices, x.shape[axis]), axis=axis)


def wrapped(lower: Lowering, indices: Tensor, size: int) -> Tensor:
    """Indices without the negative ones, which count from the end."""
    values = constant_numbers(indices)
    if values is not None:
        return lower.const(np.where(values < 0, values + size, values).astype(np.int32))
    indices = lower.cast(indices, "int32")
    moved = lower.op("ADD", indices, np.array(size, np.int32))
    return lower.op("SELECT_V2", lower.op("LESS", indices, np.array(0, np.int32)), moved, indices)


def gather_elements(lower: Lowering, node: Node) -> Tensor:
    x, indices = (lower.need(t) for t in lower.inputs(node, 2))
    return lower.op("GATHER_ND", x, places_along(lower, x, indices, node.integer("axis")))


def places_along(lower: Lowering, x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Full coordinates of values that are picked along one axis."""
    axis = positive(axis, len(x.shape))
    along = wrapped(lower, indices, x.shape[axis])
    grid = np.indices(indices.shape, np.int32)
    parts = [
        lower.reshape(along, (*indices.shape, 1)) if i == axis else lower.const(grid[i][..., None])
        for i in range(len(x.shape))
    ]
    return (
        parts[0] if len(parts) == 1 else lower.op("CONCATENATION", *parts, axis=len(indices.shape))
    )


def gather_nd(lower: Lowering, node: Node) -> Tensor:
    x, indices = (lower.need(t) for t in lower.inputs(node, 2))
    batch = node.integer("batch_dims")
    places = _wrapped_coordinates(lower, indices, x.shape[batch : batch + indices.shape[-1]])
    if batch:
        grid = np.indices(indices.shape[:-1], np.int32)
        parts = [lower.const(grid[i][..., None]) for i in range(batch)]
        places = lower.op("CONCATENATION", *parts, places, axis=len(indices.shape) - 1)
    return lower.op("GATHER_ND", x, places)


def _wrapped_coordinates(lower: Lowering, indices: Tensor, sizes: Sequence[int]) -> Tensor:
    values = constant_numbers(indices)
    limits = np.array(sizes, np.int32)
    if values is not None:
        return lower.const(np.where(values < 0, values + limits, values).astype(np.int32))
    indices = lower.cast(indices, "int32")
    below = lower.op("LESS", indices, np.array(0, np.int32))
    return lower.op("SELECT_V2", below, lower.op("ADD", indices, limits), indices)


def scatter_nd(lower: Lowering, node: Node) -> Tensor:
    x, indices, updates = (lower.need(t) for t in lower.inputs(node, 3))
    places = _wrapped_coordinates(lower, indices, x.shape[: indices.shape[-1]])
    return scattered(lower, x, places, updates, node.word("reduction", "none"))


def scatter_elements(lower: Lowering, node: Node) -> Tensor:
    x, indices, updates = (lower.need(t) for t in lower.inputs(node, 3))
    places = places_along(lower, x, indices, node.integer("axis"))
    return scattered(lower, x, places, updates, node.word("reduction", "none"))


def scattered(lower: Lowering, x: Tensor, places: Tensor, updates: Tensor, how: str) -> Tensor:
    """A tensor with some values replaced, or added to."""
    sizes = np.array(x.shape, np.int32)
    if how == "add":
        return lower.op("ADD", x, lower.op("SCATTER_ND", places, updates, sizes))
    if how != "none":
        raise Unsupported("LiteRT scatters values or sums, not reduction={how}", how)
    ones = lower.const(np.ones(updates.shape, np.int32))
    hit = lower.op("SCATTER_ND", places, ones, sizes)
    count = lower.op("MAXIMUM", hit, np.array(1, np.int32))
    known = constant_numbers(hit)
    total = lower.op(
        "SCATTER_ND", places, lower.cast(updates, "int32") if x.dtype == "bool" else updates, sizes
    )
    if known is None or (known > 1).any():  # a place named twice would hold a sum
        if x.dtype not in ("float32", "int32"):
            raise Unsupported("its indices may repeat, and LiteRT adds what meets in one place")
        total = lower.op("DIV", total, lower.cast(count, x.dtype))
    total = lower.cast(total, x.dtype)
    return lower.op("SELECT_V2", lower.op("GREATER", hit, np.array(0, np.int32)), total, x)


def expand(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    shape = np.broadcast_shapes(x.shape, lower.integers(lower.inputs(node, 2)[1], "sizes"))
    return broadcast(lower, x, shape)


def broadcast(lower: Lowering, x: Tensor, shape: Sequence[int]) -> Tensor:
    if tuple(shape) == x.shape:
        return x
    values = constant_numbers(x)
    if values is not None:
        return lower.const(np.broadcast_to(values, tuple(shape)))
    if 0 in shape:
        return lower.const(np.zeros(shape, x.dtype))
    return lower.op("BROADCAST_TO", x, np.array(shape, np.int32), version=2)


def tile(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    times = lower.integers(lower.inputs(node, 2)[1], "repeats")
    return x if all(t == 1 for t in times) else lower.op("TILE", x, np.array(times, np.int32))


def shape(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    rank = len(x.shape)
    start, end, _ = slice(node.integer("start"), node.integer("end", rank)).indices(rank)
    return lower.const(np.array(x.shape[start:end], np.int64))


def size(lower: Lowering, node: Node) -> Tensor:
    return lower.const(np.array(lower.first(node).elements, np.int64))


def range_(lower: Lowering, node: Node) -> Tensor:
    start, limit, delta = (lower.known(t, "limits").reshape(()) for t in lower.inputs(node, 3))
    return lower.const(np.arange(start, limit, delta, dtype=start.dtype))


def one_hot(lower: Lowering, node: Node) -> Tensor:
    indices, depth, values = (lower.need(t) for t in lower.inputs(node, 3))
    count = lower.integers(depth, "depth")[0]
    axis = node.integer("axis", -1)
    axis = positive(axis, len(indices.shape) + 1)
    off, on = (lower.reshape(cut_out(lower, values, [(i, i + 1, 1)]), ()) for i in (0, 1))
    places = wrapped(lower, lower.cast(indices, "int32"), count)
    last = axis == len(indices.shape)
    return lower.op(
        "ONE_HOT", places, np.array(count, np.int32), on, off, axis=-1 if last else axis
    )


def top_k(lower: Lowering, node: Node) -> tuple[Tensor, Tensor]:
    x = lower.first(node)
    rank = len(x.shape)
    count = lower.setting(node, "k", 1)
    axis = positive(node.integer("axis", -1), rank)
    assert count is not None
    order = [i for i in range(rank) if i != axis] + [axis]
    back = [order.index(i) for i in range(rank)]
    turned = lower.transpose(x, order)
    smallest = not node.integer("largest", 1)
    if smallest:
        turned = lower.op("NEG", turned)
    values, places = lower.ops("TOPK_V2", turned, np.array(count[0], np.int32))
    if smallest:
        values = lower.op("NEG", values)
    return lower.transpose(values, back), lower.cast(lower.transpose(places, back), "int64")


def arg_extreme(kind: str) -> Rule:
    def rule(lower: Lowering, node: Node) -> Tensor:
        x = lower.first(node)
        axis = positive(node.integer("axis"), len(x.shape))
        if node.integer("select_last_index"):
            turned = lower.op("REVERSE_V2", x, np.array([axis], np.int32))
            found = lower.op(kind, turned, np.array(axis, np.int32), output_type="INT32")
            found = lower.op("SUB", np.array(x.shape[axis] - 1, np.int32), found)
        else:
            found = lower.op(kind, x, np.array(axis, np.int32), output_type="INT32")
        if node.integer("keepdims", 1):
            found = lower.reshape(found, [1 if i == axis else d for i, d in enumerate(x.shape)])
        return lower.cast(found, "int64")

    return rule


def depth_to_space(lower: Lowering, node: Node) -> Tensor:
    x, block = lower.first(node), node.integer("blocksize")
    if node.word("mode", "DCR") == "CRD":
        count = x.shape[1] // (block * block)
        order = np.arange(x.shape[1]).reshape(count, block * block).T.reshape(-1)
        x = lower.op("GATHER", x, order.astype(np.int32), axis=1)
    return lower.channels_first(
        lower.op("DEPTH_TO_SPACE", lower.channels_last(x), block_size=block)
    )


def space_to_depth(lower: Lowering, node: Node) -> Tensor:
    x, block = lower.first(node), node.integer("blocksize")
    return lower.channels_first(
        lower.op("SPACE_TO_DEPTH", lower.channels_last(x), block_size=block)
    )


def trilu(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    offset = lower.inputs(node, 2)[1]
    k = lower.integers(offset, "diagonal")[0] if offset is not None else 0
    rows, columns = np.indices(x.shape[-2:])
    keep = columns - rows >= k if node.integer("upper", 1) else columns - rows <= k
    if x.dtype == "float32":
        return lower.op(
            "SELECT_V2", keep.reshape((1,) * (len(x.shape) - 2) + keep.shape), x, like(x, 0)
        )
    return (
        lower.op("MUL", x, keep.astype(x.dtype))
        if x.dtype != "bool"
        else lower.op("LOGICAL_AND", x, keep)
    )


def eye_like(lower: Lowering, node: Node) -> Tensor:
    from litesmith.convert.onnx_file import dtype_name

    x = lower.first(node)
    dtype = dtype_name(node.integer("dtype")) if "dtype" in node.settings else x.dtype
    return lower.const(np.eye(*x.shape, k=node.integer("k")).astype(dtype))


def cumulative_sum(lower: Lowering, node: Node) -> Tensor:
    x, axis = lower.inputs(node, 2)[:2]
    x = lower.need(x)
    options = {
        "exclusive": bool(node.integer("exclusive")),
        "reverse": bool(node.integer("reverse")),
    }
    place = positive(lower.integers(axis, "axis")[0], len(x.shape))
    return lower.op("CUMSUM", x, np.array(place, np.int32), **options)


def reverse_sequence(lower: Lowering, node: Node) -> Tensor:
    x, lengths = (lower.need(t) for t in lower.inputs(node, 2))
    batch, time = node.integer("batch_axis", 1), node.integer("time_axis", 0)
    return lower.op(
        "REVERSE_SEQUENCE", x, lower.cast(lengths, "int32"), seq_dim=time, batch_dim=batch
    )


def compress(lower: Lowering, node: Node) -> Tensor:
    x, condition = lower.inputs(node, 2)[:2]
    x = lower.need(x)
    keep = np.flatnonzero(lower.known(condition, "conditions")).astype(np.int32)
    if "axis" not in node.settings:
        return lower.op("GATHER", lower.reshape(x, (x.elements,)), keep, axis=0)
    return lower.op("GATHER", x, keep, axis=positive(node.integer("axis"), len(x.shape)))


RULES: dict[str, Rule] = {
    "ArgMax": arg_extreme("ARG_MAX"),
    "ArgMin": arg_extreme("ARG_MIN"),
    "Compress": compress,
    "Concat": concat,
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "CumSum": cumulative_sum,
    "DepthToSpace": depth_to_space,
    "Expand": expand,
    "EyeLike": eye_like,
    "Flatten": flatten,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "OneHot": one_hot,
    "Pad": pad,
    "Range": range_,
    "Reshape": reshape,
    "ReverseSequence": reverse_sequence,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Shape": shape,
    "Size": size,
    "Slice": slice_,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "TopK": top_k,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unsqueeze": unsqueeze,
}
