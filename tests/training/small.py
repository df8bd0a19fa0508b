"""Small models and data that train in a blink."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litesmith.data.samples import Data
from litesmith.data.sources import open_data
from litesmith.ir.build import Builder
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.types import Array, Model
from litesmith.passes.core.layers import layers_of
from tests.zoo import noise
from tests.zoo_float import conv, dense

CLASSES = 4


def classifier(seed: int = 0) -> Model:
    """Two layers and probabilities of four classes."""
    b = Builder()
    x = dense(b, b.input("x", (1, 16)), 24, seed, fused_activation_function="RELU")
    return b.model(b.op("SOFTMAX", dense(b, x, CLASSES, seed + 2)))


def regression(seed: int = 0) -> Model:
    """Two layers with as many weights as pruning wants, and numbers that are no classes."""
    b = Builder()
    x = dense(b, b.input("x", (1, 24)), 16, seed, fused_activation_function="RELU")
    return b.model(dense(b, x, 20, seed + 2))


def pictures(seed: int = 0) -> Model:
    """Convolutions over a colour picture, and a class for each of its places."""
    b = Builder()
    x = conv(b, b.input("x", (1, 16, 16, 3)), 6, seed, stride_h=2, stride_w=2)
    return b.model(b.op("SOFTMAX", conv(b, b.op("RELU", x), 3, seed + 2)))


def words(seed: int = 0) -> Model:
    """Numbers of words, their rows of a table, a mean, a layer; and the words once more."""
    b = Builder()
    ids = b.input("ids", (1, 5), "int32")
    rows = b.op("GATHER", noise(9, 12, seed=seed), ids)
    weight = b.const(noise(12, 12, seed=seed + 3), name="looked up")
    looked_up = b.op("EMBEDDING_LOOKUP", b.op("RESHAPE", ids, [5]), weight)
    x = b.op("ADD", b.op("MEAN", rows, [1]), b.op("MEAN", looked_up, [0], keep_dims=True))
    return b.model(dense(b, x, 6, seed + 1))


def several(seed: int = 0) -> Model:
    """Two inputs, three outputs: probabilities, numbers, one number alone."""
    b = Builder()
    x, y = b.input("x", (1, 10)), b.input("y", (1, 6))
    joined = b.op("CONCATENATION", x, y, axis=1)
    hidden = dense(b, joined, 12, seed, fused_activation_function="RELU6")
    total = b.op("SUM", dense(b, hidden, 3, seed + 1), [0, 1], shape=())
    return b.model(
        b.op("SOFTMAX", dense(b, hidden, 5, seed + 2)), dense(b, hidden, 2, seed + 4), total
    )


def inputs(model: Model, count: int = 40, seed: int = 0) -> list[Array]:
    """So many items for every input of a model, with the batch of the model as first dimension."""
    random = np.random.default_rng(seed)
    return [
        random.normal(0, 1, (count, *t.shape[1:])).astype(np.float32)
        if t.dtype == "float32"
        else random.integers(0, 9, (count, *t.shape[1:])).astype(t.dtype)
        for t in model.main.inputs
    ]


def data_of(model: Model, count: int = 40, seed: int = 0) -> Data:
    """The same as data."""
    arrays = inputs(model, count, seed)
    names = [t.name for t in model.main.inputs]
    return open_data(dict(zip(names, arrays, strict=True)), model)


def labelled(count: int = 64, seed: int = 0) -> tuple[Array, Array]:
    """Items for `classifier` around four far points, and the number of the point."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.arange(count) % CLASSES)
    centres = np.random.default_rng(9).normal(0, 2, (CLASSES, 16))
    items = centres[labels] + random.normal(0, 0.5, (count, 16))
    return items.astype(np.float32), labels


def damaged(model: Model, size: float = 0.3, seed: int = 5) -> Model:
    """The model with noise on its weights, in parts of their size."""
    random = np.random.default_rng(seed)
    tensors = {}
    for layer in layers_of(model.main).values():
        values = layer.weight.values()
        moved = values + random.normal(0, size * values.std(), values.shape)
        tensors[layer.weight] = replace(layer.weight, data=moved.astype(np.float32))
    return with_graphs(model, (rewrite(model.main, tensors=tensors), *model.graphs[1:]))


def weights(model: Model) -> list[Array]:
    """The weights of every layer, as stored."""
    return [layer.weight.values() for layer in layers_of(model.main).values()]


def zeros(model: Model) -> list[int]:
    return [int(values.size - np.count_nonzero(values)) for values in weights(model)]


def codes(model: Model) -> list[int]:
    """How many different numbers each weight has."""
    return [np.unique(values).size for values in weights(model)]


def interface(model: Model) -> Sequence[tuple[object, ...]]:
    ends = (*model.main.inputs, *model.main.outputs)
    return [(t.name, t.shape, t.dtype, t.dynamic) for t in ends]
