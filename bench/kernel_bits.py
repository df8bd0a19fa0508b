"""Random layers: our kernels beside the runtime's, bit by bit, on whatever CPU this is.

python -m bench.kernel_bits                 300 of each kind
python -m bench.kernel_bits 24 int8         so many sparse int8 layers; float32 and int16x8 likewise
tools/arm FOLDER --shell 'python -m bench.kernel_bits'
NUMBA_CPU_NAME=neoverse-n1 NUMBA_CPU_FEATURES=+neon,+dotprod python -m bench.kernel_bits 24 int8

Integers must have the runtime's bits. Sparse float layers may add in another order: what counts is
that no number is further from the runtime's than the tests allow.
"""

import sys

import numpy as np

from litesmith.ir.types import Array, Model
from litesmith.kernels import compiled
from litesmith.kernels.programs.prepare_sparse import sparse_layer
from litesmith.kernels.programs.program import Program
from litesmith.native.compile import _made  # pyright: ignore[reportPrivateUsage]
from litesmith.native.tiles import CPU
from litesmith.operating_system import cpu_name
from tests.kernels import test_layer_kernels, test_sparse_int8_kernels, test_sparse_kernels
from tests.kernels.one_op import numbers, runtime, whole

KINDS = ("CONV_2D", "FULLY_CONNECTED")
ROWS = (5, 16, 70, 1)
ZEROS = (0.0, 0.5, 0.9)
RELATIVE, ABSOLUTE = 1e-5, 1e-4  # what tests/kernels/test_sparse_kernels.py allows of float32

Answers = tuple[Array, Array]  # ours, the runtime's


def sparse_int8(rng: np.random.Generator, seed: int) -> Answers:
    shape = int(rng.integers(16, 60)), 4 * int(rng.integers(32, 60))
    weights = test_sparse_int8_kernels.pruned(rng, shape, ZEROS[seed % 3])
    rows = ROWS[seed // 2 % 4]
    model = test_sparse_int8_kernels.layer(KINDS[seed % 2], rows, weights, rng)
    return answers(model, sparse(model), numbers(rng, model.main.inputs[0].shape, "int8"))


def sparse_float32(rng: np.random.Generator, seed: int) -> Answers:
    shape = int(rng.integers(16, 60)), 4 * int(rng.integers(4, 50))
    rows = ROWS[seed // 2 % 4]
    model = test_sparse_kernels.model(KINDS[seed % 2], rows, shape, ZEROS[seed % 3], seed)
    x = rng.normal(0, 1, model.main.inputs[0].shape).astype(np.float32)
    return answers(model, sparse(model), x)


def int16x8(rng: np.random.Generator, seed: int) -> Answers:
    """A convolution, a depthwise one or a fully connected layer, by turns."""
    kind = (*KINDS, "DEPTHWISE_CONV_2D")[seed % 3]
    depth, channels = (int(size) for size in rng.integers(1, 90, 2))
    height, width = (int(size) for size in rng.integers(4, 10, 2))
    step = 1 + seed // 3 % 2
    slide = {"stride_h": step, "stride_w": step, "padding": ("SAME", "VALID")[seed // 6 % 2]}
    window = (1, 1) if seed // 12 % 2 else (3, 2)
    if kind == "FULLY_CONNECTED":
        size, weights, more = (height, 3 * depth), (channels, 3 * depth), {}
    elif kind == "CONV_2D":
        size, weights, more = (1, height, width, depth), (channels, *window, depth), slide
    else:
        size, weights = (1, height, width, depth), (1, *window, depth)
        more = {**slide, "depth_multiplier": 1}
    model = test_layer_kernels.layer(kind, size, weights, rng, **more)
    return answers(model, whole(model.main), numbers(rng, size))


LAYERS = {"int8": sparse_int8, "float32": sparse_float32, "int16x8": int16x8}


def sparse(model: Model) -> Program:
    return Program((sparse_layer(model.main.ops[0]),), model.main.inputs, model.main.outputs)


def answers(model: Model, program: Program, x: Array) -> Answers:
    return program.run([x], threads=1)[0], runtime(model, [x])[0]


def compare(kind: str, count: int) -> list[int]:
    """Prints how many layers have the runtime's bits; the seeds of those that are wrong."""
    equal, wrong, furthest = 0, list[int](), 0.0
    for seed in range(count):
        ours, theirs = LAYERS[kind](np.random.default_rng(seed), seed)
        if ours.tobytes() == theirs.tobytes():
            equal += 1
            continue
        if kind != "float32":
            wrong.append(seed)
            continue
        share = float((np.abs(ours - theirs) / (ABSOLUTE + RELATIVE * np.abs(theirs))).max())
        furthest = max(furthest, share)
        if not share <= 1:
            wrong.append(seed)
    near = f"; the others within {furthest:.2g} of what is allowed" if furthest else ""
    print(f"{kind}: {equal} of {count} layers have the runtime's bits{near}", flush=True)
    return wrong


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    print(f"{cpu_name()}, {CPU}", flush=True)
    wrong = {kind: compare(kind, count) for kind in sys.argv[2:] or LAYERS}
    functions = sum(function in _made for function in compiled.FUNCTIONS.values())
    print(f"by {functions} compiled kernels")
    if any(wrong.values()):
        raise SystemExit(f"wrong: {wrong}")


if __name__ == "__main__":
    main()
