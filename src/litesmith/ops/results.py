"""What functions of the user's return, and what goes wrong in them."""

from numbers import Integral

import numpy as np

from litesmith.errors import BadInput, CannotRun
from litesmith.ir.types import Array
from litesmith.ops.delegate import Shape
from litesmith.type_guards import is_iterable, is_sequence, is_tuple


def error_text(error: BaseException) -> str:
    """What went wrong in code of the user's, on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")


def as_tuple(result: object, what: str) -> tuple[Array, ...]:
    """What a function returned, one array an output."""
    if result is None:
        raise CannotRun("{what} returned None; return an array, or a tuple of them", what)
    found = result if is_tuple(result) else (result,)
    return tuple(np.asarray(one) for one in found)


def as_shapes(result: object, what: str) -> list[Shape]:
    """What a shape rule returned, one shape an output."""
    if not is_sequence(result):
        raise BadInput(
            "{what}: its shape rule gave {result!r}; a shape is a tuple of integers", what, result
        )
    shapes = result if result and is_sequence(result[0]) else [result]
    return [_as_shape(shape, what) for shape in shapes]


def _as_shape(given: object, what: str) -> Shape:
    sizes = tuple(given) if is_iterable(given) else (None,)
    shape = tuple(int(d) for d in sizes if isinstance(d, Integral) and int(d) >= 0)
    if len(shape) != len(sizes):
        raise BadInput(
            "{what}: its shape rule gave {shape!r}; a shape has integers from 0", what, given
        )
    return shape
