"""Measurements compute from their samples."""

import math
from dataclasses import FrozenInstanceError
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.evidence.measurement import Measurement, median_interval

numbers = st.floats(-1e6, 1e6)


def measurement(*samples: float) -> Measurement:
    return Measurement("latency", "us", samples, "cpu:1", "d1", "a machine")


def test_a_measurement_keeps_samples_and_computes_the_rest() -> None:
    found = measurement(5, 1, 9, 2, 7, 8)
    assert found.value == 6
    assert found.interval == (1, 9)
    with pytest.raises(FrozenInstanceError):
        found.unit = "ms"  # type: ignore[misc]
    with pytest.raises(ValueError, match="'latency' needs at least one sample"):
        measurement()


@given(st.lists(numbers, min_size=1, max_size=60), st.randoms())
def test_order_does_not_matter_and_the_interval_holds_the_median(samples, random) -> None:
    low, high = median_interval(samples)
    assert low <= median(samples) <= high
    random.shuffle(samples)
    assert median_interval(samples) == (low, high)


@given(st.lists(numbers, min_size=6, max_size=60), st.floats(0.1, 10), st.floats(-100, 100))
def test_the_interval_follows_a_change_of_scale(samples, factor: float, shift: float) -> None:
    moved = median_interval([sample * factor + shift for sample in samples])
    assert moved == pytest.approx([x * factor + shift for x in median_interval(samples)])


def test_too_few_samples_bound_nothing() -> None:
    assert median_interval([1.0] * 5) == (-math.inf, math.inf)
    assert median_interval([]) == (-math.inf, math.inf)


@pytest.mark.parametrize("count", [6, 9, 12, 50, 1000, 1001, 2000])
def test_the_interval_covers_the_true_median_at_least_as_often_as_it_says(count: int) -> None:
    random = np.random.default_rng(count)
    rounds = 1000 if count < 1000 else 300
    held = 0
    for _ in range(rounds):
        low, high = median_interval(random.exponential(1, count).tolist())
        held += low <= math.log(2) <= high
    assert 0.93 <= held / rounds <= 0.995
