"""Which ops do more than compute outputs from inputs, and so must neither go nor be joined."""

from litesmith.ir.edit import called_graphs
from litesmith.ir.ops import OPS
from litesmith.ir.types import Op


def has_effect(op: Op) -> bool:
    """True where the op matters even if nobody reads its outputs."""
    keeps_state = any(t is not None and t.variable for t in (*op.inputs, *op.outputs))
    return OPS[op.kind].has_effect or keeps_state or bool(called_graphs(op)) or not op.outputs


def is_repeatable(op: Op) -> bool:
    """True where calling the op twice with the same inputs gives the same outputs."""
    return not has_effect(op) and not OPS[op.kind].varies
