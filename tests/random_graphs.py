"""Random float graphs with branches, joins and several outputs, for steps that need data."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Tensor
from tests.zoo import noise

ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")

# What a piece grows from: the builder, the tensors so far (the first one is where it grows), a
# number that decides the details -> new tensors, none where it does not fit.
Grow = Callable[[Builder, Sequence[Tensor], int], Sequence[Tensor]]


def conv(b: Builder, pool: Sequence[Tensor], pick: int) -> Sequence[Tensor]:
    x, outputs, size = pool[0], 1 + pick % 4, 1 + 2 * (pick % 2)
    weight = noise(outputs, size, size, x.shape[3], seed=pick, scale=0.4)
    bias = noise(outputs, seed=pick)
    return [b.op("CONV_2D", x, weight, bias, fused_activation_function=ACTIVATIONS[pick % 4])]


def depthwise(b: Builder, pool: Sequence[Tensor], pick: int) -> Sequence[Tensor]:
    x, times = pool[0], 1 + pick % 2
    channels = x.shape[3] * times
    weight, bias = noise(1, 3, 3, channels, seed=pick), noise(channels, seed=pick)
    return [b.op("DEPTHWISE_CONV_2D", x, weight, bias, depth_multiplier=times)]


def dense(b: Builder, pool: Sequence[Tensor], pick: int) -> Sequence[Tensor]:
    size = int(np.prod(pool[0].shape))
    flat = b.op("RESHAPE", pool[0], [1, size])
    weight = noise(4, size, seed=pick, scale=size**-0.5)
    y = b.op("FULLY_CONNECTED", flat, weight, noise(4, seed=pick) if pick % 2 else None)
    return [b.op("RESHAPE", y, [1, 2, 2, 1])]


def joined(kind: str, **options: Any) -> Grow:
    def grow(b: Builder, pool: Sequence[Tensor], pick: int) -> Sequence[Tensor]:
        x = pool[0]
        same = [t for t in pool if t.shape == x.shape]
        other = noise(x.shape[3], seed=pick) if pick % 4 == 0 else same[pick % len(same)]
        return [b.op(kind, x, other, **options)]

    return grow


def concatenated(b: Builder, pool: Sequence[Tensor], pick: int) -> Sequence[Tensor]:
    fitting = [t for t in pool if t.shape[:3] == pool[0].shape[:3]]
    others: list[Tensor | np.ndarray] = [fitting[(pick + n) % len(fitting)] for n in range(2)]
    if pick % 3 == 0:
        others.append(noise(*pool[0].shape[:3], 1, seed=pick, scale=2))
    if sum(t.shape[3] for t in (pool[0], *others)) > 16:
        return []
    return [b.op("CONCATENATION", pool[0], *others, axis=3)]


def split(b: Builder, pool: Sequence[Tensor], pick: int) -> Sequence[Tensor]:
    if pool[0].shape[3] % 2:
        return []
    b.op("SPLIT", np.int32(3), pool[0], num_splits=2)
    return b.last.outputs


def each(kind: str, *others: Any, **options: Any) -> Grow:
    """An op of one data input."""

    def grow(b: Builder, pool: Sequence[Tensor], pick: int) -> Sequence[Tensor]:
        return [b.op(kind, pool[0], *others, **options)]

    return grow


def padded(b: Builder, pool: Sequence[Tensor], pick: int) -> Sequence[Tensor]:
    widths = [(0, 0), (1, 0), (0, 1), (0, 0)]
    if max(pool[0].shape) > 8:
        return []
    if pick % 2:
        return [b.op("PAD", pool[0], widths)]
    return [b.op("PADV2", pool[0], widths, np.float32(pick / 5 - 1))]


def turned(b: Builder, pool: Sequence[Tensor], pick: int) -> Sequence[Tensor]:
    x = pool[0]
    if pick % 2:
        return [b.op("TRANSPOSE", x, [0, 2, 1, 3])]
    return [b.op("RESHAPE", x, [1, x.shape[2], x.shape[1], x.shape[3]])]


def leaky(b: Builder, pool: Sequence[Tensor], pick: int) -> Sequence[Tensor]:
    return [b.op("PRELU", pool[0], noise(1, 1, pool[0].shape[3], seed=pick))]


WINDOW = {"filter_height": 2, "filter_width": 2}

GROW: tuple[Grow, ...] = (
    conv,
    depthwise,
    dense,
    joined("ADD", fused_activation_function="RELU"),
    joined("SUB"),
    joined("MUL"),
    joined("MAXIMUM"),
    concatenated,
    split,
    padded,
    turned,
    leaky,
    *map(each, ("SOFTMAX", "LOGISTIC", "TANH", "RELU", "RELU6", "HARD_SWISH", "ELU", "ABS")),
    *map(each, ("SIN", "NEG")),  # no integer kernel, or none that is right
    each("MAX_POOL_2D", **WINDOW),
    each("AVERAGE_POOL_2D", **WINDOW),
    each("MEAN", [1, 2], keep_dims=True),
    each("REDUCE_MAX", [1, 2], keep_dims=True),
    each("RESIZE_NEAREST_NEIGHBOR", [4, 4]),
)


@st.composite
def graphs(draw: st.DrawFn, most: int = 8) -> Model:
    """A model of one or two inputs that begins with a layer."""
    b = Builder()
    pool = [b.input("x", (1, 4, 4, 2))]
    if draw(st.booleans()):
        pool.append(b.input("y", (1, 4, 4, 2)))
    pool += conv(b, pool, draw(st.integers(0, 11)))
    pieces = st.tuples(st.sampled_from(GROW), st.integers(0, 11), st.integers(0, 3))
    for grow, pick, back in draw(st.lists(pieces, min_size=1, max_size=most)):
        place = max(0, len(pool) - 1 - back)
        pool += grow(b, [pool[place], *pool[:place], *pool[place + 1 :]], pick)
    read = {t for op in b.ops for t in op.inputs}
    ends = [t for t in pool if t not in read and t not in b.inputs]
    inner = [t for t in pool if t in read and t not in b.inputs][: draw(st.integers(0, 1))]
    return b.model(*ends, *inner, signature="serve")
