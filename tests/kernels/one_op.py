"""Models of one op on int16 data, and the runtime's answer beside ours."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import strategies as st

from litesmith import Builder, Model, Quant, Session, Tensor
from litesmith.ir.types import Array, Graph, Op
from litesmith.kernels.graph_programs import assemble, prepare_op
from litesmith.kernels.programs.program import Program
from litesmith.native.compile import why_not
from litesmith.operating_system import has_float_codes

needs_float_codes = pytest.mark.skipif(
    not has_float_codes(), reason="the runtime has other bits elsewhere"
)
needs_numba = pytest.mark.skipif(bool(why_not()), reason=why_not())

seeds = st.integers(0, 2**32 - 1)


def program_of(ops: Sequence[Op], inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Program:
    """A program of ops in order; what flows between them stays inside."""
    return assemble([prepare_op(op) for op in ops], inputs, outputs)


def whole(graph: Graph) -> Program:
    """A whole graph as one program."""
    return program_of(graph.ops, graph.inputs, graph.outputs)


def numbers(rng: np.random.Generator, shape: Sequence[int], dtype: str = "int16") -> Array:
    """Stored numbers of some sort: all over the range, at its ends, or near zero."""
    info = np.iinfo(dtype)
    sort = rng.integers(4)
    if sort == 0:
        return rng.choice(np.array([info.min, info.max], dtype), shape)
    if sort == 1:
        return np.full(shape, rng.choice([info.min, info.max]), dtype)
    reach = info.max if sort == 2 else max(info.max // 64, 1)
    return rng.integers(-reach - 1, reach + 1, shape).astype(dtype)


def image(b: Builder, shape: Sequence[int], scale: float, name: str = "x") -> Tensor:
    return b.input(name, shape, "int16", Quant.of(scale))


def weight(b: Builder, values: Array, scales: Array, axis: int) -> Tensor:
    return b.const(values, "w", quant=Quant.of(scales.astype(np.float32), axis=axis))


def inputs_of(model: Model, rng: np.random.Generator) -> list[Array]:
    return [
        numbers(rng, t.shape) if t.dtype == "int16" else rng.normal(0, 2, t.shape).astype("f4")
        for t in model.main.inputs
    ]


def runtime(model: Model, inputs: Sequence[Array]) -> list[Array]:
    """What LiteRT makes of these inputs."""
    with Session(model, "cpu:1") as session:
        for name, array in zip(session.inputs, inputs, strict=True):
            session.inputs[name] = array
        session.run()
        return [array.copy() for array in session.outputs.values()]


def assert_same(model: Model, rng: np.random.Generator, rounds: int = 2) -> None:
    """Our program gives the runtime's bits, on one thread and on two."""
    program = whole(model.main)
    for _ in range(rounds):
        inputs = inputs_of(model, rng)
        for threads in (1, 2):
            ours = program.run(inputs, threads=threads)
            for mine, theirs in zip(ours, runtime(model, inputs), strict=True):
                np.testing.assert_array_equal(mine, theirs)
