"""The laws of `round`: no single layer's output comes out worse than with nearest codes."""

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from litesmith.anatomy.weights import promises
from litesmith.calibration.observe import tools
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.numeric.rounding import refit, times
from litesmith.passes.core.layers import layers_of
from litesmith.passes.core.recipe import apply
from litesmith.passes.core.step import Context
from litesmith.passes.core.weight_structure import codebook_of
from litesmith.tflite.write import to_bytes
from tests.draws import draws
from tests.quantized import TARGETS, broken_laws, results, worst
from tests.refusals import fitting
from tests.zoo import noise
from tests.zoo_float import FLOATS, Few, context, few, image

STATELESS = sorted(set(FLOATS) - {"recurrent", "branches", "tiny_output"})


def conv(pick: int) -> Model:
    b = Builder()
    stride = 1 + pick % 2
    window = {"stride_h": stride, "stride_w": stride, "padding": ("SAME", "VALID")[pick // 2 % 2]}
    if pick % 3 == 0 and stride == 1:
        window |= {"dilation_h_factor": 2, "dilation_w_factor": 2}
    weight = noise(4, 3, 3, 6, seed=pick)
    return b.model(b.op("CONV_2D", image(b, 7, 6), weight, noise(4, seed=pick), **window))


def depthwise(pick: int) -> Model:
    b = Builder()
    times = 1 + pick % 3
    weight = noise(1, 3, 3, 4 * times, seed=pick)
    x = image(b, 6, 4)
    bias = noise(4 * times, seed=pick)
    padding = ("SAME", "VALID")[pick % 2]
    return b.model(
        b.op("DEPTHWISE_CONV_2D", x, weight, bias, depth_multiplier=times, padding=padding)
    )


def dense(pick: int) -> Model:
    b = Builder()
    x = b.input("x", (1 + pick % 3, 24))
    bias = noise(5, seed=pick) if pick % 2 else None
    return b.model(b.op("FULLY_CONNECTED", x, noise(5, 24, seed=pick), bias))


def correlated(model: Model, seed: int, shift: float) -> Few:
    """Samples whose numbers go together, as real ones do."""
    random = np.random.default_rng(seed)
    (x,) = model.main.inputs
    size = int(np.prod(x.shape))
    mixed = random.normal(0, 1, (size, 4)).astype(np.float32)
    drawn = [mixed @ random.normal(0, 1, 4) + random.normal(0, 0.2, size) for _ in range(24)]
    return Few(tuple(((row + shift).astype(np.float32).reshape(x.shape),) for row in drawn))


def error(model: Model, quantized: Model, data: Few) -> float:
    """Mean squared, as the weights alone make it: the output's own steps hide nothing."""
    pairs = zip(results(model, data), results(quantized, data), strict=True)
    return sum(float(((a - b) ** 2).mean()) for a, b in pairs)


@draws(25, HealthCheck.too_slow)
@given(
    st.sampled_from([conv, depthwise, dense]),
    st.integers(0, 11),
    st.sampled_from(["int8", "w4a8", "int16x8"]),
    st.sampled_from([0.0, 2.0]),
)
def test_a_single_layer_never_comes_out_worse(make, pick: int, to: str, shift: float) -> None:
    model = make(pick)
    data = correlated(model, pick, shift)
    given = Context(tools(data, threads=1))
    nearest = apply(model, f"quantize(to={to}) | correct", given).model
    rounded = apply(model, f"quantize(to={to}) | round", given).model
    assert broken_laws(rounded) == []
    step = float(nearest.main.ops[1].outputs[0].quant.scale[0])  # type: ignore[union-attr]
    allowed = 1.02 * error(model, nearest, data) + 0.02 * step**2
    assert error(model, rounded, data) <= allowed


@pytest.mark.parametrize("make", [conv, depthwise, dense])
@pytest.mark.parametrize("to", ["w4a8", "dynamic-int4", "weight-int4"])
def test_four_bits_gain(make, to: str) -> None:
    """At least 2 dB over nearest codes with a corrected bias; nine weights give little choice."""
    model = make(1)
    if model.main.ops[0].inputs[1].elements < 256 and to != "w4a8":  # type: ignore[union-attr]
        b = Builder()
        weight = noise(16, 24, seed=1)
        model = b.model(b.op("FULLY_CONNECTED", b.input("x", (1, 24)), weight, noise(16)))
    data = correlated(model, 1, 1.0)
    given = Context(tools(data, threads=1))
    nearest = apply(model, f"quantize(to={to}) | correct", given).model
    rounded = apply(model, f"quantize(to={to}) | round", given).model
    for target in TARGETS:
        gain = worst(model, rounded, data, target) - worst(model, nearest, data, target)
        assert gain > (-0.1 if make is depthwise else 2), target


def test_blocks_gain() -> None:
    """At least 2 dB over nearest codes where blocks differ; blocks of nearly nothing stay sound."""
    b = Builder()
    parts = np.repeat(np.float32([1, 0.03, 1e-9, 0]), 32)
    weight = noise(16, 128, seed=1) * parts
    model = b.model(b.op("FULLY_CONNECTED", b.input("x", (1, 128)), weight, noise(16)))
    data = correlated(model, 1, 1.0)
    given = Context(tools(data, threads=1))
    nearest, rounded = (
        apply(model, f"quantize(to=dynamic-int4, block=32) | {step}", given).model
        for step in ("correct", "round")
    )
    assert broken_laws(rounded) == []
    (layer,) = layers_of(rounded.main).values()
    assert layer.weight.quant is not None and layer.weight.quant.block is not None
    assert (layer.weight.quant.block.scales.values() > 0).all()
    for target in TARGETS:
        gain = worst(model, rounded, data, target) - worst(model, nearest, data, target)
        assert gain > 2, target


ROUNDED = ("quantize", "quantize(to=w4a8)", "quantize(to=weight-int4)")


@pytest.mark.parametrize(("recipe", "name"), fitting(product(ROUNDED, STATELESS)))
def test_every_model_stays_sound(recipe: str, name: str) -> None:
    model = FLOATS[name]()
    plain = apply(model, recipe, context(model)).model
    change = apply(model, f"{recipe} | round", context(model))
    assert broken_laws(change.model) == []
    assert all(skip.where and skip.why for skip in change.skipped)
    data = few(model)
    for target in TARGETS:
        before, after = (worst(model, m, data, target) for m in (plain, change.model))
        assert after > min(before - 6, 40), target


def test_shared_weights_stay() -> None:
    model = FLOATS["shared_weights"]()
    change = apply(model, "quantize(to=w4a8) | round", context(model))
    assert sum("shared" in skip.why for skip in change.skipped) == 2
    first, second = layers_of(change.model.main).values()
    assert first.weight is second.weight


def test_codes_stay_in_their_bits_and_scales_are_positive() -> None:
    model = FLOATS["dead_channel"]()
    for to in ("int8", "w4a8"):
        for settings_ in ("", "(bits=4)", "(bits=4, search=false)", "(search=false)"):
            after = apply(model, f"quantize(to={to}) | round{settings_}", context(model)).model
            assert broken_laws(after) == []


@pytest.mark.parametrize("count", [1, 2])
def test_few_samples(count: int) -> None:
    """A Hessian of one sample is singular; rounding goes on."""
    model = FLOATS["residual"]()
    data = few(model, count)
    after = apply(model, "quantize(to=w4a8) | round", Context(tools(data, threads=1))).model
    assert broken_laws(after) == []
    assert worst(model, after, data) > 10


def test_silent_inputs() -> None:
    model = FLOATS["residual"]()
    silent = Few(((np.zeros((1, 6, 6, 8), np.float32),),) * 3)
    after = apply(model, "quantize(to=w4a8) | round", Context(tools(silent, threads=1))).model
    assert broken_laws(after) == []
    assert worst(model, after, silent) > 20


def test_same_bytes_twice() -> None:
    model = FLOATS["convnet"]()
    recipe = "quantize(to=w4a8) | round"
    one, two = (to_bytes(apply(model, recipe, context(model)).model) for _ in range(2))
    assert one == two


@draws(20, HealthCheck.too_slow)
@given(
    st.sampled_from([conv, depthwise, dense]),
    st.integers(0, 11),
    st.sampled_from(["int8", "w4a8", "int16x8"]),
    st.booleans(),
)
def test_zeros_of_pruned_weights_stay(make, pick: int, to: str, per_channel: bool) -> None:
    """And what is left of the layer comes out no worse than with nearest codes."""
    if to == "w4a8" and not per_channel:
        to = "int8"
    model = make(pick)
    data = correlated(model, pick, 1.0)
    given = Context(tools(data, threads=1))
    pruned = apply(model, "prune(sparsity=0.4, only=[0])", given).model
    scheme = f"quantize(to={to}, per_channel={str(per_channel).lower()})"
    nearest = apply(pruned, f"{scheme} | correct", given).model
    rounded = apply(pruned, f"{scheme} | round", given).model
    assert promises(pruned, rounded).broken == ()
    step = float(nearest.main.ops[1].outputs[0].quant.scale[0])  # type: ignore[union-attr]
    assert error(pruned, rounded, data) <= 1.02 * error(pruned, nearest, data) + 0.02 * step**2


@draws(30, HealthCheck.too_slow)
@given(st.integers(0, 2**16), st.booleans(), st.floats(0, 1), st.sampled_from([1e-12, 1.0, 1e12]))
def test_weights_under_a_mask_are_solved(seed: int, own: bool, share: float, size: float) -> None:
    """Zero where the mask says, and elsewhere as good as can be: no step to a side is better."""
    random = np.random.default_rng(seed)
    out, k = 3, 7
    shape = (out, 20, k) if own else (20, k)
    rows = size * random.normal(0, random.uniform(0.1, 3, k), shape)
    hessian = np.swapaxes(rows, -1, -2) @ rows / 20
    weights, kept = random.normal(0, 1, (out, k)), random.random((out, k)) >= share
    found = refit(weights, hessian, hessian, kept)
    assert not found[~kept].any()
    unit = np.diagonal(hessian, axis1=-2, axis2=-1).mean(axis=-1)[..., None, None] * np.eye(k)
    slope = times(found - weights, hessian + 0.5 * unit)[kept]
    assert np.abs(slope).max(initial=0) <= 1e-6 * hessian.max()
    everything = refit(weights, hessian, hessian, np.ones((out, k), bool))
    assert np.allclose(everything, refit(weights, hessian, hessian), atol=1e-6)


@pytest.mark.parametrize("size", [1.0, 3e-6, 1e-6])
def test_scales_of_blocks_are_those_that_float16_holds(size: float) -> None:
    """Below 6e-5 it holds a few digits of a scale: codes that were made for another were off."""
    b = Builder()
    weight = size * noise(64, 128)
    model = b.model(b.op("FULLY_CONNECTED", b.input("x", (4, 128)), weight))
    given, data = context(model, 64), few(model, 8, seed=5)
    scheme = "quantize(to=dynamic-int4, block=32)"
    nearest, rounded = (apply(model, scheme + then, given).model for then in ("", " | round"))
    assert worst(model, rounded, data) > worst(model, nearest, data) - 0.8


@pytest.mark.parametrize("per_channel", ["true", "false"])
def test_codes_of_a_book_stay(per_channel: str) -> None:
    model = FLOATS["convnet"]()
    given = context(model)
    clustered = apply(model, f"cluster(k=6, per_channel={per_channel})", given).model
    change = apply(clustered, f"quantize(per_channel={per_channel}) | round", given)
    assert promises(clustered, change.model).broken == ()
    assert any("codes of a book" in skip.why for skip in change.skipped)
    nearest = apply(clustered, f"quantize(per_channel={per_channel})", given).model
    models = (layers_of(m.main).values() for m in (clustered, nearest, change.model))
    books = 0
    for real, before, after in zip(*models, strict=True):
        axis = real.axis if per_channel == "true" else None
        if codebook_of(real.weight.values(), axis) is not None:
            books += 1
            assert np.array_equal(before.weight.values(), after.weight.values())
    assert books > 1


def test_four_bits_have_no_room_for_a_book() -> None:
    model = FLOATS["convnet"]()
    change = apply(model, "cluster(k=6) | quantize(to=w4a8) | round", context(model))
    assert not any("book" in skip.why for skip in change.skipped)
