"""Quantized models: the source's scales carried over, integers wherever LiteRT has the kernels."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from litesmith.ir.types import Model
from tests.conversion.beside_onnx import (
    answers,
    converted,
    expected,
    lowered_model,
    onnx,
    onnx_model,
    runner,
    same,
)

F = np.float32


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(F)


def node(kind: str, inputs: str, outputs: str, **extra):
    return onnx.helper.make_node(kind, inputs.split(" "), outputs.split(), **extra)


def kinds(model: Model) -> Counter[str]:
    return Counter(op.kind for op in model.main.ops)


def float_ops(model: Model) -> list[str]:
    """Ops that compute on float, conversions aside."""
    return [
        op.kind
        for op in model.main.ops
        if op.kind not in ("QUANTIZE", "DEQUANTIZE")
        and any(t is not None and t.dtype == "float32" for t in (*op.inputs, *op.outputs))
    ]


def scale_for(low: float, high: float, dtype: str):
    low, high = min(low, 0.0), max(high, 0.0)
    span = np.iinfo(dtype)
    scale = F(max((high - low) / 255, 1e-6))
    return scale, np.array(np.clip(round(span.min - low / scale), span.min, span.max), dtype)


class Islands:
    """A model with QuantizeLinear and DequantizeLinear around every operator."""

    def __init__(self, dtype: str) -> None:
        self.dtype, self.nodes, self.constants = dtype, [], {}
        self.inputs, self.fed = [], {}

    def data(self, name: str, *shape: int, seed: int = 0) -> str:
        values = numbers(*shape, seed=seed)
        self.inputs.append((name, F, shape))
        self.fed[name] = values
        return self.coded(name, -1.0, 1.0)

    def coded(self, name: str, low: float, high: float) -> str:
        scale, zero = scale_for(low, high, self.dtype)
        self.constants |= {f"{name}_s": np.array(scale), f"{name}_z": zero}
        rest = f"{name}_s {name}_z"
        self.nodes.append(node("QuantizeLinear", f"{name} {rest}", f"{name}_q"))
        self.nodes.append(node("DequantizeLinear", f"{name}_q {rest}", f"{name}_f"))
        return f"{name}_f"

    def weight(self, name: str, *shape: int, axis: int | None = None) -> str:
        values = numbers(*shape, seed=7)
        other = tuple(i for i in range(len(shape)) if i != axis)
        peak = np.abs(values).max(axis=other if axis is not None else None)
        scale = np.asarray(peak / 127, F)
        wide = (
            scale
            if axis is None
            else scale.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        )
        self.constants |= {
            f"{name}_c": np.rint(values / wide).astype(np.int8),
            f"{name}_s": scale,
            f"{name}_z": np.zeros(scale.shape, np.int8),
        }
        extra = {} if axis is None else {"axis": axis}
        names = f"{name}_c {name}_s {name}_z"
        self.nodes.append(node("DequantizeLinear", names, f"{name}_f", **extra))
        return f"{name}_f"

    def model(self, call, low: float | None = None, high: float | None = None):
        """The whole; the scale of the result by the values that it has, where none is given."""
        self.nodes.append(call)
        name = call.output[0]
        if low is None or high is None:
            probe = onnx_model(self.nodes, self.inputs, [(name, F, None)], self.constants, 20)
            (found,) = expected(probe, self.fed)
            low, high = float(found.min()), float(found.max())
        last = self.coded(name, low, high)
        # The last DequantizeLinear is left out: codes are what is compared.
        self.nodes.pop()
        codes = last.removesuffix("_f") + "_q"
        outputs = [(codes, np.dtype(self.dtype), None)]
        return onnx_model(self.nodes, self.inputs, outputs, self.constants, 20)


def close_codes(model, fed, folder: Path) -> tuple[Model, float]:
    """The converted model, seen to be at most a code away; and how often it is."""
    made = lowered_model(model, folder)
    (found,) = answers(runner(made), list(fed.values()))
    (wanted,) = expected(model, fed)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    off = np.abs(found.astype(int) - wanted.astype(int))
    assert off.max() <= 1
    return made, float((off > 0).mean())


def conv(b: Islands):
    return node("Conv", f"{b.data('x', 1, 3, 9, 9)} {b.weight('w', 4, 3, 3, 3, axis=0)}", "y")


def conv_with_relu(b: Islands):
    b.nodes.append(conv(b))
    return node("Relu", "y", "r")


def conv_in_groups(b: Islands):
    x, w = b.data("x", 1, 4, 8, 8), b.weight("w", 4, 1, 3, 3, axis=0)
    return node("Conv", f"{x} {w}", "y", group=4, pads=[1, 1, 1, 1])


def conv_one_scale(b: Islands):
    x, w = b.data("x", 1, 3, 8, 8), b.weight("w", 4, 3, 3, 3)
    return node("Conv", f"{x} {w}", "y", pads=[1, 1, 1, 1], strides=[2, 2])


def line_conv(b: Islands):
    return node("Conv", f"{b.data('x', 1, 3, 12)} {b.weight('w', 4, 3, 3, axis=0)}", "y")


def conv_transpose(b: Islands):
    x, w = b.data("x", 1, 3, 5, 5), b.weight("w", 3, 4, 2, 2, axis=1)
    return node("ConvTranspose", f"{x} {w}", "y", strides=[2, 2])


def gemm(b: Islands):
    b.constants["b"] = numbers(5, seed=3)
    return node("Gemm", f"{b.data('x', 2, 8)} {b.weight('w', 5, 8, axis=0)} b", "y", transB=1)


def matmul(b: Islands):
    return node("MatMul", f"{b.data('x', 2, 3, 8)} {b.weight('w', 8, 5)}", "y")


def matmul_of_data(b: Islands):
    return node("MatMul", f"{b.data('x', 2, 3, 8)} {b.data('z', 2, 8, 4, seed=1)}", "y")


def two(kind: str):
    return lambda b: node(kind, f"{b.data('x', 2, 3, 4)} {b.data('z', 3, 1, seed=1)}", "y")


def joined_with_a_constant(b: Islands):
    x, c = b.data("x", 1, 3, 4), b.weight("c", 1, 2, 4)
    return node("Concat", f"{x} {c}", "y", axis=1)


def with_a_constant(kind: str):
    return lambda b: node(kind, f"{b.data('x', 2, 3, 4)} {b.weight('c', 3, 4)}", "y")


def one(kind: str, *shape: int, **extra):
    return lambda b: node(kind, b.data("x", *(shape or (1, 4, 6, 6))), "y", **extra)


ON_INTEGERS = {
    "Add": two("Add"),
    "AveragePool": one("AveragePool", kernel_shape=[2, 2], strides=[2, 2]),
    "Concat with a constant": joined_with_a_constant,
    "Conv": conv,
    "Conv, groups": conv_in_groups,
    "Conv, one scale": conv_one_scale,
    "Conv, Relu": conv_with_relu,
    "Conv of a line": line_conv,
    "ConvTranspose": conv_transpose,
    "Elu": one("Elu"),
    "Gelu": one("Gelu"),
    "Gemm": gemm,
    "GlobalAveragePool": one("GlobalAveragePool"),
    "HardSwish": one("HardSwish"),
    "LeakyRelu": one("LeakyRelu", alpha=0.1),
    "MatMul": matmul,
    "MatMul of data": matmul_of_data,
    "MaxPool": one("MaxPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "Mul": two("Mul"),
    "Mul by a constant": with_a_constant("Mul"),
    "Relu": one("Relu"),
    "Reshape": one("Flatten"),
    "Sub": two("Sub"),
    "Transpose": one("Transpose", perm=[0, 2, 3, 1]),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", ON_INTEGERS)
def test_an_operator_between_codes_is_computed_on_integers(
    name: str, dtype: str, tmp_path: Path
) -> None:
    b = Islands(dtype)
    model = b.model(ON_INTEGERS[name](b))
    made, often = close_codes(model, b.fed, tmp_path)
    assert not float_ops(made)
    assert often < 0.2


@pytest.mark.parametrize("power", [-9, -4, 4, 9])
@pytest.mark.parametrize("name", ["Add", "Conv", "Gemm", "LeakyRelu", "MatMul of data", "Mul"])
def test_scales_far_apart_neither_fail_nor_mislead(name: str, power: int, tmp_path: Path) -> None:
    b = Islands("int8")
    model = b.model(ON_INTEGERS[name](b), -(10.0**power), 10.0**power)
    assert close_codes(model, b.fed, tmp_path)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("kind", ["Sigmoid", "Softmax", "Tanh"])
def test_a_kernel_that_dictates_its_scale_is_used_where_that_is_fine_enough(
    kind: str, dtype: str, tmp_path: Path
) -> None:
    low = -1.0 if kind == "Tanh" else 0.0
    b = Islands(dtype)
    made, _ = close_codes(b.model(one(kind, 2, 8)(b), low, 1.0), b.fed, tmp_path)
    assert not float_ops(made)
    fine = Islands(dtype)
    model = fine.model(one(kind, 2, 8)(fine), low / 10, 0.1)
    stays = converted(model, tmp_path)
    assert stays.model is not None and float_ops(stays.model)
    assert any("finer scale" in note for note in stays.notes)
    assert close_codes(model, fine.fed, tmp_path)


def test_what_has_no_scale_stays_float_and_is_told(tmp_path: Path) -> None:
    b = Islands("int8")
    b.nodes.append(conv(b))
    b.nodes.append(node("Sin", "y", "s"))
    model = b.model(node("Neg", "s", "z"))
    stays = converted(model, tmp_path)
    assert stays.model is not None
    assert sorted(float_ops(stays.model)) == ["CONV_2D", "NEG", "SIN", "TRANSPOSE"]
    assert any("CONV_2D" in note and "no scale" in note for note in stays.notes)
    assert close_codes(model, b.fed, tmp_path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("dtype", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_a_network_quantized_by_onnxruntime_has_no_float_op(
    form: str, dtype: str, per_channel: bool, tmp_path: Path
) -> None:
    made = lowered_model(quantized_network(form, dtype, per_channel, tmp_path), tmp_path)
    assert not float_ops(made)
    assert kinds(made)["CONV_2D"] == 2 and kinds(made)["DEPTHWISE_CONV_2D"] == 1
    opened = runner(made)
    model = onnx.load(tmp_path / "quantized.onnx")
    step = made.main.ops[-1].inputs[0].quant.scale[0]
    off = []
    for seed in range(5):
        x = numbers(1, 3, 16, 16, seed=seed)
        (found,), (wanted,) = answers(opened, [x]), expected(model, {"x": x})
        off.append(np.abs(found - wanted) / step)
    assert np.max(off) < 2.5 and np.mean(np.rint(off) > 0) < 0.4


def network():
    constants = {
        "w1": numbers(8, 3, 3, 3, seed=1),
        "b1": numbers(8, seed=2),
        "w2": numbers(8, 1, 3, 3, seed=3),
        "b2": numbers(8, seed=4),
        "w3": numbers(8, 8, 1, 1, seed=5),
        "b3": numbers(8, seed=6),
        "w4": numbers(8, 5, seed=7),
        "b4": numbers(5, seed=8),
    }
    nodes = [
        node("Conv", "x w1 b1", "c1", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", "c1", "r1"),
        node("Conv", "r1 w2 b2", "c2", group=8, pads=[1, 1, 1, 1]),
        node("Relu", "c2", "r2"),
        node("Conv", "r2 w3 b3", "c3"),
        node("Add", "c3 r1", "a"),
        node("MaxPool", "a", "m", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", "m", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f w4 b4", "y"),
    ]
    for number, one_node in enumerate(nodes):
        one_node.name = f"node{number}"
    return onnx_model(nodes, [("x", F, (1, 3, 16, 16))], [("y", F, (1, 5))], constants)


def quantized_network(form: str, dtype: str, per_channel: bool, folder: Path):
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.calibrate import CalibrationDataReader

    class Samples(CalibrationDataReader):
        def __init__(self) -> None:
            self._left = iter(range(8))

        def get_next(self):
            seed = next(self._left, None)
            return None if seed is None else {"x": numbers(1, 3, 16, 16, seed=seed)}

    onnx.save(network(), folder / "float.onnx")
    quantize_static(
        folder / "float.onnx",
        folder / "quantized.onnx",
        Samples(),
        quant_format=QuantFormat[form],
        activation_type=QuantType[dtype],
        weight_type=QuantType.QInt8,
        per_channel=per_channel,
    )
    return onnx.load(folder / "quantized.onnx")


# Weights alone


@pytest.mark.parametrize("axis", [None, 1])
def test_stored_weights_of_a_float_model_stay_stored(axis: int | None, tmp_path: Path) -> None:
    b = Islands("int8")
    w = b.weight("w", 64, 64, axis=axis)
    model = onnx_model(
        [*b.nodes, node("MatMul", f"x {w}", "y")],
        [("x", F, (3, 64))],
        [("y", F, (3, 64))],
        b.constants,
    )
    made = same(model, {"x": numbers(3, 64)}, tmp_path)
    assert kinds(made) == {"DEQUANTIZE": 1, "FULLY_CONNECTED": 1}


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    dtype=st.sampled_from(["int8", "uint8", "int16", "int32"]),
    rank=st.integers(1, 4),
    where=st.integers(0, 3),
    per_axis=st.booleans(),
)
def test_codes_that_are_constants_mean_what_onnx_says(
    dtype: str, rank: int, where: int, per_axis: bool, tmp_path: Path
) -> None:
    axis, shape = where % rank, (2, 3, 2, 4)[:rank]
    rng = np.random.default_rng(rank)
    count = shape[axis] if per_axis else 1
    constants = {
        "q": rng.integers(*((0, 255) if dtype == "uint8" else (-99, 99)), shape).astype(dtype),
        "s": rng.uniform(0.1, 2, count if per_axis else ()).astype(F),
        "z": (rng.integers(0, 9, count if per_axis else ()) * (dtype != "int32")).astype(dtype),
    }
    nodes = [node("DequantizeLinear", "q s z", "f", axis=axis), node("Add", "f x", "y")]
    model = onnx_model(nodes, [("x", F, shape)], [("y", F, shape)], constants, opset=21)
    assert same(model, {"x": numbers(*shape)}, tmp_path).main.ops


def test_scales_of_blocks_are_spread_out(tmp_path: Path) -> None:
    constants = {
        "q": np.arange(24, dtype=np.int8).reshape(6, 4),
        "s": numbers(3, 4, seed=2) + 2,
        "z": np.ones((3, 4), np.int8),
    }
    nodes = [
        node("DequantizeLinear", "q s z", "f", axis=0, block_size=2),
        node("MatMul", "x f", "y"),
    ]
    model = onnx_model(nodes, [("x", F, (2, 6))], [("y", F, (2, 4))], constants, opset=21)
    assert same(model, {"x": numbers(2, 6)}, tmp_path, 1e-4).main.ops


def test_weights_of_four_bits_are_read(tmp_path: Path) -> None:
    from onnx import TensorProto, helper

    codes = [-8, -1, 0, 3, 7, 2, -5, 1]
    model = onnx_model(
        [node("DequantizeLinear", "q s", "f"), node("MatMul", "x f", "y")],
        [("x", F, (2, 4))],
        [("y", F, (2, 2))],
        {"s": np.array(0.25, F)},
        opset=21,
    )
    model.graph.initializer.append(helper.make_tensor("q", TensorProto.INT4, (4, 2), codes))
    assert same(model, {"x": numbers(2, 4)}, tmp_path).main.ops


# Integers from a run


def test_sums_of_integers_are_exact(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    constants = {
        "w": rng.integers(-128, 127, (16, 5)).astype(np.int8),
        "az": np.array(12, np.uint8),
        "bz": np.array(-3, np.int8),
    }
    call = node("MatMulInteger", "a w az bz", "y")
    model = onnx_model([call], [("a", np.uint8, (4, 16))], [("y", np.int32, (4, 5))], constants)
    fed = {"a": rng.integers(0, 255, (4, 16)).astype(np.uint8)}
    (found,) = answers(runner(lowered_model(model, tmp_path)), list(fed.values()))
    np.testing.assert_array_equal(found, expected(model, fed)[0])


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_quantizes_as_it_runs(tmp_path: Path) -> None:
    from onnxruntime.quantization import quantize_dynamic

    constants = {"w": numbers(16, 5), "b": numbers(5)}
    nodes = [node("MatMul", "x w", "m"), node("Add", "m b", "y")]
    for number, one_node in enumerate(nodes):
        one_node.name = f"node{number}"
    whole = onnx_model(nodes, [("x", F, (3, 16))], [("y", F, (3, 5))], constants)
    onnx.save(whole, tmp_path / "float.onnx")
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "dynamic.onnx")
    model = onnx.load(tmp_path / "dynamic.onnx")
    assert "MatMulInteger" in {n.op_type for n in model.graph.node}
    assert same(model, {"x": numbers(3, 16)}, tmp_path, 1e-4).main.ops


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("axis", [None, 1])
def test_codes_that_a_run_makes(dtype: str, axis: int | None, tmp_path: Path) -> None:
    count = () if axis is None else (3,)
    constants = {
        "s": (np.abs(numbers(*count)) + 0.1).astype(F),
        "z": np.full(count, 3 if dtype.startswith("u") else 0).astype(dtype),
    }
    extra = {} if axis is None else {"axis": axis}
    nodes = [
        node("QuantizeLinear", "x s z", "q", **extra),
        node("DequantizeLinear", "q s z", "y", **extra),
    ]
    model = onnx_model(nodes, [("x", F, (2, 3, 4))], [("y", F, (2, 3, 4))], constants, opset=21)
    assert same(model, {"x": numbers(2, 3, 4) * 9}, tmp_path).main.ops


CODE_OPS = {
    "Concat": node("Concat", "q q", "m", axis=1),
    "Flatten": node("Flatten", "q", "m"),
    "Gather": node("Gather", "q places", "m", axis=1),
    "MaxPool": node("MaxPool", "q", "m", kernel_shape=[2, 2]),
    "Pad": node("Pad", "q widths", "m"),
    "Pad with a code": node("Pad", "q widths z", "m"),
    "Slice": node("Slice", "q starts ends", "m"),
    "Split": node("Split", "q", "m other", axis=1),
    "Transpose": node("Transpose", "q", "m", perm=[0, 2, 3, 1]),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", CODE_OPS)
def test_codes_that_are_moved_keep_their_meaning(name: str, dtype: str, tmp_path: Path) -> None:
    scale, zero = scale_for(-1.2, 0.9, dtype)
    constants = {
        "s": np.array(scale),
        "z": zero,
        "places": np.array([1, 0]),
        "widths": np.array([0, 0, 1, 1, 0, 0, 0, 2]),
        "starts": np.array([0, 1]),
        "ends": np.array([1, 3]),
    }
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        CODE_OPS[name],
        node("DequantizeLinear", "m s z", "f"),
        node("Relu", "f", "y"),
    ]
    outputs = [("y", F, None), ("m", np.dtype(dtype), None)]
    model = onnx_model(nodes, [("x", F, (1, 4, 6, 6))], outputs, constants)
    assert same(model, {"x": numbers(1, 4, 6, 6)}, tmp_path).main.ops


MOVED_FROM = {
    "codes of the source": ("q", ["q"]),
    "codes of the source twice": ("q", ["q", "q"]),
    "an input": ("c", ["c", "c"]),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", MOVED_FROM)
def test_codes_that_are_moved_before_they_are_picked_from(
    name: str, dtype: str, tmp_path: Path
) -> None:
    scale, zero = scale_for(-300, 290, dtype)  # a step far from 1
    first, parts = MOVED_FROM[name]
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("Transpose", first, "turned", perm=[0, 1, 3, 2]),
        node("Concat", " ".join(["turned", *parts]), "joined", axis=1),
        node("MaxPool", "joined", "m", kernel_shape=[2, 2]),
        node("Transpose", "m", "back", perm=[0, 1, 3, 2]),
        node("DequantizeLinear", "back s z", "y"),
    ]
    inputs = [("x", F, (1, 2, 6, 6)), ("c", np.dtype(dtype), (1, 2, 6, 6))]
    constants = {"s": np.array(scale), "z": zero}
    model = onnx_model(nodes, inputs, [("y", F, None)], constants)
    given = {"x": numbers(1, 2, 6, 6) * 90, "c": (numbers(1, 2, 6, 6) * 40 + 60).astype(dtype)}
    assert same(model, given, tmp_path).main.ops


def test_a_scale_without_end_is_named(tmp_path: Path) -> None:
    constants = {"s": np.array(np.inf, F), "z": np.array(0, np.int8)}
    nodes = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")]
    model = onnx_model(nodes, [("x", F, (2,))], [("y", F, (2,))], constants)
    assert "its scale is inf" in converted(model, tmp_path).left[0].why
