"""Kernels that move, join, cut and repeat elements without computing with them."""

from collections.abc import Sequence

import numpy as np

from litesmith.ir.shape_rule import from_front
from litesmith.ir.shapes import fill_rest, range_length, resolve_shape, slice_ranges
from litesmith.ir.types import Array, Record
from litesmith.ir.window import Pick, strided_picks
from litesmith.numeric.arrays import demand, integer, integers
from litesmith.phrases import phrase


def reshape(options: Record, x: Array, shape: Array | None = None) -> Array:
    sizes = options.integers("new_shape") if shape is None else integers(shape)
    return x.reshape(resolve_shape(x.size, sizes))


def squeeze(options: Record, x: Array) -> Array:
    axes = tuple({from_front(axis, x.ndim) for axis in options.integers("squeeze_dims")})
    return np.squeeze(x, axes or None)


def expand_dims(options: Record, x: Array, axis: Array) -> Array:
    return np.expand_dims(x, from_front(integer(axis), x.ndim + 1))


def transpose(options: Record, x: Array, order: Array) -> Array:
    return x.transpose(integers(order))


def concatenation(options: Record, *arrays: Array) -> Array:
    # The uint8 kernel brings its inputs to one scale, which is not known here.
    if arrays and arrays[0].dtype == np.uint8:
        raise ValueError(phrase("uint8 arrays may have scales that differ"))
    demand(str(arrays[0].dtype) if arrays else "", *arrays)
    if options.word("fused_activation_function") != "NONE":
        raise ValueError("a fused activation")
    return np.concatenate(arrays, options.integer("axis"))


def pack(options: Record, *arrays: Array) -> Array:
    demand(str(arrays[0].dtype) if arrays else "", *arrays)
    return np.stack(arrays, options.integer("axis"))


def unpack(options: Record, x: Array) -> tuple[Array, ...]:
    axis = from_front(options.integer("axis"), x.ndim)
    if options.integer("num") != x.shape[axis]:
        raise ValueError(
            phrase("{integer} parts of {shape}", options.integer("num"), x.shape[axis])
        )
    return tuple(np.moveaxis(x, axis, 0))


def split(options: Record, axis: Array, x: Array) -> tuple[Array, ...]:
    count = options.integer("num_splits")
    if count < 1:
        raise ValueError(phrase("{count} parts", count))
    return tuple(np.split(x, count, from_front(integer(axis), x.ndim)))


def split_v(options: Record, x: Array, sizes: Array, axis: Array) -> tuple[Array, ...]:
    along = from_front(integer(axis), x.ndim)
    ends = np.cumsum(fill_rest(integers(sizes), x.shape[along]))
    return tuple(np.split(x, [int(end) for end in ends[:-1]], along))


def slice_(options: Record, x: Array, begin: Array, size: Array) -> Array:
    ranges = slice_ranges(x.shape, integers(begin), integers(size))
    return x[tuple(slice(r.start, r.stop) for r in ranges)]


def strided_slice(options: Record, x: Array, begin: Array, end: Array, strides: Array) -> Array:
    picks = strided_picks(x.shape, integers(begin), integers(end), integers(strides), options)
    return np.asarray(x[tuple(map(_index, picks))])


def _index(pick: Pick) -> slice | int | None:
    if not isinstance(pick, range):
        return pick
    if not pick:
        return slice(0, 0)
    # A stop before the first element is written as None: -1 would mean the last.
    return slice(pick.start, pick.stop if pick.stop >= 0 else None, pick.step)


def pad(options: Record, x: Array, amounts: Array) -> Array:
    # Quantized types are padded with their zero point, which is not known here.
    demand("bool float32 int32 int64", x)
    return np.pad(x, _sides(amounts, x.ndim))


def pad_v2(options: Record, x: Array, amounts: Array, value: Array) -> Array:
    demand(str(x.dtype), x, value)
    return np.pad(x, _sides(amounts, x.ndim), constant_values=value.reshape(()))


def mirror_pad(options: Record, x: Array, amounts: Array) -> Array:
    sides = _sides(amounts, x.ndim)
    spare = 1 if options.word("mode") == "REFLECT" else 0
    if any(max(side) > size - spare for side, size in zip(sides, x.shape, strict=True)):
        raise ValueError(phrase("a mirror of {shape} has no {sides}", x.shape, sides))
    return np.pad(x, sides, mode="reflect" if spare else "symmetric")


def _sides(amounts: Array, rank: int) -> list[tuple[int, int]]:
    flat = integers(amounts)
    if len(flat) != 2 * rank or min(flat, default=0) < 0:
        raise ValueError(phrase("paddings {flat} for {rank} dimensions", flat, rank))
    return list(zip(flat[::2], flat[1::2], strict=True))


def tile(options: Record, x: Array, times: Array) -> Array:
    counts = integers(times)
    if len(counts) != x.ndim or min(counts, default=0) < 0:
        raise ValueError(phrase("{counts} times {shape}", counts, x.shape))
    return np.tile(x, counts)


def broadcast_to(options: Record, x: Array, shape: Array) -> Array:
    return np.broadcast_to(x, integers(shape)).copy()


