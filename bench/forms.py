"""What kinds of ops take in float and in int8, and where each runs: the table that `--effort quick`
goes by (`anatomy/known_times.py`).

Each kind as a model of one op, made int8 by `quantize`, profiled on one thread. Nanoseconds for
each value that the op writes, for layers for each MAC.

With `--ways`: ops without a fast integer kernel beside other ops that say the same. Microseconds
of a run with int8 ends, and of the float op with a conversion before and after it: what `quantize`
chooses between (`precision/fastest_forms.py`).
"""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from report import print_table

from litesmith import Builder, Model
from litesmith.anatomy.footprint import op_macs
from litesmith.calibration.context import RandomSamples, context_of
from litesmith.errors import LitesmithError
from litesmith.ir.types import Tensor
from litesmith.passes.core.recipe import apply
from litesmith.passes.core.step import Context
from litesmith.precision.fastest_forms import ANY_RANGES
from litesmith.precision.op_costs import conversion_times, equal_times
from litesmith.profiling.op_times import profile_ops
from litesmith.run.core.target import Target

SIDE, CHANNELS = 56, 64
RUNS = 200
RANDOM = np.random.default_rng(0)

Make = Callable[[Builder, Tensor], Tensor]


def _weights(*shape: int) -> np.ndarray:
    return RANDOM.normal(0, 0.1, shape).astype(np.float32)


def _plain(kind: str) -> Make:
    return lambda b, x: b.op(kind, x)


def _pair(kind: str) -> Make:
    return lambda b, x: b.op(kind, x, b.input("y", x.shape))


def _axes(kind: str, *axes: int) -> Make:
    return lambda b, x: b.op(kind, x, list(axes), keep_dims=True)


ALONE = """
    RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 HARD_SWISH LEAKY_RELU ELU LOGISTIC TANH SOFTMAX GELU EXP LOG
    SQRT RSQRT ABS NEG SQUARE FLOOR L2_NORMALIZATION LOG_SOFTMAX SIN COS
"""
PAIRS = "ADD SUB MUL DIV MAXIMUM MINIMUM SQUARED_DIFFERENCE POW"

