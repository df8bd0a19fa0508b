"""Weights of 4 bits: which layers have them, and that XNNPACK's kernels take these."""

from pathlib import Path

import numpy as np
import pytest

from litesmith import Builder, CannotApply, Model, save
from litesmith.calibration.four_bits import four_bit_steps
from litesmith.calibration.outside_xnnpack import outside_xnnpack
from litesmith.calibration.quantize_effort import carry_out, plan
from litesmith.passes.core.layers import layers_of
from litesmith.passes.core.recipe import apply, parse, text_of
from litesmith.passes.quantizing.quantize import Quantize
from tests.quantized import worst
from tests.zoo import noise
from tests.zoo_float import context, conv, dense, few

BLOCKS, CHANNELS = "FULLY_CONNECTED int4 in blocks", "FULLY_CONNECTED int4"


def mobile(width: int = 64) -> Model:
    """A stem, depthwise and pointwise layers, a mean, and a classifier."""
    b = Builder()
    x = conv(b, b.input("image", (1, 16, 16, 3)), 16, stride_h=2, stride_w=2)
    x = conv(b, x, width, 1, size=1, fused_activation_function="RELU6")
    for seed in (2, 3):
        x = b.op("DEPTHWISE_CONV_2D", x, noise(1, 3, 3, width, seed=seed), noise(width))
        x = conv(b, x, width, seed, size=1, fused_activation_function="RELU6")
    return b.model(dense(b, b.op("MEAN", x, np.int32([1, 2])), 100))


def stored(model: Model) -> list[str]:
    """What each layer is, and the type of its weights."""
    found: list[str] = []
    for layer in layers_of(model.main).values():
        quant = layer.weight.quant
        blocks = " in blocks" if quant is not None and quant.block is not None else ""
        found.append(f"{layer.op.kind} {layer.weight.dtype}{blocks}")
    return found


@pytest.mark.parametrize("to", ["w4a8", "dynamic-int4"])
def test_a_mobile_network_runs_in_fast_kernels(to: str, tmp_path: Path) -> None:
    model = mobile()
    steps = four_bit_steps(model, Quantize(to=to))
    made = apply(model, text_of((*steps, *parse("round"))), context(model)).model
    four = BLOCKS if to == "dynamic-int4" else CHANNELS
    eight = ["DEPTHWISE_CONV_2D int8", four] * 2
    # The first pointwise layer reads 16 channels, which are no block.
    assert stored(made) == ["CONV_2D int8", CHANNELS, *eight, four]
    path = tmp_path / "made.tflite"
    save(made, path)
    assert outside_xnnpack(path) == {}
    assert worst(model, made, few(model, seed=1)) > 15


def test_convolutions_stay_where_no_cpu_runs_them() -> None:
    model = mobile()
    made = apply(model, four_bit_steps(model, Quantize(to="w4a8"), on_cpu=False), context(model))
    kinds = ["CONV_2D int8", "CONV_2D int4", *["DEPTHWISE_CONV_2D int8", "CONV_2D int4"] * 2]
    assert stored(made.model) == [*kinds, "FULLY_CONNECTED int4"]


def test_a_model_without_layers_is_refused_by_the_step_itself() -> None:
    b = Builder()
    model = b.model(b.op("RELU", b.input("x", (1, 4))))
    step = Quantize(to="dynamic-int4")
    with pytest.raises(CannotApply, match="no layer of the model can be changed"):
        carry_out(model, plan(model, step, "default", has_data=False), None)


def test_the_smallest_layers_keep_eight_bits() -> None:
    b = Builder()
    x = b.input("x", (1, 64))
    for width in (8, 512, 512, 8):
        x = dense(b, x, width, width)
    model = b.model(x)
    made = apply(model, four_bit_steps(model, Quantize(to="dynamic-int4"))).model
    eight = "FULLY_CONNECTED int8"
    assert stored(made) == [eight, eight, BLOCKS, eight]
