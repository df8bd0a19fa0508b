"""What is gathered does not depend on order, and ranges keep what they promise."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from litesmith.numeric.ranges import BUCKETS, ESTIMATORS, EXTREMES, WHAT, Seen, estimate, spread
from tests.draws import draws

samples = st.lists(
    hnp.arrays(np.float32, (2, 3, 4), elements=st.floats(-1e4, 1e4, width=32)), min_size=1
)


def seen(arrays: list[np.ndarray], what: frozenset[str] = WHAT) -> Seen:
    result = Seen(what)
    for array in arrays:
        result.add(array)
    return result


def facts(of: Seen) -> list[object]:
    assert of.channel_low is not None and of.channel_high is not None and of.histogram is not None
    arrays = (of.channel_low, of.channel_high, of.histogram, of.mean)
    return [of.low, of.high, of.lows, of.highs, of.samples, *(a.tobytes() for a in arrays)]


@given(samples, st.randoms(use_true_random=False))
@draws(50)
def test_order_changes_nothing(arrays: list[np.ndarray], random) -> None:
    expected = facts(seen(arrays))
    shuffled = random.sample(arrays, len(arrays))
    assert facts(seen(shuffled)) == expected


@given(samples)
@draws(50)
def test_facts_are_those_of_all_samples(arrays: list[np.ndarray]) -> None:
    of, stacked = seen(arrays), np.stack(arrays)
    assert (of.low, of.high) == (stacked.min(), stacked.max())
    np.testing.assert_array_equal(of.channel_peak, np.abs(stacked).max((0, 1, 2)))
    np.testing.assert_allclose(of.mean, stacked.mean(0, np.float64), rtol=1e-12, atol=2**-32)
    starts, ends, counts = spread(of)
    assert counts.sum() == stacked.size
    assert (ends[:-1] <= starts[1:]).all() and (starts <= ends).all()
    assert (starts[0], ends[-1]) == (stacked.min(), stacked.max())
    for start, end, count in zip(starts, ends, counts, strict=True):
        assert ((stacked >= start) & (stacked <= end)).sum() >= count


@pytest.mark.parametrize("shape", [(112, 112, 3), (7, 5, 1001), (5,), (), (1, 2000), (33, 1)])
def test_channels_of_any_shape(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    of = seen([values], frozenset({"channels"}))
    rows = values.reshape(-1, shape[-1] if shape else 1)
    np.testing.assert_array_equal(of.channel_low, rows.min(0))
    np.testing.assert_array_equal(of.channel_high, rows.max(0))


def test_memory_does_not_grow_with_samples() -> None:
    of = seen([np.full((2, 2), number, np.float32) for number in range(100)])
    assert of.samples == 100
    assert of.highs == tuple(range(99, 99 - EXTREMES, -1)) and of.lows == tuple(range(EXTREMES))
    assert of.histogram is not None and of.histogram.size == BUCKETS


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_spoiled_sample_is_counted_and_left_out(bad: float) -> None:
    of = seen([np.array([1.0, 2.0]), np.array([5.0, bad])])
    assert (of.samples, of.spoiled, of.high) == (1, 1, 2)
    with pytest.raises(ValueError, match="1 samples hold infinite values"):
        estimate("minmax", of, 255)


def test_what_was_not_gathered_is_refused() -> None:
    of = seen([np.ones(3)], frozenset({"range"}))
    for get in (lambda: of.mean, lambda: of.channel_peak, lambda: spread(of)):
        with pytest.raises(ValueError, match="gathered"):
            get()
    with pytest.raises(ValueError, match="the statistics that can be gathered are"):
        Seen(frozenset({"median"}))
    with pytest.raises(ValueError, match="samples of 3 and of 4 channels"):
        seen([np.ones(3), np.ones(4)])
    with pytest.raises(ValueError, match=r"samples of shapes \(3,\) and \(2, 3\): no mean"):
        seen([np.ones(3), np.ones((2, 3))])


@pytest.mark.parametrize("how", ESTIMATORS)
@pytest.mark.parametrize("bounds", [(-inf, inf), (0, inf), (0, 6), (-1, 1)])
@given(arrays=samples)
@draws(20)
def test_a_range_holds_zero_and_stays_inside(how: str, bounds, arrays: list[np.ndarray]) -> None:
    of = seen(arrays)
    low, high = estimate(how, of, 255, bounds)
    assert bounds[0] <= low <= 0 <= high <= bounds[1]
    assert min(of.low, 0) <= low and high <= max(of.high, 0)


@pytest.mark.parametrize("how", ESTIMATORS)
def test_nothing_seen_is_a_range_of_nothing(how: str) -> None:
    assert estimate(how, Seen(), 255) == (0, 0)
    assert estimate(how, seen([np.zeros((2, 0))]), 255) == (0, 0)
    assert estimate(how, seen([np.zeros((2, 3))]), 255) == (0, 0)


def true_error(values: np.ndarray, low: float, high: float, steps: int) -> float:
    step = (high - low) / steps
    zero = np.rint(-low / step)
    codes = np.clip(np.rint(values / step) + zero, 0, steps)
    return float((((codes - zero) * step - values) ** 2).mean())


@pytest.mark.parametrize("steps", [15, 255])
@pytest.mark.parametrize("outlier", [1, 10, 40, 400])
def test_mse_is_near_the_best_range_there_is(steps: int, outlier: float) -> None:
    values = np.random.default_rng(0).normal(size=20_000).astype(np.float32)
    values[0] = outlier
    found = true_error(values, *estimate("mse", seen([values]), steps), steps)
    grid = [
        true_error(values, low, high, steps)
        for low in np.linspace(-5, -1, 12)
        for high in np.geomspace(1, max(outlier, 5), 24)
    ]
    assert found <= 1.05 * min(grid)


def test_percentile_leaves_both_tails_out() -> None:
    values = np.random.default_rng(0).uniform(-1, 3, 100_000).astype(np.float32)
    values[:3] = 100, -70, 90
    low, high = estimate("percentile", seen([values]), 255)
    assert low == pytest.approx(-1, rel=0.03) and high == pytest.approx(3, rel=0.03)
