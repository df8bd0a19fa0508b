"""The laws of masks: exactly so many go, the least ones, in blocks; and of sharing them out."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.numeric.sparse import (
    UNITS,
    Curve,
    allocate,
    error_curve,
    fit_curve,
    importance,
    keep_mask,
    refit_under_mask,
    unit_energies,
)
from tests.draws import draws

shapes = st.tuples(st.integers(1, 6), st.integers(1, 6))
seeds = st.integers(0, 1000)


def rows(shape: tuple[int, int], seed: int, ties: bool = False) -> np.ndarray:
    random = np.random.default_rng(seed)
    values = random.normal(0, 1, (shape[0], 4 * shape[1]))
    return np.abs(np.rint(2 * values) if ties else values)


@draws(40)
@given(shapes, seeds, st.floats(0, 1), st.booleans())
@pytest.mark.parametrize("block", ["1x1", "1x4"])
def test_exactly_so_many_units_go_and_they_are_the_least(
    block: str, shape: tuple[int, int], seed: int, share: float, ties: bool
) -> None:
    values = rows(shape, seed, ties)
    removed = round(share * values.size / UNITS[block])
    mask = keep_mask(values, block, removed)
    assert mask.shape == values.shape
    gone = ~mask.reshape(-1, UNITS[block])
    assert (gone.all(axis=1) == gone.any(axis=1)).all(), "a block is whole"
    assert gone.any(axis=1).sum() == removed
    energies = unit_energies(values, block)
    is_gone = gone.any(axis=1)
    assert energies[is_gone].max(initial=0) <= energies[~is_gone].min(initial=np.inf)


@draws(40)
@given(shapes, seeds, st.booleans())
def test_two_of_four_go(shape: tuple[int, int], seed: int, ties: bool) -> None:
    values = rows(shape, seed, ties)
    mask = keep_mask(values, "2:4", values.size // 2)
    assert (mask.reshape(-1, 4).sum(axis=1) == 2).all()
    groups, kept = values.reshape(-1, 4), mask.reshape(-1, 4)
    assert (np.where(kept, groups, np.inf).min(1) >= np.where(kept, 0, groups).max(1)).all()


@draws(40)
@given(shapes, seeds, st.floats(0, 0.5))
def test_fewer_of_two_in_four_are_part_of_all(
    shape: tuple[int, int], seed: int, share: float
) -> None:
    values = rows(shape, seed)
    removed = int(share * values.size)
    some, every = (keep_mask(values, "2:4", n) for n in (removed, values.size // 2))
    assert (~some).sum() == removed
    assert (some | ~every).all(), "none goes that would stay in the end"


@draws(40)
@given(shapes, seeds, st.floats(0, 1), st.sampled_from(["1x1", "1x4", "2:4"]))
def test_what_was_pruned_goes_first(
    shape: tuple[int, int], seed: int, share: float, block: str
) -> None:
    values = rows(shape, seed)
    removed = int(share * values.size / UNITS[block] / (2 if block == "2:4" else 1))
    pruned = values * keep_mask(values, block, removed)
    np.testing.assert_array_equal(pruned, pruned * keep_mask(pruned, block, removed))


def test_a_large_input_makes_a_small_weight_matter() -> None:
    weights = np.array([[1.0, -0.5, 0.1]])
    assert importance(weights).argmin() == 2
    assert importance(weights, np.array([0.1, 1.0, 100.0])).argmin() == 0
    dead = importance(weights, np.array([1.0, 0.0, 0.0]))
    assert dead[0, 1] > dead[0, 2] > 0, "weights on dead inputs have an order"


@draws(40)
@given(shapes, seeds, st.floats(0.1, 1), st.sampled_from(["1x1", "1x4"]))
def test_a_curve_is_what_the_mask_takes(
    shape: tuple[int, int], seed: int, most: float, block: str
) -> None:
    values = rows(shape, seed)
    curve = error_curve(values, block, most)
    assert curve.removed[0] == 0 and curve.error[0] == 0
    assert (np.diff(curve.removed) > 0).all() and (np.diff(curve.error) >= 0).all()
    for removed, error in zip(curve.removed, curve.error, strict=True):
        gone = np.square(values[~keep_mask(values, block, int(removed))]).sum()
        assert np.isclose(error, gone / np.square(values).sum(), atol=1e-12)


def test_a_measured_curve_goes_through_what_was_measured() -> None:
    curve = error_curve(rows((4, 4), 0), "1x1")
    seen = fit_curve(curve, [(20, 0.5), (40, 3.0)])
    for removed, error in ((20, 0.5), (40, 3.0)):
        assert np.isclose(np.interp(removed, seen.removed, seen.error), error, rtol=0.15)
    assert (np.diff(seen.error) >= 0).all()
    assert fit_curve(curve, []) is curve


def convex(seed: int, units: int) -> Curve:
    random = np.random.default_rng(seed)
    slopes = np.sort(random.exponential(1, units))
    return Curve(np.arange(units + 1), np.concatenate([[0], np.cumsum(slopes)]))


@draws(40)
@given(seeds, st.lists(st.integers(1, 4), min_size=1, max_size=3), st.floats(0, 1))
def test_no_other_allocation_is_better(seed: int, sizes: list[int], share: float) -> None:
    curves = [convex(seed + n, size) for n, size in enumerate(sizes)]
    total = round(share * sum(sizes))
    counts = allocate(curves, total)
    assert sum(counts) == total
    cost = sum(c.error[n] for c, n in zip(curves, counts, strict=True))
    for other in product(*(range(size + 1) for size in sizes)):
        if sum(other) == total:
            assert cost <= sum(c.error[n] for c, n in zip(curves, other, strict=True)) + 1e-9


def test_free_units_go_before_all_others() -> None:
    free = rows((4, 4), 0) * (np.arange(16) % 2)
    curves = [error_curve(free, "1x1"), error_curve(rows((4, 4), 1), "1x1")]
    zeros = int((free == 0).sum())
    assert allocate(curves, zeros) == [zeros, 0]


@draws(40)
@given(seeds)
def test_refilled_weights_do_better_on_their_inputs(seed: int) -> None:
    random = np.random.default_rng(seed)
    inputs = random.normal(0, 1, (200, 8)) @ random.normal(0, 1, (8, 8))
    weights = random.normal(0, 1, (3, 8))
    mask = keep_mask(np.abs(weights), "1x1", 12)
    hessian = np.cov(inputs, rowvar=False, bias=True)
    better = refit_under_mask(weights, mask, hessian, hessian)
    assert ((better != 0) <= mask).all()
    errors = [np.square((weights - w) @ inputs.T).sum() for w in (better, weights * mask)]
    held = 0.05 * np.diagonal(hessian).mean() * 200 * np.square(weights * ~mask).sum()
    assert errors[0] <= errors[1] + held
    full = np.ones_like(mask)
    np.testing.assert_allclose(
        refit_under_mask(weights, full, hessian, hessian), weights, rtol=1e-6
    )
