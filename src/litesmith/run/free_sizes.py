"""A model that does not open at the sizes in its file, because they are free and only stand in for
those that a caller gives: which input it is, and which sizes would do."""

from collections.abc import Sequence
from math import prod

from litesmith.arguments import argument
from litesmith.errors import CannotRun, LitesmithError
from litesmith.ir.model_text import type_text
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.step import Context
from litesmith.passes.tidy.resize import Resize, input_names, shape_text
from litesmith.phrases import join
from litesmith.units import plain

_LARGEST = 2**17  # of a free dimension that is tried


def why_unsized(model: Model) -> CannotRun | None:
    """The error for a model that does not open because of its free sizes; None where they are not
    the cause."""
    free = [t for t in model.main.inputs if t.dynamic is not None and min(t.dynamic) < 0]
    if not free or _fits(model, [t.shape for t in free], free):
        return None
    sizes = 2
    while sizes < _LARGEST and not _fits(model, [_sized(t, sizes) for t in free], free):
        sizes *= 2
    asked = [argument("shape", shape_text(_name(model, t), _sized(t, sizes))) for t in free]
    return CannotRun(
        "the model does not open as {types}, the sizes in its file; its input has free dimensions: "
        "{free}; give sizes, as in {shape}",
        ", ".join(f"{t.dtype}{list(t.shape)}" for t in free),
        ", ".join(f"{plain(t.name)} {type_text(t)}" for t in free),
        join(asked, " "),
    )


def _fits(model: Model, shapes: Sequence[tuple[int, ...]], inputs: Sequence[Tensor]) -> bool:
    """True where every op accepts its inputs, and none gives an empty tensor."""
    texts = [shape_text(t.name, shape) for t, shape in zip(inputs, shapes, strict=True)]
    if any(prod(shape) < 1 for shape in shapes):
        return False
    try:
        resized = Resize(tuple(texts)).apply(model, Context()).model
    except LitesmithError:
        return False
    made = (t for op in resized.main.ops for t in op.outputs)
    return all(prod(t.shape) > 0 for t in made)


def _sized(tensor: Tensor, sizes: int) -> tuple[int, ...]:
    """The shape with this size in each free dimension; a free first dimension counts samples, and
    is 1."""
    dims = tensor.dynamic or tensor.shape
    first = 1 if len(dims) > 1 else sizes
    return tuple((sizes if place else first) if d < 0 else d for place, d in enumerate(dims))


def _name(model: Model, tensor: Tensor) -> str:
    """The caller's name for an input: its name in the signature, where that is unambiguous."""
    names = [name for name, tensors in input_names(model).items() if tensors == [tensor]]
    return plain(min(names or [tensor.name], key=len))
