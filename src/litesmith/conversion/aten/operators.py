"""All rows by the operator's name: "max" for all of its overloads except those with rows of their
own."""

from litesmith.conversion.aten import layers, picks, reductions, refused, shapes, values
from litesmith.conversion.aten.call import Row

OPERATORS: dict[str, Row] = {
    **refused.ROWS,
    **values.ROWS,
    **reductions.ROWS,
    **shapes.ROWS,
    **picks.ROWS,
    **layers.ROWS,
}


def row_of(name: str, overload: str) -> Row | None:
    """The row of an overload, otherwise that of all overloads of the operator."""
    return OPERATORS.get(f"{name}.{overload}") or OPERATORS.get(name)
