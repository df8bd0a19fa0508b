"""Leveled models compute the same, and what int8 layers write keeps its small channels."""

import numpy as np
import pytest

from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply
from tests.quantized import snr
from tests.zoo import noise
from tests.zoo_blocks import PLACES, WIDTH, dense, runner, transformer
from tests.zoo_float import context

INPUTS = [np.random.default_rng(5).normal(size=(1, PLACES, WIDTH)).astype(np.float32)]


def block(stretch: float, kind: str = "ADD", activation: str = "NONE") -> Model:
    """A layer that stretches its first channel, added to what it reads."""
    b = Builder()
    x = b.input("x", (1, PLACES, WIDTH))
    weight = noise(WIDTH, WIDTH, scale=0.25)
    weight[0] *= stretch
    made = b.op(
        "FULLY_CONNECTED",
        x,
        weight,
        noise(WIDTH, seed=1),
        keep_num_dims=True,
        fused_activation_function=activation,
    )
    return b.model(b.op(kind, x, made))


@pytest.mark.parametrize("stretch", [20.0, 300.0, 1e5])
def test_the_float_model_computes_the_same(stretch: float) -> None:
    model = block(stretch)
    change = apply(model, "level", context(model))
    assert [op.kind for op in change.model.main.ops] == ["FULLY_CONNECTED", "MUL", "ADD"]
    assert len(change.touched) == 1
    before, after = runner(model)(INPUTS), runner(change.model)(INPUTS)
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5)


def test_the_other_channels_keep_their_steps_in_int8() -> None:
    model = block(300)
    data = context(model)
    plain = apply(model, "quantize(keep=[ADD])", data).model
    leveled = apply(model, "level | quantize(keep=[ADD, MUL])", data).model
    wanted = runner(model)(INPUTS)[..., 1:]
    before, after = (runner(one)(INPUTS)[..., 1:] for one in (plain, leveled))
    assert snr(after, wanted) > snr(before, wanted) + 20


def test_factors_are_what_int16_stores_without_an_error() -> None:
    model = block(300)
    product = apply(model, "level", context(model)).model.main.ops[1]
    assert product.inputs[1] is not None
    sizes = product.inputs[1].values().astype(np.float64)
    codes = sizes / (sizes.max() / 32767)
    np.testing.assert_allclose(codes, np.rint(codes), atol=5e-3)
    assert codes.min() >= 1


def test_even_channels_are_left_alone_unless_they_are_named() -> None:
    model = block(1)
    data = context(model)
    assert apply(model, "level", data).model is model
    assert len(apply(model, "level(only=[FULLY_CONNECTED])", data).touched) == 1


def test_what_no_sum_reads_is_left_alone() -> None:
    model = block(300, kind="MUL")
    assert apply(model, "level", context(model)).model is model


@pytest.mark.parametrize("activation", ["RELU6", "TANH"])
def test_an_activation_lets_no_factor_through(activation: str) -> None:
    model = block(300, activation=activation)
    change = apply(model, "level", context(model))
    assert change.model is model and "no straight line" in change.skipped[0].why


def test_without_data_nothing_is_changed() -> None:
    model = block(300)
    change = apply(model, "level")
    assert change.model is model and "give some" in change.skipped[-1].why


def test_channels_that_never_move_have_a_size_all_the_same() -> None:
    b = Builder()
    x = b.input("x", (1, PLACES, WIDTH))
    weight = noise(WIDTH, WIDTH)
    weight[3:9] = 0
    model = b.model(b.op("ADD", x, b.op("FULLY_CONNECTED", x, weight, None, keep_num_dims=True)))
    made = apply(model, "level(only=[FULLY_CONNECTED])", context(model)).model
    np.testing.assert_allclose(runner(made)(INPUTS), runner(model)(INPUTS), rtol=1e-5, atol=1e-5)


def test_a_layer_that_shares_its_weights_is_left_alone() -> None:
    b = Builder()
    x = b.input("x", (1, PLACES, WIDTH))
    weight = b.const(noise(WIDTH, WIDTH))
    first = b.op("FULLY_CONNECTED", x, weight, None, keep_num_dims=True)
    again = b.op("FULLY_CONNECTED", first, weight, None, keep_num_dims=True)
    model = b.model(b.op("ADD", x, again))
    change = apply(model, "level(only=[FULLY_CONNECTED])", context(model))
    assert change.model is model and len(change.skipped) == 2


def test_a_reach_that_all_have_is_refused() -> None:
    with pytest.raises(BadInput, match="above 1"):
        apply(transformer(1), "level(far=1)")


def test_layers_of_any_width_can_be_leveled() -> None:
    b = Builder()
    x = b.input("x", (1, PLACES, WIDTH))
    model = b.model(b.op("ADD", dense(b, x, 4, 7, stretch=500), noise(1, PLACES, 4)))
    assert apply(model, "level", context(model)).model is model, "a sum with a constant alone"
