"""Constants stored without their zeros: whether the encoded places fit the shape.

The runtime does not check (LiteRT tflite/kernels/internal/utils/sparsity_format_converter.cc):
places that do not fit make it write into foreign memory.
"""

import numpy as np

from litesmith.ir.types import Array, Record, Tensor
from litesmith.phrases import phrase


def sparse_problem(tensor: Tensor) -> str:
    """What is wrong with the sparse encoding of a constant; "" where nothing is, or it has none."""
    if tensor.sparsity is None or tensor.data is None or _fits(tensor, tensor.sparsity):
        return ""
    return phrase("its sparse encoding does not fit its shape {shape}", tensor.shape)


def _fits(tensor: Tensor, form: Record) -> bool:
    levels = form["dim_metadata"]
    sizes = _sizes(tensor.shape, form)
    if not isinstance(levels, tuple) or sizes is None or len(levels) != len(sizes):
        return False
    count = 1  # of the branches after the levels so far
    for level, size in zip(levels, sizes, strict=True):
        assert isinstance(level, Record)
        if level["format"] == "DENSE":
            if level.integer("dense_size") != size:
                return False
            count *= size
            continue
        ends, places = (_numbers(level, name) for name in ("array_segments", "array_indices"))
        if ends.size != count + 1 or ends[0] or ends[-1] != places.size:
            return False
        if (np.diff(ends) < 0).any() or ((places < 0) | (places >= size)).any():
            return False
        count = places.size
    assert tensor.data is not None
    return count == tensor.data.size


def _sizes(shape: tuple[int, ...], form: Record) -> tuple[int, ...] | None:
    """The number of places on each level, in order: the dimensions in any order, then the blocks
    into which some of them are cut. None where the order is invalid.
    """
    order, blocks = form.integers("traversal_order"), form.integers("block_map")
    rank, levels = len(shape), form["dim_metadata"]
    if sorted(order) != [*range(rank + len(blocks))] or not isinstance(levels, tuple):
        return None
    if len(levels) != len(order) or any(not 0 <= dimension < rank for dimension in blocks):
        return None
    sizes = [*shape, *(0 for _ in blocks)]
    for level, place in zip(levels, order, strict=True):
        if place >= rank:
            assert isinstance(level, Record)
            width, dimension = level.integer("dense_size"), blocks[place - rank]
            if width < 1 or sizes[dimension] % width:
                return None
            sizes[place] = width
            sizes[dimension] //= width
    return tuple(sizes[place] for place in order)


def _numbers(level: Record, name: str) -> Array:
    held = level[name]
    return np.array(held.integers("values") if isinstance(held, Record) else (), np.int64)
