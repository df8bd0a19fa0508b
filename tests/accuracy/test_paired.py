"""Intervals hold what they promise: counted over seeded trials whose truth is known."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.accuracy.metrics import METRICS, difference_of, value_of
from litesmith.accuracy.paired import (
    Estimate,
    bounded_estimate,
    difference,
    estimate,
    jackknife,
    share,
    share_difference,
    student,
    wilson,
)

TRIALS = 800
Draw = Callable[[np.random.Generator], Estimate]


def coverage(draw: Draw, truth: float) -> float:
    """The share of intervals that hold the truth."""
    random = np.random.default_rng(1)
    found = [draw(random) for _ in range(TRIALS)]
    return sum(e.low <= truth <= e.high for e in found) / TRIALS


def hits(random: np.random.Generator, chance: float, count: int) -> np.ndarray:
    return (random.random(count) < chance).astype(np.float64)


@pytest.mark.parametrize(("chance", "count"), [(0.5, 20), (0.9, 50), (0.98, 200)])
def test_a_share(chance: float, count: int) -> None:
    assert 0.925 <= coverage(lambda r: share(hits(r, chance, count)), chance) <= 0.985


@pytest.mark.parametrize(
    ("won", "lost", "count"), [(0.02, 0.02, 400), (0.03, 0.06, 300), (0.2, 0.1, 40)]
)
def test_the_difference_of_two_shares(won: float, lost: float, count: int) -> None:
    """Two models that mostly agree, as a model and its quantized copy do."""

    def draw(random: np.random.Generator) -> Estimate:
        both = hits(random, 0.7, count)
        turn = random.random(count)
        mine = np.where(turn < won, 1, np.where(turn < won + lost, 0, both))
        other = np.where(turn < won, 0, np.where(turn < won + lost, 1, both))
        return share_difference(mine.astype(float), other.astype(float))

    assert 0.935 <= coverage(draw, won - lost) <= 0.998


def test_a_root_of_a_mean() -> None:
    def draw(random: np.random.Generator) -> Estimate:
        return value_of(METRICS["rmse"], np.square(random.normal(0, 2, (60, 1))))

    assert 0.92 <= coverage(draw, 2.0) <= 0.97


def test_the_difference_of_two_roots_is_paired() -> None:
    def rows(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        errors = random.normal(0, 1, (60, 1))
        return np.square(1.1 * errors + random.normal(0, 0.1, (60, 1))), np.square(errors)

    def draw(random: np.random.Generator) -> Estimate:
        return difference_of(METRICS["rmse"], *rows(random))

    assert 0.92 <= coverage(draw, math.sqrt(1.22) - 1) <= 0.98
    mine, other = rows(np.random.default_rng(0))
    paired = draw(np.random.default_rng(0))
    alone = value_of(METRICS["rmse"], mine), value_of(METRICS["rmse"], other)
    assert paired.high - paired.low < 0.5 * min(e.high - e.low for e in alone)


def test_an_area_under_the_curve() -> None:
    """Scores of the two classes are normal, one apart: the area is Φ(1 / √2)."""

    def draw(random: np.random.Generator) -> Estimate:
        labels = np.repeat([0.0, 1.0], (40, 25))
        return value_of(METRICS["auc"], np.stack([random.normal(labels, 1), labels], axis=1))

    assert 0.93 <= coverage(draw, 0.7602499) <= 0.985


@given(st.integers(0, 300), st.integers(1, 300))
def test_a_share_lies_in_its_interval_within_0_and_1(hit: int, more: int) -> None:
    value = hit / (hit + more)
    low, high = wilson(value, hit + more)
    assert 0 <= low <= value <= high <= 1
    assert high > low


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=80))
def test_a_difference_is_minus_that_of_the_other_way_round(pairs: list[tuple[bool, bool]]) -> None:
    mine, other = np.array(pairs, np.float64).T
    found, back = share_difference(mine, other), share_difference(other, mine)
    assert found.low <= found.value <= found.high
    assert (found.value, found.low) == (-back.value, pytest.approx(-back.high))
    assert found.value == pytest.approx(mine.mean() - other.mean())


def test_equal_models_may_still_differ_a_little_on_unseen_data() -> None:
    same = np.ones(98)
    assert share_difference(same, same) == (
        0,
        pytest.approx(-0.0277, abs=1e-4),
        pytest.approx(0.0277, abs=1e-4),
    )


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    rows = np.random.default_rng(2).normal(3, 5, (40, 1))
    found = jackknife(rows, METRICS["mae"].finish)
    assert found.value == pytest.approx(rows.mean())
    assert found.error == pytest.approx(rows.std(ddof=1) / math.sqrt(40))
    assert found.pulls.sum() == pytest.approx(0, abs=1e-9)


def test_one_row_bounds_nothing_and_infinity_neither() -> None:
    first = METRICS["mae"].finish
    assert estimate(jackknife(np.array([[3.0]]), first)) == (3, -math.inf, math.inf)
    lost = jackknife(np.array([[3.0], [math.inf]]), first)
    assert estimate(lost, 0.0) == (math.inf, 0, math.inf)
    found = difference(lost, jackknife(np.array([[3.0], [2.0]]), first))
    assert found == (math.inf, math.inf, math.inf)


def test_a_perfect_value_has_an_interval() -> None:
    found = bounded_estimate(jackknife(np.ones((10, 1)), METRICS["mae"].finish))
    assert (found.value, found.high) == (1, 1)
    assert 0.6 < found.low < 0.8


@pytest.mark.parametrize(
    ("freedom", "point"), [(2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (100, 1.984)]
)
def test_students_points(freedom: int, point: float) -> None:
    assert student(freedom) == pytest.approx(point, rel=0.01)


GROUPED = ("top1", "auc", "mae", "rmse")


def drawn_rows(name: str, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Statistics of two models on so many samples."""
    random = np.random.default_rng(seed)
    if name == "top1":
        return hits(random, 0.8, count)[:, None], hits(random, 0.7, count)[:, None]
    if name == "auc":
        labels = np.arange(count) % 2
        first, other = (np.stack([random.normal(labels, 1), labels], axis=1) for _ in range(2))
        return first, other
    first, other = (np.square(random.normal(1, 1, (count, 1))) for _ in range(2))
    return first, other


