"""Transformers and recurrent networks in a few lines, as exporters write them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Tensor
from litesmith.tflite.write import to_bytes
from tests.zoo import noise

WIDTH, PLACES, HEADS = 16, 6, 2


def dense(b: Builder, x: Tensor, width: int, seed: int, stretch: float = 1.0) -> Tensor:
    """A layer whose first channel is stretched."""
    inside = x.shape[-1]
    weight = noise(width, inside, seed=seed, scale=inside**-0.5)
    weight[0] *= stretch
    bias = noise(width, seed=seed + 1, scale=0.1)
    return b.op("FULLY_CONNECTED", x, weight, bias, keep_num_dims=True)


def normalize(b: Builder, x: Tensor, seed: int, how: str = "pieces") -> Tensor:
    """Layer normalization in the ways that exporters write it."""
    gain = 1 + noise(x.shape[-1], seed=seed, scale=0.3)
    bias = noise(x.shape[-1], seed=seed + 1, scale=0.2)
    mean = b.op("MEAN", x, [-1], keep_dims=True)
    if how == "power":
        power = b.op("MEAN", b.op("MUL", x, x), [-1], keep_dims=True)
        root = b.op("RSQRT", b.op("ADD", power, np.float32(1e-6)))
        return b.op("MUL", b.op("MUL", x, root), gain)
    if how == "difference":
        power = b.op("MEAN", b.op("SQUARED_DIFFERENCE", x, mean), [-1], keep_dims=True)
        factor = b.op("MUL", b.op("RSQRT", b.op("ADD", power, np.float32(1e-6))), gain)
        rest = b.op("SUB", bias, b.op("MUL", mean, factor))
        return b.op("ADD", b.op("MUL", x, factor), rest)
    if how == "rows":  # a number for each row, of no other dimension
        column = [*x.shape[:-1], 1]
        mean = b.op("MEAN", x, [0, 2], shape=x.shape[1:2])
        apart = b.op("SQUARED_DIFFERENCE", x, b.op("RESHAPE", mean, column))
        power = b.op("MEAN", apart, [0, 2], shape=x.shape[1:2])
        root = b.op("RSQRT", b.op("ADD", power, np.float32(1e-6)))
        rest = b.op("SUB", np.float32(0), b.op("MUL", root, mean))
        shape = b.op("MUL", x, b.op("RESHAPE", root, column))
        shape = b.op("ADD", shape, b.op("RESHAPE", rest, column))
        return b.op("ADD", b.op("MUL", shape, gain), bias)
    centred = b.op("SUB", x, mean)
    power = b.op("MEAN", b.op("MUL", centred, centred), [-1], keep_dims=True)
    root = b.op("ADD", power, np.float32(1e-6))
    if how == "quotient":
        shape = b.op("DIV", centred, b.op("SQRT", root))
    else:
        shape = b.op("MUL", centred, b.op("RSQRT", root))
    return b.op("ADD", b.op("MUL", shape, gain), bias)


def gelu(b: Builder, x: Tensor, how: str) -> Tensor:
    if how == "whole":
        return b.op("GELU", x)
    if how == "logistic":
        return b.op("MUL", x, b.op("LOGISTIC", b.op("MUL", x, np.float32(1.702))))
    cube = b.op("MUL", b.op("MUL", x, x), x)
    inner = b.op("ADD", x, b.op("MUL", cube, np.float32(0.044715)))
    curve = b.op("TANH", b.op("MUL", inner, np.float32(0.7978846)))
    return b.op("MUL", b.op("MUL", x, np.float32(0.5)), b.op("ADD", curve, np.float32(1)))


def split_heads(b: Builder, x: Tensor) -> Tensor:
    parts = b.op("RESHAPE", x, [1, PLACES, HEADS, WIDTH // HEADS])
    return b.op("TRANSPOSE", parts, [0, 2, 1, 3])


def attend(b: Builder, x: Tensor, mask: Tensor | None, seed: int) -> Tensor:
    query, key, value = (split_heads(b, dense(b, x, WIDTH, seed + 2 * n)) for n in range(3))
    scores = b.op("BATCH_MATMUL", query, b.op("TRANSPOSE", key, [0, 1, 3, 2]))
    scores = b.op("MUL", scores, np.float32((WIDTH // HEADS) ** -0.5))
    if mask is not None:
        scores = b.op("ADD", scores, mask)
    context = b.op("BATCH_MATMUL", b.op("SOFTMAX", scores), value)
    joined = b.op("RESHAPE", b.op("TRANSPOSE", context, [0, 2, 1, 3]), [1, PLACES, WIDTH])
    return dense(b, joined, WIDTH, seed + 8)


def transformer(
    blocks: int = 2,
    how: str = "pieces",
    curve: str = "whole",
    masked: float = -1e4,
    stretch: float = 1.0,
) -> Model:
    """Tokens and their mask in, two scores out; normalization after each sum, as in BERT. Each
    feed-forward block stretches one channel of its output."""
    b = Builder()
    ids, there = b.input("ids", (1, PLACES), "int32"), b.input("mask", (1, PLACES), "int32")
    real = b.op("CAST", there, out_data_type="FLOAT32", in_data_type="INT32", dtype="float32")
    x = b.op("GATHER", noise(30, WIDTH, seed=90), ids)
    x = normalize(b, b.op("ADD", x, noise(PLACES, WIDTH, seed=91)), 92, how)
    far = b.op("MUL", b.op("SUB", np.float32(1), real), np.float32(masked))
    mask = b.op("RESHAPE", far, [1, 1, 1, PLACES])
    for n in range(blocks):
        seed = 100 * (n + 1)
        x = normalize(b, b.op("ADD", x, attend(b, x, mask, seed)), seed + 20, how)
        inner = gelu(b, dense(b, x, 4 * WIDTH, seed + 30), curve)
        written = dense(b, inner, WIDTH, seed + 40, stretch)
        x = normalize(b, b.op("ADD", x, written), seed + 50, how)
    pooled = b.op("MEAN", x, [1])
    return b.model(dense(b, pooled, 2, 5), signature="serving_default")


def tokens(count: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Inputs of `transformer`: sentences of any length, the rest masked."""
    random = np.random.default_rng(seed)
    rows: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(count):
        length = int(random.integers(2, PLACES + 1))
        mask = (np.arange(PLACES) < length).astype(np.int32)[None]
        rows.append((random.integers(0, 30, (1, PLACES)).astype(np.int32), mask))
    return rows


