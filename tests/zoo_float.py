"""Float models worth quantizing, each with something that a quantizer may trip over."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from litesmith.calibration.observe import tools
from litesmith.data.samples import Items, Sample
from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.step import Context
from tests.runtime import random_input
from tests.zoo import branches, careless, convnet, described, half_weights, noise


@dataclass(frozen=True, eq=False)
class Few:
    """A handful of samples."""

    rows: tuple[tuple[np.ndarray, ...], ...]
    source: str = "a few samples"
    notes: tuple[str, ...] = ()
    items: Items = field(default_factory=Items)

    @property
    def digest(self) -> str:
        return sha256(b"".join(a.tobytes() for row in self.rows for a in row)).hexdigest()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Sample]:
        return map(Sample, self.rows)


def few(model: Model, count: int = 8, seed: int = 0) -> Few:
    """Seeded random samples for the inputs of a model."""
    random = np.random.default_rng(seed)
    return Few(
        tuple(
            tuple(
                random_input(random, np.array(t.shape), np.dtype(t.dtype).type)
                for t in model.main.inputs
            )
            for _ in range(count)
        )
    )


def context(model: Model, count: int = 8) -> Context:
    """What a step that needs data is given."""
    return Context(tools(few(model, count), threads=1))


def conv(b: Builder, x: Tensor, channels: int, seed: int = 0, size: int = 3, **options) -> Tensor:
    weight = noise(channels, size, size, x.shape[3], seed=seed, scale=0.3)
    return b.op("CONV_2D", x, weight, noise(channels, seed=seed + 1), **options)


def dense(b: Builder, x: Tensor, outputs: int, seed: int = 0, **options) -> Tensor:
    weight = noise(outputs, x.shape[-1], seed=seed, scale=0.3)
    return b.op("FULLY_CONNECTED", x, weight, noise(outputs, seed=seed + 1), **options)


def image(b: Builder, size: int = 6, channels: int = 8) -> Tensor:
    return b.input("image", (1, size, size, channels))


def residual() -> Model:
    b = Builder()
    x = conv(b, image(b), 4, fused_activation_function="RELU")
    y = conv(b, conv(b, x, 4, 1, fused_activation_function="RELU6"), 4, 2)
    return b.model(b.op("ADD", x, y, fused_activation_function="RELU"))


def different_ranges() -> Model:
    """A concatenation of a narrow part, a wide one and a constant."""
    b = Builder()
    x = image(b)
    wide = b.op("CONV_2D", x, noise(3, 1, 1, 8, scale=20), noise(3))
    fixed = b.const(np.full((1, 6, 6, 1), -3, np.float32), name="fixed")
    return b.model(conv(b, b.op("CONCATENATION", x, wide, fixed, axis=3), 2))


def shared_weights() -> Model:
    """Two layers with one weight; a large bias makes one of them want wider scales."""
    b = Builder()
    w = b.const(noise(8, 3, 3, 8, scale=0.2), name="shared")
    x = b.op("CONV_2D", image(b), w, noise(8), fused_activation_function="RELU")
    return b.model(b.op("CONV_2D", b.op("MUL", x, np.float32(9)), w, noise(8, scale=3)))


def shared_bias() -> Model:
    b = Builder()
    bias = b.const(noise(4), name="shared")
    x = b.op("CONV_2D", image(b), noise(4, 3, 3, 8), bias)
    return b.model(b.op("CONV_2D", x, noise(4, 1, 1, 4, seed=2, scale=5), bias))


def split() -> Model:
    """An op with several outputs, each with another fate."""
    b = Builder()
    x = conv(b, image(b), 6)
    b.op("SPLIT", np.int32(3), x, num_splits=3)
    one, two, three = b.last.outputs
    return b.model(conv(b, one, 3, 4), b.op("MUL", two, two), three)


def fixed_scales() -> Model:
    b = Builder()
    x = dense(b, b.input("x", (2, 48)), 6)
    parts = [b.op(kind, x) for kind in ("SOFTMAX", "LOGISTIC", "TANH")]
    return b.model(dense(b, b.op("CONCATENATION", *parts, x, axis=1), 3, 5))


def one_fixed_scale() -> Model:
    """Only a logistic output and its copies: all may keep the dictated scale."""
    b = Builder()
    x = b.op("LOGISTIC", dense(b, b.input("x", (2, 48)), 6))
    x = b.op("CONCATENATION", x, b.op("RESHAPE", x, [2, 6]), axis=1)
    return b.model(dense(b, b.op("PAD", x, [[0, 0], [1, 1]]), 3, 5))


def padded() -> Model:
    b = Builder()
    x = b.op("PAD", image(b), [[0, 0], [1, 1], [1, 1], [0, 0]])
    x = conv(b, x, 4, padding="VALID")
    x = b.op("PADV2", x, [[0, 0], [0, 1], [0, 1], [0, 0]], np.float32(2.5))
    x = b.op("MIRROR_PAD", x, [[0, 0], [1, 1], [1, 1], [0, 0]])
    return b.model(b.op("MAX_POOL_2D", x, filter_height=2, filter_width=2))


def upsampled() -> Model:
    b = Builder()
    x = conv(b, image(b), 3)
    weight = noise(10, 3, 3, 3, seed=7, scale=0.3)
    x = b.op(
        "TRANSPOSE_CONV", [1, 12, 12, 10], weight, x, noise(10), stride_h=2, stride_w=2, version=3
    )
    return b.model(b.op("RESIZE_BILINEAR", x, [6, 6]))


def recurrent() -> Model:
    """An LSTM between two layers; its state stays between runs."""
    b = Builder()
    x = dense(b, b.input("x", (1, 3, 40)), 8, keep_num_dims=True)
    weights = [noise(5, 8, seed=s) for s in range(4)] + [noise(5, 5, seed=s) for s in range(4)]
    biases = [noise(5, seed=s) for s in range(4)]
    states = [Tensor(name, (1, 5), variable=True) for name in ("h", "c")]
    gates = (*weights, None, None, None, *biases, None, None, *states)
    x = b.op("UNIDIRECTIONAL_SEQUENCE_LSTM", x, *gates, shape=(1, 3, 5))
    return b.model(dense(b, x, 3, keep_num_dims=True))


def branching() -> Model:
    """IF after a layer, another layer after it."""

    def branch(name: str, kind: str):
        b = Builder(name)
        return b.graph(b.op(kind, b.input("x", (1, 8)), noise(8)))

    b = Builder()
    x = dense(b, b.input("x", (1, 40)), 8)
    positive = b.op("GREATER", b.op("SUM", x, [0, 1]), np.float32(0), shape=())
    places: dict[str, Any] = {"then_subgraph_index": 1, "else_subgraph_index": 2}
    y = b.op("IF", positive, x, shape=(1, 8), dtype="float32", **places)
    return b.model(dense(b, y, 3, 2), graphs=(branch("then", "ADD"), branch("else", "MUL")))


def looping() -> Model:
    """WHILE i < 3: i, x = i + 1, x W."""
    condition, body, b = Builder("condition"), Builder("body"), Builder()
    i = condition.input("i", (1,), "int32")
    condition.input("x", (1, 8))
    j, x = body.input("i", (1,), "int32"), body.input("x", (1, 8))
    outputs = body.op("ADD", j, np.ones(1, np.int32)), dense(body, x, 8)
    value = dense(b, b.input("x", (1, 40)), 8)
    start = b.const(np.zeros(1, np.int32))
    places: dict[str, Any] = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    b.op("WHILE", start, value, shape=[(1,), (1, 8)], **places)
    ends = condition.graph(condition.op("LESS", i, np.array([3], np.int32)))
    return b.model(dense(b, b.last.outputs[1], 3, 2), graphs=(ends, body.graph(*outputs)))


def free_dimension() -> Model:
    b = Builder()
    x = dense(b, b.input("x", (-1, 48)), 6)
    return b.model(dense(b, b.op("RELU", x), 3, 2))


def dead_channel() -> Model:
    """A filter of zeros with a large bias, as batch normalization leaves it."""
    b = Builder()
    weight, bias = noise(4, 3, 3, 8, scale=0.3), noise(4)
    weight[1:3] *= np.array([0, 1e-6], np.float32).reshape(2, 1, 1, 1)
    bias[1:3] = 100, 50
    return b.model(b.op("CONV_2D", image(b), weight, bias))


def activations() -> Model:
    b = Builder()
    x = b.op("PRELU", conv(b, image(b), 4), np.abs(noise(1, 1, 4)))
    x = b.op("HARD_SWISH", conv(b, x, 4, 2))
    x = b.op("LEAKY_RELU", conv(b, x, 4, 3), alpha=0.1)
    x = b.op("MEAN", b.op("ELU", x), [1, 2])
    return b.model(b.op("SOFTMAX", dense(b, x, 5)))


def no_bias() -> Model:
    b = Builder()
    x = b.op("FULLY_CONNECTED", b.input("x", (3, 48)), noise(6, 48), None)
    return b.model(b.op("FULLY_CONNECTED", x, noise(2, 6)))


def multiplied_depth() -> Model:
    b = Builder()
    bias = noise(16)
    x = b.op("DEPTHWISE_CONV_2D", image(b), noise(1, 3, 3, 16), bias, depth_multiplier=2)
    return b.model(conv(b, x, 2))


def dilated() -> Model:
    b = Builder()
    x = conv(b, image(b, 8), 8, dilation_h_factor=2, dilation_w_factor=2)
    factors: dict[str, Any] = {"dilation_h_factor": 2, "dilation_w_factor": 2}
    return b.model(b.op("DEPTHWISE_CONV_2D", x, noise(1, 3, 3, 8), noise(8), **factors))


def float_in_the_middle() -> Model:
    """SIN has no integer kernel, and is read by two."""
    b = Builder()
    x = b.op("SIN", conv(b, image(b), 4))
    return b.model(b.op("ADD", conv(b, x, 4, 1), b.op("RELU", x)))


def inner_output() -> Model:
    b = Builder()
    x = conv(b, image(b), 4, fused_activation_function="RELU")
    y = conv(b, x, 4, 1)
    return b.model(x, y, b.op("MAX_POOL_2D", y, filter_height=2, filter_width=2))


def passed_on() -> Model:
    """An input that is an output as well, and one that nobody reads."""
    b = Builder()
    x = b.input("x", (1, 40))
    b.input("unread", (1, 2))
    return b.model(x, dense(b, x, 8))


def constant_output() -> Model:
    b = Builder()
    y = dense(b, b.input("x", (1, 40)), 8)
    anchors = b.const(noise(4, 2), name="anchors")
    b.op("RESHAPE", anchors, [2, 4])
    return b.model(y, anchors, b.last.outputs[0])


def same_twice() -> Model:
    b = Builder()
    x = conv(b, image(b), 4)
    x = b.op("CONCATENATION", b.op("MUL", x, x), b.op("ADD", x, x), axis=3)
    return b.model(b.op("CONCATENATION", x, x, axis=3))


def picked() -> Model:
    """Integers beside the data: GATHER by an input, an embedding, TOPK."""
    b = Builder()
    ids = b.input("ids", (2,), "int32")
    x = b.input("x", (3, 48))
    rows = b.op("GATHER", dense(b, x, 6), ids)
    looked_up = b.op("EMBEDDING_LOOKUP", ids, noise(50, 6))
    joined = b.op("ADD", rows, looked_up)
    top = b.op("TOPK_V2", dense(b, joined, 4), np.int32(2))
    return b.model(top, b.last.outputs[1])


def computed_shape() -> Model:
    b = Builder()
    x = conv(b, image(b), 4)
    rows = b.op("STRIDED_SLICE", b.op("SHAPE", x), [0], [1], [1], shrink_axis_mask=1)
    shape = b.op("PACK", rows, np.int32(144), values_count=2, shape=(2,), dtype="int32")
    return b.model(dense(b, b.op("RESHAPE", x, shape, shape=(1, 144)), 3))


def two_inputs() -> Model:
    b = Builder()
    x, y = b.input("x", (1, 40)), b.input("y", (1, 40))
    product = b.op("MUL", dense(b, x, 40), dense(b, y, 40, 2))
    return b.model(b.op("SUB", product, y), b.op("SQUARED_DIFFERENCE", x, y), signature="two")


def attention() -> Model:
    b = Builder()
    x = b.input("x", (1, 5, 40))
    q, k, v = (dense(b, x, 8, s, keep_num_dims=True) for s in (0, 2, 4))
    scores = b.op("SOFTMAX", b.op("BATCH_MATMUL", q, k, adj_y=True))
    return b.model(dense(b, b.op("BATCH_MATMUL", scores, v), 3, 6, keep_num_dims=True))


def tiny_output() -> Model:
    """Large products that cancel: the output has far finer steps than its products."""
    b = Builder()
    x = b.input("x", (1, 40))
    pair = b.op("CONCATENATION", x, b.op("MUL", x, np.float32(-1)), axis=1)
    weight = np.full((4, 80), 1000, np.float32)
    return b.model(b.op("FULLY_CONNECTED", pair, weight, np.full(4, 1e-3, np.float32)))


def scalars() -> Model:
    """Tensors of one element, of rank 0 too."""
    b = Builder()
    x = b.op("FULLY_CONNECTED", b.input("x", (1, 1)), noise(1, 1), noise(1))
    total = b.op("SUM", x, [0, 1], shape=())
    return b.model(b.op("ADD", total, np.float32(1)), b.op("MUL", x, total))


def weighted_by_input() -> Model:
    """A layer whose weight is computed, beside one whose bias is."""
    b = Builder()
    x, w = b.input("x", (1, 40)), b.input("w", (3, 40))
    y = b.op("FULLY_CONNECTED", x, w, noise(3))
    return b.model(b.op("FULLY_CONNECTED", dense(b, y, 90), noise(3, 90), b.op("ABS", noise(3))))


def gaps() -> Model:
    """Between two layers: moving ops of every sort, joined again."""
    b = Builder()
    x = conv(b, image(b), 4)
    x = b.op("TRANSPOSE", x, [0, 3, 1, 2])
    x = b.op("STRIDED_SLICE", x, [0, 0, 0, 0], [1, 4, 4, 4], [1, 2, 1, 1])
    x = b.op("TILE", x, [1, 1, 2, 1])
    y = b.op("MAXIMUM", x, np.float32(-0.25))
    x = b.op("PACK", x, y, axis=1, values_count=2)
    b.op("UNPACK", x, num=2, axis=1)
    return b.model(dense(b, b.op("RESHAPE", b.last.outputs[1], [1, 64]), 3))


def odd_layers() -> Model:
    """Channels in groups, a weight that is turned first, and a layer of constants alone."""
    b = Builder()
    x = b.op("CONV_2D", image(b), noise(8, 3, 3, 4, scale=0.3), noise(8), shape=(1, 6, 6, 8))
    turned = b.op("TRANSPOSE", noise(3, 3, 8, 4, seed=1, scale=0.3), [3, 0, 1, 2])
    fixed = b.op("FULLY_CONNECTED", b.const(noise(1, 70)), noise(4, 70, seed=2), noise(4))
    return b.model(b.op("ADD", b.op("CONV_2D", x, turned, noise(4)), fixed))


def tied() -> Model:
    """An embedding that is the weight of the last layer too."""
    b = Builder()
    table = b.const(noise(50, 16), name="table")
    x = b.op("EMBEDDING_LOOKUP", b.input("ids", (2,), "int32"), table)
    return b.model(b.op("FULLY_CONNECTED", x, table, None))


FLOATS: dict[str, Callable[[], Model]] = {
    make.__name__: make
    for make in (
        convnet,
        careless,
        described,
        half_weights,
        branches,
        residual,
        different_ranges,
        shared_weights,
        shared_bias,
        split,
        fixed_scales,
        one_fixed_scale,
        padded,
        upsampled,
        recurrent,
        branching,
        looping,
        free_dimension,
        dead_channel,
        activations,
        no_bias,
        multiplied_depth,
        dilated,
        float_in_the_middle,
        inner_output,
        passed_on,
        constant_output,
        same_twice,
        picked,
        computed_shape,
        two_inputs,
        attention,
        tiny_output,
        scalars,
        weighted_by_input,
        gaps,
        odd_layers,
        tied,
    )
}