@pytest.mark.parametrize("name", GROUPED)
def test_where_every_row_is_its_own_group_nothing_changes(name: str) -> None:
    mine, other = drawn_rows(name, 60, 0)
    own, metric = np.random.default_rng(1).permutation(60), METRICS[name]
    assert value_of(metric, mine, own) == pytest.approx(value_of(metric, mine))
    told = difference_of(metric, mine, other, own)
    assert told == pytest.approx(difference_of(metric, mine, other))


@pytest.mark.parametrize("name", GROUPED)
@pytest.mark.parametrize("copies", [2, 15])
def test_copies_make_no_interval_narrower(name: str, copies: int) -> None:
    mine, other = drawn_rows(name, 40, 2)
    groups, metric = np.repeat(np.arange(40), copies), METRICS[name]
    first, second = (np.repeat(rows, copies, axis=0) for rows in (mine, other))
    for alone, copied in (
        (value_of(metric, mine), value_of(metric, first, groups)),
        (difference_of(metric, mine, other), difference_of(metric, first, second, groups)),
    ):
        assert copied.value == pytest.approx(alone.value)
        assert 0.98 <= (copied.high - copied.low) / (alone.high - alone.low) < 1.1


@pytest.mark.parametrize("alike", [0.25, 1.0])
def test_the_interval_of_groups_whose_rows_go_wrong_together(alike: float) -> None:
    groups = np.repeat(np.arange(60), 10)

    def draw(random: np.random.Generator) -> Estimate:
        together = np.repeat(hits(random, 0.8, 60), 10)
        follows = random.random(600) < math.sqrt(alike)
        return share(np.where(follows, together, hits(random, 0.8, 600)), groups)

    assert 0.925 <= coverage(draw, 0.8) <= 0.995


def test_one_group_says_nothing() -> None:
    ones, one = np.ones(100), np.zeros(100, np.int64)
    assert share(ones, one) == (1.0, 0.0, 1.0)
    assert share_difference(ones, ones, one)[1:] == (-1.0, 1.0)
    assert value_of(METRICS["mae"], np.arange(100.0)[:, None], one)[1:] == (0.0, math.inf)
