"""Values for the inputs of a session: given ones, or seeded random ones."""

from collections.abc import Sequence

import numpy as np

from litesmith.ir.types import Array
from litesmith.run.session import Session


def feed(session: Session, arrays: Sequence[Array]) -> None:
    """Puts arrays into the inputs in order; an input of another shape is resized first."""
    shapes = {
        name: array.shape
        for (name, held), array in zip(session.inputs.items(), arrays, strict=True)
        if held.shape != array.shape
    }
    if shapes:
        session.resize(**shapes)
    for name, array in zip(session.inputs, arrays, strict=True):
        session.inputs[name] = array


def fill_inputs(session: Session, seed: int = 0) -> None:
    """Puts values that suit each type into every input, the same ones for the same seed."""
    random = np.random.default_rng(seed)
    for array in session.inputs.values():
        array[...] = random_values(random, array)


def random_values(random: np.random.Generator, like: Array) -> Array:
    """Random values of the shape and type of an array."""
    kind, shape = like.dtype, like.shape
    if kind.kind == "f":
        return random.normal(0, 1, shape).astype(kind)
    if kind.kind == "b":
        return random.integers(0, 2, shape).astype(kind)
    if kind.kind not in "iu":  # texts
        return np.full(shape, b"a", kind)
    if kind.itemsize > 2:  # indices and counters, which must not lead outside a table
        return random.integers(0, 2, shape).astype(kind)
    span = np.iinfo(kind)
    return random.integers(span.min, span.max, shape, endpoint=True).astype(kind)
