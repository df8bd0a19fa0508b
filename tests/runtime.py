"""Stock LiteRT, as tests use it: the judge of what a model computes."""

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from litesmith.ir.types import Model
from litesmith.tflite.write import to_bytes


def run(
    model: Model | bytes, seed: int = 0, *, reference: bool = False, runs: int = 1
) -> list[np.ndarray]:
    """Outputs of the main graph on seeded random inputs, after so many runs."""
    content = model if isinstance(model, bytes) else to_bytes(model)
    resolver = OpResolverType.BUILTIN_REF if reference else OpResolverType.AUTO
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    random = np.random.default_rng(seed)
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(
            detail["index"], random_input(random, detail["shape"], detail["dtype"])
        )
    for _ in range(runs):
        interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def random_input(random: np.random.Generator, shape: np.ndarray, dtype: type) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return random.normal(0, 1, shape).astype(kind)
    if kind.kind == "b":
        return random.integers(0, 2, shape).astype(kind)
    if kind.itemsize > 2:  # indices and counters
        return random.integers(0, 3, shape).astype(kind)
    span = np.iinfo(kind)
    return random.integers(span.min, span.max, shape, endpoint=True).astype(kind)
