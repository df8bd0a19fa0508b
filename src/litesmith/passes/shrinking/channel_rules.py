"""Which positions of which tensors are one channel, by a rule for each kind of op.

Every position along every axis of every tensor has a number. Ops determine which numbers belong
together: an addition joins its inputs position by position, a convolution joins its filters with
the channels of its output. Joined numbers are one class: it can only be removed everywhere at once.
Positions that an op needs unchanged, and all that an unknown op touches, are pinned: a rule raises
ValueError where it cannot decide.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.edit import consumers
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS, infer_shapes, options_or_defaults
from litesmith.ir.shape_rule import from_front, integer_at, integers_at, tensor_at
from litesmith.ir.shapes import fill_rest, slice_ranges
from litesmith.ir.types import Graph, Op, Tensor
from litesmith.ir.window import strided_picks
from litesmith.passes.core.layers import layers_of
from litesmith.passes.core.schemes import roles
from litesmith.phrases import phrase

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Channels:
    """The classes of a graph's channels.

    places  for every tensor and each of its axes: the class of each position
    pinned  the classes that cannot be removed, each with the reason
    """

    places: Mapping[Tensor, tuple[Numbers, ...]]
    pinned: Mapping[int, str]

    def last(self, tensor: Tensor) -> Numbers:
        """The classes of a tensor's channels, its last axis."""
        return self.places[tensor][-1]


class Joins:
    """Numbers of positions, and which of them were said to belong together or to be pinned."""

    def __init__(self, graph: Graph) -> None:
        self.why = ""
        self.layers = layers_of(graph)
        self.readers = consumers(graph)
        self.written = {t: op for op in graph.ops for t in op.outputs}
        self._numbers: dict[Tensor, tuple[Numbers, ...]] = {}
        self._pairs: list[tuple[Numbers, Numbers]] = []
        self._pins: list[tuple[Numbers, str]] = []
        self._pinned: set[tuple[Tensor, int]] = set()
        self._count = 0
        for tensor in graph.tensors:
            self._numbers[tensor] = tuple(map(self.fresh, tensor.shape))

    def fresh(self, count: int) -> Numbers:
        self._count += count
        return np.arange(self._count - count, self._count)

    def of(self, tensor: Tensor, axis: int = -1) -> Numbers:
        numbers = self._numbers[tensor]
        if not -len(numbers) <= axis < len(numbers):
            raise ValueError(phrase("axis {axis} of {count}", axis, len(numbers)))
        return numbers[axis]

    def join(self, a: Numbers, b: Numbers) -> None:
        if a.shape != b.shape:
            raise ValueError(phrase("{shape} positions beside {shape2}", a.shape, b.shape))
        self._pairs.append((a.reshape(-1), b.reshape(-1)))

    def pass_on(self, source: Tensor, axis: int, result: Tensor, place: int) -> None:
        """An axis of one tensor is an axis of another."""
        self.join(self.of(source, axis), self.of(result, place))
        if self.is_pinned(source, from_front(axis, len(source.shape))):
            self.pin(result, place)

    def pin(self, tensor: Tensor, *axes: int, why: str = "") -> None:
        """Pins some axes of a tensor, or all."""
        rank = len(tensor.shape)
        for axis in axes or range(rank):
            self._pinned.add((tensor, from_front(axis, rank)))
            self._pins.append((self.of(tensor, axis), why or self.why))

    def is_pinned(self, tensor: Tensor, axis: int) -> bool:
        return (tensor, axis) in self._pinned

    def solved(self) -> Channels:
        """The classes, each with the lowest of its numbers for a name."""
        names = np.arange(self._count)
        pairs = self._pairs or [(names[:0], names[:0])]
        a, b = (np.concatenate(side) for side in zip(*pairs, strict=True))
        while (names[a] != names[b]).any():
            low = np.minimum(names[a], names[b])
            np.minimum.at(names, names[a], low)
            np.minimum.at(names, names[b], low)
            while (names != names[names]).any():
                names = names[names]
        pinned: dict[int, str] = {}
        for numbers, why in self._pins:
            for name in np.unique(names[numbers]).tolist():
                pinned.setdefault(name, why)
        places = {t: tuple(names[n] for n in axes) for t, axes in self._numbers.items()}
        return Channels(places, pinned)


