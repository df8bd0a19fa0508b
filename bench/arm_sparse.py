"""Networks whose 1×1 convolutions are mostly zero, on ARM: do those skip zeros that `arm_sparse`
predicts, and no others?

tools/arm FOLDER --shell 'python -m bench.arm_sparse'        every middle and every end by itself
tools/arm FOLDER --shell 'python -m bench.arm_sparse 100'    100 of two middles and an end by chance

A network has a stem, a sparse convolution, middles, another one, and an end. XNNPACK names the
kernels that ran: SPMM is the one that skips zeros. Answers are those of the same network with dense
weights, as near as float32 is. Exits with 1 where a prediction or an answer is wrong.
"""

import os
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from litesmith import Builder, Session
from litesmith.ir.types import Array, Model, Tensor
from litesmith.operating_system import cpu_name
from litesmith.passes.shrinking.arm_sparse import arm_sparse
from litesmith.profiling.op_times import profile_ops
from tests.zoo import sparse_filter

KERNEL = "SPMM"
CHANNELS, SIDE = 16, 16
ZEROS = (0.95, 0.8, 0.7, 0.6)
NEAR = 1e-4


class Network(NamedTuple):
    """A network under construction; its weights are stored dense, or without their zeros."""

    b: Builder
    rng: np.random.Generator
    zeros: float
    is_stored: bool

    def noise(self, *shape: int) -> Array:
        return self.rng.normal(size=shape).astype(np.float32)

    def stem(self, padding: str) -> Tensor:
        x = self.b.input("image", (1, SIDE, SIDE, 3))
        x = self.padded(x, 1) if padding == "VALID" else x
        step = {"stride_h": 2, "stride_w": 2, "padding": padding}
        return self.b.op("CONV_2D", x, self.noise(8, 3, 3, 3), self.noise(8), **step)

    def padded(self, x: Tensor, by: int) -> Tensor:
        return self.b.op("PAD", x, [[0, 0], [by, by], [by, by], [0, 0]])

    def sparse(self, x: Tensor, channels: int = CHANNELS, **options) -> Tensor:
        weights = self.noise(channels, x.shape[-1])
        weights[self.rng.random(weights.shape) < self.zeros] = 0
        dense = weights.reshape(channels, 1, 1, -1)
        filters = sparse_filter(self.b, weights) if self.is_stored else dense
        return self.b.op("CONV_2D", x, filters, self.noise(channels), **options)

    def depthwise(self, x: Tensor, size: int, step: int, pad: int | None, way: int = 1) -> Tensor:
        """With a padding of its own, or as its kernel needs it; `way` is the dilation."""
        padded = x if pad is None else self.padded(x, pad)
        moves = {"stride_h": step, "stride_w": step, "depth_multiplier": 1}
        moves |= {"dilation_h_factor": way, "dilation_w_factor": way}
        weights, bias = self.noise(1, size, size, x.shape[-1]), self.noise(x.shape[-1])
        padding = "SAME" if pad is None else "VALID"
        return self.b.op("DEPTHWISE_CONV_2D", padded, weights, bias, padding=padding, **moves)

    def excited(self, x: Tensor) -> Tensor:
        """Squeezed and excited."""
        y = self.b.op("MEAN", x, [1, 2], keep_dims=True)
        y = self.b.op("RELU", self.sparse(y, 8))
        return self.b.op("MUL", x, self.b.op("LOGISTIC", self.sparse(y, x.shape[-1])))


Part = Callable[[Network, Tensor], Tensor]


def op(kind: str, *more, **options) -> Part:
    return lambda n, x: n.b.op(kind, x, *more, **options)


def with_noise(
    kind: str, shape: Callable[[Tensor], tuple[int, ...]], *, first: bool = False
) -> Part:
    def part(n: Network, x: Tensor) -> Tensor:
        numbers = n.noise(*shape(x))
        return n.b.op(kind, *((numbers, x) if first else (x, numbers)))

    return part


