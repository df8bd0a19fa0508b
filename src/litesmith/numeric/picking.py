"""Kernels that pick elements by index, scatter them, or find their indices."""

from collections.abc import Callable

import numpy as np

from litesmith.ir.shape_rule import from_front
from litesmith.ir.types import Array, Record
from litesmith.numeric.arrays import Kernel, demand, integer, integers, within
from litesmith.phrases import phrase


def gather(options: Record, x: Array, places: Array) -> Array:
    axis = from_front(options.integer("axis"), x.ndim)
    batch = options.integer("batch_dims")
    batch += places.ndim if batch < 0 else 0
    if not 0 <= batch <= min(axis, places.ndim) or x.shape[:batch] != places.shape[:batch]:
        raise ValueError(
            phrase("{batch} batch dimensions of {shape} and {shape2}", batch, x.shape, places.shape)
        )
    valid = within(places, x.shape[axis])
    shape = (*x.shape[:axis], *places.shape[batch:], *x.shape[axis + 1 :])
    flat = x.reshape(int(np.prod(x.shape[:batch])), *x.shape[batch:])
    rows = valid.reshape(flat.shape[0], int(np.prod(places.shape[batch:])))
    taken = [np.take(part, row, axis - batch) for part, row in zip(flat, rows, strict=True)]
    return np.array(taken, x.dtype).reshape(shape)


def gather_nd(options: Record, x: Array, places: Array) -> Array:
    return x[_coordinates(places, x.shape)]


def _coordinates(places: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """The last dimension's entries as one index array for each dimension they address."""
    if places.ndim < 1 or not 1 <= places.shape[-1] <= len(shape):
        raise ValueError(phrase("indices {shape} into {shape2}", places.shape, shape))
    columns = np.moveaxis(places, -1, 0)
    return tuple(within(column, size) for column, size in zip(columns, shape, strict=False))


def scatter_nd(options: Record, places: Array, updates: Array, shape: Array) -> Array:
    """Updates of the same place add up."""
    demand("bool float32 int8 int32 int64 uint8", updates)
    result = np.zeros(integers(shape), updates.dtype)
    at = _coordinates(places, result.shape)
    if updates.shape != (*places.shape[:-1], *result.shape[len(at) :]):
        raise ValueError(
            phrase(
                "updates {shape} at {shape2} of {shape3}", updates.shape, places.shape, result.shape
            )
        )
    np.add.at(result, at, updates)
    return result


def embedding_lookup(options: Record, places: Array, table: Array) -> Array:
    demand("float32", table)
    if table.ndim < 2 or places.ndim != 1:
        raise ValueError(phrase("indices {shape} into {shape2}", places.shape, table.shape))
    return table[within(places, table.shape[0])]


def one_hot(options: Record, places: Array, depth: Array, on: Array, off: Array) -> Array:
    """Places outside are all off."""
    demand(str(on.dtype), on, off)
    axis = from_front(options.integer("axis"), places.ndim + 1)
    classes = np.arange(integer(depth))
    marks = np.expand_dims(places, -1) == classes
    hot = np.where(marks, on.reshape(()), off.reshape(()))
    return np.moveaxis(hot, -1, axis)


def sparse_to_dense(
    options: Record, places: Array, shape: Array, values: Array, rest: Array
) -> Array:
    demand("float32 int8 int32 int64 uint8", values, rest)
    dense = np.full(integers(shape), rest.reshape(()), rest.dtype)
    rows = places.reshape(-1, dense.ndim)
    at = _coordinates(rows, dense.shape)
    dense[at] = values
    return dense


def dynamic_update_slice(options: Record, x: Array, update: Array, begin: Array) -> Array:
    """The update is moved inwards where it would reach outside."""
    demand(str(x.dtype), x, update)
    result = x.copy()
    region: list[slice] = []
    for size, width, first in zip(x.shape, update.shape, integers(begin), strict=True):
        if width > size:
            raise ValueError(phrase("an update of {shape} in {shape2}", update.shape, x.shape))
        first = min(max(first, 0), size - width)
        region.append(slice(first, first + width))
    result[tuple(region)] = update
    return result


def where(options: Record, x: Array) -> Array:
    """The coordinates of the elements that are not zero: (count, rank)."""
    demand("bool float32 int8 int32 int64 uint8 uint32", x)
    if x.ndim < 1:
        raise ValueError(phrase("a scalar has no coordinates"))
    return np.argwhere(x).astype(np.int64)


def unique(options: Record, x: Array) -> tuple[Array, Array]:
    """The values in the order of their first appearance, and for each element the place of its
    value.
    """
    demand("float32 int8 int16 int32 int64 uint8", x)
    dtype = options.word("idx_out_type").lower()
    if x.ndim != 1 or dtype not in ("int32", "int64") or np.isnan(x.astype(np.float64)).any():
        raise ValueError(phrase("shape {shape} with indices as {dtype}", x.shape, dtype))
    values, firsts, owners = np.unique(x, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    return values[order], np.argsort(order)[owners.reshape(x.shape)].astype(dtype)


def matrix_diag(options: Record, diagonal: Array) -> Array:
    size = diagonal.shape[-1]
    return np.where(np.eye(size, dtype=bool), diagonal[..., None], diagonal.dtype.type(0))


def matrix_set_diag(options: Record, x: Array, diagonal: Array) -> Array:
    demand(str(x.dtype), x, diagonal)
    result = x.copy()
    size = min(x.shape[-2:], default=0)
    if x.ndim < 2 or diagonal.shape != (*x.shape[:-2], size):
        raise ValueError(phrase("a diagonal {shape} for {shape2}", diagonal.shape, x.shape))
    result[..., range(size), range(size)] = diagonal
    return result


def segment_sum(options: Record, x: Array, segments: Array) -> Array:
    """Segments are numbered from 0 in rising order, none left out."""
    demand("float32 int32", x)
    ids = within(segments, 2**31)
    steps = np.diff(ids, prepend=0)
    if ids.shape != x.shape[:1] or not np.isin(steps, (0, 1)).all() or ids[:1].any():
        raise ValueError(
            phrase("segments {segments} of {shape} are not one after the other", segments, x.shape)
        )
    result = np.zeros((int(ids.max(initial=-1)) + 1, *x.shape[1:]), x.dtype)
    np.add.at(result, ids, x)
    return result


Combine = Callable[[Array, Array, Array], None]


def unsorted_segment(combine: Combine, start: str) -> Kernel:
    """A kernel that combines rows by segment; a negative segment is left out.

    `start` is what an empty segment holds: zero, one, or the element type's lowest or highest.
    """

    def kernel(options: Record, x: Array, segments: Array, count: Array) -> Array:
        demand("float32 int32", x)
        if x.shape[: segments.ndim] != segments.shape:
            raise ValueError(phrase("segments {shape} of {shape2}", segments.shape, x.shape))
        kept = segments >= 0
        rest = x.shape[segments.ndim :]
        result = np.full((integer(count), *rest), _start(start, x.dtype), x.dtype)
        combine(result, within(segments[kept], result.shape[0]), x[kept])
        return result

    return kernel


def _start(name: str, dtype: np.dtype) -> float | int:
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return {"zero": 0, "one": 1, "lowest": limits.min, "highest": limits.max}[name]
