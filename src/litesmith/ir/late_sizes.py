"""Sizes that only a run decides: where the file's shapes are a guess, not a promise."""

from collections.abc import Collection

from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Op, Tensor


def has_computed_settings(op: Op) -> bool:
    """True where a size, an axis or a padding is not a constant."""
    roles = OPS[op.kind].inputs.split()
    roles += roles[-1:] * (len(op.inputs) - len(roles))
    return any(
        role[0] == "s" and tensor is not None and not tensor.is_const
        for role, tensor in zip(roles, op.inputs, strict=False)
    )


def is_sized_late(op: Op, late: Collection[Tensor]) -> bool:
    """True where the sizes of the op's outputs are known only after the op has run."""
    inherits = any(tensor in late for tensor in op.inputs if tensor is not None)
    by_values = OPS[op.kind].sized_by_values and any(t and not t.is_const for t in op.inputs)
    return inherits or by_values or has_computed_settings(op)


def late_tensors(graph: Graph) -> set[Tensor]:
    """Every tensor whose size depends on values."""
    late: set[Tensor] = set()
    for op in graph.ops:
        if is_sized_late(op, late):
            late.update(op.outputs)
    return late
