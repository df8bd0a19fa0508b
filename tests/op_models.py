"""A case as a model of one op, and the runtime to compare with."""

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Op, Tensor
from litesmith.tflite.write import to_bytes
from tests.op_cases import Case, Feed, State


class Built(NamedTuple):
    """A model of one op, its values in input order, and those that are fed."""

    model: Model
    op: Op
    arrays: list[np.ndarray | None]
    fed: list[np.ndarray]


def draw(feed: Feed, rng: np.random.Generator) -> np.ndarray:
    if feed.dtype == "bool":
        return rng.integers(0, 2, feed.shape).astype(bool)
    if feed.dtype.startswith("complex"):
        parts = rng.uniform(feed.low, feed.high, (2, *feed.shape))
        return (parts[0] + 1j * parts[1]).astype(feed.dtype)
    if feed.dtype.startswith("float"):
        return rng.uniform(feed.low, feed.high, feed.shape).astype(feed.dtype)
    return rng.integers(int(feed.low), int(feed.high), feed.shape, endpoint=True).astype(feed.dtype)


def build(kind: str, case: Case) -> Built:
    rng = np.random.default_rng(crc32(f"{kind} {case.options}".encode()))
    builder = Builder()
    tensors: list[Tensor | None] = []
    arrays: list[np.ndarray | None] = []
    fed: list[np.ndarray] = []
    for place, given_input in enumerate(case.inputs):
        array: np.ndarray | None = None
        tensor: Tensor | None = None
        if isinstance(given_input, Feed):
            array = draw(given_input, rng)
            tensor = builder.input(f"x{place}", given_input.shape, given_input.dtype)
            fed.append(array)
        elif isinstance(given_input, State):
            tensor = Tensor(f"state{place}", given_input.shape, variable=True)
        elif isinstance(given_input, Tensor):
            tensor = given_input
        elif given_input is not None:
            tensor = builder.const(given_input)
            array = tensor.values()
        tensors.append(tensor)
        arrays.append(array)
    builder.op(
        kind, *tensors, shape=case.shapes, version=case.version, quant=case.quant, **case.options
    )
    return Built(builder.model(*builder.last.outputs), builder.last, arrays, fed)


def run(model: Model, fed: Sequence[np.ndarray], *, delegate: bool = False) -> list[np.ndarray]:
    """The runtime's own kernels; with `delegate` XNNPACK's, where it has them."""
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    if delegate:
        resolver = OpResolverType.BUILTIN
    interpreter = Interpreter(model_content=to_bytes(model), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    for details, array in zip(interpreter.get_input_details(), fed, strict=True):
        interpreter.set_tensor(details["index"], array)
    interpreter.invoke()
    return [
        interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()
    ]
