"""Constants stored sparsely: only the numbers that are not 0, with their places."""

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import BadModel
from litesmith.ir.dtype import DTYPES, unpack
from litesmith.ir.types import Array, Record, Tensor
from litesmith.phrases import phrase

Places = NDArray[np.int64]


def listed_values(tensor: Tensor) -> Array:
    """The numbers in a sparse constant, in the order of the file."""
    assert tensor.data is not None
    row = DTYPES[tensor.dtype]
    flat = tensor.data.reshape(-1)
    if row.is_packed:
        flat = unpack(flat, tensor.dtype, flat.size * 8 // row.bits)
    return flat[: tensor.elements]


def dense_values(tensor: Tensor) -> Array:
    """The stored numbers of a constant in its shape, zeros that were left out included."""
    if tensor.sparsity is None:
        return tensor.values()
    listed = listed_values(tensor)
    dense = np.zeros(tensor.shape, listed.dtype)
    try:
        places = _places(tensor, tensor.sparsity)
        dense[places] = listed[: places[0].size]
    except (LookupError, TypeError, ValueError):
        raise BadModel("tensor {name!r}: its sparse encoding cannot be read", tensor.name) from None
    return dense


def _places(tensor: Tensor, layout: Record) -> tuple[Places, ...]:
    """Where each listed number lies, an array for each dimension of the tensor.

    The encoding is a tree: each dimension, in the order of traversal, splits every branch into
    all of its places or, if it is sparse, into those that are listed. Beyond the tensor's own
    dimensions are those of the blocks, each of which splits one of them further.
    """
    rank, blocked = len(tensor.shape), layout.integers("block_map")
    order, levels = layout.integers("traversal_order"), _levels(layout)
    if sorted(order) != list(range(rank + len(blocked))):
        raise ValueError(phrase("every dimension is traversed once"))
    found: dict[int, Places] = {}
    branches = 1
    for dimension, level in zip(order, levels, strict=True):
        parents, places = _split(level, branches, tensor.elements)
        found = {known: own[parents] for known, own in found.items()}
        found[dimension] = places
        branches = places.size
    for number, own in enumerate(blocked, rank):
        size = levels[order.index(number)].integer("dense_size")
        found[own] = found[own] * size + found[number]
    return tuple(found[dimension] for dimension in range(rank))


def _levels(layout: Record) -> list[Record]:
    """The description of each dimension, in the order of traversal."""
    levels = layout["dim_metadata"]
    return [one for one in levels if isinstance(one, Record)] if isinstance(levels, tuple) else []


def _split(level: Record, branches: int, most: int) -> tuple[Places, Places]:
    """For each new branch, the branch that it comes from, and its place in this dimension."""
    if level["format"] == "DENSE":
        size = level.integer("dense_size")
        if not 0 <= size * branches <= most:
            raise ValueError(phrase("no more places than numbers"))
        return np.repeat(np.arange(branches), size), np.tile(np.arange(size), branches)
    counts = np.diff(_vector(level["array_segments"]))
    return np.repeat(np.arange(branches), counts), _vector(level["array_indices"])


def _vector(record: object) -> Places:
    values = record["values"] if isinstance(record, Record) else None
    places = np.asarray(values, np.int64)
    if places.ndim != 1 or places.min(initial=0) < 0:
        raise ValueError(phrase("indices are counted from 0"))
    return places
