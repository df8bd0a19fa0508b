"""Parts of a graph: all ops, in an order that works, and no part is left and entered again."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litesmith.ir.build import Builder
from litesmith.ir.partition import part_graph, partition, replace_parts
from litesmith.ir.types import Graph, Op, Tensor
from tests.random_graphs import graphs


def respects_dependencies(graph: Graph, ops: list[Op]) -> bool:
    known = {*graph.inputs}
    for op in ops:
        if any(t not in known for t in op.inputs if t is not None and not t.is_const):
            return False
        known |= {*op.outputs}
    return all(t in known or t.is_const for t in graph.outputs)


@given(graphs(), st.data())
def test_laws(model, data: st.DataObject) -> None:
    graph = model.main
    claimed = {op for op in graph.ops if data.draw(st.booleans())}
    parts = partition(graph, claimed)
    ops = [op for part in parts for op in part.ops]
    assert sorted(map(id, ops)) == sorted(map(id, graph.ops))
    assert respects_dependencies(graph, ops)
    assert {op for part in parts if part.is_claimed for op in part.ops} == claimed
    assert all(a.is_claimed != b.is_claimed for a, b in pairwise(parts))
    new = {}
    for part in (part for part in parts if part.is_claimed):
        inner = part_graph(graph, part.ops)
        assert respects_dependencies(inner, list(inner.ops))
        new[part] = Op("CUSTOM", inner.inputs, inner.outputs, custom="part")
    assert respects_dependencies(graph, replace_parts(parts, new)), "a part cannot run as one"


def branch() -> tuple[Graph, dict[str, Op]]:
    b = Builder()
    x = b.input("x", (1, 2))
    made: dict[str, Tensor] = {"a": b.op("EXP", x)}
    made["u"] = b.op("NEG", made["a"])
    made["b"] = b.op("ADD", made["a"], np.float32(1))
    made["c"] = b.op("ADD", made["u"], made["b"])
    graph = b.graph(made["c"])
    return graph, dict(zip(made, graph.ops, strict=True))


def test_a_detour_splits_a_part() -> None:
    graph, ops = branch()
    parts = partition(graph, {ops["a"], ops["b"], ops["c"]})
    assert [part.ops for part in parts] == [(ops["a"], ops["b"]), (ops["u"],), (ops["c"],)]


def test_what_a_part_takes_and_gives() -> None:
    graph, ops = branch()
    inner = part_graph(graph, (ops["a"], ops["b"]))
    assert inner.inputs == graph.inputs
    assert inner.outputs == (ops["a"].outputs[0], ops["b"].outputs[0])
