"""The parts of shape rules: careful access to the inputs of a call.

Every function here raises ValueError where an input is missing, computed or impossible;
`shape_rule` turns the error into None.
"""

from collections.abc import Callable, Sequence
from functools import wraps

from litesmith.errors import BadModel
from litesmith.ir.dtype import DTYPES
from litesmith.ir.types import Array, Record, Tensor
from litesmith.phrases import phrase

Dims = tuple[int, ...]
Shapes = tuple[Dims, ...]
Inputs = Sequence[Tensor | None]
ShapeRule = Callable[[Inputs, Record], Shapes | None]

_LIMIT = 2**31  # the format stores a dimension as int32


def shape_rule(compute: Callable[[Inputs, Record], Shapes]) -> ShapeRule:
    """Makes a shape rule from a function that raises ValueError where the shape is not known."""

    @wraps(compute)
    def rule(inputs: Inputs, options: Record) -> Shapes | None:
        try:
            found = compute(inputs, options)
        except (ValueError, BadModel):
            return None
        return found if all(0 <= d < _LIMIT for dims in found for d in dims) else None

    return rule


def tensor_at(inputs: Inputs, place: int) -> Tensor:
    tensor = inputs[place] if place < len(inputs) else None
    if tensor is None:
        raise ValueError(phrase("input {place} is missing", place))
    return tensor


def shape_at(inputs: Inputs, place: int) -> Dims:
    dims = tensor_at(inputs, place).shape
    if not all(0 <= d < _LIMIT for d in dims):
        raise ValueError(phrase("input {place} has shape {dims}", place, dims))
    return dims


def constant_at(inputs: Inputs, place: int) -> Array:
    tensor = tensor_at(inputs, place)
    if tensor.data is None or tensor.sparsity is not None or not DTYPES[tensor.dtype].is_plain:
        raise ValueError(phrase("input {place} is not a constant array", place))
    return tensor.data


def integers_at(inputs: Inputs, place: int) -> Dims:
    """A constant of whole numbers, flattened."""
    data = constant_at(inputs, place)
    if data.dtype.kind not in "iu":
        raise ValueError(phrase("input {place} holds no integers", place))
    return tuple(map(int, data.reshape(-1).tolist()))


def integer_at(inputs: Inputs, place: int) -> int:
    (value,) = integers_at(inputs, place)
    return value


def from_front(axis: int, rank: int) -> int:
    """An axis counted from the front; a negative one is given from the end."""
    if not -rank <= axis < rank:
        raise ValueError(phrase("axis {axis} of {rank} dimensions", axis, rank))
    return axis % rank


def broadcast_shape(*shapes: Dims) -> Dims:
    rank = max(map(len, shapes), default=0)
    aligned = [(1,) * (rank - len(dims)) + dims for dims in shapes]
    result: list[int] = []
    for sizes in zip(*aligned, strict=True):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            raise ValueError(phrase("sizes {sizes} do not fit together", sizes))
        result.append(wide.pop() if wide else 1)
    return tuple(result)
