"""What functions of the user's return, and what goes wrong in them."""

from collections.abc import Sequence

import numpy as np

from litesmith.errors import BadInput, CannotRun
from litesmith.ir.types import Array
from litesmith.ops.delegate import Shape


def error_text(error: BaseException) -> str:
    """What went wrong in code of the user's, on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")


def as_tuple(result: object, what: str) -> tuple[Array, ...]:
    """What a function returned, one array an output."""
    if result is None:
        raise CannotRun("{what} returned None; return an array, or a tuple of them", what)
    found = result if isinstance(result, tuple) else (result,)
    return tuple(np.asarray(one) for one in found)


def as_shapes(result: object, what: str) -> list[Shape]:
    """What a shape rule returned, one shape an output."""
    if not isinstance(result, Sequence):
        raise BadInput(
            "{what}: its shape rule gave {result!r}; a shape is a tuple of integers", what, result
        )
    shapes = [result] if not result or not isinstance(result[0], Sequence) else result
    for shape in shapes:
        if not all(isinstance(d, int | np.integer) and d >= 0 for d in shape):
            raise BadInput(
                "{what}: its shape rule gave {shape!r}; a shape has integers from 0", what, shape
            )
    return [tuple(map(int, shape)) for shape in shapes]
