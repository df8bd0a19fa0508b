"""Embeddings: tables from which token ids pick rows, and tables of positions added to them."""

from collections.abc import Iterator
from typing import NamedTuple

from litesmith.blocks.wiring import Wiring, data_of
from litesmith.ir.types import Op, Tensor

# The fewest rows of a table; a pick from fewer rows is something else.
_FEWEST_ROWS = 2


class Embedding(NamedTuple):
    """A table, the op that picks its rows, and the op that adds a row for each position."""

    op: Op
    table: Tensor
    places: Op | None = None


def embeddings(wiring: Wiring) -> Iterator[Embedding]:
    """Finds every op that picks rows of a constant table of two axes by computed indices."""
    for op in wiring.graph.ops:
        table = _table(wiring, op)
        if table is not None:
            yield Embedding(op, table, _position_sum(wiring, op))


def _table(wiring: Wiring, op: Op) -> Tensor | None:
    if op.kind == "GATHER":
        table, numbers = op.inputs[0], op.inputs[1]
    elif op.kind == "EMBEDDING_LOOKUP":
        numbers, table = op.inputs[0], op.inputs[1]
    else:
        return None
    if table is None or numbers is None or numbers.is_const:
        return None
    source = table if table.is_const else wiring.origin(table)
    if source is None or not source.is_const or len(source.shape) != 2:
        return None
    axis = op.option("axis") or 0
    return source if axis == 0 and source.shape[0] >= _FEWEST_ROWS else None


def _position_sum(wiring: Wiring, op: Op) -> Op | None:
    """The op that adds to the rows a constant with one row per token."""
    for user in wiring.users(op.outputs[0], ("MUL",)):
        constants = [t for t in user.inputs if t is not None and t.is_const]
        if user.kind == "ADD" and len(data_of(user)) == 1 and constants:
            own, added = op.outputs[0].shape, constants[0].shape
            if len(own) > 1 and len(added) > 1 and added[-2:] == own[-2:]:
                return user
    return None
