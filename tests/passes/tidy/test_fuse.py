"""What is fused into a layer, and why something is not."""

import numpy as np
import pytest

from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Quant, Tensor
from litesmith.passes.core.recipe import apply
from tests.runtime import run
from tests.zoo import noise


def kinds(model: Model) -> list[str]:
    return [op.kind for op in model.main.ops]


def fused(b: Builder, *outputs: Tensor, recipe: str = "fuse") -> tuple[Model, str]:
    model = b.model(*outputs)
    change = apply(model, recipe)
    for expected, result in zip(run(model), run(change.model), strict=True):
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    return change.model, " ".join(skip.why for skip in change.skipped)


def layer(b: Builder, kind: str = "CONV_2D", **options) -> Tensor:
    """A layer of four channels on an 8×8 image of four channels."""
    if kind == "FULLY_CONNECTED":
        return b.op(kind, b.input("x", (2, 6)), noise(4, 6), noise(4), **options)
    x = b.input("x", (1, 8, 8, 4))
    shape = (4, 3, 3, 4) if kind == "CONV_2D" else (1, 3, 3, 4)
    return b.op(kind, x, noise(*shape), noise(4), **options)


LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("arithmetic", ["MUL", "DIV", "ADD", "SUB"])
def test_arithmetic_goes_into_any_layer(kind: str, arithmetic: str) -> None:
    b = Builder()
    y = b.op(arithmetic, layer(b, kind), noise(4, seed=2) + 2, fused_activation_function="RELU")
    model, _ = fused(b, y)
    assert kinds(model) == [kind]
    assert model.main.ops[0].option("fused_activation_function") == "RELU"
    assert model.main.outputs == model.main.ops[0].outputs


def spread(b: Builder, kind: str) -> Tensor:
    """A transposed convolution to four channels, without a bias."""
    if kind == "TRANSPOSE_CONV":
        x = b.input("x", (1, 3, 3, 2))
        return b.op(kind, [1, 6, 6, 4], noise(4, 2, 2, 2), x, stride_h=2, stride_w=2)
    x = b.input("x", (1, 2, 3, 3, 2))
    return b.op(kind, [1, 2, 3, 3, 4], noise(1, 1, 1, 4, 2), x)


@pytest.mark.parametrize("kind", ["CONV_3D_TRANSPOSE", "TRANSPOSE_CONV"])
def test_normalization_after_a_transposed_convolution_goes_into_it(kind: str) -> None:
    b = Builder()
    scaled = b.op("MUL", b.op("ADD", spread(b, kind), noise(4)), noise(4, seed=1))
    assert kinds(fused(b, b.op("SUB", scaled, noise(4, seed=2)))[0]) == [kind]


def test_a_transposed_convolution_applies_no_activation() -> None:
    b = Builder()
    y = b.op("ADD", spread(b, "TRANSPOSE_CONV"), noise(4), fused_activation_function="RELU")
    model, why = fused(b, y)
    assert kinds(model) == ["TRANSPOSE_CONV", "ADD"]
    assert "cannot apply its activation" in why


def test_a_constant_may_come_first_where_order_does_not_matter() -> None:
    b = Builder()
    y = b.op("ADD", noise(4, seed=1), b.op("MUL", noise(4, seed=2), layer(b)))
    assert kinds(fused(b, y)[0]) == ["CONV_2D"]
    b = Builder()
    assert kinds(fused(b, b.op("SUB", noise(4), layer(b)))[0]) == ["CONV_2D", "SUB"]


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
def test_activations(activation: str) -> None:
    b = Builder()
    model, _ = fused(b, b.op(activation, b.op("ADD", b.input("x", (4,)), noise(4))))
    assert kinds(model) == ["ADD"]


def test_an_activation_between_keeps_arithmetic_out() -> None:
    b = Builder()
    model, why = fused(b, b.op("MUL", layer(b, fused_activation_function="RELU"), noise(4)))
    assert kinds(model) == ["CONV_2D", "MUL"]
    assert "an activation stands between" in why


def test_a_value_with_another_reader_is_not_fused_away() -> None:
    b = Builder()
    y = layer(b)
    model, _ = fused(b, b.op("RELU", y), b.op("ABS", y))
    assert kinds(model) == ["CONV_2D", "RELU", "ABS"]
    b = Builder()
    y = layer(b)
    assert kinds(fused(b, b.op("RELU", y), y)[0]) == ["CONV_2D", "RELU"]


