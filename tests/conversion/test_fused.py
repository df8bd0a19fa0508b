"""Operators that onnxruntime's optimizer makes: LiteRT gives what onnxruntime gives."""

from pathlib import Path

import pytest

from tests.conversion.beside_onnx import converted, onnx, onnx_model, same
from tests.zoo import noise

node = onnx.helper.make_node
OWN = {"domain": "com.microsoft"}

X, SKIP = ("x", "float32", [2, 3, 8]), ("skip", "float32", [2, 3, 8])
Y = ("y", "float32", [2, 3, 8])
VECTORS = {name: noise(8, seed=i) for i, name in enumerate(("g", "b", "c"))}

LINES = {
    "BiasGelu": node("BiasGelu", ["x", "b"], ["y"], **OWN),
    "FastGelu": node("FastGelu", ["x", "b"], ["y"], **OWN),
    "Gelu": node("Gelu", ["x"], ["y"], **OWN),
    "QuickGelu": node("QuickGelu", ["x"], ["y"], alpha=1.5, **OWN),
    "SkipLayerNormalization": node(
        "SkipLayerNormalization", ["x", "skip", "g", "b", "c"], ["y", "", "", "sum"], **OWN
    ),
    "SkipSimplifiedLayerNormalization": node(
        "SkipSimplifiedLayerNormalization", ["x", "skip", "g"], ["y"], epsilon=1e-5, **OWN
    ),
}


@pytest.mark.parametrize("kind", LINES)
def test_lines_of_features(kind: str, tmp_path: Path) -> None:
    line = LINES[kind]
    inputs = [value for value in (X, SKIP) if value[0] in line.input]
    outputs = [Y, ("sum", "float32", [2, 3, 8])][: 1 + ("sum" in line.output)]
    constants = {name: v for name, v in VECTORS.items() if name in line.input}
    model = onnx_model([line], inputs, outputs, constants)
    given = {name: noise(2, 3, 8, seed=i) for i, (name, _, _) in enumerate(inputs)}
    same(model, given, tmp_path, tolerance=5e-4 if kind == "FastGelu" else 1e-5)


@pytest.mark.parametrize(("activation", "numbers"), [("Relu", []), ("LeakyRelu", [0.2])])
def test_a_convolution_with_what_follows(
    activation: str, numbers: list[float], tmp_path: Path
) -> None:
    more = {"activation_params": numbers} if numbers else {}
    line = node("FusedConv", ["x", "w", "b"], ["y"], activation=activation, **more, **OWN)
    ends = [("x", "float32", [1, 3, 6, 6])], [("y", "float32", [1, 4, 4, 4])]
    model = onnx_model([line], *ends, {"w": noise(4, 3, 3, 3), "b": noise(4)})
    same(model, {"x": noise(1, 3, 6, 6)}, tmp_path, tolerance=1e-4)


def test_a_product_of_turned_matrices(tmp_path: Path) -> None:
    line = node("FusedMatMul", ["x", "w"], ["y"], alpha=0.5, transB=1, **OWN)
    ends = [("x", "float32", [2, 3, 8])], [("y", "float32", [2, 3, 5])]
    same(onnx_model([line], *ends, {"w": noise(5, 8)}), {"x": noise(2, 3, 8)}, tmp_path)


def test_the_others_are_told_where_they_come_from(tmp_path: Path) -> None:
    line = node("LongformerAttention", ["x"], ["y"], **OWN)
    (left,) = converted(onnx_model([line], [X], [Y]), tmp_path).left
    assert "convert the file from before that" in left.why
