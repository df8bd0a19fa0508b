"""Sparse float layers compute what dense ones do; the break-even share is where they meet."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith import Builder, CannotApply, Model
from litesmith.kernels.programs.prepare_sparse import sparse_layer
from litesmith.kernels.programs.program import Program
from litesmith.kernels.programs.sparse_parts import break_even, gain
from tests.draws import draws
from tests.kernels.one_op import needs_numba, runtime, seeds


def model(kind: str, rows: int, shape: tuple[int, int], zeros: float, seed: int) -> Model:
    rng = np.random.default_rng(seed)
    channels, inputs = shape
    blocks = rng.normal(0, 1, (channels, inputs // 4, 4)) * (
        rng.random((channels, inputs // 4, 1)) >= zeros
    )
    weights = blocks.reshape(shape).astype(np.float32)
    bias = rng.normal(0, 1, channels).astype(np.float32)
    activation = str(rng.choice(["NONE", "RELU", "RELU6", "RELU_N1_TO_1"]))
    b = Builder()
    if kind == "CONV_2D":
        x = b.input("x", (1, 1, rows, inputs))
        weights, more = weights.reshape(channels, 1, 1, inputs), {"stride_h": 1, "stride_w": 1}
    else:
        x, more = b.input("x", (rows, inputs)), {}
    return b.model(b.op(kind, x, weights, bias, fused_activation_function=activation, **more))


@needs_numba
@draws(40)
@given(
    st.sampled_from(["CONV_2D", "FULLY_CONNECTED"]),
    st.integers(1, 140),
    st.tuples(st.integers(16, 80), st.integers(4, 50).map(lambda n: 4 * n)),
    st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    seeds,
)
def test_sparse_layers(kind, rows, shape, zeros, seed) -> None:
    layer = model(kind, rows, shape, zeros, seed)
    program = Program((sparse_layer(layer.main.ops[0]),), layer.main.inputs, layer.main.outputs)
    x = np.random.default_rng(seed).normal(0, 1, program.inputs[0].shape).astype(np.float32)
    expected = runtime(layer, [x])[0]
    for threads in (1, 3):
        (result,) = program.run([x], threads=threads)
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-4)


@needs_numba
def test_wider_convolutions_are_refused() -> None:
    b = Builder()
    w = np.zeros((16, 3, 3, 16), np.float32)
    y = b.op(
        "CONV_2D", b.input("x", (1, 8, 8, 16)), w, np.zeros(16, np.float32), stride_h=1, stride_w=1
    )
    with pytest.raises(CannotApply, match="1×1"):
        sparse_layer(b.model(y).main.ops[0])


@given(st.integers(1, 5000), st.integers(16, 4096), st.integers(16, 4096))
def test_break_even_is_where_the_gain_is_one(rows: int, inputs: int, channels: int) -> None:
    share = break_even(rows, inputs, channels)
    if share is None:
        assert gain(rows, inputs, channels, 1.0) < 1
    else:
        assert 0 <= share <= 1
        if share > 0:
            assert gain(rows, inputs, channels, share) == pytest.approx(1, rel=1e-6)
        assert gain(rows, inputs, channels, 1.0) >= 1


@given(st.integers(1, 5000), st.integers(16, 4096), st.integers(16, 4096))
def test_more_zeros_never_cost(rows: int, inputs: int, channels: int) -> None:
    gains = [gain(rows, inputs, channels, share) for share in (0.0, 0.5, 0.9, 1.0)]
    assert gains == sorted(gains)
