"""ATen's operators that move values: views, slices, joins, picks, frames."""

from math import prod

import numpy as np

from litesmith.conversion.aten.call import Call, NotWritten, Ref, Row, computed
from litesmith.conversion.core.source import Setting

_END = np.iinfo(np.int64).max


def view(call: Call) -> None:
    """Every operator that keeps the values in order: the result's sizes say all."""
    first = call.arguments.get("self", call.arguments.get("input"))
    if not isinstance(first, Ref):
        raise NotWritten("its argument {name!r} is no tensor", "self")
    call.end("Reshape", call.cast(first, call.dtype), call.whole(call.shape))


def permute(call: Call) -> None:
    x = call.ref("self")
    order = tuple(d % x.rank for d in call.integers("dims"))
    call.end("Transpose", x.name, perm=order)


def transpose(call: Call) -> None:
    x = call.ref("self")
    order = list(range(x.rank))
    a, b = (
        (call.integer(n) % max(x.rank, 1) for n in ("dim0", "dim1"))
        if call.has("dim0")
        else ((0, 1) if x.rank > 1 else (0, 0))
    )
    if x.rank:
        order[a], order[b] = order[b], order[a]
    call.end("Transpose", x.name, perm=tuple(order))


def turn_matrix(call: Call) -> None:
    """`t`, `mT`, `adjoint`: the last two axes."""
    x = call.ref("self")
    order = list(range(x.rank))
    order[-2:] = order[-2:][::-1]
    call.end("Transpose", x.name, perm=tuple(order))


def move_axes(call: Call) -> None:
    x = call.ref("self")
    source, target = ([a % x.rank for a in call.integers(n)] for n in ("source", "destination"))
    order = [a for a in range(x.rank) if a not in source]
    for place, axis in sorted(zip(target, source, strict=True)):
        order.insert(place, axis)
    call.end("Transpose", x.name, perm=tuple(order))


def expand(call: Call) -> None:
    call.end("Expand", call.name("self"), call.whole(call.shape))


def repeat(call: Call) -> None:
    x = call.ref("self")
    times = call.integers("repeats" if call.has("repeats") else "dims")
    rank = max(x.rank, len(times))
    shape = (1,) * (rank - x.rank) + x.shape
    name = x.name if shape == x.shape else call.step("Reshape", x.name, call.whole(shape))
    call.end("Tile", name, call.whole((1,) * (rank - len(times)) + times))


def repeat_interleave(call: Call) -> None:
    x, count = call.ref("self"), call.integer("repeats")
    axis = call.axis() if call.has("dim") else 0
    name = x.name
    size = x.shape[axis] if call.has("dim") else prod(x.shape)
    if not call.has("dim"):
        name = call.step("Reshape", name, call.whole([size]))
    places = call.whole(np.repeat(np.arange(size), count).tolist())
    call.end("Gather", name, places, axis=axis)


def _cut(call: Call, x: str, axis: int, begin: int, end: int, step: int = 1) -> str:
    return call.step("Slice", x, *(call.whole([v]) for v in (begin, end, axis, step)))


def slice_(call: Call) -> None:
    x, axis = call.ref("self"), call.axis()
    begin, end = call.integer("start"), call.integer("end", _END)
    parts = (begin, end, axis, call.integer("step", 1))
    call.end("Slice", x.name, *(call.whole([v]) for v in parts))


def narrow(call: Call) -> None:
    begin, axis = call.integer("start"), call.axis()
    begin %= max(call.ref("self").shape[axis], 1)
    end = begin + call.integer("length")
    call.end("Slice", call.name("self"), *(call.whole([v]) for v in (begin, end, axis)))


def select(call: Call) -> None:
    x, axis = call.ref("self"), call.axis()
    place = call.integer("index") % x.shape[axis]
    cut = _cut(call, x.name, axis, place, place + 1)
    call.end("Reshape", cut, call.whole(call.shape))


def concat(call: Call) -> None:
    given = call.refs("tensors")
    parts = [r for r in given if r.shape != (0,)] or list(given)
    axis = call.integer("dim") % max(parts[0].rank, 1)
    call.end("Concat", *(call.cast(r, call.dtype) for r in parts), axis=axis)


def stack(call: Call) -> None:
    parts = call.refs("tensors")
    axis = call.integer("dim") % (parts[0].rank + 1)
    shape = list(call.shape)
    shape[axis] = 1
    own = [call.step("Reshape", call.cast(r, call.dtype), call.whole(shape)) for r in parts]
    call.end("Concat", *own, axis=axis)


def split(call: Call) -> None:
    """All operators that split a tensor: the sizes are those of the results."""
    x = call.ref("self")
    axis = call.integer("dim") % x.rank
    sizes = call.whole([m.shape[axis] for m in call.made])
    call.end("Split", x.name, sizes, axis=axis)


