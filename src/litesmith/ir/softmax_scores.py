"""The scores behind an output: what SOFTMAX makes probabilities of."""

from litesmith.ir.types import Graph, Op, Tensor

SOFTMAX = frozenset({"LOG_SOFTMAX", "SOFTMAX"})

# They move values, or write them in another type; which is the largest stays.
_MOVING = frozenset({"CAST", "DEQUANTIZE", "EXPAND_DIMS", "QUANTIZE", "RESHAPE", "SQUEEZE"})


def scores_of(graph: Graph, tensor: Tensor) -> Tensor:
    """The scores that SOFTMAX turns into a tensor; the tensor itself where none does."""
    op = softmax_of(graph, tensor)
    scores = op.inputs[0] if op is not None else None
    return tensor if scores is None or scores.is_const else scores


def ends_in_softmax(graph: Graph, tensor: Tensor) -> bool:
    """True where a tensor holds what SOFTMAX gave, whatever was done to its shape and type."""
    return softmax_of(graph, tensor) is not None


def softmax_of(graph: Graph, tensor: Tensor) -> Op | None:
    """The SOFTMAX or LOG_SOFTMAX whose results a tensor holds; None where it holds others."""
    source = moved_from(graph, tensor)
    makers = (op for op in graph.ops if source in op.outputs)
    return next((op for op in makers if op.kind in SOFTMAX), None)


def moved_from(graph: Graph, tensor: Tensor) -> Tensor:
    """Where a tensor's values were computed, before they were moved or written in another type."""
    makers = {made: op for op in graph.ops for made in op.outputs}
    op = makers.get(tensor)
    while op is not None and op.kind in _MOVING and op.inputs[0] is not None:
        tensor = op.inputs[0]
        op = makers.get(tensor)
    return tensor
