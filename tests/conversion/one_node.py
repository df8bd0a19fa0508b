"""A node as a model, converted and run by LiteRT: what tests of rules share."""

from collections.abc import Mapping, Sequence

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from litesmith.conversion.core.source import Node, Setting, SourceGraph, SourceModel, Value
from litesmith.conversion.lower_model import Lowered, lowered
from litesmith.ir.types import Array
from litesmith.tflite.write import to_bytes


def source(
    kind: str, inputs: Mapping[str, Array], *, opset: int = 22, count: int = 1, **settings: Setting
) -> SourceModel:
    """One node that reads these inputs and has so many outputs."""
    outputs = tuple(f"y{i}" for i in range(count))
    node = Node(kind, tuple(inputs), outputs, settings)
    given = tuple(Value(name, str(a.dtype), a.shape) for name, a in inputs.items())
    made = tuple(Value(name, "float32", None) for name in outputs)
    return SourceModel(SourceGraph("one", (node,), given, made, {}), opset)


def converted(
    kind: str, inputs: Mapping[str, Array], fixed: Sequence[str] = (), **settings: Setting
) -> Lowered:
    constants = {name: inputs[name] for name in fixed}
    return lowered(source(kind, inputs, **settings), None, constants)


def run(
    kind: str, inputs: Mapping[str, Array], fixed: Sequence[str] = (), **settings: Setting
) -> Array:
    """What LiteRT gives for the node's first output."""
    made = converted(kind, inputs, fixed, **settings)
    assert made.model is not None, made.left
    runner = Interpreter(model_content=to_bytes(made.model))
    runner.allocate_tensors()
    places = {d["name"]: d["index"] for d in runner.get_input_details()}
    for name, value in inputs.items():
        if name not in fixed:
            runner.set_tensor(places[name], value)
    runner.invoke()
    return runner.get_tensor(runner.get_output_details()[0]["index"])


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)
