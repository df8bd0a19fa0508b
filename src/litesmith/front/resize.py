"""`resize`: a model whose inputs have the sizes that the user gives."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import cast

from litesmith.anatomy.source_file import Source, open_source
from litesmith.arguments import argument, check_types
from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply
from litesmith.passes.tidy.resize import Resize, shape_text
from litesmith.type_guards import is_sequence

Sizes = Sequence[int]
Shape = Mapping[str, Sizes] | Sizes | str | Sequence[str]


@check_types
def resize(model: Source, shape: Shape) -> Model:
    """The model with inputs of these sizes, and all that is computed from them in what follows.

    >>> larger = litesmith.resize("model.tflite", {"image": (1, 16, 16, 1)})
    >>> larger.main.inputs[0].shape
    (1, 16, 16, 1)

    An input has its own name, or that in a signature; where there is one input, (1, 1280) alone
    will do. Texts like "x=1,1280" are taken too. Functions take the result as their model;
    `choose`, `gate` and `retrain`, whose records name files, have `shape=`.
    """
    return apply(open_source(model).model, (Resize(shape_texts(shape)),)).model


def shape_texts(shape: object) -> tuple[str, ...]:
    """Shapes as the step takes them."""
    if isinstance(shape, str):
        return (shape,)
    if isinstance(shape, Mapping):
        given = cast(Mapping[object, object], shape)
        return tuple(_text(str(name), sizes) for name, sizes in given.items())
    if is_sequence(shape) and shape and all(isinstance(one, str) for one in shape):
        return tuple(map(str, shape))
    return (_text("", shape),)


def _text(name: str, sizes: object) -> str:
    if is_sequence(sizes) and all(isinstance(one, Integral) for one in sizes):
        return shape_text(name, cast(Sizes, sizes))
    raise BadInput(
        "{shape}: sizes are whole numbers from 1 on, as in {example}",
        argument("shape", sizes),
        argument("shape", {"x": (1, 1280)}),
    )