Rule = Callable[[Joins, Op], None]


def _elementwise(joins: Joins, op: Op) -> None:
    """Every input has the output's shape, or is repeated to have it."""
    (result,) = op.outputs
    for tensor in op.inputs:
        if tensor is None:
            continue
        for axis in range(-len(tensor.shape), 0):
            if tensor.shape[axis] == result.shape[axis]:
                joins.pass_on(tensor, axis, result, axis)
            else:
                joins.pin(tensor, axis)


def _layer(joins: Joins, op: Op) -> tuple[Tensor, Tensor, Tensor]:
    """A layer's data, weight and output; its filters, bias and output channels are joined."""
    if op not in joins.layers or joins.layers[op].data.is_const:
        raise ValueError(phrase("its weights are computed, or its data is constant"))
    layer, (result,) = joins.layers[op], op.outputs
    weight = tensor_at(op.inputs, layer.weight_at)
    joins.join(joins.of(weight, layer.axis), joins.of(result))
    if layer.bias is not None:
        joins.join(joins.of(layer.bias), joins.of(result))
    joins.pin(result, *range(len(result.shape) - 1))
    return layer.data, weight, result


def _conv(joins: Joins, op: Op) -> None:
    source, weight, _ = _layer(joins, op)
    joins.join(joins.of(weight), joins.of(source))
    joins.pin(weight, 1, 2)
    joins.pin(source, 0, 1, 2)


def _depthwise(joins: Joins, op: Op) -> None:
    """A channel of the input goes with all that are made of it."""
    source, weight, result = _layer(joins, op)
    times = result.shape[-1] // max(source.shape[-1], 1)
    joins.join(np.repeat(joins.of(source), times), joins.of(result))
    joins.pin(weight, 0, 1, 2)
    joins.pin(source, 0, 1, 2)


def _fully_connected(joins: Joins, op: Op) -> None:
    """The data counts as rows of as many values as the weight takes, across axes if need be."""
    if op.option("weights_format") not in (None, "DEFAULT"):
        raise ValueError(phrase("its weights are shuffled"))
    source, weight, _ = _layer(joins, op)
    rank, taken = len(source.shape), 1
    while prod(source.shape[rank - taken :]) < weight.shape[1]:
        taken += 1
    if rank > taken:
        joins.pin(source, *range(rank - taken))
    joins.join(_flat(joins, source, range(rank - taken, rank)), joins.of(weight, 1))


def _flat(joins: Joins, tensor: Tensor, axes: Sequence[int]) -> Numbers:
    """The numbers of some neighbouring axes in one row; only one of them stays free."""
    shape = tuple(tensor.shape[axis] for axis in axes)
    free = [a for a in axes if tensor.shape[a] > 1 and not joins.is_pinned(tensor, a)]
    carrier = free[-1] if free else axes[-1]
    if others := [axis for axis in axes if axis != carrier]:
        joins.pin(tensor, *others)
    sides = [-1 if axis == carrier else 1 for axis in axes]
    return np.broadcast_to(joins.of(tensor, carrier).reshape(sides), shape).reshape(-1)


def _unflat(joins: Joins, numbers: Numbers, tensor: Tensor, axes: Sequence[int]) -> None:
    """A row of numbers in several axes; numbers that differ in all but the last axis are one."""
    last = max(axis for axis in axes if tensor.shape[axis] > 1 or axis == axes[0])
    if others := [axis for axis in axes if axis != last]:
        joins.pin(tensor, *others)
    rows = numbers.reshape(-1, tensor.shape[last])
    joins.join(rows, np.broadcast_to(joins.of(tensor, last), rows.shape))


