"""Rounded weights: never worse than the nearest, whatever the Hessian."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.numeric.rounding import (
    excess,
    fit_codes_and_scales,
    round_weights,
    search_scales,
    shrink,
    spread,
    weighted_error,
)
from tests.draws import draws


def problem(out: int, k: int, seed: int = 0, rank: int | None = None):
    """Weights and the Hessian of correlated inputs, of lower rank where asked for."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(4 * k, rank or k)) @ random.normal(size=(rank or k, k))
    return random.normal(size=(out, k)), rows.T @ rows / len(rows)


def errors(weights: np.ndarray, codes: np.ndarray, scales: np.ndarray, hessian: np.ndarray):
    return weighted_error(weights - codes * spread(scales, weights.shape[1]), hessian)


SEVEN = (-7, 7)


def as_it_is(scales: np.ndarray) -> np.ndarray:
    return scales


def nearest(weights: np.ndarray, scales: np.ndarray, ends: tuple[int, int]) -> np.ndarray:
    return np.clip(np.rint(weights / spread(scales, weights.shape[1])), *ends)


@given(
    st.integers(1, 6),
    st.integers(1, 10),
    st.integers(1, 3),
    st.integers(0, 99),
    st.sampled_from([1, 7, 127]),
)
@draws(40)
def test_no_row_is_worse_than_nearest(out: int, k: int, groups: int, seed: int, most: int) -> None:
    k *= groups
    weights, hessian = problem(out, k, seed, rank=max(1, k // 2))
    scales = np.abs(weights.reshape(out, groups, -1)).max(2) / most * 0.7
    ends = (-most, most)
    codes = round_weights(weights, hessian, scales, ends)
    assert codes.dtype == np.int8 and np.abs(codes).max() <= most
    before = errors(weights, nearest(weights, scales, ends), scales, hessian)
    assert (errors(weights, codes, scales, hessian) <= before * (1 + 1e-9)).all()


def test_correlated_inputs_are_made_use_of_across_blocks() -> None:
    weights, hessian = problem(8, 300, rank=60)
    scales = np.abs(weights).max(1, keepdims=True) / 7
    before = errors(weights, nearest(weights, scales, SEVEN), scales, hessian).sum()
    codes = round_weights(weights, hessian, scales, SEVEN)
    assert errors(weights, codes, scales, hessian).sum() < before / 3


@given(st.integers(1, 6), st.integers(2, 10), st.integers(1, 3), st.integers(0, 99), st.booleans())
@draws(40)
def test_no_single_code_is_better_placed(
    out: int, k: int, groups: int, seed: int, apart: bool
) -> None:
    k *= groups
    weights, hessian = problem(out, k, seed, rank=max(1, k // 2))
    hessian = np.stack([hessian + n * np.eye(k) for n in range(out)]) if apart else hessian
    scales = np.abs(weights.reshape(out, groups, -1)).max(2) / 7
    codes, chosen = fit_codes_and_scales(weights, hessian, scales, (-8, 7), as_it_is)
    assert codes.min() >= -8 and codes.max() <= 7
    found = errors(weights, codes, chosen, hessian)
    plain = round_weights(weights, hessian, scales, (-8, 7))
    assert (found <= errors(weights, plain, scales, hessian) * (1 + 1e-9)).all()
    damping = 0.03 * np.diagonal(hessian, axis1=-2, axis2=-1).mean(axis=-1)
    held = hessian + np.reshape(damping, (-1, 1, 1) if apart else ()) * np.eye(k)
    near = errors(weights, codes, chosen, held)
    for column, step in ((0, 1), (k - 1, -1)):
        moved = codes.astype(np.int64)
        moved[:, column] = np.clip(moved[:, column] + step, -8, 7)
        assert (errors(weights, moved, chosen, held) >= near * (1 - 0.05)).all()


def test_a_hessian_for_each_row() -> None:
    weights, _ = problem(5, 9)
    hessians = np.stack([problem(1, 9, seed, rank=4)[1] for seed in range(5)])
    scales = np.abs(weights).max(1, keepdims=True) / 7
    together = round_weights(weights, hessians, scales, SEVEN)
    before = errors(weights, nearest(weights, scales, SEVEN), scales, hessians)
    after = errors(weights, together, scales, hessians)
    assert (after <= before * (1 + 1e-9)).all() and after.sum() < before.sum() / 2
    fit, fit_scales = fit_codes_and_scales(weights, hessians, scales, SEVEN, as_it_is)
    assert (errors(weights, fit, fit_scales, hessians) <= after * (1 + 1e-9)).all()


@pytest.mark.parametrize("size", [0.0, 1.0, 1e-300, 1e300])
@pytest.mark.parametrize("k", [1, 3])
def test_a_singular_hessian_is_damped(size: float, k: int) -> None:
    weights = np.array([[0.4] * k, [-1.0] * k])
    scales = np.array([[1 / 7], [1 / 7]])
    codes = round_weights(weights, np.full((k, k), size), scales, SEVEN)
    assert np.abs(codes - weights * 7).max() <= k
    if size == 0:
        np.testing.assert_array_equal(codes, nearest(weights, scales, SEVEN))


def test_what_is_no_covariance_still_gives_codes() -> None:
    weights = np.array([[0.3, -0.9, 0.5]])
    for hessian in (-np.eye(3), np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]])):
        codes = round_weights(weights, hessian, np.array([[0.2]]), SEVEN)
        assert np.abs(codes).max() <= 7
    with pytest.raises(ValueError, match="infinite or NaN"):
        round_weights(weights, np.full((3, 3), np.nan), np.array([[0.2]]), SEVEN)
    with pytest.raises(ValueError, match="infinite or NaN"):
        round_weights(weights * np.inf, np.eye(3), np.array([[0.2]]), SEVEN)


@pytest.mark.parametrize("most", [7, 127])
def test_searched_scales_are_no_worse_than_the_full_range(most: int) -> None:
    weights, hessian = problem(16, 40)
    weights[3, 5] = 30  # an outlier
    diagonal = np.diag(hessian)
    full, ends = np.abs(weights).max(1, keepdims=True) / most, (-most, most)
    found = search_scales(weights, diagonal, ends, as_it_is)
    alone = np.diag(diagonal)
    after = errors(weights, nearest(weights, found, ends), found, alone)
    assert (after <= errors(weights, nearest(weights, full, ends), full, alone) * (1 + 1e-9)).all()
    coarse = search_scales(weights, diagonal, ends, lambda scales: np.maximum(scales, 2 * full))
    assert (coarse == 2 * full).all()


def test_scales_of_groups_fit_rows_whose_groups_differ() -> None:
    weights, hessian = problem(8, 96, rank=30)
    weights *= np.repeat([1, 0.03, 0.2], 32)
    diagonal = np.diag(hessian)
    found: list[float] = []
    for groups in (1, 3):
        scales = search_scales(weights, diagonal, SEVEN, as_it_is, groups)
        assert scales.shape == (8, groups)
        codes, chosen = fit_codes_and_scales(weights, hessian, scales, SEVEN, as_it_is)
        assert chosen.shape == scales.shape and (chosen > 0).all()
        found.append(float(errors(weights, codes, chosen, hessian).sum()))
    assert found[1] < found[0] / 3


def test_few_rows_are_trusted_less_and_codes_do_better_on_others() -> None:
    random = np.random.default_rng(1)
    rows = random.normal(size=(2060, 90)) @ (np.eye(90) + random.normal(size=(90, 90)) / 9)
    seen, unseen = (part.T @ part / len(part) for part in (rows[:60], rows[60:]))
    weights = random.normal(size=(16, 90))
    found: list[float] = []
    for hessian in (seen, shrink(seen, 60)):
        assert np.array_equal(np.diag(hessian), np.diag(seen))
        assert np.linalg.eigvalsh(hessian).min() > -1e-9
        scales = search_scales(weights, np.diag(hessian), SEVEN, as_it_is)
        codes, chosen = fit_codes_and_scales(weights, hessian, scales, SEVEN, as_it_is)
        found.append(float(errors(weights, codes, chosen, unseen).sum()))
    assert found[1] < 0.8 * found[0]
    far, near = (np.abs(shrink(seen, count) - seen).sum() for count in (10, 10_000))
    assert far > 2 * near > 0


def test_dead_rows_have_a_scale() -> None:
    weights = np.array([[0.0, 0.0], [0.7, -7.0]])
    found = search_scales(weights, np.zeros(2), SEVEN, as_it_is)
    assert found[0] == 1.0 and found[1] > 0
    assert (search_scales(np.zeros((2, 3)), np.ones(3), SEVEN, as_it_is) > 0).all()


def test_fitted_scales_keep_above_the_floor_and_do_better() -> None:
    weights, hessian = problem(16, 40, rank=12)
    scales = search_scales(weights, np.diag(hessian), SEVEN, as_it_is)
    before = errors(weights, round_weights(weights, hessian, scales, SEVEN), scales, hessian)
    floor = np.where(np.arange(16)[:, None] % 2, 1.1 * scales, 0)
    codes, chosen = fit_codes_and_scales(
        weights, hessian, scales, SEVEN, lambda some: np.maximum(some, floor)
    )
    after = errors(weights, codes, chosen, hessian)
    free = floor[:, 0] == 0
    assert (chosen >= floor).all() and (after[free] <= before[free] * (1 + 1e-9)).all()
    assert after[free].sum() < 0.9 * before[free].sum()


@given(st.integers(1, 5), st.integers(1, 12), st.integers(0, 99), st.sampled_from([1.0, 1.1, 2.0]))
@draws(40)
def test_the_excess_is_the_error_at_the_best_gain(out: int, k: int, seed: int, most: float) -> None:
    weights, hessian = problem(out, k, seed)
    found = weights * np.random.default_rng(seed).uniform(0.7, 1.3, size=weights.shape)
    least = excess(found, hessian, weights @ hessian, most) + weighted_error(weights, hessian)
    for gain in np.geomspace(1 / most, most, 50):
        assert (least <= weighted_error(weights - gain * found, hessian) + 1e-9).all()
    assert (least >= -1e-9).all()
    plain = excess(found, hessian, weights @ hessian) + weighted_error(weights, hessian)
    assert np.allclose(plain, weighted_error(weights - found, hessian))