def test_shared_weights_are_not_changed() -> None:
    b = Builder()
    w, bias, x = b.const(noise(4, 1, 1, 4)), b.const(noise(4)), b.input("x", (1, 4, 4, 4))
    scaled = b.op("MUL", b.op("CONV_2D", x, w, bias), noise(4, seed=3))
    model, why = fused(b, b.op("ADD", scaled, b.op("CONV_2D", x, w, bias)))
    assert "MUL" in kinds(model)
    assert "serve other ops too" in why


def test_a_shared_bias_is_no_obstacle() -> None:
    """Equal zero biases of several layers become one tensor when a model is cleaned up."""
    b = Builder()
    bias, x = b.const(np.zeros(4, np.float32)), b.input("x", (1, 4, 4, 4))
    for seed in (1, 2):
        x = b.op("CONV_2D", x, noise(4, 1, 1, 4, seed=seed), bias)
        x = b.op("ADD", b.op("MUL", x, noise(4, seed=seed)), noise(4, seed=seed + 5))
    model, _ = fused(b, x)
    assert kinds(model) == ["CONV_2D", "CONV_2D"]


def test_a_constant_that_is_not_one_a_channel_stays() -> None:
    b = Builder()
    model, why = fused(b, b.op("MUL", layer(b), noise(1, 8, 8, 1)))
    assert kinds(model) == ["CONV_2D", "MUL"]
    assert "(1, 8, 8, 1)" in why


def test_a_sum_of_two_layers_is_no_bias() -> None:
    b = Builder()
    x = b.input("x", (1, 4, 4, 4))
    one = b.op("CONV_2D", x, noise(4, 1, 1, 4), noise(4))
    two = b.op("CONV_2D", x, noise(4, 1, 1, 4, seed=1), noise(4))
    model, why = fused(b, b.op("ADD", one, two))
    assert kinds(model) == ["CONV_2D", "CONV_2D", "ADD"]
    assert not why


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize(
    ("size", "stride", "widths", "goes"),
    [
        (8, 1, (1, 1), True),
        (8, 2, (0, 1), True),
        (7, 2, (1, 1), True),
        (8, 2, (1, 1), False),
        (8, 1, (2, 2), False),
    ],
)
def test_pad(kind: str, size: int, stride: int, widths: tuple[int, int], goes: bool) -> None:
    b = Builder()
    x = b.op("PAD", b.input("x", (1, size, size, 4)), [(0, 0), widths, widths, (0, 0)])
    shape = (4, 3, 3, 4) if kind == "CONV_2D" else (1, 3, 3, 4)
    y = b.op(kind, x, noise(*shape), noise(4), padding="VALID", stride_h=stride, stride_w=stride)
    model, why = fused(b, y)
    assert kinds(model) == ([kind] if goes else ["PAD", kind])
    assert goes or "where SAME pads by" in why


def test_a_pad_of_channels_or_with_another_reader_stays() -> None:
    b = Builder()
    x = b.op("PAD", b.input("x", (1, 8, 8, 3)), [(0, 0), (1, 1), (1, 1), (0, 1)])
    y = b.op("CONV_2D", x, noise(4, 3, 3, 4), noise(4), padding="VALID")
    assert kinds(fused(b, y)[0]) == ["PAD", "CONV_2D"]


def test_quantized_activation_only_at_the_same_scale() -> None:
    for scale, expected in ((0.1, ["ADD"]), (0.2, ["ADD", "RELU"])):
        b = Builder()
        x = b.input("x", (4,), "int8", Quant.of(0.1))
        y = b.op("ADD", x, x, quant=Quant.of(0.1), version=2)
        model = b.model(b.op("RELU", y, quant=Quant.of(scale), version=2))
        result = apply(model, "fuse").model
        assert kinds(result) == expected
        np.testing.assert_array_equal(run(model)[0], run(result)[0])


def test_numbers_that_leave_float32_stay_apart() -> None:
    b = Builder()
    y = b.op(
        "MUL",
        b.op(
            "CONV_2D",
            b.input("x", (1, 2, 2, 1)),
            np.full((1, 1, 1, 1), 3e38, np.float32),
            np.zeros(1, np.float32),
        ),
        np.float32(10),
    )
    change = apply(b.model(y), "fuse")
    assert "leaves the range of float32" in change.skipped[0].why


