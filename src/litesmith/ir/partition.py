"""Parts of a graph that can run as one: no way out of a part leads back into it."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from litesmith.ir.edit import referenced
from litesmith.ir.ops import is_repeatable
from litesmith.ir.types import Graph, Op, Tensor


class Part(NamedTuple):
    """Ops that run one after the other, all of them claimed or none."""

    ops: tuple[Op, ...]
    is_claimed: bool


def partition(graph: Graph, claimed: Collection[Op]) -> list[Part]:
    """All ops, in as few parts as their dependencies allow, in an order that respects them.

    An op comes as early as possible: a part ends only where an op needs the result of the other
    kind of part. Ops that change something outside the graph keep their order.
    """
    stages: dict[Op, int] = {}
    makers: dict[Tensor, Op] = {}
    last: Op | None = None  # an op with an effect
    for op in graph.ops:
        needed = [makers[t] for t in op.inputs if t is not None and t in makers]
        if not is_repeatable(op):
            needed += [last] if last is not None else []
            last = op
        # Claimed ops have even stages, others odd ones, the first of which is −1.
        own = op in claimed
        stages[op] = max(
            [stages[n] + ((n in claimed) != own) for n in needed], default=0 if own else -1
        )
        stages[op] = max(stages[op], 0 if own else -1)
        makers.update((t, op) for t in op.outputs)
    parts: dict[int, list[Op]] = {}
    for op in graph.ops:
        parts.setdefault(stages[op], []).append(op)
    return [Part(tuple(parts[stage]), stage % 2 == 0) for stage in sorted(parts)]


def part_graph(graph: Graph, ops: Sequence[Op]) -> Graph:
    """Some ops as a separate graph, with inputs and outputs where they meet other ops."""
    made = {t for op in ops for t in op.outputs}
    read = dict.fromkeys(t for op in ops for t in op.inputs if t is not None)
    inputs = tuple(t for t in read if t not in made and not t.is_const)
    inside = set(ops)
    wanted = {t for op in graph.ops if op not in inside for t in op.inputs} | {*graph.outputs}
    outputs = tuple(t for op in ops for t in op.outputs if t in wanted)
    tensors = tuple(referenced(inputs, ops, outputs))
    return Graph(graph.name, inputs, outputs, tuple(ops), tensors)


def replace_parts(parts: Sequence[Part], replaced: Mapping[Part, Op]) -> list[Op]:
    """The ops of all parts, with one op in place of each part that has one."""
    return [op for part in parts for op in ((replaced[part],) if part in replaced else part.ops)]