def _reshape(joins: Joins, op: Op) -> None:
    source, result = tensor_at(op.inputs, 0), op.outputs[0]
    for ours, theirs in _aligned(source.shape, result.shape):
        if len(ours) == len(theirs) == 1:
            joins.pass_on(source, ours[0], result, theirs[0])
        elif ours and theirs:
            _unflat(joins, _flat(joins, source, ours), result, theirs)
        else:
            for tensor, axes in ((source, ours), (result, theirs)):
                if axes:
                    joins.pin(tensor, *axes)


def _aligned(a: Sequence[int], b: Sequence[int]) -> Iterable[tuple[list[int], list[int]]]:
    """The shortest runs of axes of two shapes that hold as many elements."""
    if prod(a) != prod(b) or not prod(a):
        raise ValueError(phrase("{a} is not {b} in another shape", a, b))
    i = j = 0
    while i < len(a) and j < len(b):
        ours, theirs = [i], [j]
        while (left := prod(a[x] for x in ours)) != (right := prod(b[x] for x in theirs)):
            side = ours if left < right else theirs
            side.append(side[-1] + 1)
        yield ours, theirs
        i, j = ours[-1] + 1, theirs[-1] + 1
    yield list(range(i, len(a))), list(range(j, len(b)))


def _depth_to_space(joins: Joins, op: Op) -> None:
    _blocks(joins, tensor_at(op.inputs, 0), op.outputs[0])


def _space_to_depth(joins: Joins, op: Op) -> None:
    _blocks(joins, op.outputs[0], tensor_at(op.inputs, 0))


def _blocks(joins: Joins, deep: Tensor, wide: Tensor) -> None:
    """Blocks of pixels lie one behind the other in the channels of the deeper tensor."""
    rows = joins.of(deep).reshape(-1, wide.shape[-1])
    joins.join(rows, np.broadcast_to(joins.of(wide), rows.shape))
    for tensor in (deep, wide):
        joins.pin(tensor, 0, 1, 2)


def _windows(joins: Joins, op: Op) -> None:
    """All axes but the last are computed with; the last one is passed on."""
    source, result = tensor_at(op.inputs, 0), op.outputs[0]
    joins.join(joins.of(source), joins.of(result))
    for tensor in (source, result):
        joins.pin(tensor, *range(len(tensor.shape) - 1))


def _concatenation(joins: Joins, op: Op) -> None:
    result = op.outputs[0]
    axis = from_front(options_or_defaults(op.kind, op.options).integer("axis"), len(result.shape))
    parts = [tensor_at(op.inputs, place) for place in range(len(op.inputs))]
    joins.join(np.concatenate([joins.of(t, axis) for t in parts]), joins.of(result, axis))
    for tensor in parts:
        _others(joins, tensor, result, axis)


def _others(joins: Joins, a: Tensor, b: Tensor, axis: int) -> None:
    """Two tensors that differ along one axis only."""
    for other in range(len(a.shape)):
        if other != axis:
            joins.pass_on(a, other, b, other)


def _split(joins: Joins, op: Op) -> None:
    """The parts keep equal sizes, so a channel removed from one is removed from all."""
    source = tensor_at(op.inputs, 1)
    axis = from_front(integer_at(op.inputs, 0), len(source.shape))
    rows = joins.of(source, axis).reshape(len(op.outputs), -1)
    for row, result in zip(rows, op.outputs, strict=True):
        joins.join(row, joins.of(result, axis))
        joins.join(row, rows[0])
        _others(joins, source, result, axis)


def _split_v(joins: Joins, op: Op) -> None:
    source = tensor_at(op.inputs, 0)
    axis = from_front(integer_at(op.inputs, 2), len(source.shape))
    sizes = fill_rest(integers_at(op.inputs, 1), source.shape[axis])
    parts = np.split(joins.of(source, axis), np.cumsum(sizes)[:-1])
    for part, result in zip(parts, op.outputs, strict=True):
        joins.join(part, joins.of(result, axis))
        _others(joins, source, result, axis)


def _slice(joins: Joins, op: Op) -> None:
    source, result = tensor_at(op.inputs, 0), op.outputs[0]
    ranges = slice_ranges(source.shape, integers_at(op.inputs, 1), integers_at(op.inputs, 2))
    for axis, kept in enumerate(ranges):
        joins.join(joins.of(source, axis)[kept.start : kept.stop], joins.of(result, axis))


