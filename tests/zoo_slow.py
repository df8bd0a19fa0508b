"""Models with ops that XNNPACK has in float only, so that int8 makes them slower."""

import numpy as np

from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Quant, Tensor
from litesmith.passes.core.recipe import apply
from tests.zoo import noise
from tests.zoo_float import context, conv, dense, image


def prelu_net(size: int = 16, channels: int = 16, layers: int = 3) -> Model:
    """Convolutions with a PRELU after each."""
    b = Builder()
    x = image(b, size, channels)
    for layer in range(layers):
        slopes = np.full((1, 1, channels), 0.1 * (layer + 1), np.float32)
        x = b.op("PRELU", conv(b, x, channels, layer, size=1), slopes)
    return b.model(b.op("MEAN", x, [1, 2]))


def transformer(tokens: int = 16, width: int = 32, loud: float = 1.0) -> Model:
    """One block: attention and a pair of layers, each with a normalization in pieces; two channels
    of what these give are so many times louder than the others, and read as much less."""
    b = Builder()
    x = b.input("x", (1, tokens, width))
    q, k, v = (dense(b, x, width, seed, keep_num_dims=True) for seed in (0, 2, 4))
    seen = b.op("SOFTMAX", b.op("BATCH_MATMUL", q, k, adj_y=True))
    read = dense(b, b.op("BATCH_MATMUL", seen, v), width, 6, keep_num_dims=True)
    x = _normalized(b, b.op("ADD", x, read), loud)
    wide = b.op("GELU", _reading(b, x, 4 * width, 8, loud))
    x = _normalized(b, b.op("ADD", x, dense(b, wide, width, 10, keep_num_dims=True)), loud)
    return b.model(_reading(b, b.op("MEAN", x, [1]), 4, 12, loud))


def _reading(b: Builder, x: Tensor, outputs: int, seed: int, loud: float) -> Tensor:
    """A layer that hardly reads the loud channels."""
    weight = noise(outputs, x.shape[-1], seed=seed, scale=0.3)
    weight[:, :2] /= loud
    return b.op("FULLY_CONNECTED", x, weight, keep_num_dims=len(x.shape) > 2)


def _normalized(b: Builder, x: Tensor, loud: float) -> Tensor:
    centred = b.op("SUB", x, b.op("MEAN", x, [2], keep_dims=True))
    power = b.op("MEAN", b.op("MUL", centred, centred), [2], keep_dims=True)
    one = b.op("MUL", centred, b.op("RSQRT", b.op("ADD", power, np.float32(1e-6))))
    gains = np.ones(x.shape[-1], np.float32)
    gains[:2] = loud
    return b.op("MUL", one, gains)


def int8_of(model: Model) -> Model:
    """Integers wherever a kernel has them."""
    return apply(model, "quantize(to=int8)", context(model)).model


def without_float_form() -> Model:
    """A PRELU in int8 whose result goes out twice, as codes and as real numbers: in float both
    outputs would be one."""
    b = Builder()
    x = b.input("x", (1, 64, 64, 32), "int8", Quant.of(0.05))
    slopes = b.const(np.full((1, 1, 32), 50, np.int8), quant=Quant.of(0.01))
    y = b.op("PRELU", x, slopes, dtype="int8", quant=Quant.of(0.05))
    return b.model(y, b.op("DEQUANTIZE", y, dtype="float32", version=2))
