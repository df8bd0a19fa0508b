"""`relayout`: the same answers, never more transposes, none inside where none is needed."""

from collections.abc import Callable

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from hypothesis import given
from hypothesis import strategies as st

from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.recipe import apply
from litesmith.passes.tidy.axis_order import first, last
from litesmith.passes.tidy.relayout import Relayout, relayout
from litesmith.tflite.write import to_bytes
from tests.zoo import noise


def answers(model: Model, *inputs: np.ndarray) -> list[np.ndarray]:
    opened = Interpreter(model_content=to_bytes(model))
    opened.allocate_tensors()
    for detail, value in zip(opened.get_input_details(), inputs, strict=True):
        opened.set_tensor(detail["index"], value)
    opened.invoke()
    return [opened.get_tensor(d["index"]).copy() for d in opened.get_output_details()]


def transposes(model: Model) -> int:
    return sum(op.kind == "TRANSPOSE" for op in model.main.ops)


class FirstBuilder(Builder):
    """Channels first, with a TRANSPOSE on both sides of what wants channels last."""

    def conv(self, x: Tensor, channels: int) -> Tensor:
        inner = self.op("TRANSPOSE", x, list(last(4)))
        made = self.op("CONV_2D", inner, noise(channels, 3, 3, x.shape[1]), noise(channels))
        return self.op("TRANSPOSE", made, list(first(4)))

    def norm(self, x: Tensor) -> Tensor:
        scaled = self.op("MUL", x, noise(x.shape[1], 1, 1, seed=3))
        return self.op("ADD", scaled, noise(1, x.shape[1], 1, 1, seed=4))


STEPS: dict[str, Callable[[FirstBuilder, Tensor], Tensor]] = {
    "conv": lambda b, x: b.conv(x, 4),
    "norm": lambda b, x: b.norm(x),
    "relu": lambda b, x: b.op("RELU", x),
    "twice": lambda b, x: b.op("ADD", x, b.op("TANH", x)),
    "join": lambda b, x: b.op("CONCATENATION", x, b.op("NEG", x), axis=1),
    "split": lambda b, x: b.op("SPLIT", np.array(1, np.int32), x, num_splits=2),
    "pad": lambda b, x: b.op("PAD", x, [[0, 0], [0, 0], [1, 0], [0, 2]]),
    "cut": lambda b, x: b.op("SLICE", x, [0, 1, 0, 1], [1, x.shape[1] - 1, 2, x.shape[3] - 1]),
    "mean": lambda b, x: b.op("MEAN", x, [2, 3], keep_dims=True),
    "largest": lambda b, x: b.op("REDUCE_MAX", x, [-1], keep_dims=True),
    "turn": lambda b, x: b.op("REVERSE_V2", x, [1]),
    "pick": lambda b, x: b.op("GATHER", x, np.array([1, 0], np.int32), axis=1),
    "flat": lambda b, x: b.op(
        "RESHAPE",
        b.op("RESHAPE", x, [x.shape[0], x.shape[1], x.shape[2] * x.shape[3]]),
        list(x.shape),
    ),
    "swap": lambda b, x: b.op("TRANSPOSE", x, [0, 1, 3, 2]),
    "softmax": lambda b, x: b.op("SOFTMAX", x),
}


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=7), st.booleans())
def test_the_same_answers_and_never_more_transposes(steps: list[str], images: bool) -> None:
    b = FirstBuilder()
    x = y = b.input("x", (1, 4, 6, 5))
    for name in steps:
        if min(y.shape[1:]) < 2 and name in ("split", "cut", "pick"):
            continue
        if name == "split" and y.shape[1] % 2:
            continue
        y = STEPS[name](b, y)
    model = b.model(b.op("EXP", b.op("MUL", y, np.float32(0.1))), signature="run")
    done = relayout(model, images)
    value = noise(1, 4, 6, 5, seed=9)
    given_value = value.transpose(last(4)) if x.name in done.turned else value
    wanted, found = answers(model, value)[0], answers(done.change.model, given_value)[0]
    output = model.main.outputs[0].name
    found = found.transpose(first(4)) if output in done.turned else found
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert transposes(done.change.model) <= transposes(model)
    assert [t.name for t in done.change.model.main.inputs] == ["x"]
    assert done.change.model.main.outputs[0].name == output
    if not images:
        assert not done.turned
        assert done.change.model.main.outputs[0].shape == model.main.outputs[0].shape