def unrolled_lstm(steps: int = 3, width: int = 8) -> Model:
    """An LSTM whose steps share their weights, as exporters unroll it."""
    b = Builder()
    whole = b.input("x", (1, steps, 4))
    weight, bias = b.const(noise(4 * width, 4 + width)), b.const(noise(4 * width, seed=1))
    state, hidden = b.input("c", (1, width)), b.input("h", (1, width))
    for n in range(steps):
        x = b.op("RESHAPE", b.op("SLICE", whole, [0, n, 0], [1, 1, 4]), [1, 4])
        joined = b.op("CONCATENATION", x, hidden, axis=1)
        gates = b.op("FULLY_CONNECTED", joined, weight, bias)
        parts = [b.op("SLICE", gates, [0, k * width], [1, width]) for k in range(4)]
        entry, keep, out = (b.op("LOGISTIC", parts[k]) for k in (0, 1, 2))
        fresh = b.op("MUL", entry, b.op("TANH", parts[3]))
        state = b.op("ADD", b.op("MUL", keep, state), fresh)
        hidden = b.op("MUL", out, b.op("TANH", state))
    return b.model(hidden)


def two_product_lstm(steps: int = 3, width: int = 8, *, has_front: bool = False) -> Model:
    """An LSTM whose steps multiply input and state apart, as Keras and PyTorch write it, and a
    layer behind it; with `has_front` also one before it."""
    b = Builder()
    whole = b.input("x", (1, steps, 4))
    if has_front:
        whole = dense(b, whole, 4, 9)
    weights = [b.const(noise(4 * width, n, seed=n)) for n in (4, width)]
    bias = b.const(noise(4 * width, seed=1))
    state, hidden = b.input("c", (1, width)), b.input("h", (1, width))
    for n in range(steps):
        x = b.op("RESHAPE", b.op("SLICE", whole, [0, n, 0], [1, 1, 4]), [1, 4])
        given = b.op("FULLY_CONNECTED", x, weights[0], bias)
        gates = b.op("ADD", given, b.op("FULLY_CONNECTED", hidden, weights[1], None))
        parts = [b.op("SLICE", gates, [0, k * width], [1, width]) for k in range(4)]
        entry, keep, out = (b.op("LOGISTIC", parts[k]) for k in (0, 1, 2))
        fresh = b.op("MUL", entry, b.op("TANH", parts[3]))
        state = b.op("ADD", b.op("MUL", keep, state), fresh)
        hidden = b.op("MUL", out, b.op("TANH", state))
    return b.model(dense(b, hidden, 4, 5))


def unrolled_gru(steps: int = 2, width: int = 8) -> Model:
    b = Builder()
    hidden = b.input("h", (1, width))
    for n in range(steps):
        x = b.input(f"x{n}", (1, 4))
        update = b.op("LOGISTIC", b.op("ADD", dense(b, x, width, 1), dense(b, hidden, width, 3)))
        reset = b.op("LOGISTIC", b.op("ADD", dense(b, x, width, 5), dense(b, hidden, width, 7)))
        inner = b.op("MUL", reset, dense(b, hidden, width, 9))
        fresh = b.op("TANH", b.op("ADD", dense(b, x, width, 11), inner))
        rest = b.op("SUB", np.float32(1), update)
        hidden = b.op("ADD", b.op("MUL", update, hidden), b.op("MUL", rest, fresh))
    return b.model(hidden)


def runner(model: Model) -> Callable[[Sequence[np.ndarray]], np.ndarray]:
    """The first output of a model in stock LiteRT, for inputs in order."""
    interpreter = Interpreter(model_content=to_bytes(replace(model, signatures=())))
    interpreter.allocate_tensors()

    def run(inputs: Sequence[np.ndarray]) -> np.ndarray:
        for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

    return run
