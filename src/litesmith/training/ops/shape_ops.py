"""Torch ops that move, join, cut, repeat and pick elements without computing with them."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# torch leaves parts of its types open.

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from litesmith.ir.shape_rule import from_front
from litesmith.ir.shapes import fill_rest, resolve_shape, slice_ranges
from litesmith.ir.types import Array, Op
from litesmith.ir.window import Pick, strided_picks
from litesmith.numeric.arrays import integer, integers
from litesmith.training.ops.elementwise_ops import (
    TorchOp,
    Value,
    apply_activation,
    indices,
    options_of,
    unary,
)


def reshape(op: Op, x: torch.Tensor, shape: Array | None = None) -> torch.Tensor:
    sizes = options_of(op).integers("new_shape") if shape is None else integers(shape)
    return x.reshape(resolve_shape(x.numel(), sizes))


def squeeze(op: Op, x: torch.Tensor) -> torch.Tensor:
    axes = {from_front(axis, x.ndim) for axis in options_of(op).integers("squeeze_dims")}
    return x.squeeze(tuple(axes)) if axes else x.squeeze()


def expand_dims(op: Op, x: torch.Tensor, axis: Array) -> torch.Tensor:
    return x.unsqueeze(from_front(integer(axis), x.ndim + 1))


def by_integers(move: Callable[[torch.Tensor, tuple[int, ...]], torch.Tensor]) -> TorchOp:
    """Makes an op whose second input is a list of integers: sizes, axes or counts."""

    def moved(op: Op, x: torch.Tensor, given: Array) -> torch.Tensor:
        return move(x, integers(given))

    return moved


def concatenation(op: Op, *parts: torch.Tensor) -> torch.Tensor:
    return apply_activation(op, torch.cat(parts, options_of(op).integer("axis")))


def pack(op: Op, *parts: torch.Tensor) -> torch.Tensor:
    return torch.stack(parts, options_of(op).integer("axis"))


def unpack(op: Op, x: torch.Tensor) -> list[torch.Tensor]:
    return list(x.unbind(options_of(op).integer("axis")))


def split(op: Op, axis: Array, x: torch.Tensor) -> list[torch.Tensor]:
    along = integer(axis)
    return list(x.split(x.shape[along] // options_of(op).integer("num_splits"), along))


def split_v(op: Op, x: torch.Tensor, sizes: Array, axis: Array) -> list[torch.Tensor]:
    along = integer(axis)
    return list(x.split(list(fill_rest(integers(sizes), x.shape[along])), along))


def slice_(op: Op, x: torch.Tensor, begin: Array, size: Array) -> torch.Tensor:
    ranges = slice_ranges(tuple(x.shape), integers(begin), integers(size))
    return x[tuple(slice(r.start, r.stop) for r in ranges)]


def strided_slice(
    op: Op, x: torch.Tensor, begin: Array, end: Array, strides: Array
) -> torch.Tensor:
    settings = integers(begin), integers(end), integers(strides)
    picks = strided_picks(tuple(x.shape), *settings, options_of(op))
    result = x[tuple(_rising_indices(pick) for pick in picks)]
    kept = [pick for pick in picks if not isinstance(pick, int)]
    turned = [at for at, pick in enumerate(kept) if pick is not None and pick.step < 0]
    return result.flip(turned) if turned else result


def _rising_indices(pick: Pick) -> slice | int | None:
    """The same places in rising order: torch takes no negative step."""
    if not isinstance(pick, range):
        return pick
    places = pick if pick.step > 0 else pick[::-1]
    return slice(places.start, max(places.start, places.stop), places.step)


def _sides(amounts: Array) -> list[tuple[int, int]]:
    flat = integers(amounts)
    return list(zip(flat[::2], flat[1::2], strict=True))


def pad(op: Op, x: torch.Tensor, amounts: Array, value: torch.Tensor | None = None) -> torch.Tensor:
    flat = [amount for side in reversed(_sides(amounts)) for amount in side]
    return functional.pad(x, flat, value=0.0 if value is None else value.item())


def mirror_pad(op: Op, x: torch.Tensor, amounts: Array) -> torch.Tensor:
    mode = "reflect" if options_of(op).word("mode") == "REFLECT" else "symmetric"
    for axis, side in enumerate(_sides(amounts)):
        if any(side):
            places = np.pad(np.arange(x.shape[axis]), [side], mode=mode)
            x = x.index_select(axis, indices(places, x))
    return x


def fill(op: Op, shape: Array, value: torch.Tensor) -> torch.Tensor:
    return value.reshape(()).expand(integers(shape))


def reverse_sequence(op: Op, x: torch.Tensor, lengths: Array) -> torch.Tensor:
    """Turns the first elements of each sequence around, as many as its length."""
    options = options_of(op)
    along, batch = (from_front(options.integer(n), x.ndim) for n in ("seq_dim", "batch_dim"))
    steps = np.arange(x.shape[along])
    counts = lengths.reshape(-1, 1)
    places = np.where(steps < counts, counts - 1 - steps, steps)
    rows = x.movedim((batch, along), (0, 1))
    which = indices(np.arange(len(places))[:, None], x)
    return rows[which, indices(places, x)].movedim((0, 1), (batch, along))


def depth_to_space(op: Op, x: torch.Tensor) -> torch.Tensor:
    batch, height, width, channels = x.shape
    block = options_of(op).integer("block_size")
    parts = x.reshape(batch, height, width, block, block, channels // block**2)
    moved = parts.permute(0, 1, 3, 2, 4, 5)
    return moved.reshape(batch, height * block, width * block, channels // block**2)


def space_to_depth(op: Op, x: torch.Tensor) -> torch.Tensor:
    batch, height, width, channels = x.shape
    block = options_of(op).integer("block_size")
    parts = x.reshape(batch, height // block, block, width // block, block, channels)
    moved = parts.permute(0, 1, 3, 2, 4, 5)
    return moved.reshape(batch, height // block, width // block, channels * block**2)


def space_to_batch(op: Op, x: torch.Tensor, blocks: Array, amounts: Array) -> torch.Tensor:
    steps, inner = integers(blocks), len(integers(blocks))
    sides = [*_sides(amounts), *[(0, 0)] * (x.ndim - 1 - inner)]
    padded = functional.pad(x, [amount for side in reversed(sides) for amount in side])
    sizes = padded.shape[1:]
    grid = [n for size, step in zip(sizes, steps, strict=False) for n in (size // step, step)]
    parts = padded.reshape(x.shape[0], *grid, *sizes[inner:])
    order = [*range(2, 2 * inner + 1, 2), 0, *range(1, 2 * inner, 2)]
    moved = parts.permute(*order, *range(2 * inner + 1, parts.ndim))
    return moved.reshape(-1, *moved.shape[inner + 1 :])


def batch_to_space(op: Op, x: torch.Tensor, blocks: Array, crops: Array) -> torch.Tensor:
    steps, inner = integers(blocks), len(integers(blocks))
    parts = x.reshape(*steps, -1, *x.shape[1:])
    order = [inner, *(n for i in range(inner) for n in (inner + 1 + i, i))]
    moved = parts.permute(*order, *range(2 * inner + 1, parts.ndim))
    sizes = [size * step for size, step in zip(x.shape[1:], steps, strict=False)]
    whole = moved.reshape(moved.shape[0], *sizes, *x.shape[1 + inner :])
    cuts = zip(_sides(crops), sizes, strict=True)
    return whole[(slice(None), *(slice(before, size - after) for (before, after), size in cuts))]


def gather(op: Op, x: torch.Tensor, places: Array) -> torch.Tensor:
    options = options_of(op)
    axis, batch = from_front(options.integer("axis"), x.ndim), options.integer("batch_dims")
    batch += places.ndim if batch < 0 else 0
    shape = (*x.shape[:axis], *places.shape[batch:], *x.shape[axis + 1 :])
    if batch == 0:
        return x.index_select(axis, indices(places.reshape(-1), x)).reshape(shape)
    flat = x.reshape(-1, *x.shape[batch:])
    rows = indices(places.reshape(flat.shape[0], -1), x)
    taken = [p.index_select(axis - batch, row) for p, row in zip(flat, rows, strict=True)]
    return torch.stack(taken).reshape(shape)


def gather_nd(op: Op, x: torch.Tensor, places: Array) -> torch.Tensor:
    return x[tuple(indices(column, x) for column in np.moveaxis(places, -1, 0))]


def embedding_lookup(op: Op, places: Array, table: torch.Tensor) -> torch.Tensor:
    rows = indices(places, table)
    return functional.embedding(rows, table) if table.ndim == 2 else table.index_select(0, rows)


def one_hot(
    op: Op, places: Array, depth: Array, on: torch.Tensor, off: torch.Tensor
) -> torch.Tensor:
    """Places outside are all off."""
    axis = from_front(options_of(op).integer("axis"), places.ndim + 1)
    marks = np.moveaxis(places[..., None] == np.arange(integer(depth)), -1, axis)
    return torch.where(indices(marks, on), on.reshape(()), off.reshape(()))


def shape_of(op: Op, x: torch.Tensor) -> Value:
    return np.array(x.shape, op.outputs[0].dtype)


def rank_of(op: Op, x: torch.Tensor) -> Value:
    return np.array(x.ndim, np.int32)


SHAPE: dict[str, TorchOp] = {
    "BATCH_TO_SPACE_ND": batch_to_space,
    "BROADCAST_TO": by_integers(lambda x, shape: x.expand(shape)),
    "CONCATENATION": concatenation,
    "DEPTH_TO_SPACE": depth_to_space,
    "EMBEDDING_LOOKUP": embedding_lookup,
    "EXPAND_DIMS": expand_dims,
    "FILL": fill,
    "GATHER": gather,
    "GATHER_ND": gather_nd,
    "MIRROR_PAD": mirror_pad,
    "ONE_HOT": one_hot,
    "PACK": pack,
    "PAD": pad,
    "PADV2": pad,
    "RANK": rank_of,
    "RESHAPE": reshape,
    "REVERSE_SEQUENCE": reverse_sequence,
    "REVERSE_V2": by_integers(lambda x, axes: x.flip(axes)),
    "SHAPE": shape_of,
    "SLICE": slice_,
    "SPACE_TO_BATCH_ND": space_to_batch,
    "SPACE_TO_DEPTH": space_to_depth,
    "SPLIT": split,
    "SPLIT_V": split_v,
    "SQUEEZE": squeeze,
    "STRIDED_SLICE": strided_slice,
    "TILE": by_integers(lambda x, times: x.repeat(times)),
    "TRANSPOSE": by_integers(lambda x, order: x.permute(order)),
    "UNPACK": unpack,
    "ZEROS_LIKE": unary(torch.zeros_like),
}
