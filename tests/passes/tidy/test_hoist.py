"""What the steps of a recurrence make of their inputs is made at once; results stay."""

from collections.abc import Callable

import numpy as np
import pytest

from litesmith import Builder, Model
from litesmith.calibration.quantize_effort import tidying
from litesmith.ir.types import Tensor
from litesmith.passes.core.recipe import apply, text_of
from litesmith.passes.tidy.hoist import is_worth_hoisting
from tests.zoo_blocks import dense, noise, runner, two_product_lstm, unrolled_gru, unrolled_lstm


def results(model: Model) -> np.ndarray:
    random = np.random.default_rng(1)
    shapes = [tensor.shape for tensor in model.main.inputs]
    return runner(model)([random.normal(size=shape).astype(np.float32) for shape in shapes])


def joined_gru() -> Model:
    """A GRU as TensorFlow writes it: gates and candidate each read the input beside the state."""
    b = Builder()
    hidden = b.input("h", (1, 8))
    whole = b.input("x", (1, 3, 4))
    gates, fresh = b.const(noise(16, 12)), b.const(noise(8, 12, seed=2))
    for n in range(3):
        x = b.op("RESHAPE", b.op("SLICE", whole, [0, n, 0], [1, 1, 4]), [1, 4])
        both = b.op("LOGISTIC", b.op("FULLY_CONNECTED", _beside(b, x, hidden), gates, None))
        reset, update = (b.op("SLICE", both, [0, k], [1, 8]) for k in (0, 8))
        given = _beside(b, x, b.op("MUL", reset, hidden))
        new = b.op("TANH", b.op("FULLY_CONNECTED", given, fresh, None))
        rest = b.op("SUB", np.float32(1), update)
        hidden = b.op("ADD", b.op("MUL", update, hidden), b.op("MUL", rest, new))
    return b.model(hidden)


def _beside(b: Builder, x: Tensor, hidden: Tensor) -> Tensor:
    return b.op("CONCATENATION", x, hidden, axis=1)


@pytest.mark.parametrize(
    ("make", "count"), [(unrolled_lstm, 1), (two_product_lstm, 1), (joined_gru, 2)]
)
def test_inputs_are_multiplied_once_for_all_steps(make: Callable[[], Model], count: int) -> None:
    model = make()
    change = apply(model, "hoist")
    assert len(change.touched) == count
    rows = [
        op.inputs[0].shape[0]
        for op in change.model.main.ops
        if op.kind == "FULLY_CONNECTED" and op.inputs[0] is not None
    ]
    assert rows.count(3) == count
    np.testing.assert_allclose(results(change.model), results(model), atol=1e-6)


def test_a_second_time_finds_nothing() -> None:
    once = apply(unrolled_lstm(), "hoist").model
    assert not apply(once, "hoist").touched


def test_layers_that_share_a_weight_without_a_state_are_left_alone() -> None:
    b = Builder()
    weight = b.const(noise(8, 4))
    sides = [b.op("FULLY_CONNECTED", b.input(name, (1, 4)), weight, None) for name in "xy"]
    assert not apply(b.model(b.op("ADD", *sides)), "hoist").touched


def test_steps_with_weights_of_their_own_are_left_alone() -> None:
    assert not apply(unrolled_gru(), "hoist").touched


def test_it_is_worth_it_where_weights_are_many() -> None:
    assert is_worth_hoisting(unrolled_lstm(width=256))
    assert not is_worth_hoisting(unrolled_lstm())
    b = Builder()
    assert not is_worth_hoisting(b.model(dense(b, b.input("x", (1, 4)), 8, 1)))


@pytest.mark.parametrize("width", [8, 256])
def test_a_file_with_float16_weights_is_prepared_as_its_original(width: int) -> None:
    """Its weights are unpacked before anything asks which layers share one."""
    model = unrolled_lstm(width=width)
    half = apply(model, "quantize(to=float16)").model
    prepared = text_of(tidying(half, ()))
    assert prepared == text_of(tidying(model, ())).replace("fold", "fold(float16=true)")
    assert len(apply(half, prepared).touched) > 0
    np.testing.assert_allclose(results(apply(half, prepared).model), results(half), atol=1e-5)
