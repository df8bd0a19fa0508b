"""Which op is which, and what became of it."""

import numpy as np
import pytest

from litesmith.graph_view.op_pairs import (
    ADDED,
    CHANGED,
    DROPPED,
    FUSED,
    KEPT_FLOAT,
    QUANTIZED,
    SAME,
    pair_graphs,
)
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply
from tests import zoo, zoo_float
from tests.zoo_float import context

MODELS = [zoo.convnet, zoo.loop, zoo.custom, zoo.same_names, zoo_float.residual, zoo_float.looping]


def separate_relu(channels: int = 4) -> Model:
    b = Builder()
    x = b.input("x", (1, 6, 6, 3))
    weights = zoo.noise(channels, 3, 3, 3)
    y = b.op("CONV_2D", x, weights, np.zeros(channels, np.float32))
    y = b.op("RELU", y)
    return b.model(b.op("RESHAPE", y, np.array([1, -1], np.int32), shape=(1, 16 * channels)))


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_a_model_beside_itself_is_unchanged(make: object) -> None:
    model = make()  # type: ignore[operator]
    for number, graph in enumerate(model.graphs):
        found = pair_graphs(model, model, number)
        assert found.pairs == {n: n for n in range(len(graph.ops))}
        assert set(found.before.values()) <= {SAME, KEPT_FLOAT} and not found.added


def test_quantized_ops_and_conversions() -> None:
    model = zoo_float.residual()
    made = apply(model, "quantize", context(model)).model
    found = pair_graphs(model, made, 0)
    assert set(found.before.values()) == {QUANTIZED}
    assert {made.main.ops[n].kind for n in found.added} == {"QUANTIZE", "DEQUANTIZE"}
    for before, after in found.pairs.items():
        assert model.main.ops[before].kind == made.main.ops[after].kind


def test_an_op_that_was_kept_is_told() -> None:
    model = zoo_float.residual()
    made = apply(model, "quantize(keep=[0])", context(model)).model
    assert pair_graphs(model, made, 0).before[0] == KEPT_FLOAT


def test_an_activation_is_fused_into_its_layer() -> None:
    model = separate_relu()
    made = apply(model, "fuse").model
    found = pair_graphs(model, made, 0)
    assert found.before[1] == FUSED and found.fused == {1: found.pairs[0]}
    assert found.before[0] == CHANGED and found.before[2] == SAME


def test_unpacked_weights_are_dropped() -> None:
    model = zoo.half_weights()
    made = apply(model, "fold(float16=true)").model
    found = pair_graphs(model, made, 0)
    gone = [model.main.ops[n].kind for n, what in found.before.items() if what == DROPPED]
    assert gone and set(gone) == {"DEQUANTIZE"}


def test_other_weights_are_a_change() -> None:
    a, b = separate_relu(), separate_relu()
    weights = b.main.ops[0].inputs[1]
    assert weights is not None and weights.data is not None
    other = separate_relu(5)
    assert pair_graphs(a, b, 0).before[0] == SAME
    assert pair_graphs(a, other, 0).before[0] in (CHANGED, DROPPED)


def test_a_graph_that_one_model_lacks_has_no_ops_there() -> None:
    looping, plain = zoo_float.looping(), zoo_float.residual()
    gone = pair_graphs(looping, plain, 1)
    assert set(gone.before.values()) <= {DROPPED, FUSED} and not gone.pairs
    added = pair_graphs(plain, looping, 1)
    assert added.added == tuple(range(len(looping.graphs[1].ops))) and ADDED == "added"
