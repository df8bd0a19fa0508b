"""The tensors behind an output: the scores behind a softmax, the boxes behind an op that selects
boxes.
"""

from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Op, Tensor


def scores_of(graph: Graph, tensor: Tensor) -> Tensor:
    """The scores that a softmax turns into a tensor; the tensor itself where none does."""
    op = softmax_of(graph, tensor)
    scores = op.inputs[0] if op is not None else None
    return tensor if scores is None or scores.is_const else scores


def judged_outputs(graph: Graph) -> tuple[Tensor, ...]:
    """The outputs to judge a model by. Outputs of a custom op are replaced by its computed inputs:
    for an op that selects boxes, these hold all of its information.
    """
    makers = {made: op for op in graph.ops for made in op.outputs}
    tensors: dict[Tensor, None] = {}
    for tensor in graph.outputs:
        maker = makers.get(tensor)
        is_own = maker is None or not maker.is_custom
        given = (tensor,) if is_own or maker is None else maker.inputs
        tensors |= {t: None for t in given if t is not None and (is_own or not t.is_const)}
    return tuple(tensors)


def ends_in_softmax(graph: Graph, tensor: Tensor) -> bool:
    """True where a tensor holds the output of a softmax, in any shape and type."""
    return softmax_of(graph, tensor) is not None


def softmax_of(graph: Graph, tensor: Tensor) -> Op | None:
    """The softmax whose results, or their logarithms, a tensor holds; None where it holds none."""
    source = trace_back(graph, tensor)
    makers = (op for op in graph.ops if source in op.outputs)
    return next((op for op in makers if OPS[op.kind].is_softmax), None)


def trace_back(graph: Graph, tensor: Tensor) -> Tensor:
    """The tensor where the values were computed, before they were moved or converted."""
    makers = {made: op for op in graph.ops for made in op.outputs}
    op = makers.get(tensor)
    while op is not None and _keeps_order(op) and op.inputs[0] is not None:
        tensor = op.inputs[0]
        op = makers.get(tensor)
    return tensor


def _keeps_order(op: Op) -> bool:
    """True where the largest value of the data is the largest of the result, in the same place."""
    row = OPS[op.kind]
    return row.reshapes or row.converts
