"""Patches times weights is a convolution, and moments are exact."""

import numpy as np
import pytest

from litesmith.ir.types import Array, Record
from litesmith.ir.window import Slide
from litesmith.numeric.convolve import conv_2d, depthwise_conv_2d
from litesmith.numeric.patches import (
    covariances,
    depthwise_patches,
    patches,
    some_places,
)

SLIDES = [
    (Slide(3, 1, 1), Slide(3, 1, 1)),
    (Slide(3, 2, 1), Slide(2, 1, 1)),
    (Slide(2, 1, 2), Slide(3, 3, 2)),
    (Slide(1, 2, 1), Slide(1, 2, 1)),
]


def options(table: str, moves: tuple[Slide, Slide], padding: str) -> Record:
    (height, width) = moves
    return Record(table).set(
        padding=padding,
        stride_h=height.stride,
        stride_w=width.stride,
        dilation_h_factor=height.dilation,
        dilation_w_factor=width.dilation,
    )


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("moves", SLIDES)
def test_patches_times_filters_is_the_convolution(moves: tuple[Slide, Slide], padding: str) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(2, 9, 8, 3)).astype(np.float32)
    window = moves[0].window, moves[1].window
    filters = random.normal(size=(4, *window, 3)).astype(np.float32)
    expected = conv_2d(options("Conv2DOptions", moves, padding), x, filters)
    product = patches(x, moves, padding) @ filters.reshape(4, -1).T
    np.testing.assert_allclose(product.reshape(expected.shape), expected, atol=1e-4)

    own = random.normal(size=(1, *window, 3)).astype(np.float32)
    expected = depthwise_conv_2d(options("DepthwiseConv2DOptions", moves, padding), x, own)
    rows = depthwise_patches(x, moves, padding)
    product = np.einsum("crk,kc->rc", rows, own.reshape(-1, 3))
    np.testing.assert_allclose(product.reshape(expected.shape), expected, atol=1e-4)


def test_padding_holds_the_zero_point() -> None:
    x = np.full((1, 2, 2, 1), 5, np.int8)
    rows = patches(x, (Slide(3, 1, 1), Slide(3, 1, 1)), "SAME", fill=-128)
    assert rows.dtype == np.int8 and set(rows.reshape(-1).tolist()) == {5, -128}
    assert (rows == 5).sum(axis=1).tolist() == [4, 4, 4, 4]


def test_some_places_are_the_same_for_every_sample() -> None:
    x = np.random.default_rng(0).normal(size=(3, 8, 8, 2)).astype(np.float32)
    moves = SLIDES[0]
    few = patches(x, moves, "SAME", most=10)
    assert few.shape == (30, 18)
    whole = patches(x, moves, "SAME").reshape(3, 64, 18)
    np.testing.assert_array_equal(few.reshape(3, 10, 18), whole[:, some_places(64, 10)])
    one = patches(x[1:2], moves, "SAME", most=10)
    np.testing.assert_array_equal(one, few[10:20])


@pytest.mark.parametrize(("side", "most"), [(112, 784), (56, 100), (28, 49), (7, 20)])
def test_places_spread_over_rows_and_columns(side: int, most: int) -> None:
    places = some_places(side * side, most)
    assert len(set(places.tolist())) == most and places.max() < side * side
    for line in np.divmod(places, side):
        thirds = np.bincount(line * 3 // side, minlength=3)
        assert thirds.min() > most / 3 * 0.7


def test_few_places_are_all_taken() -> None:
    assert some_places(5, 9).tolist() == [0, 1, 2, 3, 4]
    assert some_places(1, 1).tolist() == [0]
    assert some_places(0, 4).size == 0
    for count in range(2, 200):
        for most in (1, count // 2, count - 1):
            assert len(set(some_places(count, most).tolist())) == most


def own_covariance(*parts: Array) -> Array:
    return covariances((rows, rows) for rows in parts)[0]


def test_covariance_of_int8_is_exact_in_any_order() -> None:
    random = np.random.default_rng(0)
    rows = random.integers(-128, 128, (5000, 7)).astype(np.int8)
    rows[:2000] = -128  # the largest sums there can be
    wide = rows.astype(np.int64)
    mean = wide.sum(0) / 5000
    found = own_covariance(rows)
    np.testing.assert_array_equal(found, wide.T @ wide / 5000 - mean[:, None] * mean)
    shuffled = random.permutation(rows)
    assert own_covariance(shuffled[:123], shuffled[123:]).tobytes() == found.tobytes()


def test_covariance_is_that_of_numpy() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(3, 2, (500, 6)).astype(np.float32)
    expected = np.cov(rows.T, bias=True)
    np.testing.assert_allclose(own_covariance(rows), expected, rtol=1e-9, atol=1e-12)
    stacked = np.stack([rows, 2 * rows])
    np.testing.assert_allclose(own_covariance(stacked)[1], 4 * expected, rtol=1e-9, atol=1e-9)
    assert not own_covariance(rows[:0]).any()
    others = random.normal(1, 3, (500, 4)).astype(np.float32)
    _, cross, _ = covariances([(rows[:99], others[:99]), (rows[99:], others[99:])])
    expected = np.cov(others.T, rows.T, bias=True)[:4, 4:]
    np.testing.assert_allclose(cross, expected, rtol=1e-9, atol=1e-9)


def test_what_never_changes_has_no_covariance() -> None:
    """What a subtraction left of it, divided by a variance of 0, made weights of ten digits."""
    random = np.random.default_rng(3)
    rows = random.integers(-9, 9, (2, 50, 4)).astype(np.int8)
    rows[1, :, 2] = 7
    others = random.normal(0.1, 1e-3, (2, 50, 4))
    own, cross, count = covariances([(rows, others)])
    assert count == 50
    assert not own[1, 2].any() and not own[1, :, 2].any() and not cross[1, :, 2].any()
    assert own[0].all() and cross[0].all()
