"""Graphs inside a graph: written out in place, or as the bodies of LiteRT's IF and WHILE."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Unsupported
from litesmith.conversion.core.source import Node, SourceGraph
from litesmith.ir.build import Builder
from litesmith.ir.edit import needed_ops
from litesmith.ir.types import Tensor

# One turn of a loop, from its number, its states and the values that it only reads.
Turn = Callable[[Lowering, Tensor, Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]


def outer_names(graph: SourceGraph) -> list[str]:
    """The values that a graph reads and does not make, those of graphs inside it too."""
    known = {v.name for v in graph.inputs} | set(graph.constants)
    found: dict[str, None] = {}
    for node in graph.nodes:
        found |= dict.fromkeys(name for name in read_names(node) if name and name not in known)
        known |= set(node.outputs)
    found |= dict.fromkeys(v.name for v in graph.outputs if v.name not in known)
    return list(found)


def read_names(node: Node) -> list[str]:
    """The values that a node reads, those that graphs inside it read too."""
    inner = (g for g in node.settings.values() if isinstance(g, SourceGraph))
    return [*node.inputs, *(name for g in inner for name in outer_names(g))]


def written_out(
    lower: Lowering, graph: SourceGraph, given: Mapping[str, Tensor]
) -> tuple[Tensor, ...]:
    """The outputs of a graph whose nodes are added in place; its names are gone afterwards."""
    outer = lower.values
    lower.values = {**outer, **given}
    try:
        lower.walk(graph)
        missing = [v.name for v in graph.outputs if v.name not in lower.values]
        if missing:
            raise Unsupported("what makes its result {name!r} has no form in LiteRT", missing[0])
        results = {v.name: lower.values[v.name] for v in graph.outputs}
        for name, tensor in results.items():  # known by the name that the graph around it has
            if lower.names.get(tensor) == name and name not in outer:
                del lower.names[tensor]
        return tuple(results[v.name] for v in graph.outputs)
    finally:
        lower.values = outer


def inner_lowering(lower: Lowering, name: str) -> Lowering:
    """A graph beside the one under construction; both report unsupported nodes in one list."""
    return Lowering(
        lower.rules,
        lower.opset,
        Builder(name),
        left=lower.left,
        graphs=lower.graphs,
        notes=lower.notes,
        shapes=lower.shapes,
        wanted=lower.wanted,
        spare=lower.spare,
    )


def finish(lower: Lowering, inner: Lowering, outputs: Iterable[Tensor]) -> int:
    """Adds a finished graph to the model; its number there."""
    ready: list[Tensor] = []
    for tensor in outputs:
        if tensor.is_const or tensor in ready:
            tensor = inner.builder.op(
                "RESHAPE", tensor, np.array(tensor.shape, np.int32), new_shape=tensor.shape
            )
        ready.append(tensor)
    inner.builder.ops = needed_ops(inner.builder.ops, ready)
    lower.graphs.append(inner.told_graph(ready))
    return len(lower.graphs)


def while_loop(
    lower: Lowering,
    turns: Tensor,
    states: Sequence[Tensor],
    read: Sequence[Tensor],
    turn: Turn,
    goes_on: int | None = None,
) -> tuple[Tensor, ...]:
    """The states after a number of turns, an int32 of shape (1,).

    `read` are values that turns read without changing them. The state number `goes_on` is a truth
    value; the loop ends early where it is false.
    """
    fixed = [t for t in (turns, *read) if not t.is_const]
    number = lower.const(np.zeros(1, np.int32))
    first = [number, *states, *fixed]
    test, body = inner_lowering(lower, "while_test"), inner_lowering(lower, "while_body")

    def enter(inner: Lowering) -> tuple[Tensor, list[Tensor], dict[Tensor, Tensor]]:
        made = [inner.builder.input(f"value{i}", t.shape, t.dtype) for i, t in enumerate(first)]
        rest = made[1 + len(states) :]
        return made[0], made[1 : 1 + len(states)], dict(zip(fixed, rest, strict=True))

    count, inside, known = enter(test)
    more = test.builder.op("LESS", count, known.get(turns, turns))
    if goes_on is not None:
        state = inside[goes_on]
        more = test.builder.op("LOGICAL_AND", more, test.reshape(state, (1,)))
    test_number = finish(lower, test, [more])

    count, inside, known = enter(body)
    made = turn(body, count, inside, [known.get(t, t) for t in read])
    for old, new in zip(states, made, strict=True):
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            raise Unsupported(
                "a value changes its shape from {old} to {new} in a turn of the loop, and LiteRT's "
                "loop has one shape for it",
                old.shape,
                new.shape,
            )
    step = body.builder.op("ADD", count, np.ones(1, np.int32))
    body_number = finish(lower, body, [step, *made, *known.values()])
    lower.builder.op(
        "WHILE",
        *first,
        shape=[t.shape for t in first],
        cond_subgraph_index=test_number,
        body_subgraph_index=body_number,
    )
    return lower.builder.last.outputs[1 : 1 + len(states)]
