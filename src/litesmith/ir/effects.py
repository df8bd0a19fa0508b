"""Which ops do more than compute outputs from inputs, and so must neither go nor be joined."""

from litesmith.ir.edit import called_graphs
from litesmith.ir.types import Op

# They change something outside the graph: a variable, a table, or what a foreign kernel likes.
_CHANGING = frozenset(
    {"ASSIGN_VARIABLE", "CALL", "CALL_ONCE", "CUSTOM", "DELEGATE", "HASHTABLE_IMPORT"}
)

# Their result is not decided by their inputs alone.
_UNDECIDED = frozenset(
    {
        "HASHTABLE_FIND",
        "HASHTABLE_SIZE",
        "MULTINOMIAL",
        "RANDOM_STANDARD_NORMAL",
        "RANDOM_UNIFORM",
        "READ_VARIABLE",
        "STABLEHLO_CUSTOM_CALL",
        "STABLEHLO_RNG_BIT_GENERATOR",
    }
)


def has_effect(op: Op) -> bool:
    """True where the op matters even if nobody reads its outputs."""
    keeps_state = any(t is not None and t.variable for t in (*op.inputs, *op.outputs))
    return op.kind in _CHANGING or keeps_state or bool(called_graphs(op)) or not op.outputs


def is_repeatable(op: Op) -> bool:
    """True where calling the op twice with the same inputs gives the same outputs."""
    return not has_effect(op) and op.kind not in _UNDECIDED
