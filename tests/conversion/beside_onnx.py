"""Models made with onnx, converted and run in LiteRT, beside what onnxruntime says."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from litesmith.conversion.lower_model import Lowered, lowered, tidied
from litesmith.conversion.onnx_file import read_onnx
from litesmith.ir.check import check
from litesmith.ir.types import Array, Model
from litesmith.tflite.write import chunks

onnx = pytest.importorskip("onnx", reason="the package onnx makes the models")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is what results are compared with")


def onnx_model(nodes, inputs, outputs, constants: Mapping[str, Array] | None = None, opset=17):
    """A model of nodes; inputs and outputs are names with an element type and a shape."""
    from onnx import helper, numpy_helper

    def values(listed):
        return [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(t)), shape)
            for name, t, shape in listed
        ]

    kept = [numpy_helper.from_array(a, name) for name, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, "main", values(inputs), values(outputs), kept)
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=9)


def converted(model, folder: Path) -> Lowered:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return lowered(read_onnx(path))


def lowered_model(model, folder: Path) -> Model:
    made = converted(model, folder)
    assert made.model is not None, made.left
    check(made.model)
    return made.model


def runner(model: Model) -> Interpreter:
    opened = Interpreter(model_content=b"".join(map(bytes, chunks(model))))
    opened.allocate_tensors()
    return opened


def answers(opened: Interpreter, given: Sequence[Array]) -> list[Array]:
    for detail, value in zip(opened.get_input_details(), given, strict=True):
        opened.set_tensor(detail["index"], value)
    opened.invoke()
    return [opened.get_tensor(d["index"]) for d in opened.get_output_details()]


def expected(model, given: Mapping[str, Array]) -> list[Array]:
    """What onnxruntime gives, operator by operator: fused ones may compute in fewer digits."""
    settings = ort.SessionOptions()
    settings.log_severity_level = 3
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(
        model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )
    return session.run(None, dict(given))


def same(model, given: Mapping[str, Array], folder: Path, tolerance: float = 1e-5) -> Model:
    """The converted model, seen to give what onnxruntime gives, twice."""
    made = lowered_model(model, folder)
    opened = runner(made)
    wanted = expected(model, given)
    neat = runner(tidied(made, keep_layout=True).model)
    for one in (opened, opened, neat):  # nothing is kept from one call to the next
        for found, want in zip(answers(one, list(given.values())), wanted, strict=True):
            assert found.shape == want.shape
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=tolerance)
    return made
