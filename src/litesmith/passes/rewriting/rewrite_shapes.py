"""Rewrites of ops that move values and compute nothing."""

import numpy as np

from litesmith.ir.types import Array, Op, Tensor, constant_numbers
from litesmith.passes.rewriting.rewrite_parts import (
    Parts,
    Unfit,
    Way,
    floats,
    front_axis,
    given,
    int32,
    integers,
    refuse_activation,
    refuse_free,
    settings,
    target_shape,
)
from litesmith.phrases import phrase

# Slices of one place each that a mirrored border may become.
_MOST_MIRRORED = 32


def _reshaped(parts: Parts, op: Op) -> None:
    parts.end("RESHAPE", given(op, 0), target_shape(op.outputs[0]))


def _transposed_ones(parts: Parts, op: Op) -> None:
    order, shape = integers(op, 1), given(op, 0).shape
    kept = [axis for axis in order if shape[front_axis(axis, len(shape))] != 1]
    if kept == sorted(kept):
        _reshaped(parts, op)


def _packed(parts: Parts, op: Op) -> None:
    """Adds a dimension to each input and joins them along it."""
    target = op.outputs[0]
    axis = front_axis(settings(op).integer("axis"), len(target.shape))
    marks = list(target_shape(target))
    marks[axis] = 1
    wide = [parts.add("RESHAPE", given(op, n), int32(marks)) for n in range(len(op.inputs))]
    parts.end("CONCATENATION", *wide, axis=axis)


def _sliced(parts: Parts, source: Tensor, axis: int, begin: int, size: int) -> Tensor:
    starts, sizes = _cut(source, axis, begin, size)
    return parts.add("SLICE", source, starts, sizes)


def _cut(source: Tensor, axis: int, begin: int, size: int) -> tuple[Array, Array]:
    """The beginning and the size of a slice along one axis; a size of −1 means the rest of the
    axis."""
    starts, sizes = [0] * len(source.shape), [-1] * len(source.shape)
    starts[axis], sizes[axis] = begin, size
    return int32(starts), int32(sizes)


def _unpacked(parts: Parts, op: Op) -> None:
    source = given(op, 0)
    axis = front_axis(settings(op).integer("axis"), len(source.shape))
    for place, target in enumerate(op.outputs):
        piece = _sliced(parts, source, axis, place, 1)
        parts.end_at(target, "RESHAPE", piece, target_shape(target))


def _split(parts: Parts, op: Op) -> None:
    source, (axis,) = given(op, 1), integers(op, 0)
    _slices(parts, op, source, front_axis(axis, len(source.shape)))


def _split_v(parts: Parts, op: Op) -> None:
    source, (axis,) = given(op, 0), integers(op, 2)
    _slices(parts, op, source, front_axis(axis, len(source.shape)))


def _slices(parts: Parts, op: Op, source: Tensor, axis: int) -> None:
    """Cuts a tensor into pieces along an axis."""
    if -1 in (source.dynamic or ())[axis : axis + 1]:
        raise Unfit(phrase("the dimension that it splits is free"))
    begin = 0
    for target in op.outputs:
        size = target.shape[axis]
        parts.end_at(target, "SLICE", source, *_cut(source, axis, begin, size))
        begin += size


def _strided_slice(parts: Parts, op: Op) -> None:
    """SLICE, then RESHAPE where dimensions go; only for steps of 1."""
    source, found = given(op, 0), settings(op)
    refuse_free(source)
    if any(found.fields.get(f"{name}_mask") for name in ("ellipsis", "new_axis")):
        raise Unfit(phrase("it has an ellipsis or makes dimensions"))
    if set(integers(op, 3)) - {1} or found.fields.get("offset"):
        raise Unfit(phrase("it goes in steps, or by offsets"))
    starts: list[int] = []
    sizes: list[int] = []
    for axis, (begin, end) in enumerate(zip(integers(op, 1), integers(op, 2), strict=True)):
        masks = [
            found.integer(f"{name}_mask") >> axis & 1 for name in ("begin", "end", "shrink_axis")
        ]
        first, last = _bounds(source.shape[axis], begin, end, masks)
        starts.append(first)
        sizes.append(max(last - first, 0))
    more = len(source.shape) - len(starts)
    cut = int32([*starts, *[0] * more]), int32([*sizes, *[-1] * more])
    if not found.integer("shrink_axis_mask"):
        parts.end("SLICE", source, *cut)
    else:
        piece = parts.add("SLICE", source, *cut)
        parts.end("RESHAPE", piece, target_shape(op.outputs[0]))


def _bounds(size: int, begin: int, end: int, masks: list[int]) -> tuple[int, int]:
    """The beginning and the end of a slice of one dimension, counted from the front."""
    from_start, to_end, single = masks
    if single:
        return begin % max(size, 1), begin % max(size, 1) + 1
    first = 0 if from_start else min(max(begin + size * (begin < 0), 0), size)
    return first, size if to_end else min(max(end + size * (end < 0), 0), size)