def joined(kind: str, **options) -> Part:
    return lambda n, x: n.b.op(kind, x, n.sparse(x, x.shape[-1]), **options)


def depthwise(size: int, step: int, pad: int | None, way: int = 1) -> Part:
    return lambda n, x: n.depthwise(x, size, step, pad, way)


UNARY = (
    *("ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH", "LEAKY_RELU", "LOG"),
    *("LOGISTIC", "NEG", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ROUND", "RSQRT", "SIGN"),
    *("SIN", "SQRT", "SQUARE", "TANH"),
)
MIDDLES: dict[str, Part] = {
    "nothing": lambda n, x: x,
    **{kind: op(kind) for kind in UNARY},
    "depthwise 3×3": depthwise(3, 1, 1),
    "depthwise 3×3 SAME": depthwise(3, 1, None),
    "depthwise 3×3 in steps": depthwise(3, 2, 1),
    "depthwise 3×3 SAME in steps": depthwise(3, 2, None),
    "depthwise 3×3 unpadded": depthwise(3, 1, 0),
    "depthwise 3×3 padded by 2": depthwise(3, 1, 2),
    "depthwise 3×3 dilated": depthwise(3, 1, 2, 2),
    "depthwise 3×3 SAME dilated": depthwise(3, 1, None, 2),
    "depthwise 5×5": depthwise(5, 1, 2),
    "depthwise 5×5 SAME": depthwise(5, 1, None),
    "depthwise 5×5 in steps": depthwise(5, 2, 2),
    "depthwise 7×7": depthwise(7, 1, 3),
    "sparse": lambda n, x: n.sparse(x),
    "sparse RELU": lambda n, x: n.sparse(x, fused_activation_function="RELU"),
    "sparse in steps": lambda n, x: n.sparse(x, stride_h=2, stride_w=2),
    "dense 1×1": with_noise("CONV_2D", lambda x: (CHANNELS, 1, 1, x.shape[-1])),
    "dense 3×3": with_noise("CONV_2D", lambda x: (CHANNELS, 3, 3, x.shape[-1])),
    "sum": joined("ADD"),
    "sum RELU": joined("ADD", fused_activation_function="RELU"),
    "product": joined("MUL"),
    "difference": joined("SUB"),
    "maximum": joined("MAXIMUM"),
    "both": joined("CONCATENATION", axis=3),
    "plus a number": with_noise("ADD", lambda x: (1, 1, 1, 1)),
    "plus channels": with_noise("ADD", lambda x: (1, 1, 1, x.shape[-1])),
    "plus a vector": with_noise("ADD", lambda x: x.shape[-1:]),
    "plus an image": with_noise("ADD", lambda x: x.shape),
    "times rows": with_noise("MUL", lambda x: (1, x.shape[1], 1, 1)),
    "number times": with_noise("MUL", lambda x: (1, 1, 1, 1), first=True),
    "channels times": with_noise("MUL", lambda x: (1, 1, 1, x.shape[-1]), first=True),
    "image plus": with_noise("ADD", lambda x: x.shape, first=True),
    "excited": Network.excited,
    "resized": op("RESIZE_BILINEAR", [12, 12], half_pixel_centers=True),
    "resized by corners": op("RESIZE_BILINEAR", [12, 12], align_corners=True),
    "nearest": op("RESIZE_NEAREST_NEIGHBOR", [12, 12]),
    "to space": op("DEPTH_TO_SPACE", block_size=2),
    "padded": lambda n, x: n.padded(x, 1),
    "largest": op("MAX_POOL_2D", filter_height=2, filter_width=2, padding="SAME"),
    "PRELU": with_noise("PRELU", lambda x: (1, 1, x.shape[-1])),
    "SOFTMAX": op("SOFTMAX", beta=1.0),
    "mean of channels": op("MEAN", [3], keep_dims=True),
    "mean": op("MEAN", [1, 2], keep_dims=True),
}


def two_ends(n: Network, x: Tensor) -> Tensor:
    return n.b.op("CONCATENATION", n.b.op("MEAN", x, [1, 2]), n.b.op("SUM", x, [1, 2]), axis=1)


ENDS: dict[str, Part] = {
    "mean": op("MEAN", [1, 2]),
    "mean of one pixel": op("MEAN", [1, 2], keep_dims=True),
    "sum": op("SUM", [1, 2]),
    "mean of columns": op("MEAN", [1]),
    "mean of channels": op("MEAN", [3]),
    "mean of all": op("MEAN", [1, 2, 3]),
    "mean, axes from behind": op("MEAN", [-3, -2]),
    "mean and sum": two_ends,
    "largest": op("REDUCE_MAX", [1, 2]),
    "to space": op("DEPTH_TO_SPACE", block_size=2),
    "pixels": lambda n, x: x,
}


class Case(NamedTuple):
    """The parts that a network is built of."""

    middles: tuple[str, ...]
    end: str = "mean"
    zeros: float = 0.9
    stem: str = "VALID"

    def model(self, seed: int, *, is_stored: bool) -> Model:
        n = Network(Builder(), np.random.default_rng(seed), self.zeros, is_stored)
        x = n.sparse(n.stem(self.stem))
        for name in self.middles:
            x = MIDDLES[name](n, x)
        x = ENDS[self.end](n, n.sparse(x))
        flat = n.b.op("RESHAPE", x, [1, -1], shape=(1, x.elements))
        return n.b.model(n.b.op("FULLY_CONNECTED", flat, n.noise(4, x.elements), n.noise(4)))


def cases(count: int) -> Iterator[Case]:
    if not count:
        yield from (Case((name,)) for name in MIDDLES)
        yield from (Case((), end) for end in ENDS)
        yield from (Case((), zeros=zeros) for zeros in ZEROS)
        yield Case((), stem="SAME")
    names, ends = [*MIDDLES], [*ENDS]
    for seed in range(count):
        rng = np.random.default_rng(seed)
        middles = tuple(names[place] for place in rng.integers(len(names), size=2))
        yield Case(middles, ends[rng.integers(len(ends))], ZEROS[rng.integers(len(ZEROS))])


def answer(model: Model) -> Array:
    with Session(model, "cpu:1") as session:
        image = session.inputs["image"]
        image[...] = np.random.default_rng(1).normal(size=image.shape)
        session.run()
        return next(iter(session.outputs.values())).copy()


def compare(case: Case, seed: int) -> bool:
    """Prints which layers skipped zeros; True where these are the predicted ones and the answer is
    right."""
    model, dense = (case.model(seed, is_stored=stored) for stored in (True, False))
    predicted = [not why for why in arm_sparse(model.main).values()]
    ran = [KERNEL in one.detail for one in profile_ops(model, runs=1).ops if one.kind == "CONV_2D"]
    ours, theirs = answer(model), answer(dense)
    is_near = np.allclose(
        ours, theirs, NEAR, NEAR * float(np.nan_to_num(np.abs(theirs)).max()), equal_nan=True
    )
    said = "as predicted" if ran == predicted else f"WRONG: {sum(predicted)} were predicted"
    print(f"{case}: {sum(ran)} of {len(ran)} skip zeros, {said}{'' if is_near else ', FAR OFF'}")
    return ran == predicted and is_near


def main() -> int:
    print(cpu_name(), flush=True)
    wrong = 0
    for seed, case in enumerate(cases(int(sys.argv[1]) if len(sys.argv) > 1 else 0)):
        child = os.fork()  # a crash of the runtime is one wrong network
        if not child:
            status = 1
            try:
                status = 0 if compare(case, seed) else 1
            finally:
                sys.stdout.flush()
                os._exit(status)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            print(f"{case}: the runtime crashed", flush=True)
        wrong += bool(status)
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
