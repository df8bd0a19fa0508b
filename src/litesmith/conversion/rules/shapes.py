"""Rules for ops that move, cut, join and pick values."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported, refuse_size
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.values import element_type, identity, like
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
    sizes = lower.told(node) or lower.integers(lower.first(node), "sizes")
    refuse_size(sizes)
    lower.count_made(prod(sizes) * filling.dtype.itemsize)
    return lower.const(np.full(sizes, filling))


def reshape(lower: Lowering, node: Node) -> Tensor:
    x, told = lower.first(node), lower.told(node)
    if told is not None and prod(told) == x.elements and lower.is_computed(node, 1):
        return lower.reshape(x, told)
    wanted = lower.setting(node, "shape", 1, ())
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
    x, told = lower.first(node), lower.told(node)
    if told is not None and lower.is_computed(node, 1):
        return lower.reshape(x, told)
    axes = lower.setting(node, "axes", 1)
    drop = (
        {i for i, d in enumerate(x.shape) if d == 1}
        if axes is None
        else {positive(a, len(x.shape)) for a in axes}
    )
    return lower.reshape(x, [d for i, d in enumerate(x.shape) if i not in drop])


def unsqueeze(lower: Lowering, node: Node) -> Tensor:
    x, told = lower.first(node), lower.told(node)
    if told is not None and lower.is_computed(node, 1):
        return lower.reshape(x, told)
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
    told = [lower.told(node, i) for i in range(len(node.outputs))]
    if lower.is_computed(node, 1) and all(told):
        sizes = tuple(t[axis] for t in told if t)
    else:
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
    if lower.told(node) is not None and any(lower.is_computed(node, i) for i in range(1, 5)):
        return _computed_slice(lower, node, x)
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


def _computed_slice(lower: Lowering, node: Node, x: Tensor) -> Tensor:
    """A part whose bounds are known only at run time; the source states its size."""
    told = lower.told(node)
    if told is not None and 0 in told:
        return lower.const(np.zeros(told, x.dtype))
    starts, ends, axes, steps = lower.inputs(node, 5)[1:5]
    starts, rank = lower.need(starts), len(x.shape)
    count = starts.elements
    if axes is None:
        axes = lower.const(np.arange(count, dtype=np.int32))
    if steps is None:
        steps = lower.const(np.ones(count, np.int32))
    places = lower.reshape(wrapped(lower, axes, rank), (count, 1))
    every = np.array([rank], np.int32)
    hit = lower.op("SCATTER_ND", places, np.ones(count, np.int32), every)
    hit = lower.op("GREATER", hit, np.array(0, np.int32))
    bounds: list[Tensor] = []
    for given, rest in ((starts, [0] * rank), (ends, x.shape), (steps, [1] * rank)):
        low, high = (np.array(limit, lower.need(given).dtype) for limit in (-_ENDLESS, _ENDLESS))
        near = lower.op("MINIMUM", lower.op("MAXIMUM", given, low), high)
        spread = lower.op("SCATTER_ND", places, lower.cast(near, "int32"), every)
        bounds.append(lower.op("SELECT_V2", hit, spread, np.array(rest, np.int32)))
    return lower.op("STRIDED_SLICE", x, *bounds, shape=told)


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
    x, amounts, filling = lower.inputs(node, 3)[:3]
    x = lower.need(x)
    rank, told = len(x.shape), lower.told(node)
    mode = node.word("mode", "constant")
    if filling is None:
        filling = lower.const(like(x, node.number("value")))
    if lower.is_computed(node, 1) and told and mode == "constant" and len(node.inputs) < 4:
        widths = lower.reshape(lower.cast(lower.need(amounts), "int32"), (2, rank))
        return _filled(lower, x, lower.transpose(widths, (1, 0)), filling, told)
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
    return padded(lower, x, frame, mode, filling)


def _filled(
    lower: Lowering,
    x: Tensor,
    widths: Tensor,
    filling: Tensor,
    shape: Sequence[int] | None = None,
) -> Tensor:
    values = constant_numbers(filling)
    if values is not None and not values.any() and x.dtype != "bool":
        return lower.op("PAD", x, widths, shape=shape)
    number = lower.reshape(lower.cast(filling, x.dtype), ())
    return lower.op("PADV2", x, widths, number, shape=shape)


def padded(
    lower: Lowering,
    x: Tensor,
    frame: Sequence[tuple[int, int]],
    mode: str = "constant",
    filling: Tensor | None = None,
) -> Tensor:
    """A tensor in a frame; a negative width cuts off."""
    refuse_size([max(a + d + b, 0) for (a, b), d in zip(frame, x.shape, strict=True)])
    cut = [(max(-a, 0), d - max(-b, 0), 1) for (a, b), d in zip(frame, x.shape, strict=True)]
    x = cut_out(lower, x, cut)
    widths = np.array([(max(a, 0), max(b, 0)) for a, b in frame], np.int32).reshape(-1, 2)
    if not widths.any():
        return x
    if mode == "constant":
        filling = lower.const(like(x, 0)) if filling is None else filling
        return _filled(lower, x, lower.const(widths), filling)
    for axis, (before, after) in enumerate(widths.tolist()):
        x = _mirrored(lower, x, axis, before, after, mode)
    return x


def _mirrored(lower: Lowering, x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """One axis, continued by mirroring at its edges."""
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


def wrapped(lower: Lowering, indices: Tensor, size: int) -> Tensor:
    """Indices without the negative ones, which count from the end."""
    values = constant_numbers(indices)
    if values is not None:
        return lower.const(np.where(values < 0, values + size, values).astype(np.int32))
    indices = lower.cast(indices, "int32")
    moved = lower.op("ADD", indices, np.array(size, np.int32))
    return lower.op("SELECT_V2", lower.op("LESS", indices, np.array(0, np.int32)), moved, indices)


def expand(lower: Lowering, node: Node) -> Tensor:
    x, told = lower.first(node), lower.told(node)
    if told is not None and lower.is_computed(node, 1):
        return broadcast(lower, x, told)
    shape = np.broadcast_shapes(x.shape, lower.integers(lower.inputs(node, 2)[1], "sizes"))
    return broadcast(lower, x, shape)


def broadcast(lower: Lowering, x: Tensor, shape: Sequence[int]) -> Tensor:
    if tuple(shape) == x.shape:
        return x
    refuse_size(shape)
    values = constant_numbers(x)
    if values is not None:
        lower.count_made(prod(shape) * values.itemsize, x.nbytes)
        return lower.const(np.broadcast_to(values, tuple(shape)))
    if 0 in shape:
        return lower.const(np.zeros(shape, x.dtype))
    return lower.op("BROADCAST_TO", x, np.array(shape, np.int32))


def tile(lower: Lowering, node: Node) -> Tensor:
    x, told = lower.first(node), lower.told(node)
    if told is not None and lower.is_computed(node, 1) and x.elements:
        times = tuple(t // d for t, d in zip(told, x.shape, strict=True))
    else:
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
    start, _, delta = (lower.need(t) for t in lower.inputs(node, 3))
    told = lower.told(node)
    if told is not None and any(lower.is_computed(node, i) for i in range(3)):
        steps = np.arange(told[0]).astype(start.dtype)
        return lower.op("ADD", lower.op("MUL", delta, steps), start)
    begin, limit, step = (lower.known(t, "limits").item() for t in lower.inputs(node, 3))
    count = max(int((limit - begin) / step), 0)
    refuse_size([count])
    lower.count_made(count * np.dtype(start.dtype).itemsize)
    return lower.const(np.arange(begin, limit, step, dtype=start.dtype))


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


def interleaved(lower: Lowering, x: Tensor, groups: int) -> Tensor:
    """The channels of N, C, places … one from each group in turn; a GATHER would take four times as
    long."""
    if groups in (1, x.shape[1]):
        return x
    last = lower.channels_last(x)
    parted = lower.reshape(last, (x.shape[0], prod(x.shape[2:]), groups, x.shape[1] // groups))
    turned = lower.transpose(parted, (0, 1, 3, 2))
    return lower.channels_first(lower.reshape(turned, last.shape))


def depth_to_space(lower: Lowering, node: Node) -> Tensor:
    x, block = lower.first(node), node.integer("blocksize")
    if node.word("mode", "DCR") == "CRD":
        x = interleaved(lower, x, x.shape[1] // (block * block))
    return lower.channels_first(
        lower.op("DEPTH_TO_SPACE", lower.channels_last(x), block_size=block)
    )


def space_to_depth(lower: Lowering, node: Node) -> Tensor:
    x, block = lower.first(node), node.integer("blocksize")
    made = lower.channels_first(
        lower.op("SPACE_TO_DEPTH", lower.channels_last(x), block_size=block)
    )
    if node.word("mode", "DCR") == "CRD":
        made = interleaved(lower, made, block * block)
    return made


def trilu(lower: Lowering, node: Node) -> Tensor:
    x, offset = lower.inputs(node, 2)[:2]
    x = lower.need(x)
    if not x.elements:
        return x
    rows, columns = np.indices((*[1] * (len(x.shape) - 2), *x.shape[-2:]), np.int32)[-2:]
    k = lower.const(np.array(0, np.int32)) if offset is None else lower.cast(offset, "int32")
    compare = "GREATER_EQUAL" if node.integer("upper", 1) else "LESS_EQUAL"
    keep = lower.op(compare, columns - rows, lower.reshape(k, ()))
    if x.dtype == "bool":
        return lower.op("LOGICAL_AND", x, keep)
    if x.dtype == "float32":
        return lower.op("SELECT_V2", keep, x, like(x, 0))
    return lower.op("MUL", x, lower.cast(keep, x.dtype))


def eye_like(lower: Lowering, node: Node) -> Tensor:
    x = lower.first(node)
    dtype = element_type(node, "dtype") if "dtype" in node.settings else x.dtype
    return lower.const(np.eye(*x.shape, k=node.integer("k")).astype(dtype))


def cumulative_sum(lower: Lowering, node: Node) -> Tensor:
    x, axis = lower.inputs(node, 2)[:2]
    x = lower.need(x)
    options: dict[str, Any] = {
        "exclusive": bool(node.integer("exclusive")),
        "reverse": bool(node.integer("reverse")),
    }
    place = lower.reshape(lower.cast(lower.need(axis), "int32"), ())
    return lower.op("CUMSUM", x, place, **options)


def cumulative_product(lower: Lowering, node: Node) -> Tensor:
    x, place = lower.inputs(node, 2)[:2]
    x = lower.need(x)
    axis = positive(lower.integers(place, "axis")[0], len(x.shape))
    turn = np.array([axis], np.int32)
    if node.integer("reverse"):
        x = lower.op("REVERSE_V2", x, turn)
    if node.integer("exclusive"):
        x = _moved_on(lower, x, axis, 1)
    reach = 1
    while reach < x.shape[axis]:
        x = lower.op("MUL", x, _moved_on(lower, x, axis, reach))
        reach *= 2
    return lower.op("REVERSE_V2", x, turn) if node.integer("reverse") else x


def _moved_on(lower: Lowering, x: Tensor, axis: int, count: int) -> Tensor:
    """An axis moved on by some places, with ones in front."""
    frame = [(count, -count) if i == axis else (0, 0) for i in range(len(x.shape))]
    return padded(lower, x, frame, "constant", lower.const(like(x, 1)))


def center_crop_pad(lower: Lowering, node: Node) -> Tensor:
    x, told = lower.first(node), lower.told(node)
    rank = len(x.shape)
    axes = [positive(a, rank) for a in node.integers("axes", range(rank))]
    sizes = list(x.shape)
    given = [told[a] for a in axes] if told else lower.integers(lower.inputs(node, 2)[1], "sizes")
    for axis, size in zip(axes, given, strict=True):
        sizes[axis] = size
    frame = [(0, 0)] * rank
    for i, (size, before) in enumerate(zip(sizes, x.shape, strict=True)):
        less = abs(size - before) // 2
        more = abs(size - before) - less
        frame[i] = (less, more) if size >= before else (-less, -more)
    return padded(lower, x, frame)


def has_element(lower: Lowering, node: Node) -> Tensor:
    return lower.const(np.array(bool(node.inputs and node.inputs[0])))


def reverse_sequence(lower: Lowering, node: Node) -> Tensor:
    x, lengths = (lower.need(t) for t in lower.inputs(node, 2))
    batch, time = node.integer("batch_axis", 1), node.integer("time_axis", 0)
    known = constant_numbers(lengths)
    if known is not None and np.all(known == x.shape[time]):
        return lower.op("REVERSE_V2", x, np.array([time], np.int32))
    turned = lower.op(
        "REVERSE_SEQUENCE",
        lower.cast(x, "int32") if x.dtype == "bool" else x,
        lower.cast(lengths, "int32"),
        seq_dim=time,
        batch_dim=batch,
    )
    return lower.cast(turned, x.dtype)


RULES: dict[str, Rule] = {
    "ArgMax": arg_extreme("ARG_MAX"),
    "ArgMin": arg_extreme("ARG_MIN"),
    "Concat": concat,
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "CenterCropPad": center_crop_pad,
    "CumProd": cumulative_product,
    "CumSum": cumulative_sum,
    "DepthToSpace": depth_to_space,
    "Expand": expand,
    "EyeLike": eye_like,
    "Flatten": flatten,
    "OptionalGetElement": identity,
    "OptionalHasElement": has_element,
    "Pad": pad,
    "Range": range_,
    "Reshape": reshape,
    "ReverseSequence": reverse_sequence,
    "Shape": shape,
    "Size": size,
    "Slice": slice_,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unsqueeze": unsqueeze,
}