def broadcast_args(options: Record, first: Array, second: Array) -> Array:
    demand("int32 int64", first, second)
    return np.array(np.broadcast_shapes(integers(first), integers(second)), first.dtype)


def fill(options: Record, shape: Array, value: Array) -> Array:
    return np.full(integers(shape), value.reshape(()), value.dtype)


def zeros_like(options: Record, x: Array) -> Array:
    demand("float32 int32 int64", x)
    return np.zeros_like(x)


def range_(options: Record, start: Array, limit: Array, delta: Array) -> Array:
    """Values from start to limit; the runtime sums the steps, so rounding errors accumulate."""
    demand("float32 int32 int64", start, limit, delta)
    numbers = [array.reshape(-1).tolist() for array in (start, limit, delta)]
    count = range_length(*(value for (value,) in numbers))
    steps = np.full(max(count, 1), delta.reshape(()), delta.dtype)
    steps[0] = start.reshape(())
    return np.cumsum(steps, dtype=start.dtype)[:count]


def shape_of(options: Record, x: Array) -> Array:
    dtype = options.word("out_type").lower()
    if dtype not in ("int32", "int64"):
        raise ValueError(phrase("a shape as {dtype}", dtype))
    return np.array(x.shape, dtype)


def rank_of(options: Record, x: Array) -> Array:
    return np.array(x.ndim, np.int32)


def reverse(options: Record, x: Array, axes: Array) -> Array:
    return np.flip(x, tuple({from_front(axis, x.ndim) for axis in integers(axes)}))


def reverse_sequence(options: Record, x: Array, lengths: Array) -> Array:
    """Turns the first elements of each sequence around, as many as its length."""
    along = from_front(options.integer("seq_dim"), x.ndim)
    batch = from_front(options.integer("batch_dim"), x.ndim)
    counts = integers(lengths)
    if along == batch or len(counts) != x.shape[batch]:
        raise ValueError(phrase("{count} lengths for {shape}", len(counts), x.shape))
    result = np.moveaxis(x, (batch, along), (0, 1)).copy()
    for row, count in zip(result, counts, strict=True):
        if not 0 <= count <= x.shape[along]:
            raise ValueError(phrase("a length of {count} in {shape}", count, x.shape[along]))
        row[:count] = row[:count][::-1].copy()
    return np.moveaxis(result, (0, 1), (batch, along))


def depth_to_space(options: Record, x: Array) -> Array:
    batch, height, width, channels = x.shape
    block = _block(options)
    parts = x.reshape(batch, height, width, block, block, channels // block**2)
    return _merge_rest(parts.transpose(0, 1, 3, 2, 4, 5), (batch, height * block, width * block))


def space_to_depth(options: Record, x: Array) -> Array:
    batch, height, width, channels = x.shape
    block = _block(options)
    parts = x.reshape(batch, height // block, block, width // block, block, channels)
    return _merge_rest(parts.transpose(0, 1, 3, 2, 4, 5), (batch, height // block, width // block))


def _block(options: Record) -> int:
    block = options.integer("block_size")
    if block < 1:
        raise ValueError(phrase("blocks of {block}", block))
    return block


def _merge_rest(parts: Array, front: Sequence[int]) -> Array:
    """All dimensions after the front as one."""
    depth = parts.size // max(int(np.prod(front)), 1)
    return parts.reshape(*front, depth)


def space_to_batch(options: Record, x: Array, blocks: Array, amounts: Array) -> Array:
    demand("bool float32 int32 int64", x)
    steps = _steps(blocks, x.ndim)
    inner = len(steps)
    padded = np.pad(x, [(0, 0), *_sides(amounts, inner), *[(0, 0)] * (x.ndim - 1 - inner)])
    grid = [
        n for size, step in zip(padded.shape[1:], steps, strict=False) for n in (size // step, step)
    ]
    rest = padded.shape[1 + inner :]
    parts = padded.reshape(x.shape[0], *grid, *rest)
    order = [*range(2, 2 * inner + 1, 2), 0, *range(1, 2 * inner, 2)]
    moved = parts.transpose(*order, *range(2 * inner + 1, parts.ndim))
    return moved.reshape(-1, *moved.shape[inner + 1 :])


def batch_to_space(options: Record, x: Array, blocks: Array, crops: Array) -> Array:
    steps = _steps(blocks, x.ndim)
    inner = len(steps)
    parts = x.reshape(*steps, -1, *x.shape[1:])
    order = [inner, *(n for i in range(inner) for n in (inner + 1 + i, i))]
    moved = parts.transpose(*order, *range(2 * inner + 1, parts.ndim))
    sizes = [size * step for size, step in zip(x.shape[1:], steps, strict=False)]
    whole = moved.reshape(moved.shape[0], *sizes, *x.shape[1 + inner :])
    cuts = zip(_sides(crops, inner), sizes, strict=True)
    return whole[(slice(None), *(slice(before, size - after) for (before, after), size in cuts))]


def _steps(blocks: Array, rank: int) -> tuple[int, ...]:
    steps = integers(blocks)
    if min(steps, default=0) < 1 or len(steps) > rank - 1:
        raise ValueError(phrase("blocks {steps} for {rank} dimensions", steps, rank))
    return steps