MADE: dict[str, Make] = {
    **{kind: _plain(kind) for kind in ALONE.split()},
    **{kind: _pair(kind) for kind in PAIRS.split()},
    "PRELU": lambda b, x: b.op("PRELU", x, np.full((1, 1, CHANNELS), 0.2, np.float32)),
    "MEAN": _axes("MEAN", 1, 2),
    "SUM": _axes("SUM", 1, 2),
    "REDUCE_MAX": _axes("REDUCE_MAX", 3),
    "AVERAGE_POOL_2D": lambda b, x: b.op(
        "AVERAGE_POOL_2D", x, filter_width=3, filter_height=3, stride_w=1, stride_h=1
    ),
    "MAX_POOL_2D": lambda b, x: b.op(
        "MAX_POOL_2D", x, filter_width=3, filter_height=3, stride_w=1, stride_h=1
    ),
    "CONCATENATION": lambda b, x: b.op("CONCATENATION", x, b.input("y", x.shape), axis=3),
    "PAD": lambda b, x: b.op("PAD", x, [[0, 0], [1, 1], [1, 1], [0, 0]]),
    "RESIZE_BILINEAR": lambda b, x: b.op("RESIZE_BILINEAR", x, [2 * SIDE, 2 * SIDE]),
    "RESIZE_NEAREST_NEIGHBOR": lambda b, x: b.op(
        "RESIZE_NEAREST_NEIGHBOR", x, [2 * SIDE, 2 * SIDE]
    ),
    "TRANSPOSE": lambda b, x: b.op("TRANSPOSE", x, [0, 3, 1, 2]),
    "STRIDED_SLICE": lambda b, x: b.op(
        "STRIDED_SLICE", x, [0, 0, 0, 0], [1, SIDE, SIDE, CHANNELS // 2], [1, 1, 1, 1]
    ),
    "SPACE_TO_DEPTH": lambda b, x: b.op("SPACE_TO_DEPTH", x, block_size=2),
    "DEPTH_TO_SPACE": lambda b, x: b.op("DEPTH_TO_SPACE", x, block_size=2),
    "BATCH_MATMUL": lambda b, x: b.op("BATCH_MATMUL", x, b.input("y", (1, SIDE, CHANNELS, SIDE))),
    "CONV_2D": lambda b, x: b.op(
        "CONV_2D", x, _weights(CHANNELS, 1, 1, CHANNELS), np.zeros(CHANNELS, np.float32)
    ),
    "CONV_2D 3×3": lambda b, x: b.op(
        "CONV_2D", x, _weights(CHANNELS, 3, 3, CHANNELS), np.zeros(CHANNELS, np.float32)
    ),
    "DEPTHWISE_CONV_2D": lambda b, x: b.op(
        "DEPTHWISE_CONV_2D", x, _weights(1, 3, 3, CHANNELS), np.zeros(CHANNELS, np.float32)
    ),
    "TRANSPOSE_CONV": lambda b, x: b.op(
        "TRANSPOSE_CONV",
        [1, 2 * SIDE, 2 * SIDE, CHANNELS],
        _weights(CHANNELS, 2, 2, CHANNELS),
        x,
        stride_w=2,
        stride_h=2,
    ),
    "FULLY_CONNECTED": lambda b, x: b.op(
        "FULLY_CONNECTED", x, _weights(CHANNELS, CHANNELS), np.zeros(CHANNELS, np.float32)
    ),
}


def model_of(make: Make) -> Model:
    b = Builder()
    return b.model(make(b, b.input("x", (1, SIDE, SIDE, CHANNELS))))


def cost(model: Model, kind: str) -> tuple[float, str]:
    """Nanoseconds for each value or MAC, and the kernels that ran the op."""
    found = profile_ops(model, "cpu:1", runs=RUNS)
    own = next(op for op in found.ops if op.kind == kind)
    op = model.graphs[own.graph].ops[own.index]
    work = op_macs(op) or op.outputs[0].elements
    return 1e3 * (own.us or 0.0) / work, own.kernel


def rows() -> Iterator[tuple[str, ...]]:
    for name, make in MADE.items():
        kind, model = name.partition(" ")[0], model_of(make)
        try:
            quantized = apply(
                model, f"quantize(only=[{kind}])", context_of(RandomSamples(model, 4))
            ).model
            (before, where), (after, there) = cost(model, kind), cost(quantized, kind)
        except LitesmithError as error:
            yield name, "", "", "", "", str(error)[:60]
            continue
        yield name, f"{before:.3f}", where, f"{after:.3f}", there, f"{after / before:.2f}"


def pool(window: int, stride: int, padding: str = "VALID") -> Make:
    return lambda b, x: b.op(
        "AVERAGE_POOL_2D",
        x,
        padding=padding,
        filter_width=window,
        filter_height=window,
        stride_w=stride,
        stride_h=stride,
    )


def exponents(b: Builder, x: Tensor) -> Tensor:
    """SOFTMAX step by step."""
    above = b.op("SUB", x, b.op("REDUCE_MAX", x, [3], keep_dims=True))
    power = b.op("EXP", above)
    return b.op("DIV", power, b.op("SUM", power, [3], keep_dims=True))


def bordered(b: Builder, x: Tensor) -> Tensor:
    """A padded pool: zeros beyond the border, and what that takes away given back."""
    high, wide, depth = x.shape[1:]
    weights = np.full((1, 3, 3, depth), 1 / 9, np.float32)
    summed = b.op("DEPTHWISE_CONV_2D", x, weights, np.zeros(depth, np.float32))
    sides = [np.convolve(np.ones(size), np.ones(3), "same") for size in (high, wide)]
    counts = sides[0][:, None, None] * sides[1][None, :, None]
    return b.op("MUL", summed, (9 / counts).astype(np.float32)[None])


class Other(NamedTuple):
    """An op, and the same computation by other ops: a rewrite of `rewrite`, or a model."""

    make: Make
    other: str | Make
    shape: tuple[int, ...] = (1, SIDE, SIDE, CHANNELS)


OTHERS: dict[str, Other] = {
    **{kind: Other(_plain(kind), f"{kind}:MAX_POOL_2D") for kind in ("RELU", "RELU6")},
    "ABS": Other(_plain("ABS"), "ABS:MAXIMUM"),
    "HARD_SWISH": Other(_plain("HARD_SWISH"), "HARD_SWISH"),
    **{
        f"AVERAGE_POOL_2D {window}×{window} by {stride}": Other(
            pool(window, stride), "AVERAGE_POOL_2D:DEPTHWISE_CONV_2D"
        )
        for window, stride in ((2, 2), (3, 1), (3, 2), (4, 4), (5, 2))
    },
    "AVERAGE_POOL_2D 3×3 padded": Other(pool(3, 1, "SAME"), bordered),
    "AVERAGE_POOL_2D of all": Other(pool(SIDE, SIDE), "AVERAGE_POOL_2D:MEAN"),
    "SOFTMAX of 2": Other(_plain("SOFTMAX"), "SOFTMAX:LOGISTIC", (1, 128, 128, 2)),
    "SOFTMAX of 21": Other(_plain("SOFTMAX"), exponents, (1, 64, 64, 21)),
    "SOFTMAX of 64": Other(_plain("SOFTMAX"), exponents),
    "L2_NORMALIZATION of 64": Other(_plain("L2_NORMALIZATION"), "L2_NORMALIZATION"),
    "L2_NORMALIZATION of 128, once": Other(
        _plain("L2_NORMALIZATION"), "L2_NORMALIZATION", (1, 1, 1, 128)
    ),
}


def in_integers(model: Model) -> Model:
    """The model with int8 inputs and outputs; its ranges are arbitrary."""
    kinds = ", ".join(sorted({op.kind for op in model.main.ops}))
    return apply(model, f"quantize(io=int8, only=[{kinds}])", Context(ANY_RANGES)).model


def way_rows() -> Iterator[tuple[str, ...]]:
    target = Target("cpu", 1)
    converting = conversion_times(target)
    for name, (make, other, shape) in OTHERS.items():
        b = Builder()
        plain = b.model(make(b, b.input("x", shape)))
        if isinstance(other, str):
            said = apply(plain, f"rewrite(ops=[{other}])").model
        else:
            b = Builder()
            said = b.model(other(b, b.input("x", shape)))
        ends = (plain.main.inputs[0], plain.main.outputs[0])
        between = sum(converting.of(tensor.elements) for tensor in ends)
        models = (plain, in_integers(plain), said, in_integers(said))
        real, integer, other_real, other_integer = (
            equal_times(model, target, RUNS).whole for model in models
        )
        times = (integer, real + between, other_integer, other_real + between)
        yield name, *(f"{us:.1f}" for us in times)


def main() -> int:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ways", action="store_true", help="ops beside others that say the same")
    if parser.parse_args().ways:
        head = ("op", "int8 µs", "float between", "said otherwise", "that in float between")
        print_table(head, list(way_rows()))
        return 0
    print_table(("op", "float ns", "in", "int8 ns", "in", "int8 / float"), list(rows()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
