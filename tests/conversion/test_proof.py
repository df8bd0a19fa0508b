"""The proof of a conversion finds what is wrong, and where it begins."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from litesmith.conversion.onnx_file import read_onnx
from litesmith.conversion.proof import differences, first_difference, made_inputs
from litesmith.conversion.whole_model import lowered, tidied
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


def run(inputs: Mapping[str, Array], more: Sequence[str]) -> dict[str, Array]:
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
