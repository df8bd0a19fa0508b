"""What is computed ahead of time, and what is not."""

from dataclasses import replace

import numpy as np

from litesmith.calibration.quantize_effort import plan
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply, text_of
from litesmith.passes.core.schemes import SCHEMES
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.tflite.write import to_bytes
from tests.zoo import half_weights, noise, resizable, sparse


def kinds(model: Model) -> list[str]:
    return [op.kind for op in model.main.ops]


def test_a_constant_chain_becomes_its_value() -> None:
    b = Builder()
    x = b.input("x", (3,))
    y = b.op("MUL", b.op("NEG", b.op("ADD", noise(3), noise(3, seed=1))), np.float32(2))
    model = apply(b.model(b.op("ADD", x, y)), "fold").model
    assert kinds(model) == ["ADD"]
    folded = model.main.ops[0].inputs[1]
    assert folded is not None
    np.testing.assert_array_equal(folded.values(), -(noise(3) + noise(3, seed=1)) * 2)
    assert not folded.values().flags.writeable


def test_a_result_that_outgrows_its_inputs_is_not_stored() -> None:
    b = Builder()
    big = b.op("BROADCAST_TO", np.float32(1).reshape(1, 1), [64, 64], version=2)
    change = apply(b.model(b.op("ADD", b.input("x", (64, 64)), big)), "fold")
    assert kinds(change.model) == ["BROADCAST_TO", "ADD"]
    assert "16.4 KB" in change.skipped[0].why


def test_an_output_of_the_graph_stays_computed() -> None:
    b = Builder()
    y = b.op("NEG", noise(3))
    change = apply(b.model(y, b.op("ABS", b.input("x", (3,)))), "fold")
    assert kinds(change.model) == ["NEG", "ABS"]
    assert "output of the graph" in change.skipped[0].why


def test_float16_is_unpacked_only_when_asked() -> None:
    model = half_weights()
    kept = apply(model, "fold")
    assert kinds(kept.model) == kinds(model)
    assert all("fold(float16=true)" in skip.why for skip in kept.skipped)
    asked = apply(model, "fold(float16=true)").model
    assert kinds(asked) == ["FULLY_CONNECTED"]
    assert len(to_bytes(asked)) > len(to_bytes(kept.model))


def test_sparse_weights_are_written_out_only_when_asked() -> None:
    """Layers behind them were left float by every scheme."""
    listed = sparse().main.ops[0].inputs[1]
    b = Builder()
    weight = b.op("DENSIFY", listed, shape=(2, 4))
    model = b.model(b.op("FULLY_CONNECTED", b.input("x", (1, 4)), weight, None))
    kept = apply(model, "fold")
    assert kinds(kept.model) == kinds(model) and "fold(sparse=true)" in kept.skipped[0].why
    (layer,) = apply(model, "fold(sparse=true)").model.main.ops
    np.testing.assert_array_equal(layer.inputs[1].values(), [[1, 0, 0, 2], [0, 0, 3, 0]])
    first = {
        to: plan(model, Quantize(to=to), "default", has_data=True).recipes[0] for to in SCHEMES
    }
    unpacked = {to for to, recipe in first.items() if "sparse=true" in text_of(recipe)}
    assert {"int8", "dynamic", "int16x8", "w4a8"} <= unpacked and "float16" not in unpacked


def test_shapes_are_final_only_when_fixed_or_asked() -> None:
    kept = apply(resizable(), "fold")
    assert "SHAPE" in kinds(kept.model)
    assert "fold(shapes=true)" in kept.skipped[0].why
    assert kinds(apply(resizable(), "fold(shapes=true)").model) == ["RESHAPE"]
    b = Builder()
    fixed = b.model(b.op("ADD", b.op("SHAPE", b.input("x", (2, 4))), [1, 1]))
    assert kinds(apply(fixed, "fold").model) == ["ADD"]


def test_chance_and_effects_are_not_folded() -> None:
    b = Builder()
    y = b.op("ADD", b.input("x", (4,)), b.op("RANDOM_UNIFORM", [4], seed=1))
    assert "RANDOM_UNIFORM" in kinds(apply(b.model(y), "fold").model)


def test_a_promised_shape_that_is_wrong_is_left_to_the_runtime() -> None:
    """A FILL that claims to be small must not be believed."""
    b = Builder()
    filled = b.op("FILL", [1000, 1000], np.float32(1))
    b.ops[-1] = replace(b.ops[-1], outputs=(replace(filled, shape=(1,)),))
    change = apply(b.model(b.op("ABS", b.ops[-1].outputs[0])), "fold")
    assert kinds(change.model) == ["FILL", "ABS"]


def test_an_op_without_a_kernel_is_named() -> None:
    b = Builder()
    word = b.op("BITCAST", np.array([1, 2], np.int32), shape=(2,), dtype="float32")
    change = apply(b.model(b.op("ADD", b.input("x", (2,)), word)), "fold")
    assert [skip.why for skip in change.skipped] == ["there is no reference kernel for it"]