def _plain_pad(parts: Parts, op: Op) -> None:
    """PADV2 with the code of zero is PAD."""
    filled, source = constant_numbers(given(op, 2)), given(op, 0)
    zero = 0 if source.quant is None else int(source.quant.zero_point.ravel()[0])
    if filled is None or filled.size != 1 or filled.ravel()[0] != zero:
        raise Unfit(phrase("it pads with something else than zero"))
    parts.end("PAD", source, given(op, 1))


def _mirrored(parts: Parts, op: Op) -> None:
    """Builds narrow mirrored borders from slices of one place each, joined in reverse with the
    middle."""
    source, widths = given(op, 0), integers(op, 1)
    pairs = [(axis, *widths[2 * axis : 2 * axis + 2]) for axis in range(len(widths) // 2)]
    pairs = [pair for pair in pairs if any(pair[1:])]
    if not pairs or sum(before + after for _, before, after in pairs) > _MOST_MIRRORED:
        raise Unfit(
            phrase("it mirrors nothing, or more than {most_mirrored} places", _MOST_MIRRORED)
        )
    refuse_free(source)
    edge = 1 if settings(op).word("mode") == "REFLECT" else 0
    joined = source
    for axis, before, after in pairs:
        size = joined.shape[axis]
        places = [*range(before - 1 + edge, edge - 1, -1)]
        behind = [*range(size - 1 - edge, size - 1 - edge - after, -1)]
        if any(not 0 <= place < size for place in places + behind):
            raise Unfit(phrase("it mirrors more than there is"))
        pieces = [_sliced(parts, joined, axis, place, 1) for place in places]
        ends = [_sliced(parts, joined, axis, place, 1) for place in behind]
        inputs = (*pieces, joined, *ends)
        if axis == pairs[-1][0]:
            parts.end("CONCATENATION", *inputs, axis=axis)
        else:
            joined = parts.add("CONCATENATION", *inputs, axis=axis)


def _without_constants(parts: Parts, op: Op) -> None:
    """Pads computed values with zeros where the constants belong, then adds the constants."""
    flowing = [tensor for tensor in op.inputs if tensor is not None and not tensor.is_const]
    if len(flowing) == len(op.inputs) or not flowing:
        return
    refuse_activation(op)
    target = op.outputs[0]
    axis = front_axis(settings(op).integer("axis"), len(target.shape))
    refuse_free(*flowing)
    pieces, filled = _padded_pieces(parts, op, axis)
    joined = pieces[0] if len(pieces) == 1 else parts.add("CONCATENATION", *pieces, axis=axis)
    parts.end("ADD", joined, filled)


def _padded_pieces(parts: Parts, op: Op, axis: int) -> tuple[list[Tensor], Array]:
    """The computed values, each with zeros in the places of the constants beside it; and all
    constants in place."""
    filled = np.zeros(op.outputs[0].shape, np.float32)
    widths: dict[int, list[int]] = {}  # place of what flows -> zeros before and behind it
    waiting = begin = 0
    for place in range(len(op.inputs)):
        tensor = given(op, place)
        size, held = tensor.shape[axis], floats(tensor)
        if not tensor.is_const:
            widths[place], waiting = [waiting, 0], 0
        elif held is None:
            raise Unfit(phrase("a constant of it is not float32"))
        else:
            np.moveaxis(filled, axis, 0)[begin : begin + size] = np.moveaxis(held, axis, 0)
            if widths:
                widths[max(widths)][1] += size
            else:
                waiting += size
        begin += size
    pieces = [_padded(parts, given(op, place), axis, pair) for place, pair in widths.items()]
    return pieces, filled


def _padded(parts: Parts, tensor: Tensor, axis: int, pair: list[int]) -> Tensor:
    if not any(pair):
        return tensor
    widths = np.zeros((len(tensor.shape), 2), np.int32)
    widths[axis] = pair
    return parts.add("PAD", tensor, widths)


SHAPES: dict[str, Way] = {
    "CONCATENATION": Way(
        _without_constants, phrase("PAD, CONCATENATION and ADD of its constants, exactly")
    ),
    "EXPAND_DIMS": Way(_reshaped, "RESHAPE", moves=True),
    "MIRROR_PAD": Way(_mirrored, "SLICEs and CONCATENATION", moves=True),
    "PACK": Way(_packed, "RESHAPEs and CONCATENATION", moves=True),
    "PADV2": Way(_plain_pad, "PAD", moves=True),
    "SPLIT": Way(_split, "SLICEs", moves=True),
    "SPLIT_V": Way(_split_v, "SLICEs", moves=True),
    "SQUEEZE": Way(_reshaped, "RESHAPE", moves=True),
    "STRIDED_SLICE": Way(
        _strided_slice, phrase("SLICE, and RESHAPE where dimensions go"), moves=True
    ),
    "TRANSPOSE": Way(
        _transposed_ones, phrase("RESHAPE: it moves dimensions of 1 only"), moves=True
    ),
    "UNPACK": Way(_unpacked, "SLICEs and RESHAPEs", moves=True),
}
