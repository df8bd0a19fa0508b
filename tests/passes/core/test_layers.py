"""Layers: which ops are layers, their parts, and their parts as codes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.ir.build import Builder
from litesmith.ir.ops import OPS
from litesmith.ir.types import Op, Quant, Tensor
from litesmith.passes.core.layers import (
    coded_bias,
    coded_weight,
    layer_of,
    layers_of,
    real_bias,
    real_values,
    shared_by,
    stored_weight,
    unpacked_constants,
)
from litesmith.passes.core.recipe import apply
from tests.zoo import MODELS, noise
from tests.zoo_float import FLOATS

# The kinds that multiply one constant weight with data; weights of 3, 1 of 2 or 4 channels.
SHAPES = {
    "CONV_2D": (3, 1, 1, 2),
    "CONV_3D": (1, 1, 1, 2, 3),
    "CONV_3D_TRANSPOSE": (1, 1, 1, 3, 2),
    "DEPTHWISE_CONV_2D": (1, 1, 1, 3),
    "FULLY_CONNECTED": (3, 2),
    "TRANSPOSE_CONV": (3, 1, 1, 2),
}


def call(kind: str, weight: Tensor, bias: Tensor | None) -> Op:
    """An op with these parts; what else it takes does not matter here."""
    words = [word[0] for word in OPS[kind].inputs.split()]
    parts = {"w": weight, "b": bias, "x": Tensor("x", (1, 2)), "s": Tensor("s", (4,), "int32")}
    return Op(kind, tuple(parts[word] for word in words), (Tensor("y", (1, 3)),))


def const(array: np.ndarray) -> Tensor:
    return Builder().const(array, name="c")


@pytest.mark.parametrize("kind", SHAPES)
def test_parts(kind: str) -> None:
    weight, bias = const(noise(*SHAPES[kind])), const(noise(3))
    layer = layer_of(call(kind, weight, bias))
    assert layer is not None
    assert (layer.weight, layer.bias, layer.data.name) == (weight, bias, "x")
    assert layer.channels == 3
    np.testing.assert_array_equal(real_bias(layer), bias.values())


def test_no_other_kind_is_a_layer() -> None:
    for kind, row in OPS.items():
        words = [word[0] for word in row.inputs.split()]
        if kind not in SHAPES and row.is_full and set(words) <= {"x", "w", "b", "s"}:
            weight = const(noise(3, 2))
            parts = {"w": weight, "b": const(noise(3)), "x": weight, "s": weight}
            op = Op(kind, tuple(parts[word] for word in words), (Tensor("y", (1, 3)),))
            assert layer_of(op) is None, kind


@pytest.mark.parametrize("kind", SHAPES)
def test_what_is_computed_makes_no_layer(kind: str) -> None:
    weight = const(noise(*SHAPES[kind]))
    computed = Tensor("computed", SHAPES[kind])
    assert layer_of(call(kind, computed, None)) is None
    assert layer_of(call(kind, weight, Tensor("computed", (3,)))) is None
    assert layer_of(call(kind, const(np.zeros((*SHAPES[kind][:-1], 0), np.float32)), None)) is None


@pytest.mark.parametrize("kind", SHAPES)
def test_other_parts(kind: str) -> None:
    weight, other, bias = (const(noise(*SHAPES[kind], seed=s)) for s in (1, 2, 3))
    layer = layer_of(call(kind, weight, None))
    assert layer is not None
    np.testing.assert_array_equal(real_bias(layer), np.zeros(3))
    changed = layer_of(layer.with_parts(other, const(noise(3))))
    assert changed is not None and changed.weight is other and changed.bias is not None
    short = layer._replace(op=Op(kind, layer.op.inputs[: layer.bias_at], layer.op.outputs))
    assert short.bias is None
    assert short.with_parts(other, bias).inputs[-1] is bias
    assert len(short.with_parts(other, None).inputs) == layer.bias_at


@pytest.mark.parametrize("to", ["float16", "weight-int8", "weight-int4"])
def test_a_weight_behind_an_op_of_its_own_is_a_layers_weight(to: str) -> None:
    model = apply(FLOATS["computed_shape"](), f"quantize(to={to})").model
    layers = layers_of(model.main)
    assert [layer.op.kind for layer in layers.values()] == ["CONV_2D", "FULLY_CONNECTED"]
    for layer in layers.values():
        assert layer.unpack in unpacked_constants(model.main).values()
        assert layer.weight.is_const
        changed = layer.with_parts(layer.weight, layer.bias)
        assert changed.inputs == layer.op.inputs, "the weight is the other op's to change"


def test_layers_come_in_order() -> None:
    graph = FLOATS["residual"]().main
    assert list(layers_of(graph)) == [op for op in graph.ops if op.kind == "CONV_2D"]
    assert layers_of(MODELS["nothing"]().main) == {}


def test_layers_of_one_weight() -> None:
    graph = FLOATS["shared_weights"]().main
    (users,) = shared_by(list(layers_of(graph).values())).values()
    assert [layer.op for layer in users] == list(layers_of(graph))


@given(st.integers(0, 1000), st.sampled_from(["int8", "int4"]), st.integers(0, 2))
def test_codes_stand_for_the_weight(seed: int, dtype: str, axis: int) -> None:
    """To half a step of each channel's scale."""
    weight = const(noise(4, 3, 5, seed=seed))
    most = {"int8": 127, "int4": 7}[dtype]
    others = tuple(n for n in range(3) if n != axis)
    scales = np.abs(weight.values()).max(axis=others) / most
    coded = coded_weight(weight, dtype, scales, axis)
    step = np.expand_dims(scales, others)
    assert (np.abs(real_values(coded) - weight.values()) <= 0.5001 * step).all()
    assert coded.nbytes == (60 if dtype == "int8" else 30)
    again = stored_weight(coded, coded.values(), dtype, coded.quant)  # type: ignore[arg-type]
    np.testing.assert_array_equal(again.values(), coded.values())


@given(st.floats(1e-6, 10), st.floats(1e-6, 10), st.sampled_from(["int32", "int64"]))
def test_a_bias_is_coded_at_the_scale_of_the_products(
    size: float, input_scale: float, dtype: str
) -> None:
    layer = layer_of(call("FULLY_CONNECTED", const(noise(3, 2)), None))
    assert layer is not None
    quant = Quant.of(np.array([1, 0.5, 0.1], np.float32), 0, 0)
    bias = noise(3).astype(np.float64) * size
    coded = coded_bias(layer, bias, input_scale, quant, dtype)
    assert coded.dtype == dtype and coded.quant is not None
    steps = np.float32(input_scale) * quant.scale
    np.testing.assert_array_equal(coded.quant.scale, steps)
    assert (np.abs(real_values(coded) - bias) <= 0.5001 * steps).all()