@pytest.mark.parametrize("images", [False, True])
def test_a_network_that_came_from_channels_first_keeps_transposes_at_its_ends_alone(
    images: bool,
) -> None:
    b = FirstBuilder()
    x = b.input("x", (1, 3, 8, 8))
    y = b.op("RELU", b.norm(b.conv(x, 4)))
    y = b.op("CONCATENATION", b.conv(y, 4), y, axis=1)
    gate = b.op("LOGISTIC", b.conv(b.op("MEAN", y, [2, 3], keep_dims=True), 8))
    model = b.model(b.conv(b.op("MUL", y, gate), 2))
    change = Relayout(images=images).apply(model, None)  # type: ignore[arg-type]
    tidy = apply(change.model, "cleanup").model
    assert transposes(tidy) == (0 if images else 2)


def test_lines_have_an_order_too() -> None:
    """Of three dimensions both orders are one swap: which is which is seen around it."""
    b = Builder()
    x = y = b.input("x", (1, 4, 9))
    for _ in range(3):
        inner = b.op("RESHAPE", b.op("TRANSPOSE", y, [0, 2, 1]), [1, 1, 9, 4])
        made = b.op("CONV_2D", inner, noise(4, 1, 3, 4), noise(4))
        y = b.op("RELU", b.op("TRANSPOSE", b.op("RESHAPE", made, [1, 9, 4]), [0, 2, 1]))
    model = b.model(y)
    done = apply(model, "relayout | cleanup").model
    assert transposes(done) == 2
    value = noise(*x.shape)
    np.testing.assert_allclose(answers(done, value)[0], answers(model, value)[0], rtol=1e-5)


def test_a_model_of_channels_last_stays_what_it_is() -> None:
    b = Builder()
    y = b.op("CONV_2D", b.input("x", (1, 6, 6, 3)), noise(4, 3, 3, 3), noise(4))
    model = b.model(b.op("RELU", y))
    change = apply(model, "relayout")
    assert not change.touched
    assert to_bytes(change.model) == to_bytes(model)


def test_turns_of_one_place_that_are_reshapes_go_too() -> None:
    """A gate of channels has one place, where a cleanup before has made reshapes of transposes."""
    b = FirstBuilder()
    x = y = b.input("x", (1, 4, 6, 6))
    y = b.conv(y, 8)
    gate = b.conv(b.op("MEAN", y, [2, 3], keep_dims=True), 2)
    gate = b.op("LOGISTIC", b.conv(b.op("RELU", gate), 8))
    model = b.model(b.conv(b.op("MUL", y, gate), 4))
    done = apply(model, "cleanup | relayout(images=true) | cleanup | fuse").model
    kinds = [op.kind for op in done.main.ops]
    assert kinds == ["CONV_2D", "MEAN", "CONV_2D", "CONV_2D", "LOGISTIC", "MUL", "CONV_2D"]
    value = noise(*x.shape)
    found = answers(done, value.transpose(last(4)))[0].transpose(first(4))
    np.testing.assert_allclose(found, answers(model, value)[0], rtol=1e-4, atol=1e-5)


def test_a_tensor_beside_its_own_transpose_keeps_it() -> None:
    b = Builder()
    x = b.input("x", (1, 5, 5))
    turned = b.op("TRANSPOSE", b.op("TANH", b.op("NEG", x)), [0, 2, 1])
    model = b.model(b.op("ADD", x, turned))
    value = noise(1, 5, 5)
    done = apply(model, "relayout").model
    np.testing.assert_array_equal(answers(done, value)[0], answers(model, value)[0])
