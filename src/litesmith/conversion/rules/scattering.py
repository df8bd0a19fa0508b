"""Rules that pick values by their places, and put values into places."""

from collections.abc import Sequence
from math import prod

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.shapes import positive, wrapped
from litesmith.ir.types import Tensor, constant_numbers


def gather(lower: Lowering, node: Node) -> Tensor:
    x, indices = (lower.need(t) for t in lower.inputs(node, 2))
    axis = positive(node.integer("axis"), len(x.shape))
    return lower.op("GATHER", x, wrapped(lower, indices, x.shape[axis]), axis=axis)


def gather_elements(lower: Lowering, node: Node) -> Tensor:
    x, indices = (lower.need(t) for t in lower.inputs(node, 2))
    return lower.op("GATHER_ND", x, places_along(lower, x, indices, node.integer("axis")))


def places_along(lower: Lowering, x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Full coordinates of values that are picked along one axis."""
    axis = positive(axis, len(x.shape))
    along = wrapped(lower, indices, x.shape[axis])
    grid = np.indices(indices.shape, np.int32)
    parts = [
        lower.reshape(along, (*indices.shape, 1)) if i == axis else lower.const(grid[i][..., None])
        for i in range(len(x.shape))
    ]
    return (
        parts[0] if len(parts) == 1 else lower.op("CONCATENATION", *parts, axis=len(indices.shape))
    )


def gather_nd(lower: Lowering, node: Node) -> Tensor:
    x, indices = (lower.need(t) for t in lower.inputs(node, 2))
    batch = node.integer("batch_dims")
    places = _wrapped_coordinates(lower, indices, x.shape[batch : batch + indices.shape[-1]])
    if batch:
        grid = np.indices(indices.shape[:-1], np.int32)
        parts = [lower.const(grid[i][..., None]) for i in range(batch)]
        places = lower.op("CONCATENATION", *parts, places, axis=len(indices.shape) - 1)
    return lower.op("GATHER_ND", x, places)


def _wrapped_coordinates(lower: Lowering, indices: Tensor, sizes: Sequence[int]) -> Tensor:
    values = constant_numbers(indices)
    limits = np.array(sizes, np.int32)
    if values is not None:
        return lower.const(np.where(values < 0, values + limits, values).astype(np.int32))
    indices = lower.cast(indices, "int32")
    below = lower.op("LESS", indices, np.array(0, np.int32))
    return lower.op("SELECT_V2", below, lower.op("ADD", indices, limits), indices)


def scatter_nd(lower: Lowering, node: Node) -> Tensor:
    x, indices, updates = (lower.need(t) for t in lower.inputs(node, 3))
    places = _wrapped_coordinates(lower, indices, x.shape[: indices.shape[-1]])
    return scattered(lower, x, places, updates, node.word("reduction", "none"))


def scatter_elements(lower: Lowering, node: Node) -> Tensor:
    x, indices, updates = (lower.need(t) for t in lower.inputs(node, 3))
    places = places_along(lower, x, indices, node.integer("axis"))
    return scattered(lower, x, places, updates, node.word("reduction", "none"))


def scattered(lower: Lowering, x: Tensor, places: Tensor, updates: Tensor, how: str) -> Tensor:
    """A tensor with some values replaced, or joined with others."""
    if how in _JOINED:
        segment, join = _JOINED[how]
        return lower.op(join, x, _segments(lower, segment, x, places, updates))
    sizes = np.array(x.shape, np.int32)
    wide = lower.cast(updates, "int32") if x.dtype == "bool" else updates
    total = lower.op("SCATTER_ND", places, wide, sizes)
    if how == "add":
        return lower.op("ADD", x, total)
    hit = lower.op("SCATTER_ND", places, np.ones(updates.shape, np.int32), sizes)
    known = constant_numbers(hit)
    if (known is None or (known > 1).any()) and total.dtype in ("float32", "int32"):
        count = lower.op("MAXIMUM", hit, np.array(1, np.int32))  # a place named twice holds a sum
        total = lower.op("DIV", total, lower.cast(count, total.dtype))
    total = lower.cast(total, x.dtype)
    return lower.op("SELECT_V2", lower.op("GREATER", hit, np.array(0, np.int32)), total, x)


# The op that joins values of one place, and the op that joins them with the old value.
_JOINED = {
    "mul": ("UNSORTED_SEGMENT_PROD", "MUL"),
    "max": ("UNSORTED_SEGMENT_MAX", "MAXIMUM"),
    "min": ("UNSORTED_SEGMENT_MIN", "MINIMUM"),
}


def _segments(lower: Lowering, kind: str, x: Tensor, places: Tensor, updates: Tensor) -> Tensor:
    """The updates of each place joined, in the shape of the tensor."""
    depth = places.shape[-1]
    steps = [prod(x.shape[i + 1 : depth]) for i in range(depth)]
    flat = lower.op("MUL", places, np.array(steps, np.int32))
    flat = lower.op("SUM", flat, np.array([len(places.shape) - 1], np.int32))
    rows = prod(places.shape[:-1])
    flat = lower.reshape(flat, (rows,))
    values = lower.reshape(updates, (rows, *x.shape[depth:]))
    joined = lower.op(kind, values, flat, np.array(prod(x.shape[:depth]), np.int32))
    return lower.reshape(joined, x.shape)


def tensor_scatter(lower: Lowering, node: Node) -> Tensor:
    x, update, begins = lower.inputs(node, 3)[:3]
    x, update = lower.need(x), lower.need(update)
    axis = positive(node.integer("axis", -2), len(x.shape))
    grid = np.indices(update.shape[: axis + 1], np.int32)
    if begins is None:
        begins = lower.const(np.zeros(x.shape[0], np.int32))
    first = lower.reshape(lower.cast(begins, "int32"), (-1, *[1] * axis))
    along = lower.op("ADD", first, grid[axis])
    if node.word("mode", "linear") == "circular":
        along = lower.op("FLOOR_MOD", along, np.array(x.shape[axis], np.int32))
    parts = [lower.const(grid[i][..., None]) for i in range(axis)]
    along = lower.reshape(along, (*along.shape, 1))
    places = lower.op("CONCATENATION", *parts, along, axis=axis + 1) if parts else along
    return scattered(lower, x, places, update, "none")


RULES: dict[str, Rule] = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "TensorScatter": tensor_scatter,
}