def _strided_slice(joins: Joins, op: Op) -> None:
    """Axes that are kept whole or in one piece are passed on; others stay as they are."""
    source, result = tensor_at(op.inputs, 0), op.outputs[0]
    options = options_or_defaults(op.kind, op.options)
    if options.integer("ellipsis_mask") or options.integer("new_axis_mask"):
        raise ValueError(phrase("axes are not counted from the front"))
    begin, end, strides = (integers_at(op.inputs, place) for place in (1, 2, 3))
    place = 0
    for axis, pick in enumerate(strided_picks(source.shape, begin, end, strides, options)):
        if isinstance(pick, range):
            joins.join(joins.of(source, axis)[list(pick)], joins.of(result, place))
            place += 1
        if not isinstance(pick, range) or pick.step != 1:
            joins.pin(source, axis)


def _pad(joins: Joins, op: Op) -> None:
    """Added positions are channels like others."""
    source, result = tensor_at(op.inputs, 0), op.outputs[0]
    widths = np.reshape(integers_at(op.inputs, 1), (-1, 2))
    for axis, before in enumerate(widths[:, 0].tolist()):
        middle = joins.of(result, axis)[before : before + source.shape[axis]]
        joins.join(joins.of(source, axis), middle)


def _mirror_pad(joins: Joins, op: Op) -> None:
    """Added positions repeat other channels: none of these can be removed alone."""
    _pad(joins, op)
    widths = np.reshape(integers_at(op.inputs, 1), (-1, 2))
    for axis in np.flatnonzero(widths.sum(axis=1)).tolist():
        joins.pin(tensor_at(op.inputs, 0), axis)
        joins.pin(op.outputs[0], axis)


def _reduce(joins: Joins, op: Op) -> None:
    source, result = tensor_at(op.inputs, 0), op.outputs[0]
    rank = len(source.shape)
    gone = {from_front(axis, rank) for axis in integers_at(op.inputs, 1)}
    kept = options_or_defaults(op.kind, op.options)["keep_dims"]
    place = 0
    for axis in range(rank):
        if axis in gone:
            joins.pin(source, axis)
            if kept:
                joins.pin(result, place)
        else:
            joins.pass_on(source, axis, result, place)
        place += 1 if kept or axis not in gone else 0


def _transpose(joins: Joins, op: Op) -> None:
    source, result = tensor_at(op.inputs, 0), op.outputs[0]
    for place, axis in enumerate(integers_at(op.inputs, 1)):
        joins.pass_on(source, axis, result, place)


def _shape(joins: Joins, op: Op) -> None:
    """Only the sizes that somebody looks at matter."""
    source, result = tensor_at(op.inputs, 0), op.outputs[0]
    joins.pin(result)
    for reader in joins.readers.get(result, []):
        if reader.kind != "STRIDED_SLICE":
            raise ValueError(phrase("all sizes are read"))
        begin, end, strides = (integers_at(reader.inputs, place) for place in (1, 2, 3))
        options = options_or_defaults(reader.kind, reader.options)
        (pick,) = strided_picks(result.shape, begin, end, strides, options)
        axes = pick if isinstance(pick, range) else [pick or 0]
        if axes:
            joins.pin(source, *axes)


_ELEMENTWISE = (
    "ABS ADD ADD_N CAST CEIL COS DEQUANTIZE DIV ELU EQUAL EXP FAKE_QUANT FLOOR FLOOR_DIV FLOOR_MOD "
    "GELU GREATER GREATER_EQUAL HARD_SWISH LEAKY_RELU LESS LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT "
    "LOGICAL_OR LOGISTIC MAXIMUM MINIMUM MUL NEG NOT_EQUAL POW PRELU RELU RELU6 RELU_0_TO_1 "
    "RELU_N1_TO_1 ROUND RSQRT SIGN SIN SQRT SQUARE SQUARED_DIFFERENCE SUB TANH ZEROS_LIKE"
)
_REDUCING = "MEAN REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD SUM"
_SLIDING = (
    "AVERAGE_POOL_2D BATCH_TO_SPACE_ND L2_POOL_2D MAX_POOL_2D RESIZE_BILINEAR "
    "RESIZE_NEAREST_NEIGHBOR SPACE_TO_BATCH_ND"
)

