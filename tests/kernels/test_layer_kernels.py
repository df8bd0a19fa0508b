"""Convolutions and fully connected layers give the bits of the runtime's reference kernels."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from litesmith import Builder, CannotApply, Model, Quant
from litesmith.kernels.graph_programs import prepare_op
from litesmith.kernels.programs.pack_weights import MOST, pack_dense
from litesmith.kernels.programs.program import Kernel
from tests.draws import draws
from tests.kernels.one_op import assert_same, image, needs_numba, numbers, seeds, weight, whole

ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")


def scales(rng: np.random.Generator, channels: int) -> np.ndarray:
    """Of weights: of one size, or each of another, so that products vanish or overflow."""
    spread = rng.choice([0.0, 2.0, 12.0])
    return 2.0 ** rng.uniform(-10 - spread, -10 + spread / 2, channels)


def bias(rng: np.random.Generator, channels: int) -> np.ndarray:
    reach = int(2.0 ** rng.uniform(1, 40))
    return rng.integers(-reach, reach, channels)


def layer(
    kind: str,
    x_shape: tuple[int, ...],
    w_shape: tuple[int, ...],
    rng: np.random.Generator,
    **options,
) -> Model:
    b = Builder()
    axis = 3 if kind == "DEPTHWISE_CONV_2D" else 0
    channels = w_shape[axis]
    steps, step = scales(rng, channels), float(2.0 ** rng.uniform(-15, -5))
    w = weight(b, numbers(rng, w_shape, "int8"), steps, axis)
    offsets = b.const(bias(rng, channels), "b", "int64", Quant.of(steps * step))
    x = image(b, x_shape, step)
    out = Quant.of(2.0 ** rng.uniform(-12, -2))
    activation = str(rng.choice(ACTIVATIONS))
    y = b.op(
        kind,
        x,
        w,
        offsets,
        dtype="int16",
        quant=out,
        fused_activation_function=activation,
        **options,
    )
    return b.model(y)


windows = st.tuples(st.integers(1, 4), st.integers(1, 4))
sizes = st.tuples(st.integers(1, 3), st.integers(4, 11), st.integers(4, 11))


@st.composite
def slides(draw: st.DrawFn) -> dict[str, object]:
    axes = [f"{name}_{axis}" for name in ("stride", "dilation") for axis in "hw"]
    steps = draw(
        st.sampled_from([(1, 1, 1, 1), (2, 2, 1, 1), (2, 1, 1, 1), (1, 1, 2, 2), (1, 3, 1, 2)])
    )
    found = {a if "stride" in a else f"{a}_factor": s for a, s in zip(axes, steps, strict=True)}
    return {**found, "padding": draw(st.sampled_from(["SAME", "VALID"]))}


def fits(size: tuple[int, int, int], window: tuple[int, int], options: dict[str, object]) -> bool:
    reach = [
        (w - 1) * int(options[f"dilation_{a}_factor"]) + 1
        for w, a in zip(window, "hw", strict=True)
    ]
    return all(r <= s for r, s in zip(reach, size[1:], strict=True))


@needs_numba
@draws(60)
@given(sizes, windows, slides(), st.integers(1, 40), st.integers(1, 90), seeds)
def test_convolutions(size, window, options, depth, channels, seed) -> None:
    assume(fits(size, window, options))
    rng = np.random.default_rng(seed)
    assert_same(layer("CONV_2D", (*size, depth), (channels, *window, depth), rng, **options), rng)


@needs_numba
@draws(25)
@given(sizes, st.integers(1, 150), st.integers(1, 150), seeds)
def test_convolutions_of_one_place(size, depth, channels, seed) -> None:
    rng = np.random.default_rng(seed)
    options = {"stride_h": 1, "stride_w": 1}
    assert_same(layer("CONV_2D", (*size, depth), (channels, 1, 1, depth), rng, **options), rng)


@needs_numba
@draws(60)
@given(sizes, windows, slides(), st.integers(1, 110), st.sampled_from([1, 1, 1, 2, 3]), seeds)
def test_depthwise_convolutions(size, window, options, depth, times, seed) -> None:
    assume(fits(size, window, options))
    rng = np.random.default_rng(seed)
    shape = (1, *window, depth * times)
    model = layer(
        "DEPTHWISE_CONV_2D", (*size, depth), shape, rng, depth_multiplier=times, **options
    )
    assert_same(model, rng)


@needs_numba
@draws(40)
@given(st.integers(1, 20), st.integers(1, 300), st.integers(1, 150), st.booleans(), seeds)
def test_fully_connected(rows, inputs, channels, keep, seed) -> None:
    rng = np.random.default_rng(seed)
    shape = (1, rows, inputs) if keep else (rows, inputs)
    assert_same(layer("FULLY_CONNECTED", shape, (channels, inputs), rng, keep_num_dims=keep), rng)


@needs_numba
@pytest.mark.parametrize("kind", ["CONV_2D", "FULLY_CONNECTED"])
@pytest.mark.parametrize("rows", [1, 30])
def test_sums_beyond_32_bits(kind: str, rows: int) -> None:
    rng = np.random.default_rng(1)
    b = Builder()
    values = np.where(rng.random((20, 2000)) < 0.9, -127, 127).astype(np.int8)
    shape, w_shape = (rows, 2000), (20, 2000)
    if kind == "CONV_2D":
        shape, w_shape = (1, rows, 1, 2000), (20, 1, 1, 2000)
    w = weight(b, values.reshape(w_shape), np.full(20, 2.0**-15), 0)
    options = {"stride_h": 1, "stride_w": 1} if kind == "CONV_2D" else {}
    x = image(b, shape, 2.0**-10)
    zero = b.const(np.zeros(20), "b", "int64")
    y = b.op(kind, x, w, zero, dtype="int16", quant=Quant.of(2.0**-5), **options)
    assert_same(b.model(y), rng, rounds=4)


def test_no_inputs_make_a_chunk_overflow() -> None:
    rng = np.random.default_rng(0)
    weights = rng.choice(np.array([-128, 0, 127], np.int8), (70, 3001))
    pack = pack_dense(weights, 4, narrow=False)
    for panel, (count, *chunks) in enumerate(pack.cuts):
        assert sum(chunks[:count]) == 1501
        start = 0
        for pairs in chunks[:count]:
            part = weights[panel * 64 : panel * 64 + 64, 2 * start : 2 * (start + pairs)]
            assert np.abs(part.astype(int)).sum(axis=1).max() <= MOST
            start += pairs
    assert MOST * 32768 < 2**31


@needs_numba
def test_what_has_no_kernel_is_refused_with_a_reason() -> None:
    b = Builder()
    w = weight(b, np.ones((4, 1, 1, 2), np.int8), np.ones(4), 0)
    x = image(b, (1, 4, 4, 4), 1.0)
    offsets = b.const(np.zeros(4), "b", "int64")
    y = b.op(
        "CONV_2D",
        x,
        w,
        offsets,
        shape=(1, 4, 4, 4),
        dtype="int16",
        quant=Quant.of(1.0),
        stride_h=1,
        stride_w=1,
    )
    with pytest.raises(CannotApply, match="groups"):
        whole(b.model(y).main)
    b = Builder()
    y = b.op("ABS", b.input("x", (3,)))
    with pytest.raises(CannotApply, match="ABS has no kernel of ours"):
        whole(b.model(y).main)


@needs_numba
def test_a_bias_of_32_bits_is_computed_otherwise_and_refused() -> None:
    b = Builder()
    w = weight(b, np.ones((4, 8), np.int8), np.ones(4), 0)
    y = b.op(
        "FULLY_CONNECTED",
        image(b, (1, 8), 1.0),
        w,
        b.const(np.zeros(4), "b", "int32"),
        dtype="int16",
        quant=Quant.of(1.0),
    )
    with pytest.raises(CannotApply, match="int64"):
        whole(b.model(y).main)


@needs_numba
def test_layers_that_share_a_weight_share_its_packed_form() -> None:
    rng = np.random.default_rng(0)
    b = Builder()
    own = weight(b, numbers(rng, (32, 16), "int8"), np.full(32, 0.01), 0)
    rows = [image(b, (1, 16), 0.01, name) for name in "xy"]
    made = [b.op("FULLY_CONNECTED", x, own, None, dtype="int16", quant=Quant.of(0.1)) for x in rows]
    model = b.model(*made)
    assert_same(model, rng)
    steps = [prepare_op(op)[0] for op in model.main.ops]
    first, second = (one.kept for one in steps if isinstance(one, Kernel))
    assert first is second is not None
