"""The proof of a conversion finds what is wrong, and where it begins."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from litesmith.conversion.lower_model import lowered, tidied
from litesmith.conversion.onnx_file import read_onnx
from litesmith.conversion.proof import Run, differences, first_difference, made_inputs
from litesmith.ir.edit import rewrite, with_main
from litesmith.ir.types import Array, Model
from tests.conversion.beside_onnx import expected, onnx, onnx_model
from tests.zoo import noise

node = onnx.helper.make_node
STEPS = 9


def chain(upto: int = STEPS):
    """Sums of constants and hyperbolic tangents, one after the other."""
    constants = {f"c{i}": noise(1, 4, seed=i) for i in range(upto)}
    nodes = []
    for i in range(upto):
        nodes.append(node("Add", [f"t{i}" if i else "x", f"c{i}"], [f"s{i}"]))
        nodes.append(node("Tanh", [f"s{i}"], [f"t{i + 1}"]))
    output = f"t{upto}"
    return onnx_model(nodes, [("x", "float32", [1, 4])], [(output, "float32", [1, 4])], constants)


Given = Mapping[str, Array]


def each(one: Callable[[Given, Sequence[str]], Given]) -> Run:
    """What runs a source on some inputs, from what runs it on one."""
    return lambda samples, more: [one(inputs, more) for inputs in samples]


@each
def run(inputs: Given, more: Sequence[str]) -> dict[str, Array]:
    """What onnxruntime gives for the chain, and for the values in it that are asked for."""
    model = chain()
    for name in more:
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, 1, [1, 4]))
    names = [value.name for value in model.graph.output]
    return dict(zip(names, expected(model, inputs), strict=True))


@pytest.fixture
def made(tmp_path: Path) -> Model:
    path = tmp_path / "chain.onnx"
    path.write_bytes(chain().SerializeToString())
    model = lowered(read_onnx(path)).model
    assert model is not None
    return model


def broken(model: Model, at: int) -> Model:
    """The model with another constant in one of its sums."""
    op = [op for op in model.main.ops if op.kind == "ADD"][at]
    constant = op.inputs[1]
    assert constant is not None and constant.data is not None

    wrong = replace(constant, data=np.ascontiguousarray(constant.data + np.float32(0.5)))
    return with_main(model, rewrite(model.main, tensors={constant: wrong}))


def test_a_right_model_differs_by_float_error_alone(made: Model) -> None:
    final, turned = tidied(made, keep_layout=False)
    found = differences(final, turned, [made_inputs(final, turned)], run)
    assert [one.output for one in found] == [f"t{STEPS}"]
    assert all(one.is_float_error for one in found)


@pytest.mark.parametrize("at", [0, 4, STEPS - 1])
def test_the_first_wrong_value_is_named(made: Model, at: int) -> None:
    wrong = broken(made, at)
    inputs = made_inputs(wrong, frozenset())
    found = differences(wrong, frozenset(), [inputs], run)
    assert not found[0].is_float_error
    values = [name for i in range(STEPS) for name in (f"s{i}", f"t{i + 1}")]
    assert first_difference(wrong, values, inputs, run) == f"s{at}"
    assert first_difference(made, values, inputs, run) == ""


@pytest.mark.parametrize("rows", [1, 2, 5, 100])
def test_made_indices_lie_in_their_table(rows: int, tmp_path: Path) -> None:
    """Kinds of words are two in many models: an index beyond them has no answer."""
    table = noise(rows, 4)
    model = onnx_model(
        [node("Gather", ["table", "kinds"], ["y"])],
        [("kinds", "int64", [1, 64])],
        [("y", "float32", [1, 64, 4])],
        {"table": table},
    )
    path = tmp_path / "kinds.onnx"
    path.write_bytes(model.SerializeToString())
    converted = lowered(read_onnx(path)).model
    assert converted is not None
    drawn = np.stack([made_inputs(converted, frozenset(), seed)["kinds"] for seed in range(4)])
    assert drawn.min() >= 0 and rows - 10 <= drawn.max() < rows


def test_last_digits_of_constants_explain_a_difference_where_inputs_have_none(
    tmp_path: Path,
) -> None:
    """Scores of about 1e5 are 0.008 apart in float32: their softmax is another with every order of
    adding up, and whole numbers as inputs have no last digits that would show it."""
    table, w = noise(50, 768), noise(768, 512, seed=1)
    table[:, 0], w[0] = 1000, 100
    sure = onnx_model(
        [
            node("Gather", ["table", "ids"], ["rows"]),
            node("MatMul", ["rows", "w"], ["scores"]),
            node("Softmax", ["scores"], ["y"]),
        ],
        [("ids", "int64", [1, 8])],
        [("y", "float32", [1, 8, 512])],
        {"table": table, "w": w},
    )
    path = tmp_path / "sure.onnx"
    path.write_bytes(sure.SerializeToString())
    converted = lowered(read_onnx(path)).model
    assert converted is not None

    @each
    def other(inputs: Mapping[str, Array], more: Sequence[str]) -> dict[str, Array]:
        """The same by another order of adding up."""
        weights = {one.name: onnx.numpy_helper.to_array(one) for one in sure.graph.initializer}
        rows = weights["table"][inputs["ids"]]
        scores = sum(rows[..., n::64] @ weights["w"][n::64] for n in range(64))
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return {"y": (powers / powers.sum(-1, keepdims=True)).astype(np.float32)}

    samples = [made_inputs(converted, frozenset(), seed) for seed in range(4)]
    found = differences(converted, frozenset(), samples, other)
    assert all(one.is_float_error for one in found)
    wrong = {"y": np.roll(other(samples[:1], ())[0]["y"], 1, -1)}
    found = differences(converted, frozenset(), samples[:1], each(lambda inputs, more: wrong))
    assert not any(one.is_float_error for one in found)


def test_probabilities_differ_by_shares_of_one(tmp_path: Path) -> None:
    """Where all scores are low, the last digits of their probabilities are no error."""
    steps = ("Add", ["x", "low"], ["s"]), ("Sigmoid", ["s"], ["p"]), ("Reshape", ["p", "n"], ["y"])
    low = onnx_model(
        [node(*step) for step in steps],
        [("x", "float32", [1, 8])],
        [("y", "float32", [2, 4])],
        {"low": np.full(8, -16, np.float32), "n": np.array([2, 4])},
    )
    path = tmp_path / "low.onnx"
    path.write_bytes(low.SerializeToString())
    converted = lowered(read_onnx(path)).model
    assert converted is not None
    inputs = made_inputs(converted, frozenset())
    near, far = (each(lambda given, _, off=off: off_by(given, off)) for off in (1e-7, 1e-2))
    (one,) = differences(converted, frozenset(), [inputs], near)
    assert one.is_float_error and one.share < 1e-6
    (one,) = differences(converted, frozenset(), [inputs], far)
    assert not one.is_float_error


def off_by(inputs: Mapping[str, Array], amount: float) -> dict[str, Array]:
    right = 1 / (1 + np.exp(16 - inputs["x"].astype(np.float64)))
    return {"y": (right + amount).astype(np.float32).reshape(2, 4)}