RULES: dict[str, Rule] = {
    **dict.fromkeys(_ELEMENTWISE.split(), _elementwise),
    **dict.fromkeys(_REDUCING.split(), _reduce),
    **dict.fromkeys(_SLIDING.split(), _windows),
    "CONCATENATION": _concatenation,
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "DEPTH_TO_SPACE": _depth_to_space,
    "EXPAND_DIMS": _reshape,
    "FULLY_CONNECTED": _fully_connected,
    "MIRROR_PAD": _mirror_pad,
    "PAD": _pad,
    "PADV2": _pad,
    "RESHAPE": _reshape,
    "SHAPE": _shape,
    "SLICE": _slice,
    "SPACE_TO_DEPTH": _space_to_depth,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "SQUEEZE": _reshape,
    "STRIDED_SLICE": _strided_slice,
    "TRANSPOSE": _transpose,
    "TRANSPOSE_CONV": _conv,
}


def channel_ids(graph: Graph) -> Channels:
    """The classes of channels of a graph."""
    joins = Joins(graph)
    for tensor in (*graph.inputs, *graph.outputs):
        joins.pin(tensor, why=phrase("it is an input or an output of the model"))
    for tensor in graph.tensors:
        if tensor.variable or tensor.sparsity is not None or tensor.quant is not None:
            joins.pin(tensor, why=phrase("it is a state, sparse or quantized"))
        for axis, size in enumerate(tensor.dynamic or ()):
            if size < 0:
                joins.pin(tensor, axis, why=phrase("its size is free"))
    for op in graph.ops:
        joins.why = phrase("{op_name} needs all of them", op_name(op))
        for role, tensor in zip(roles(op), op.inputs, strict=True):
            if tensor is not None and role not in "xwb":
                joins.pin(tensor)
        try:
            _check(joins, op)
            RULES[op.kind](joins, op)
        except (KeyError, ValueError):
            for tensor in (*op.inputs, *op.outputs, *op.intermediates):
                if tensor is not None:
                    joins.pin(tensor)
    return joins.solved()


def _check(joins: Joins, op: Op) -> None:
    """ValueError where the file promises other shapes than the op gives, or nobody can say."""
    shapes = infer_shapes(op.kind, op.inputs, op.options)
    if shapes is None and OPS[op.kind].takes_shape:
        sizes, promised = asked_sizes(op, joins.written), op.outputs[0].shape
        asked = op.inputs[shape_place(op)]
        assert asked is not None
        fits = len(sizes) == len(promised) and len(joins.readers[asked]) == 1
        if not fits or any(s not in (None, -1, p) for s, p in zip(sizes, promised, strict=True)):
            raise ValueError(phrase("its size is computed"))
        for axis, size in enumerate(sizes):
            if size is None:
                joins.pin(op.outputs[0], axis)
    elif shapes != tuple(t.shape for t in op.outputs):
        raise ValueError(phrase("another shape is promised"))


def shape_place(op: Op) -> int:
    """Which input asks for the shape of the output."""
    place = OPS[op.kind].setting
    assert place is not None
    return place


def asked_sizes(op: Op, written: Mapping[Tensor, Op]) -> list[int | None]:
    """The sizes that an op is asked for, perhaps put together by PACK; None for each that is
    computed."""
    place = shape_place(op)
    asked = op.inputs[place] if place < len(op.inputs) else None
    if asked is None:
        return list(options_or_defaults(op.kind, op.options).integers("new_shape"))
    pack = written.get(asked)
    if pack is None or pack.kind != "PACK":
        return list(integers_at(op.inputs, place))
    return [integer_at((t,), 0) if t is not None and t.is_const else None for t in pack.inputs]
