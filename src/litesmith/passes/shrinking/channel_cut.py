"""A model without some of its channels: every tensor that has them is cut, every size follows."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.edit import regraph, substitute, with_main
from litesmith.ir.ops import OPS, options_or_defaults
from litesmith.ir.shape_rule import from_front, integer_at, integers_at, tensor_at
from litesmith.ir.shapes import fill_rest, slice_ranges
from litesmith.ir.types import Model, Op, Tensor, frozen
from litesmith.ir.window import strided_picks
from litesmith.passes.shrinking.channel_rules import Channels, asked_sizes, shape_place

Kept = tuple[NDArray[np.bool_], ...]


class _Cut:
    """What is left of every tensor of a graph, axis by axis."""

    def __init__(self, channels: Channels, gone: Collection[int]) -> None:
        classes = np.fromiter(gone, np.int64, len(gone))
        self.kept: dict[Tensor, Kept] = {
            tensor: tuple(~np.isin(axis, classes) for axis in axes)
            for tensor, axes in channels.places.items()
        }

    def left(self, tensor: Tensor, axis: int, span: slice = slice(None)) -> int:
        """The number of positions left along an axis, or along a part of it."""
        return int(self.kept[tensor][axis][span].sum())

    def is_cut(self, tensor: Tensor) -> bool:
        return not all(axis.all() for axis in self.kept[tensor])

    def tensor(self, tensor: Tensor) -> Tensor:
        kept = self.kept[tensor]
        shape = tuple(int(axis.sum()) for axis in kept)
        free = tensor.dynamic
        if free is not None:
            free = tuple(-1 if f < 0 else size for f, size in zip(free, shape, strict=True))
        data = tensor.data
        if data is not None:
            data = frozen(np.ascontiguousarray(data[np.ix_(*kept)]))
        return replace(tensor, shape=shape, dynamic=free, data=data)


def without(model: Model, channels: Channels, gone: Collection[int]) -> Model:
    """The model with these classes of its main graph's channels gone."""
    graph, cut = model.main, _Cut(channels, gone)
    written = {t: op for op in graph.ops for t in op.outputs}
    resized: dict[Op, Op] = {}
    for op in graph.ops:
        touched = [t for t in (*op.inputs, *op.outputs) if t is not None and cut.is_cut(t)]
        if not touched:
            continue
        if OPS[op.kind].takes_shape:
            resized |= _asked(op, cut, written)
        elif op.kind in _SIZES:
            resized[op] = _SIZES[op.kind](op, cut)
    smaller = {t: cut.tensor(t) for t in graph.tensors if cut.is_cut(t)}
    ops = [substitute(resized.get(op, op), smaller) for op in graph.ops]
    return with_main(model, regraph(graph, ops=ops))


def _asked(op: Op, cut: _Cut, written: Mapping[Tensor, Op]) -> dict[Op, Op]:
    """The op, and the ops that compute its sizes, adapted to what is left."""
    (result,) = op.outputs
    sizes = asked_sizes(op, written)
    left = [
        size if size in (None, -1) else cut.left(result, axis) for axis, size in enumerate(sizes)
    ]
    place = shape_place(op)
    asked = op.inputs[place] if place < len(op.inputs) else None
    options = op.options
    if options is not None and "new_shape" in options and options["new_shape"] is not None:
        numbers = tuple(-1 if size is None else size for size in left)
        options = options.set(new_shape=np.array(numbers, np.int32))
    if asked is None or asked.is_const:
        return {op: _with(replace(op, options=options), {place: left} if asked else {})}
    pack = written[asked]
    changed = {n: left[n] for n, size in enumerate(sizes) if size != left[n]}
    return {op: replace(op, options=options), pack: _with(pack, changed)}


def _with(op: Op, settings: Mapping[int, object]) -> Op:
    """The op with other constants in some places."""
    inputs = list(op.inputs)
    for place, numbers in settings.items():
        old = tensor_at(op.inputs, place)
        data = np.array(numbers, old.dtype).reshape(old.shape)
        inputs[place] = replace(old, data=frozen(data))
    return replace(op, inputs=tuple(inputs))


def _slice(op: Op, cut: _Cut) -> Op:
    source = tensor_at(op.inputs, 0)
    begin, size = (integers_at(op.inputs, place) for place in (1, 2))
    ranges = slice_ranges(source.shape, begin, size)
    begins = [cut.left(source, axis, slice(kept.start)) for axis, kept in enumerate(ranges)]
    sizes = [
        -1 if asked == -1 else cut.left(source, axis, slice(kept.start, kept.stop))
        for axis, (asked, kept) in enumerate(zip(size, ranges, strict=True))
    ]
    return _with(op, {1: begins, 2: sizes})


def _strided_slice(op: Op, cut: _Cut) -> Op:
    source = tensor_at(op.inputs, 0)
    begin, end, strides = (list(integers_at(op.inputs, place)) for place in (1, 2, 3))
    options = options_or_defaults(op.kind, op.options)
    picks = strided_picks(source.shape, begin, end, strides, options)
    for axis, pick in enumerate(picks[: len(begin)]):
        if isinstance(pick, range) and not cut.kept[source][axis].all():
            begin[axis] = cut.left(source, axis, slice(pick.start))
            end[axis] = cut.left(source, axis, slice(pick.stop))
    return _with(op, {1: begin, 2: end})


def _split_v(op: Op, cut: _Cut) -> Op:
    source = tensor_at(op.inputs, 0)
    axis = from_front(integer_at(op.inputs, 2), len(source.shape))
    filled = fill_rest(integers_at(op.inputs, 1), source.shape[axis])
    ends = np.cumsum(filled).tolist()
    spans = [slice(end - size, end) for size, end in zip(filled, ends, strict=True)]
    return _with(op, {1: [cut.left(source, axis, span) for span in spans]})


def _pad(op: Op, cut: _Cut) -> Op:
    source, result = tensor_at(op.inputs, 0), op.outputs[0]
    widths: list[Sequence[int]] = []
    for axis, (before, _) in enumerate(np.reshape(integers_at(op.inputs, 1), (-1, 2)).tolist()):
        after = slice(before + source.shape[axis], None)
        widths.append((cut.left(result, axis, slice(before)), cut.left(result, axis, after)))
    return _with(op, {1: widths})


# Ops that have sizes or places among their settings.
_SIZES: dict[str, Callable[[Op, _Cut], Op]] = {
    "PAD": _pad,
    "PADV2": _pad,
    "SLICE": _slice,
    "SPLIT_V": _split_v,
    "STRIDED_SLICE": _strided_slice,
}
