"""Structure is found again from weights, and only where it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.numeric.affine import weight_codes, weight_scales
from litesmith.passes.core.weight_structure import Codebook, codebook_of, from_codebook, kept
from tests.draws import draws
from tests.zoo import noise


def clustered(seed: int, k: int, axis: int | None, shape: tuple[int, ...]) -> np.ndarray:
    """A weight of at most k codes; the largest of each channel is at an end."""
    random = np.random.default_rng(seed)
    book = np.unique([-127, 127, *random.integers(-126, 127, k - 2)])
    codes = random.integers(0, book.size, shape)
    first = [slice(None) if n == axis else 0 for n in range(len(shape))]
    codes[tuple(first)] = book.size - 1
    channels = 1 if axis is None else shape[axis]
    scales = random.uniform(1e-4, 10, channels).astype(np.float32).astype(np.float64)
    return from_codebook(Codebook(codes.astype(np.uint8), book, scales), axis)


@draws(40)
@given(
    st.integers(0, 1000),
    st.integers(2, 64),
    st.sampled_from([(0, (6, 3, 3, 8)), (3, (1, 5, 5, 32)), (None, (20, 30)), (0, (9, 64))]),
)
def test_a_codebook_is_found_and_is_the_weight(
    seed: int, k: int, place: tuple[int | None, tuple[int, ...]]
) -> None:
    axis, shape = place
    weight = clustered(seed, k, axis, shape)
    found = codebook_of(weight, axis)
    assert found is not None
    assert found.book.size <= k and (np.diff(found.book) > 0).all()
    assert np.abs(found.book).max() <= 127
    np.testing.assert_allclose(from_codebook(found, axis), weight, rtol=3e-7, atol=0)


@draws(30)
@given(st.integers(0, 1000), st.integers(2, 64))
def test_int8_has_the_very_codes(seed: int, k: int) -> None:
    weight = clustered(seed, k, 0, (6, 3, 3, 8))
    found = codebook_of(weight, 0)
    assert found is not None
    scales = weight_scales(weight, 0, 8).astype(np.float32)
    codes = weight_codes(weight, scales, 0, 8)
    np.testing.assert_array_equal(codes, found.book[found.codes])


def test_no_codebook_where_none_is() -> None:
    weight = noise(16, 3, 3, 8)
    assert codebook_of(weight, 0) is None
    scales = weight_scales(weight, 0, 8)
    in_int8 = (weight_codes(weight, scales, 0, 8) * scales.reshape(-1, 1, 1, 1)).astype(np.float32)
    assert codebook_of(in_int8, 0) is None, "so has every weight that once was int8"
    assert codebook_of(np.full((4, 4), np.nan, np.float32), 0) is None
    assert codebook_of(np.zeros((0, 4), np.float32), 0) is None
    assert codebook_of(np.zeros((8, 8), np.float32), 0) is None
    assert codebook_of(np.array([[1, -1, 0.5]], np.float32), 0) is None, "few numbers share a code"


def test_a_codebook_of_each_channel_is_none_of_all() -> None:
    weight = clustered(1, 16, 0, (6, 64))
    assert codebook_of(weight, 0) is not None
    assert codebook_of(weight, None) is None


@pytest.mark.parametrize("share", [0.05, 0.5, 0.99])
def test_the_mask_of_a_pruned_weight(share: float) -> None:
    weight = noise(20, 40)
    mask = np.random.default_rng(0).random(weight.shape) >= share
    np.testing.assert_array_equal(kept(weight * mask), mask)


def test_a_zero_by_chance_is_no_mask() -> None:
    weight = noise(20, 40)
    assert kept(weight) is None
    weight[3, 4] = 0
    assert kept(weight) is None
    assert kept(np.zeros((0, 3), np.float32)) is None
