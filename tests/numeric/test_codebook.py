"""The laws of codebooks: no other choice of codes is nearer, and fixed ones are there."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.numeric.codebook import codebook, nearest
from tests.draws import draws


def cost(numbers: np.ndarray, book: np.ndarray) -> float:
    return float(np.square(numbers[:, None] - book).min(axis=1).sum())


whole = st.lists(st.integers(-127, 127), min_size=1, max_size=7)


@draws(30)
@given(whole, st.integers(1, 3))
def test_no_other_book_is_better_for_whole_numbers(values: list[int], k: int) -> None:
    numbers = np.array(values, float)
    book = codebook(numbers, k)
    # The best codes of a cluster are near its mean: between the least and the largest number.
    grid = sorted({*values, *(round((a + b) / 2) for a, b in combinations(values, 2))})
    least = min(cost(numbers, np.array(some)) for some in combinations(grid, min(k, len(grid))))
    assert cost(numbers, book) <= least + 1e-6


@draws(30)
@given(st.integers(0, 100), st.integers(2, 40))
def test_at_most_k_ascending_and_inside(seed: int, k: int) -> None:
    numbers = np.random.default_rng(seed).normal(0, 40, 500).clip(-127, 127)
    book = codebook(numbers, k)
    assert 1 <= len(book) <= k
    assert (np.diff(book) > 0).all() and np.abs(book).max() <= 127
    assert cost(numbers, book) >= cost(numbers, codebook(numbers, k + 1)) - 1e-6


@draws(30)
@given(st.sets(st.integers(-127, 127), min_size=1, max_size=4), st.integers(4, 8))
def test_fixed_codes_are_there(fixed: set[int], k: int) -> None:
    numbers = np.random.default_rng(0).normal(0, 40, 300).clip(-127, 127)
    assert fixed <= set(codebook(numbers, k, fixed).tolist())


def test_it_comes_near_to_many_tries_of_lloyd() -> None:
    numbers = np.random.default_rng(3).laplace(0, 20, 4000).clip(-127, 127)
    random = np.random.default_rng(4)
    best = np.inf
    for _ in range(20):
        centers = np.sort(random.choice(numbers, 8, replace=False))
        for _ in range(60):
            places = np.abs(numbers[:, None] - centers).argmin(1)
            centers = np.array([numbers[places == n].mean() for n in range(8)])
        best = min(best, cost(numbers, centers))
    assert cost(numbers, codebook(numbers, 8)) <= 1.01 * best + 4000 / 12


def test_few_numbers_are_their_own_book() -> None:
    numbers = np.array([-127.0, -3, 0, 0, 50, 127])
    assert set(codebook(numbers, 8).tolist()) >= {-127, -3, 0, 50, 127}
    assert cost(numbers, codebook(numbers, 5)) == 0


@draws(30)
@given(st.integers(0, 50))
def test_nearest_is_nearest(seed: int) -> None:
    random = np.random.default_rng(seed)
    book = np.unique(random.integers(-127, 128, 9))
    numbers = random.uniform(-127, 127, (5, 7))
    found = np.abs(numbers - book[nearest(numbers, book)])
    np.testing.assert_allclose(found, np.abs(numbers[..., None] - book).min(-1))


def test_more_fixed_codes_than_k_are_refused() -> None:
    with pytest.raises(ValueError, match="3 codes are fixed, and only 2"):
        codebook(np.zeros(3), 2, (-127, 0, 127))
