"""Edits: new graphs from old ones. No function here changes its arguments."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from litesmith import schema
from litesmith.ir.types import (
    Array,
    Graph,
    Model,
    Op,
    Signature,
    Tensor,
    op_tensors,
    quant_tensors,
)


def referenced(
    inputs: Iterable[Tensor], ops: Iterable[Op], outputs: Iterable[Tensor]
) -> Iterator[Tensor]:
    """Every tensor that the parts of a graph refer to, in order of first mention, each once."""
    seen: set[Tensor] = set()

    def new(tensors: Iterable[Tensor]) -> Iterator[Tensor]:
        for tensor in tensors:
            if tensor not in seen:
                seen.add(tensor)
                yield tensor
                yield from new(quant_tensors(tensor))

    yield from new(inputs)
    for op in ops:
        yield from new(op_tensors(op))
    yield from new(outputs)


def regraph(
    graph: Graph,
    *,
    ops: Sequence[Op] | None = None,
    inputs: Sequence[Tensor] | None = None,
    outputs: Sequence[Tensor] | None = None,
) -> Graph:
    """The graph with new parts. Tensors keep their order, new ones follow, unused ones are
    dropped.
    """
    ops = graph.ops if ops is None else tuple(ops)
    inputs = graph.inputs if inputs is None else tuple(inputs)
    outputs = graph.outputs if outputs is None else tuple(outputs)
    used = dict.fromkeys(referenced(inputs, ops, outputs))
    old = [t for t in graph.tensors if t in used]
    tensors = dict.fromkeys([*old, *used])
    return replace(graph, ops=ops, inputs=inputs, outputs=outputs, tensors=tuple(tensors))


def needed_ops(
    ops: Sequence[Op],
    wanted: Iterable[Tensor],
    stays: Callable[[Op], bool] = lambda op: not op.outputs,
) -> list[Op]:
    """The ops that the `wanted` tensors depend on, and those that stay in any case, in order."""
    needed = set(wanted)
    kept: list[Op] = []
    for op in reversed(ops):
        if stays(op) or any(t in needed for t in op.outputs):
            needed.update(t for t in op.inputs if t is not None)
            kept.append(op)
    return kept[::-1]


def consumers(graph: Graph) -> dict[Tensor, list[Op]]:
    """The readers of each tensor; an op that reads the tensor twice is listed twice."""
    readers: dict[Tensor, list[Op]] = {}
    for op in graph.ops:
        for tensor in op.inputs:
            if tensor is not None:
                readers.setdefault(tensor, []).append(op)
    return readers


def substitute(op: Op, tensors: Mapping[Tensor, Tensor]) -> Op:
    """The op with some tensors replaced by others; the same op where none of them occurs."""
    if not any(tensor in tensors for tensor in op_tensors(op)):
        return op
    return replace(
        op,
        inputs=tuple(None if t is None else tensors.get(t, t) for t in op.inputs),
        outputs=tuple(tensors.get(t, t) for t in op.outputs),
        intermediates=tuple(tensors.get(t, t) for t in op.intermediates),
    )


def rewrite(
    graph: Graph,
    *,
    ops: Mapping[Op, Sequence[Op]] | None = None,
    tensors: Mapping[Tensor, Tensor] | None = None,
) -> Graph:
    """The graph with some ops replaced by others (by none, to drop an op), and then some tensors
    replaced.
    """
    ops, tensors = ops or {}, tensors or {}
    edited = [substitute(new, tensors) for op in graph.ops for new in ops.get(op, (op,))]
    return regraph(
        graph,
        ops=edited,
        inputs=[tensors.get(t, t) for t in graph.inputs],
        outputs=[tensors.get(t, t) for t in graph.outputs],
    )


def with_graphs(
    model: Model, graphs: Sequence[Graph], tensors: Mapping[Tensor, Tensor] | None = None
) -> Model:
    """The model with new graphs; `tensors` maps replaced tensors, which signatures may name, to
    their replacements.
    """
    signatures = (
        tuple(_replace_in_signature(s, tensors) for s in model.signatures)
        if tensors
        else model.signatures
    )
    return replace(model, graphs=tuple(graphs), signatures=signatures)


def with_main(model: Model, graph: Graph, tensors: Mapping[Tensor, Tensor] | None = None) -> Model:
    """The model with another main graph; `tensors` as for `with_graphs`."""
    return with_graphs(model, (graph, *model.graphs[1:]), tensors)


def with_ops(model: Model, ops: Mapping[Op, Op]) -> Model:
    """The model with some ops of its main graph replaced, one by one."""
    return with_main(model, regraph(model.main, ops=[ops.get(op, op) for op in model.main.ops]))


def exposing(model: Model, outputs: Sequence[Tensor]) -> Model:
    """The model with these tensors of its main graph as outputs, and only the ops that these need,
    or that have an effect.
    """
    wanted: set[Tensor] = set(outputs)
    ops: list[Op] = []
    for op in reversed(model.main.ops):
        if not op.outputs or not wanted.isdisjoint(op.outputs):
            wanted.update(t for t in op.inputs if t is not None)
            ops.append(op)
    graph = regraph(model.main, ops=ops[::-1], outputs=outputs)
    return replace(with_main(model, graph), signatures=(), metadata=())


def _replace_in_signature(signature: Signature, tensors: Mapping[Tensor, Tensor]) -> Signature:
    return replace(
        signature,
        inputs=tuple((name, tensors.get(t, t)) for name, t in signature.inputs),
        outputs=tuple((name, tensors.get(t, t)) for name, t in signature.outputs),
    )


def called_graphs(op: Op) -> tuple[int, ...]:
    """The numbers of the graphs that an op of control flow runs."""
    if op.options is None:
        return ()
    numbers: list[int] = []
    for name, field in schema.TABLES[op.options.table].items():
        if "subgraph" in name:
            numbers += op.options.integers(name) if field.vector else [op.options.integer(name)]
    return tuple(numbers)


# Metadata with the places of tensors in the memory of a microcontroller, and the kernels that this
# relies on.
MEMORY_PLAN, OVERLAP_NOTE = "OfflineMemoryAllocation", "litesmith.overlap"


def plan_of(model: Model) -> Array | None:
    """The memory plan in a file; None where it has none."""
    return next((data for name, data in model.metadata if name == MEMORY_PLAN), None)


def drop_plan(model: Model) -> Model:
    """The model without its memory plan, which is invalid once its graphs change."""
    kept = tuple(pair for pair in model.metadata if pair[0] not in (MEMORY_PLAN, OVERLAP_NOTE))
    return model if len(kept) == len(model.metadata) else replace(model, metadata=kept)
