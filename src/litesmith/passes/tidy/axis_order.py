"""How to express an op on tensors whose axes are stored in another order.

A tensor of 3 to 5 dimensions that means N, C, spatial … may be stored as N, spatial …, C, and the
other way round. An op with a row here gives the same values for it: its axes, sizes and constants
are put in the new order.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from litesmith.ir.types import Array, Op, Tensor, constant_numbers, frozen

RANKS = (3, 4, 5)

Order = tuple[int, ...]


def last(rank: int) -> Order:
    """N, C, spatial … to N, spatial …, C."""
    return (0, *range(2, rank), 1)


def first(rank: int) -> Order:
    """N, spatial …, C to N, C, spatial …"""
    return (0, rank - 1, *range(1, rank - 1))


def has_order(tensor: Tensor | None) -> bool:
    """True for computed tensors with channels and places."""
    return tensor is not None and not tensor.is_const and len(tensor.shape) in RANKS


def moves_nothing(shape: Sequence[int], order: Order) -> bool:
    """True where another order of the axes leaves the values in theirs."""
    long = [axis for axis in order if shape[axis] != 1]
    return long == sorted(long)


class Turned(NamedTuple):
    """An op on tensors in the new order.

    inputs   its inputs, the computed ones of them as they were
    options  its options
    outputs  for each output, whether it is in the new order too
    """

    inputs: tuple[Tensor | None, ...]
    options: dict[str, int | tuple[int, ...]]
    outputs: tuple[bool, ...]


# The order that a rank is turned to: `last` or `first`.
To = Callable[[int], Order]

_Turn = Callable[[Op, To], Turned | None]


def turned(op: Op, to: To) -> Turned | None:
    """The op on tensors that are turned to an order, or None where it has no such form."""
    turn = _TURNS.get(op.kind)
    if turn is None or not any(map(has_order, (*op.inputs, *op.outputs))):
        return None
    return turn(op, to)


def _rank(op: Op) -> int:
    return max(len(t.shape) for t in (*op.inputs, *op.outputs) if t is not None)


def _constant(tensor: Tensor, values: Array) -> Tensor:
    array = frozen(np.ascontiguousarray(values))
    return replace(tensor, data=array, shape=array.shape)


def _elementwise(op: Op, to: To) -> Turned | None:
    """All computed inputs have one rank; constants are broadcast to it, and turned."""
    rank = _rank(op)
    if rank not in RANKS:
        return None
    inputs: list[Tensor | None] = []
    for tensor in op.inputs:
        if tensor is None or (tensor.elements == 1 and len(tensor.shape) <= 1):
            inputs.append(tensor)
        elif tensor.is_const:
            values = constant_numbers(tensor)
            if values is None or (tensor.quant is not None and tensor.quant.per_channel):
                return None
            spread = values.reshape((1,) * (rank - values.ndim) + values.shape)
            inputs.append(_constant(tensor, spread.transpose(to(rank))))
        elif len(tensor.shape) == rank:
            inputs.append(tensor)
        else:
            return None
    return Turned(tuple(inputs), {}, (True,) * len(op.outputs))


def _same_rank(op: Op) -> bool:
    ranks = {len(t.shape) for t in (*op.inputs, *op.outputs) if t is not None and not t.is_const}
    return len(ranks) == 1 and next(iter(ranks)) in RANKS


def _by_option(op: Op, to: To) -> Turned | None:
    """An axis is an option."""
    axis = op.option("axis")
    if not isinstance(axis, int) or not _same_rank(op) or any(t and t.is_const for t in op.inputs):
        return None
    rank = _rank(op)
    return Turned(op.inputs, {"axis": to(rank).index(axis % rank)}, (True,) * len(op.outputs))


def _axis_at(place: int) -> _Turn:
    """An axis, or several, are a constant input."""

    def turn(op: Op, to: To) -> Turned | None:
        rank, axes = _rank(op), constant_numbers(op.inputs[place])
        setting = op.inputs[place]
        if axes is None or setting is None or not _same_rank(op):
            return None
        moved = np.array([to(rank).index(int(a) % rank) for a in axes.reshape(-1)], axes.dtype)
        inputs = list(op.inputs)
        inputs[place] = _constant(setting, moved.reshape(axes.shape))
        return Turned(tuple(inputs), {}, (True,) * len(op.outputs))

    return turn


def _rows_at(*places: int) -> _Turn:
    """Some constant inputs have a row for each axis."""

    def turn(op: Op, to: To) -> Turned | None:
        rank = _rank(op)
        if not _same_rank(op):
            return None
        inputs = list(op.inputs)
        for place in places:
            setting = op.inputs[place]
            rows = constant_numbers(setting)
            if rows is None or setting is None or len(rows) != rank:
                return None
            inputs[place] = _constant(setting, rows[list(to(rank))])
        return Turned(tuple(inputs), {}, (True,) * len(op.outputs))

    return turn


_MASKS = ("begin_mask", "end_mask")


def _strided(op: Op, to: To) -> Turned | None:
    if any(op.option(mask) for mask in ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")):
        return None
    plain = _rows_at(1, 2, 3)(op, to)
    if plain is None:
        return None
    masks: dict[str, int | tuple[int, ...]] = {}
    for name in _MASKS:
        bits = op.option(name)
        if isinstance(bits, int) and bits:
            order = to(_rank(op))
            masks[name] = sum(1 << new for new, old in enumerate(order) if bits >> old & 1)
    return plain._replace(options=masks)


def _gather(op: Op, to: To) -> Turned | None:
    indices, axis = op.inputs[1], op.option("axis")
    if indices is None or len(indices.shape) != 1 or op.option("batch_dims"):
        return None
    if not isinstance(axis, int) or not has_order(op.inputs[0]) or not _same_rank_as_output(op):
        return None
    rank = _rank(op)
    return Turned(op.inputs, {"axis": to(rank).index(axis % rank)}, (True,))


def _same_rank_as_output(op: Op) -> bool:
    source = op.inputs[0]
    return source is not None and len(source.shape) == len(op.outputs[0].shape)


def _reduction(op: Op, to: To) -> Turned | None:
    """Axes may disappear; the remaining order must be one that has a name."""
    source, setting = op.inputs[0], op.inputs[1]
    axes = constant_numbers(setting)
    if source is None or setting is None or axes is None or not has_order(source):
        return None
    rank = len(source.shape)
    order = to(rank)
    gone = {int(a) % rank for a in axes.reshape(-1)}
    moved = np.array([order.index(a) for a in axes.reshape(-1) % rank], axes.dtype)
    inputs = (source, _constant(setting, moved.reshape(axes.shape)), *op.inputs[2:])
    if len(op.outputs[0].shape) == rank:
        return Turned(inputs, {}, (True,))
    kept = [a for a in order if a not in gone]
    left = tuple(sorted(kept).index(a) for a in kept)
    if left == tuple(range(len(left))):
        return Turned(inputs, {}, (False,))
    return Turned(inputs, {}, (True,)) if len(left) in RANKS and left == to(len(left)) else None


def _reshape(op: Op, to: To) -> Turned | None:
    """N and C stay, and the places are only counted differently."""
    source, target = op.inputs[0], op.outputs[0]
    if source is None or not has_order(source) or not has_order(target):
        return None
    if not _only_places_differ(source.shape, target.shape, to) or len(op.inputs) < 2:
        return None
    setting = op.inputs[1]
    if setting is None or not setting.is_const:
        return None
    sizes = constant_numbers(setting)  # of which one may be −1
    assert sizes is not None
    shape = tuple(int(sizes[a]) for a in to(len(target.shape)))
    new = _constant(setting, np.array(shape, np.int32))
    return Turned((source, new), {"new_shape": shape}, (True,))


def _only_places_differ(before: Sequence[int], after: Sequence[int], to: To) -> bool:
    """True where N and C are the same in both shapes, whatever the places are."""
    channel = 1 if to is last else -1
    return (before[0], before[channel]) == (after[0], after[channel])


_EACH = (
    "ABS CAST CEIL COS DEQUANTIZE ELU EXP FAKE_QUANT FLOOR GELU HARD_SWISH LEAKY_RELU LOG "
    "LOGICAL_NOT LOGISTIC NEG QUANTIZE RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 ROUND RSQRT SIGN SIN "
    "SQRT SQUARE TANH ZEROS_LIKE ADD SUB MUL DIV MAXIMUM MINIMUM POW SQUARED_DIFFERENCE FLOOR_DIV "
    "FLOOR_MOD EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_OR "
    "SELECT_V2"
)
_REDUCING = "MEAN SUM REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_ANY REDUCE_ALL ARG_MAX ARG_MIN"

_TURNS: dict[str, _Turn] = {
    **dict.fromkeys(_EACH.split(), _elementwise),
    **dict.fromkeys(_REDUCING.split(), _reduction),
    "BROADCAST_TO": _rows_at(1),
    "CONCATENATION": _by_option,
    "CUMSUM": _axis_at(1),
    "GATHER": _gather,
    "MIRROR_PAD": _rows_at(1),
    "PAD": _rows_at(1),
    "PADV2": _rows_at(1),
    "RESHAPE": _reshape,
    "REVERSE_V2": _axis_at(1),
    "SLICE": _rows_at(1, 2),
    "SPLIT": _axis_at(0),
    "SPLIT_V": _axis_at(2),
    "STRIDED_SLICE": _strided,
    "TILE": _rows_at(1),
}
