"""Patterns are found however an exporter wrote them, and nothing is found where none is."""

import numpy as np
import pytest

from litesmith.anatomy.inspection import inspect
from litesmith.blocks.structure import PATTERNS, Structure, names_by_output, structure_of
from litesmith.ir.build import Builder
from tests.zoo import MODELS, noise
from tests.zoo_blocks import dense, gelu, normalize, transformer, unrolled_gru, unrolled_lstm


@pytest.mark.parametrize("how", ["pieces", "difference", "quotient", "rows"])
@pytest.mark.parametrize("curve", ["whole", "logistic", "tanh"])
def test_a_transformer_is_known_by_its_parts_however_it_is_written(how: str, curve: str) -> None:
    found = structure_of(transformer(2, how, curve))
    assert len(found.attention) == len(found.feed_forward) == 2
    assert len(found.normalization) == 5 and all(one.centres for one in found.normalization)
    assert [one.name for one in found.activation] == ["GELU", "GELU"]
    assert [one.table.shape for one in found.embedding] == [(30, 16)]
    assert {one.heads for one in found.attention} == {2}
    assert all(one.masks and one.query and one.out for one in found.attention)


def test_every_layer_of_a_transformer_has_a_name_of_its_own() -> None:
    model = transformer(2)
    names = structure_of(model).names
    layers = [op for op in model.main.ops if op.kind == "FULLY_CONNECTED"][:-1]
    told = [names[op] for op in layers]
    assert len(set(told)) == len(told)
    assert told[:4] == [
        "block 1, attention queries",
        "block 1, attention keys",
        "block 1, attention values",
        "block 1, attention output",
    ]
    assert told[-1] == "block 2, feed-forward output"
    assert "block 2, residual sum after the attention" in names.values()
    assert "block 1, normalization before the feed-forward" in names.values()


def test_a_normalization_of_the_power_alone_does_not_centre() -> None:
    b = Builder()
    x = b.input("x", (1, 4, 16))
    (found,) = structure_of(b.model(normalize(b, x, 0, "power"))).normalization
    assert not found.centres and found.source is x


def test_a_gated_feed_forward_has_two_layers_that_read() -> None:
    b = Builder()
    x = b.input("x", (1, 4, 8))
    gate = dense(b, x, 32, 0)
    curve = b.op("MUL", gate, b.op("LOGISTIC", gate))
    inner = b.op("MUL", curve, dense(b, x, 32, 2))
    (found,) = structure_of(b.model(b.op("ADD", x, dense(b, inner, 8, 4)))).feed_forward
    assert len(found.up) == 2 and found.widths == (8, 32)


def test_the_steps_of_an_unrolled_lstm_are_one_recurrence() -> None:
    model = unrolled_lstm(3)
    found = structure_of(model)
    assert [len(steps) for steps in found.recurrence] == [3]
    assert all(cell.layers for cell in found.recurrence[0])
    assert "LSTM 1, step 2, state" in found.names.values()


def test_a_gru_is_told_from_an_lstm() -> None:
    (steps,) = structure_of(unrolled_gru(2)).recurrence
    assert [cell.kind for cell in steps] == ["GRU", "GRU"]


def test_an_lstm_whose_gates_share_one_curve_is_no_gru() -> None:
    b = Builder()
    x, before = b.input("x", (1, 6)), b.input("state", (1, 4))
    sums = b.op("FULLY_CONNECTED", x, noise(16, 6), noise(16))
    gates = b.op("LOGISTIC", b.op("SLICE", sums, [0, 0], [1, 12]))
    b.op("SPLIT", np.array(1, np.int32), gates, num_splits=3)
    enter, forget, leave = b.last.outputs
    new = b.op("TANH", b.op("SLICE", sums, [0, 12], [1, 4]))
    after = b.op("ADD", b.op("MUL", enter, new), b.op("MUL", forget, before))
    output = b.op("MUL", leave, b.op("TANH", after))
    found = structure_of(b.model(output, after))
    assert found.sentences == ["LSTM of 4, one step a run"]


def test_a_layer_whose_result_has_no_dimension_is_no_block() -> None:
    b = Builder()
    x = b.input("x", (1, 4))
    inner = b.op("FULLY_CONNECTED", x, noise(8, 4), None, fused_activation_function="RELU")
    last = b.op("FULLY_CONNECTED", inner, noise(4, 8), None, shape=())
    assert not structure_of(b.model(last)).feed_forward


def test_a_network_of_convolutions_has_no_attention() -> None:
    b = Builder()
    x = b.input("x", (1, 8, 8, 4))
    squeezed = b.op("MEAN", x, [1, 2], keep_dims=True)
    inner = b.op("CONV_2D", squeezed, noise(2, 1, 1, 4), noise(2), fused_activation_function="RELU")
    gate = b.op("LOGISTIC", b.op("CONV_2D", inner, noise(4, 1, 1, 2), noise(4)))
    found = structure_of(b.model(b.op("MUL", x, gate)))
    assert not found.sentences and not found.is_sequential


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_of_the_zoo_can_be_looked_at(name: str) -> None:
    model = MODELS[name]()
    found = structure_of(model)
    assert set(found.names) <= set(model.main.ops)
    assert set(names_by_output(found).values()) <= set(found.names.values())


def test_every_pattern_has_a_sentence_where_it_is_there() -> None:
    assert all(not list(describe(Structure())) for describe in PATTERNS.values())
    told = structure_of(transformer()).sentences + structure_of(unrolled_lstm()).sentences
    assert len(told) == len(PATTERNS)


def test_inspect_tells_the_parts() -> None:
    seen = inspect(transformer(), ops=True)
    assert seen.to_json()["structure"] == seen.structure.sentences
    assert any(row.get("part") == "block 1, attention softmax" for row in seen.to_rows())


def test_gelu_is_found_in_its_pieces() -> None:
    for how in ("whole", "logistic", "tanh"):
        b = Builder()
        x = b.input("x", (1, 4))
        (found,) = structure_of(b.model(gelu(b, x, how))).activation
        assert found.name == "GELU" and found.source is x
    b = Builder()
    x = b.input("x", (1, 4))
    assert not structure_of(b.model(b.op("MUL", x, np.float32(0.5)))).activation
