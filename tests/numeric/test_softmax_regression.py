"""A solved head is where the loss is least, and what judges it has not seen what it judges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.numeric.softmax_regression import Examples, cross_validate, log_chances, solve
from tests.draws import draws


def examples(count: int, features: int, classes: int, seed: int, scale: float = 1.0) -> Examples:
    random = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    centres = random.normal(0, 1.5, (classes, features))
    values = (centres[labels] + random.normal(0, 1, (count, features))) * scale
    return Examples(values, labels, np.ones(count), classes)


def penalised(given: Examples, weight: np.ndarray, bias: np.ndarray, strength: float) -> float:
    """The loss as its definition says, for features of size 1."""
    size = given.features.std(axis=0)
    scores = log_chances(given.features @ weight.T + bias)
    missed = -(given.weights * scores[np.arange(len(given.labels)), given.labels]).mean()
    return float(missed + strength / 2 * np.square(weight * size).sum())


@draws(25)
@given(
    st.integers(6, 40),
    st.integers(1, 50),
    st.integers(2, 5),
    st.integers(0, 99),
    st.sampled_from([1e-3, 0.1, 1.0]),
)
def test_no_step_from_a_solution_loses_less(
    count: int, features: int, classes: int, seed: int, strength: float
) -> None:
    given_ones = examples(count, features, classes, seed)
    head = solve(given_ones, strength)
    best = penalised(given_ones, head.weight, head.bias, strength)
    random = np.random.default_rng(seed)
    for size in (1e-2, 1.0):
        weight = head.weight + size * random.normal(0, 1, head.weight.shape)
        bias = head.bias + size * random.normal(0, 1, head.bias.shape)
        assert penalised(given_ones, weight, bias, strength) >= best - 1e-7


@draws(10)
@given(st.sampled_from([1e-3, 1.0, 1e4]), st.floats(-100, 100))
def test_units_and_offsets_of_features_change_no_score(scale: float, offset: float) -> None:
    plain = examples(30, 8, 3, 1)
    moved = plain._replace(features=plain.features * scale + offset)
    ours, theirs = (solve(e, 0.1).scores(e.features) for e in (plain, moved))
    assert np.allclose(ours, theirs, atol=1e-3)


def test_features_that_never_vary_are_harmless() -> None:
    given_ones = examples(30, 4, 3, 2)
    features = np.column_stack([given_ones.features, np.full(30, 7.0), np.zeros(30)])
    head = solve(given_ones._replace(features=features), 0.1)
    assert np.isfinite(head.weight).all()
    assert np.allclose(
        head.scores(features), solve(given_ones, 0.1).scores(given_ones.features), atol=1e-3
    )


def test_weights_stand_for_repeated_samples() -> None:
    given_ones = examples(24, 5, 3, 3)
    twice = np.r_[np.arange(24), np.flatnonzero(given_ones.labels == 0)]
    repeated = given_ones.at(twice)
    weights = np.where(given_ones.labels == 0, 2.0, 1.0)
    weighted = given_ones._replace(weights=weights / weights.mean())
    scores = [solve(e, 1e-4).scores(given_ones.features).argmax(1) for e in (repeated, weighted)]
    assert np.array_equal(*scores)


def test_labels_of_chance_are_told_by_none() -> None:
    random = np.random.default_rng(4)
    noise = Examples(random.normal(0, 1, (90, 60)), random.integers(0, 3, 90), np.ones(90), 3)
    found = cross_validate(noise, np.arange(90) % 5)
    assert all(one.accuracy < 0.55 for one in found)
    assert min(one.loss for one in found) > 0.9


def test_separable_classes_are_told_and_weaker_strengths_stop() -> None:
    found = cross_validate(examples(60, 10, 3, 5), np.arange(60) % 5)
    assert max(one.accuracy for one in found) > 0.9
    assert [one.strength for one in found] == sorted((o.strength for o in found), reverse=True)


@pytest.mark.parametrize("count", [3, 2000])
def test_few_and_many_samples(count: int) -> None:
    given_ones = examples(count, 20, 3, 6)
    scores = solve(given_ones, 0.01).scores(given_ones.features)
    assert np.mean(scores.argmax(axis=1) == given_ones.labels) > 0.9
