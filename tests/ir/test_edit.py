"""Edits give new graphs and leave the old ones as they were."""

from litesmith.ir.build import Builder
from litesmith.ir.edit import (
    called_graphs,
    consumers,
    referenced,
    regraph,
    rewrite,
    with_graphs,
)
from litesmith.ir.match import chains, reads
from litesmith.ir.ops import has_effect, is_repeatable
from tests.zoo import MODELS, blockwise, branches, convnet, described, loop, variables


def test_everything_in_use_is_listed_in_file_order() -> None:
    for make in MODELS.values():
        for graph in make().graphs:
            again = regraph(graph)
            used = set(referenced(graph.inputs, graph.ops, graph.outputs))
            assert set(again.tensors) == used
            assert list(again.tensors) == [t for t in graph.tensors if t in used]


def test_scales_of_blocks_are_in_use() -> None:
    assert "scales" in [t.name for t in regraph(blockwise().main).tensors]


def test_unused_tensors_go_with_the_op_that_used_them() -> None:
    graph = convnet().main
    shorter = regraph(graph, ops=graph.ops[:1], outputs=graph.ops[0].outputs)
    assert len(shorter.tensors) == 4
    assert len(graph.tensors) > 4


def test_rewrite_reaches_inputs_outputs_and_ops() -> None:
    b = Builder()
    x = b.input("x", (2,))
    y = b.op("ABS", x, name="y")
    graph = b.graph(y)
    other = b.input("other", (2,))
    new = rewrite(graph, tensors={x: other, y: x})
    assert (new.inputs, new.outputs, new.ops[0].inputs, new.ops[0].outputs) == (
        (other,),
        (x,),
        (other,),
        (x,),
    )
    assert graph.inputs == (x,)


def test_signatures_follow_their_tensors() -> None:
    model = convnet()
    new = Builder().input("new", (1, 8, 8, 3))
    old = model.main.inputs[0]
    changed = with_graphs(model, [rewrite(model.main, tensors={old: new})], {old: new})
    assert changed.signatures[0].inputs == (("image", new),)


def test_readers_and_writers() -> None:
    b = Builder()
    x = b.input("x", (2,))
    y = b.op("ADD", x, x)
    graph = b.graph(b.op("NEG", y))
    add, neg = graph.ops
    assert consumers(graph) == {x: [add, add], y: [neg]}
    assert reads(graph).only_reader(y) is neg
    assert reads(graph).only_reader(x) is None


def test_chains_stop_at_a_second_reader_and_at_outputs() -> None:
    b = Builder()
    x = b.op("ABS", b.input("x", (2,)))
    y = b.op("NEG", x)
    pattern = (frozenset({"ABS"}), frozenset({"NEG"}))
    assert list(chains(b.graph(y), pattern)) == [tuple(b.ops)]
    assert not list(chains(b.graph(y, x), pattern))
    b.op("EXP", x)
    assert not list(chains(b.graph(y), pattern))


def test_control_flow_names_its_graphs() -> None:
    targets = {op.kind: called_graphs(op) for m in (branches(), loop()) for op in m.main.ops}
    assert targets["IF"] == targets["WHILE"] == (1, 2)
    assert targets["SUM"] == ()


def test_effects() -> None:
    by_kind = {op.kind: op for m in (variables(), branches(), described()) for _, _, op in m.ops()}
    assert has_effect(by_kind["ASSIGN_VARIABLE"])
    assert has_effect(by_kind["IF"])
    assert not has_effect(by_kind["READ_VARIABLE"])
    assert not is_repeatable(by_kind["READ_VARIABLE"])
    assert is_repeatable(by_kind["CONV_2D"])
