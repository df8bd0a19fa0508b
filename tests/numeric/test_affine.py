"""Laws of scales and codes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.numeric.affine import (
    bias_codes,
    dequantize,
    from_rows,
    keep_bias_inside,
    largest_code,
    quantize,
    rows_of,
    scale_of,
    weight_codes,
    weight_scales,
)

reals = st.floats(-1e6, 1e6, width=32)


@given(reals, reals, st.sampled_from(["int8", "uint8", "int16"]))
def test_a_scale_holds_its_range_and_zero(a: float, b: float, dtype: str) -> None:
    low, high = min(a, b, 0.0), max(a, b, 0.0)
    scale, zero_point = scale_of(min(a, b), max(a, b), dtype)
    assert scale.dtype == np.float32 and scale > 0
    assert np.iinfo(dtype).min <= zero_point <= np.iinfo(dtype).max
    ends = np.array([low, 0.0, high])
    back = dequantize(quantize(ends, dtype, float(scale), zero_point), float(scale), zero_point)
    assert back[1] == 0
    np.testing.assert_allclose(back, ends, rtol=1e-6, atol=0.5001 * float(scale))


@given(reals, reals)
def test_every_code_is_used(a: float, b: float) -> None:
    low, high = min(a, b, 0.0), max(a, b, 0.0)
    scale, _ = scale_of(low, high, "int8")
    assert float(scale) * 255 <= max(high - low, 255 * 2.0**-40) * (1 + 1e-6) or low == high


def test_int16_has_no_zero_point() -> None:
    assert scale_of(0, 3, "int16") == (np.float32(3 / 32767), 0)
    assert scale_of(0, 255, "int8") == (np.float32(1), -128)


def test_a_range_of_nothing_is_taken_for_zero_to_one() -> None:
    assert scale_of(0, 0, "int8") == scale_of(0, 1, "int8")


@pytest.mark.parametrize("ends", [(np.nan, 1), (0, np.inf), (-np.inf, 0), (1, 0)])
def test_what_is_no_range_has_no_scale(ends: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="has no scale"):
        scale_of(*ends, "int8")


def test_a_dead_channel_takes_the_largest_scale() -> None:
    weights = np.array([[1.0, -2.0], [0, 0], [127, 3]], np.float32)
    np.testing.assert_allclose(weight_scales(weights, 0, 8), [2 / 127, 1, 1])
    np.testing.assert_allclose(weight_scales(weights, None, 4), [127 / 7])
    np.testing.assert_array_equal(weight_scales(np.zeros((2, 3)), 0, 8), [1, 1])
    assert weight_scales(np.zeros((2, 0)), 0, 8).tolist() == [1, 1]
    with pytest.raises(ValueError, match="infinite or NaN"):
        weight_scales(np.array([[np.nan]]), 0, 8)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("axis", [0, 3])
def test_weights_come_back_within_half_a_step(bits: int, axis: int) -> None:
    weights = np.random.default_rng(0).normal(size=(4, 3, 3, 5)).astype(np.float32)
    scales = weight_scales(weights, axis, bits)
    codes = weight_codes(weights, scales, axis, bits)
    assert abs(codes).max() == largest_code(bits)
    error = np.abs(dequantize(codes, scales, 0, axis) - weights)
    assert (np.moveaxis(error, axis, -1) <= scales * 0.5 + 1e-6).all()


def test_rows_and_back() -> None:
    weights = np.arange(60).reshape(3, 4, 5)
    for axis in range(3):
        rows = rows_of(weights, axis)
        assert rows.shape[0] == weights.shape[axis]
        np.testing.assert_array_equal(rows[1], np.take(weights, 1, axis).reshape(-1))
        np.testing.assert_array_equal(from_rows(rows, weights.shape, axis), weights)


@given(st.floats(1e-6, 1e3), st.floats(-1e4, 1e4), st.floats(1e-12, 1))
def test_a_bias_stays_inside_int32(input_scale: float, bias: float, weight_scale: float) -> None:
    biases = np.array([bias, 0.0])
    scales = keep_bias_inside(np.array([weight_scale, weight_scale]), biases, input_scale)
    assert (scales >= weight_scale).all() and scales[1] == weight_scale
    stored = scales.astype(np.float32) * np.float32(input_scale)
    codes = bias_codes(biases, stored, "int32").astype(np.float64)
    error = np.abs(codes * stored.astype(np.float64) - biases)
    assert (error <= 0.5001 * stored.astype(np.float64)).all()


def test_one_scale_for_all_weights_holds_the_largest_bias() -> None:
    scales = keep_bias_inside(np.array([1e-12]), np.array([1.0, 2.0]), 1.0)
    np.testing.assert_allclose(scales, [2 / 2**30])


def test_halves_go_to_even_and_excess_to_the_end() -> None:
    real = np.array([0.5, 1.5, -0.5, 1e9, -1e9], np.float32)
    np.testing.assert_array_equal(quantize(real, "int8", 1.0, 3), [3, 5, 3, 127, -128])
    np.testing.assert_array_equal(bias_codes(np.array([1e30, -1e30]), np.ones(2), "int32"),
                                  [2**31 - 1, -(2**31) + 1])  # fmt: skip
    assert bias_codes(np.array([1e30]), np.ones(1), "int64")[0] == 2**62