def unbind(call: Call) -> None:
    x = call.ref("self")
    axis = call.integer("dim") % x.rank
    for place, name in enumerate(call.outputs):
        if name:
            own = call.output(place)
            cut = _cut(own, x.name, axis, place, place + 1)
            own.end("Reshape", cut, own.whole(own.shape))


def flip(call: Call) -> None:
    x = call.ref("self")
    axes = [a % x.rank for a in call.integers("dims")]
    ends = ([-1] * len(axes), [-_END] * len(axes), axes, [-1] * len(axes))
    call.end("Slice", x.name, *map(call.whole, ends))


def roll(call: Call) -> None:
    x, shifts = call.ref("self"), call.integers("shifts")
    given = call.arguments.get("dims")
    name, sizes = x.name, x.shape
    axes = tuple(a % x.rank for a in call.integers("dims")) if given else ()
    if not axes:
        name, sizes, axes = call.step("Reshape", name, call.whole([-1])), (prod(x.shape),), (0,)
    for axis, shift in zip(axes, shifts, strict=True):
        place = -shift % sizes[axis]
        if place:
            parts = _cut(call, name, axis, place, _END), _cut(call, name, axis, 0, place)
            name = call.step("Concat", *parts, axis=axis)
    call.end("Reshape", name, call.whole(call.shape))