def test_each_setting_switches_its_own_rule_off() -> None:
    def model() -> Model:
        b = Builder()
        x = b.op("PAD", b.input("x", (1, 8, 8, 4)), [(0, 0), (1, 1), (1, 1), (0, 0)])
        x = b.op("CONV_2D", x, noise(4, 3, 3, 4), noise(4), padding="VALID")
        return b.model(b.op("RELU", b.op("ADD", b.op("MUL", x, noise(4)), noise(4))))

    assert kinds(apply(model(), "fuse").model) == ["CONV_2D"]
    for setting, kept in (
        ("pad", "PAD"),
        ("scale", "MUL"),
        ("bias", "ADD"),
        ("activation", "RELU"),
    ):
        assert kept in kinds(apply(model(), f"fuse({setting}=false)").model)


def test_what_follows_a_shuffle_to_places_goes_into_the_layer_before_it() -> None:
    b = Builder()
    x = b.input("x", (1, 3, 3, 4))
    y = b.op("DEPTH_TO_SPACE", b.op("CONV_2D", x, noise(8, 1, 1, 4), noise(8)), block_size=2)
    y = b.op("MUL", b.op("ADD", y, noise(2, seed=1)), noise(1, 1, 1, 2, seed=2))
    model, _ = fused(b, b.op("RELU", b.op("SUB", y, np.float32(0.5))))
    assert kinds(model) == ["CONV_2D", "DEPTH_TO_SPACE"]


MOVES = {
    "RESHAPE to more axes": lambda b, y: b.op("RESHAPE", y, [1, 1, 9, 8]),
    "RESHAPE to fewer": lambda b, y: b.op("RESHAPE", y, [9, 8]),
    "RESHAPE of the channels": lambda b, y: b.op("RESHAPE", y, [1, 9, 2, 4]),
    "SQUEEZE": lambda b, y: b.op("SQUEEZE", y, squeeze_dims=[0]),
    "EXPAND_DIMS": lambda b, y: b.op("EXPAND_DIMS", y, np.array(1, np.int32)),
    "TRANSPOSE": lambda b, y: b.op("TRANSPOSE", y, [0, 3, 1, 2]),
}


@pytest.mark.parametrize("name", MOVES)
def test_an_activation_goes_in_front_of_what_only_moves_values(name: str) -> None:
    b = Builder()
    y = b.op("CONV_2D", b.input("x", (1, 3, 3, 4)), noise(8, 1, 1, 4), noise(8))
    y = MOVES[name](b, y)
    y = b.op("MUL", y, np.full((1,) * len(y.shape), 0.5, np.float32))
    model, _ = fused(b, b.op("RELU", y))
    assert kinds(model) == ["CONV_2D", name.split()[0]]


@pytest.mark.parametrize("name", ["RESHAPE to more axes", "RESHAPE to fewer", "SQUEEZE"])
def test_a_scale_for_each_channel_goes_in_front_of_a_reshape_that_keeps_them(name: str) -> None:
    b = Builder()
    y = b.op("CONV_2D", b.input("x", (1, 3, 3, 4)), noise(8, 1, 1, 4), noise(8))
    y = MOVES[name](b, y)
    per_channel = noise(*[1] * (len(y.shape) - 1), 8, seed=3)
    model, _ = fused(b, b.op("RELU", b.op("ADD", b.op("MUL", y, per_channel), noise(8, seed=4))))
    assert kinds(model) == ["CONV_2D", name.split()[0]]


@pytest.mark.parametrize("name", ["RESHAPE of the channels", "TRANSPOSE"])
def test_a_scale_stays_behind_what_moves_the_channels(name: str) -> None:
    b = Builder()
    y = b.op("CONV_2D", b.input("x", (1, 3, 3, 4)), noise(8, 1, 1, 4), noise(8))
    y = MOVES[name](b, y)
    model, _ = fused(b, b.op("MUL", y, noise(y.shape[-1], seed=3)))
    assert kinds(model) == ["CONV_2D", name.split()[0], "MUL"]


def test_what_differs_by_place_stays_behind_the_shuffle() -> None:
    b = Builder()
    x = b.input("x", (1, 3, 3, 4))
    y = b.op("DEPTH_TO_SPACE", b.op("CONV_2D", x, noise(8, 1, 1, 4), noise(8)), block_size=2)
    model, _ = fused(b, b.op("RELU", b.op("ADD", y, noise(1, 6, 1, 2))))
    assert kinds(model) == ["CONV_2D", "DEPTH_TO_SPACE", "ADD"]
