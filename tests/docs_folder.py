"""The folder that examples of the documentation run in: a small model, its int8 form, data."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

import litesmith

CLASSES, SAMPLES = 4, 1200


def write_folder(place: Path) -> None:
    """Writes `model.tflite`, `int8.tflite` and `val.npz`, and `model.onnx` where onnx is there."""
    litesmith.save(_classifier(), place / "model.tflite")
    x = np.random.default_rng(1).random((SAMPLES, 8, 8, 1), np.float32)
    with litesmith.Session(place / "model.tflite") as session:
        answers = np.array([session(one[None])["scores"][0].argmax() for one in x])
    wrong = np.random.default_rng(2).random(SAMPLES) < 0.04  # nobody is right always
    np.savez(place / "val.npz", x=x, y=np.where(wrong, (answers + 1) % CLASSES, answers))
    int8 = litesmith.apply(place / "model.tflite", "quantize", x[:64])
    litesmith.save(int8.model, place / "int8.tflite")
    _write_onnx(place / "model.onnx")


def _classifier() -> litesmith.Model:
    random = np.random.default_rng(0)
    b = litesmith.Builder()
    image = b.input("image", (1, 8, 8, 1))
    first, second = (
        random.normal(size=(16, 3, 3, channels)).astype(np.float32) for channels in (1, 16)
    )
    none = np.zeros(16, np.float32)
    hidden = b.op("CONV_2D", image, first, none, stride_h=2, stride_w=2)
    hidden = b.op("CONV_2D", hidden, second, none, fused_activation_function="RELU")
    flat = b.op("MEAN", hidden, np.array([1, 2], np.int32))
    dense = random.normal(size=(CLASSES, 16)).astype(np.float32)
    return b.model(
        b.op("SOFTMAX", b.op("FULLY_CONNECTED", flat, dense, none[:CLASSES]), name="scores")
    )


def _write_onnx(place: Path) -> None:
    if find_spec("onnx") is None:
        return
    from onnx import TensorProto, helper, save

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
    save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
        str(place),
    )
