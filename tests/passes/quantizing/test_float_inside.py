"""A float network between integer inputs and outputs is quantized as any float one is."""

from collections.abc import Callable

import numpy as np
import pytest

import litesmith
from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Quant
from litesmith.passes.quantizing.integer_graph import computes_in_float
from tests import zoo
from tests.runtime import run


def between_bytes() -> Model:
    b = Builder()
    x = b.input("x", (1, 8, 8, 3), "uint8", Quant.of(1 / 127.5, 127))
    x = b.op("DEQUANTIZE", x, dtype="float32")
    x = b.op("CONV_2D", x, zoo.noise(8, 3, 3, 3), zoo.noise(8), fused_activation_function="RELU")
    x = b.op("FULLY_CONNECTED", b.op("MEAN", x, [1, 2]), zoo.noise(4, 8), zoo.noise(4))
    return b.model(b.op("QUANTIZE", b.op("SOFTMAX", x), dtype="uint8", quant=Quant.of(1 / 256, 0)))


@pytest.mark.parametrize(
    ("made", "is_float"),
    [
        (between_bytes, True),
        (zoo.convnet, True),
        (zoo.half_weights, True),
        (zoo.residual_int8, False),
        (zoo.legacy_uint8, False),
        (zoo.hybrid, False),
        (zoo.int4_weights, False),
    ],
)
def test_who_computes_in_float(made: Callable[[], Model], is_float: bool) -> None:
    assert computes_in_float(made()) == is_float


def test_it_becomes_integers_throughout_and_keeps_what_callers_see() -> None:
    data = np.random.default_rng(0).integers(0, 256, (16, 8, 8, 3)).astype(np.uint8)
    model = between_bytes()
    found = litesmith.quantize(model, data, trust_data=True, fully_integer=True, runs=2)
    assert found.speed.latency is not None, found.speed.untimed
    made = found.model
    assert [t.dtype for t in (*made.main.inputs, *made.main.outputs)] == ["uint8", "uint8"]
    assert not any(t.dtype == "float32" for op in made.main.ops for t in op.outputs)
    for seed in range(3):
        (one,), (two,) = (run(each, seed) for each in (model, made))
        assert np.abs(one.astype(int) - two.astype(int)).max() <= 8