# Frames

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(mode: str = "") -> Row:
    """A frame, given from the last axis on."""

    def row(call: Call) -> None:
        x = call.ref("self")
        widths = call.integers("pad" if call.has("pad") else "padding")
        before, after = [0] * x.rank, [0] * x.rank
        for i in range(len(widths) // 2):
            before[-1 - i], after[-1 - i] = widths[2 * i], widths[2 * i + 1]
        kind = _MODES[mode or call.word("mode", "constant")]
        inputs = [x.name, call.whole([*before, *after])]
        if kind == "constant":
            inputs.append(call.constant(call.number("value"), call.dtype))
        call.end("Pad", *inputs, mode=kind)

    return row


# Parts replaced


def slice_scatter(call: Call) -> None:
    """A tensor with a part replaced: the values before it, the new part, the values after it."""
    x, axis = call.ref("self"), call.axis()
    span = slice(call.integer("start"), call.integer("end", _END), call.integer("step", 1))
    begin, end, step = span.indices(x.shape[axis])
    if step == 1:
        _replaced(call, x, axis, (begin, max(begin, end)), call.operand("src", call.dtype))
        return
    whole = np.full(x.shape[axis], -1)
    whole[begin:end:step] = np.arange(len(range(begin, end, step)))
    taken = whole >= 0
    shape = [-1 if i == axis else 1 for i in range(x.rank)]
    spread = call.step(
        "Gather",
        call.operand("src", call.dtype),
        call.whole(whole.clip(0).tolist()),
        axis=axis,
    )
    call.end("Where", call.constant(taken.reshape(shape)), spread, x.name)


def select_scatter(call: Call) -> None:
    x, axis = call.ref("self"), call.axis()
    place = call.integer("index") % x.shape[axis]
    shape = [1 if i == axis else d for i, d in enumerate(x.shape)]
    part = call.step("Reshape", call.operand("src", call.dtype), call.whole(shape))
    _replaced(call, x, axis, (place, place + 1), part)


def _replaced(call: Call, x: Ref, axis: int, span: tuple[int, int], part: str) -> None:
    begin, end = span
    parts = [_cut(call, x.name, axis, 0, begin)] if begin else []
    parts.append(part)
    if end < x.shape[axis]:
        parts.append(_cut(call, x.name, axis, end, _END))
    call.end("Concat", *parts, axis=axis) if len(parts) > 1 else call.end("Identity", part)


def copy(call: Call) -> None:
    call.end("Expand", call.cast(call.ref("src"), call.dtype), call.whole(call.shape))


# Tensors that are known before it runs


def arange(call: Call) -> None:
    start, step = call.number("start"), call.number("step", 1)
    values = start + step * np.arange(call.shape[0])
    call.end("Identity", call.constant(values.astype(computed(call.dtype))))


def linspace(call: Call) -> None:
    values = np.linspace(call.number("start"), call.number("end"), call.integer("steps"))
    call.end("Identity", call.constant(values.astype(computed(call.dtype))))


def eye(call: Call) -> None:
    call.end("Identity", call.constant(np.eye(*call.shape, dtype=computed(call.dtype))))


def scalar(call: Call) -> None:
    value = call.number("s")
    call.end("Identity", call.constant(np.array(value, computed(call.dtype))))


def triangle(upper: int) -> Row:
    def row(call: Call) -> None:
        place = np.array(call.integer("diagonal"), np.int64)
        call.end("Trilu", call.name("self"), place, upper=upper)

    return row


def one_hot(call: Call) -> None:
    count = call.integer("num_classes", -1)
    if count < 0:
        raise NotWritten("a one-hot without num_classes, whose size depends on the values")
    values = call.constant(np.array([0, 1], np.int64))
    call.end("OneHot", call.name("self"), call.whole([count]), values, axis=-1)


# Images


def pixel_shuffle(call: Call) -> None:
    block = call.integer("upscale_factor")
    _flat_image(call, "DepthToSpace", blocksize=block, mode="CRD")


def _flat_image(call: Call, kind: str, **settings: Setting) -> None:
    x = call.ref("self")
    if x.rank == 4:
        call.end(kind, x.name, **settings)
        return
    image = call.step("Reshape", x.name, call.whole((prod(x.shape[:-3]), *x.shape[-3:])))
    call.end("Reshape", call.step(kind, image, **settings), call.whole(call.shape))


def pixel_unshuffle(call: Call) -> None:
    x, block = call.ref("self"), call.integer("downscale_factor")
    lead, (channels, height, width) = prod(x.shape[:-3]), x.shape[-3:]
    sizes = (lead, channels, height // block, block, width // block, block)
    parted = call.step("Reshape", x.name, call.whole(sizes))
    turned = call.step("Transpose", parted, perm=(0, 1, 3, 5, 2, 4))
    call.end("Reshape", turned, call.whole(call.shape))


def channel_shuffle(call: Call) -> None:
    x, groups = call.ref("self"), call.integer("groups")
    order = np.arange(x.shape[1]).reshape(groups, -1).T.reshape(-1)
    call.end("Gather", x.name, call.whole(order.tolist()), axis=1)


def diagonal(call: Call) -> None:
    """Values of two axes at the same places, in an axis behind all others."""
    x, offset = call.ref("self"), call.integer("offset")
    a, b = call.axis("dim1"), call.axis("dim2", 1)
    others = tuple(d for d in range(x.rank) if d not in (a, b))
    turned = call.step("Transpose", x.name, perm=(*others, a, b))
    lead = tuple(x.shape[d] for d in others)
    flat = call.step("Reshape", turned, call.whole((*lead, x.shape[a] * x.shape[b])))
    first = max(offset, 0) + max(-offset, 0) * x.shape[b]
    places = first + np.arange(call.shape[-1]) * (x.shape[b] + 1)
    call.end("Gather", flat, call.constant(places.astype(np.int64)), axis=len(others))


def unfold(call: Call) -> None:
    """Windows along an axis, each behind the others: x.unfold(dim, size, step)."""
    x, size, step = call.ref("self"), call.integer("size"), call.integer("step")
    axis = call.integer("dimension") % x.rank
    count = (x.shape[axis] - size) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(size)
    picked = call.step("Gather", x.name, call.constant(places), axis=axis)
    order = [a for a in range(x.rank + 1) if a != axis + 1]
    call.end("Transpose", picked, perm=(*order, axis + 1))


ROWS: dict[str, Row] = {
    **dict.fromkeys(
        (
            "_reshape_alias",
            "_unsafe_view",
            "flatten",
            "ravel",
            "reshape",
            "reshape_as",
            "squeeze",
            "unflatten",
            "unsqueeze",
            "view",
            "view_as",
        ),
        view,
    ),
    "_pad_circular": pad("circular"),
    "arange": arange,
    "broadcast_to": expand,
    "cat": concat,
    "channel_shuffle": channel_shuffle,
    "chunk": split,
    "concat": concat,
    "constant_pad_nd": pad("constant"),
    "copy": copy,
    "diagonal": diagonal,
    "expand": expand,
    "expand_as": expand,
    "eye": eye,
    "flip": flip,
    "linspace": linspace,
    "mT": turn_matrix,
    "movedim": move_axes,
    "narrow": narrow,
    "one_hot": one_hot,
    "pad": pad(),
    "permute": permute,
    "pixel_shuffle": pixel_shuffle,
    "pixel_unshuffle": pixel_unshuffle,
    "reflection_pad1d": pad("reflect"),
    "reflection_pad2d": pad("reflect"),
    "reflection_pad3d": pad("reflect"),
    "repeat": repeat,
    "repeat_interleave.self_int": repeat_interleave,
    "replication_pad1d": pad("replicate"),
    "replication_pad2d": pad("replicate"),
    "replication_pad3d": pad("replicate"),
    "roll": roll,
    "scalar_tensor": scalar,
    "select": select,
    "select_scatter": select_scatter,
    "slice": slice_,
    "slice_scatter": slice_scatter,
    "split": split,
    "split_with_sizes": split,
    "stack": stack,
    "t": transpose,
    "tensor_split": split,
    "tile": repeat,
    "transpose": transpose,
    "tril": triangle(0),
    "triu": triangle(1),
    "unbind": unbind,
    "unfold": unfold,
    "unsafe_split": split,
}
