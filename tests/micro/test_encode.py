"""Encoded weights: decoding gives the same bits; what gains nothing stays."""

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.ir.edit import MEMORY_PLAN
from litesmith.ir.types import Model, Op, Quant, Tensor
from litesmith.micro.arena import HOST, add_up_arena
from litesmith.micro.encode import DECODE, decode_weights, encode_weights, pack_bits
from litesmith.passes.core.recipe import apply
from litesmith.run.accelerators.tflite_micro import read_arena
from litesmith.run.session import Session
from litesmith.tflite.read import read
from litesmith.tflite.write import to_bytes
from tests.micro.test_plan_file import weights


def weight_of(values: np.ndarray, axis: int | None) -> Tensor:
    scales = np.full(1 if axis is None else values.shape[axis], 0.02, np.float32)
    return Tensor("w", values.shape, "int8", values, Quant.of(scales, 0, axis or 0))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 200), st.sampled_from([None, 0, 3]), st.integers(0, 9), st.integers(0, 99))
def test_decoding_gives_the_weights(count: int, axis: int | None, zeros: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.choice(np.arange(-100, 100)[:count], (3, 2, 3, 5)).astype(np.int8)
    values[random.random(values.shape) < zeros / 10] = 0
    weight = weight_of(values, axis)
    code = encode_weights(weight)
    assert code is not None
    parts = [Tensor(n, a.shape, "uint8", a) for n, a in (("c", code.codes), ("t", code.table))]
    made = Tensor("d", weight.shape, "int8", None, weight.quant)
    op = Op("CUSTOM", tuple(parts), (made,), custom=DECODE)
    np.testing.assert_array_equal(decode_weights(op).reshape(values.shape), values)


@given(st.lists(st.integers(0, 127), min_size=1, max_size=40), st.integers(1, 7))
def test_bits_follow_each_other_the_highest_first(numbers: list[int], bits: int) -> None:
    held = [number % (1 << bits) for number in numbers]
    text = "".join(f"{number:0{bits}b}" for number in held)
    wanted = int(text.ljust(-(-len(text) // 8) * 8, "0"), 2).to_bytes(-(-len(text) // 8))
    assert pack_bits(np.array(held), bits).tobytes() == wanted


def layers(values: int) -> Model:
    """A convolution, a depthwise one and a fully connected layer of so many different weights."""
    b = Builder()
    quant, random = Quant.of(0.05, 3), np.random.default_rng(0)
    some = random.choice(np.arange(-120, 120), values, replace=False).astype(np.int8)

    x = b.input("x", (1, 6, 6, 16), "int8", quant)
    w = random.choice(some, (32, 3, 3, 16))
    y = b.op("CONV_2D", x, *weights(b, w, 32), quant=quant, version=3)
    w = random.choice(some, (1, 9, 9, 32))
    w = weights(b, w, 32, axis=3)
    y = b.op("DEPTHWISE_CONV_2D", y, *w, quant=quant, version=3, depth_multiplier=1)
    y = b.op("RESHAPE", y, b.const(np.array([1, 1152], np.int32)), quant=quant)
    w = b.const(random.choice(some, (4, 1152)), quant=Quant.of(0.02))
    bias = b.const(np.zeros(4, np.int32), quant=Quant.of(0.001))
    return b.model(b.op("FULLY_CONNECTED", y, w, bias, quant=quant, version=4))


def test_encode_makes_the_file_smaller_and_says_what_it_left() -> None:
    model = layers(16)
    change = apply(model, "encode")
    assert len(to_bytes(change.model)) < 0.75 * len(to_bytes(model))
    assert [op.custom for op in change.model.main.ops if op.is_custom] == [DECODE] * 3
    assert read(to_bytes(change.model)).main.ops[0].custom == DECODE
    assert add_up_arena(change.model).needed > add_up_arena(model).needed  # what it costs
    many = apply(layers(200), "encode")
    assert not many.touched
    assert {skip.why for skip in many.skipped} == {"its weights would take no less"}
    with pytest.raises(BadInput, match=r"^encode\(least=1.0\)"):
        apply(model, "encode(least=1.0)")


@pytest.mark.skipif(find_spec("tflite_micro") is None, reason="tflite-micro is not installed")
def test_the_interpreter_decodes_the_same_bits() -> None:
    model = layers(16)
    made = apply(model, "encode | arrange(overlap=reference)").model
    assert MEMORY_PLAN in dict(made.metadata)
    x = np.random.default_rng(1).integers(-128, 128, (1, 6, 6, 16)).astype(np.int8)
    answers: list[np.ndarray] = []
    for one in (model, made):
        with Session(one, "micro") as session:
            answers.append(next(iter(session(x).values())))
    np.testing.assert_array_equal(*answers)
    assert read_arena(made, to_bytes(made)).total == add_up_arena(made, HOST).total
