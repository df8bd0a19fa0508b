"""Laws of the statistics, on samples whose truth is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.timing.statistics import (
    FASTER,
    SAME,
    SLOWER,
    UNCLEAR,
    UNKNOWN,
    Ratio,
    TurnTimes,
    percentile,
    relative_width,
    spread,
    turns_ratio,
)

times = st.floats(0.1, 1e6)
many = st.lists(times, min_size=1, max_size=50)


@given(many, st.randoms())
def test_percentiles_are_ordered_and_know_no_order(samples: list[float], random) -> None:
    found = [percentile(samples, rank) for rank in (0, 50, 90, 95, 99, 100)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (min(samples), max(samples))
    random.shuffle(samples)
    assert percentile(samples, 90) == found[2]


@given(many, st.lists(st.booleans(), min_size=50, max_size=50))
def test_identical_turns_have_the_ratio_1(samples: list[float], leads: list[bool]) -> None:
    assert turns_ratio(samples, samples, leads[: len(samples)]) == 1


@given(st.lists(st.tuples(times, times, st.booleans()), min_size=1, max_size=40), st.randoms())
def test_ratios_turn_round_and_know_no_order(turns, random) -> None:
    a, b, leads = (list(column) for column in zip(*turns, strict=True))
    ratio = turns_ratio(a, b, leads)
    assert turns_ratio(b, a, leads) == pytest.approx(1 / ratio)
    assert turns_ratio(a, [2 * x for x in b], leads) == pytest.approx(2 * ratio)
    random.shuffle(turns)
    assert turns_ratio(*(list(c) for c in zip(*turns, strict=True))) == pytest.approx(ratio)


def test_the_cost_of_coming_second_cancels() -> None:
    """Both take 10, but 12 where they come second; a leads three times as often."""
    leads = [True, True, True, False] * 5
    a = [10 if led else 12 for led in leads]
    b = [12 if led else 10 for led in leads]
    assert turns_ratio(a, b, leads) == pytest.approx(1)


@pytest.mark.parametrize(
    ("blocks", "verdict"),
    [
        ([1.05] * 6, SLOWER),
        ([0.95] * 6, FASTER),
        ([1.0] * 6, SAME),
        ([1.009] * 20, SAME),  # beyond doubt, and too small to matter
        ([1.05] * 5, UNKNOWN),
        ([0.99, 1.1, 1.1, 1.1, 1.1, 1.1], SAME),
        ([0.9, *[1.1] * 11], SLOWER),  # one of twelve may disagree
    ],
)
def test_verdicts(blocks: list[float], verdict: str) -> None:
    assert Ratio(tuple(blocks)).verdict == verdict


def test_a_difference_of_noise_is_rarely_called() -> None:
    random = np.random.default_rng(1)
    ratios = [Ratio(tuple(np.exp(random.normal(0, 0.03, 12)).tolist())) for _ in range(500)]
    held = sum(low <= 1 <= high for low, high in (ratio.interval for ratio in ratios))
    assert held >= 0.93 * 500
    assert sum(ratio.verdict != SAME for ratio in ratios) <= 0.05 * 500


def test_widths() -> None:
    assert relative_width([2.0] * 6) == 0
    assert relative_width([1.0] * 5) == float("inf")
    assert relative_width([]) == float("inf")
    assert spread([1, 2, 3, 4, 5]) == pytest.approx(2 / 3)
    assert spread([0.0, 0.0]) == 0


CONTENDERS = st.integers(2, 4)
BLOCKS = st.integers(1, 30)


@given(st.data(), CONTENDERS, BLOCKS)
def test_every_ratio_of_a_run_is_that_of_its_times(data, contenders: int, blocks: int) -> None:
    row = st.lists(times, min_size=blocks, max_size=blocks).map(tuple)
    rows = data.draw(st.lists(row, min_size=contenders, max_size=contenders).map(tuple))
    run = TurnTimes(rows, (0.0,) * contenders)
    for a in range(contenders):
        low, high = run.interval_us(a)
        assert low <= run.us(a) <= high
        for b in range(contenders):
            found = run.ratio(a, b)
            assert found.value == run.us(b) / run.us(a)
            assert found.value * run.ratio(b, a).value == pytest.approx(1)
            assert found.interval[0] <= found.value <= found.interval[1]


def told(spread_of_blocks: float, waited: float = 0.0, factor: float = 3.0) -> Ratio:
    """Twelve blocks in which b takes `factor` times as long, more or less."""
    first = tuple(100.0 + place for place in range(12))
    ups = np.linspace(-spread_of_blocks, spread_of_blocks, 12)
    second = tuple(factor * us * float(np.exp(up)) for us, up in zip(first, ups, strict=True))
    return TurnTimes((first, second), (0.0, waited)).ratio(0, 1)


def test_a_busy_machine_tells_nothing() -> None:
    assert told(0.01).verdict == SLOWER
    assert told(0.01).words == "3.00 × slower [2.98, 3.02]"
    assert told(0.3).verdict == UNCLEAR  # the blocks disagree
    assert told(0.01, waited=0.5).verdict == UNCLEAR  # another program had the core
    assert told(0.01, waited=0.05).verdict == SLOWER
    assert told(0.3, factor=1.0).verdict == UNCLEAR
    assert told(0.3).words == UNCLEAR == "unclear: the machine was busy"


@given(st.floats(0.01, 100), st.floats(1, 1e6))
def test_the_words_are_those_of_the_times(factor: float, first: float) -> None:
    found = Ratio((factor,) * 8, (first, factor * first))
    word = found.words.split()
    assert ("faster" in word, "slower" in word) == (factor < 0.99, factor > 1.01)
    if found.verdict in (FASTER, SLOWER):
        shown = 1 / factor if factor < 1 else factor
        assert float(word[0]) == pytest.approx(shown, rel=0.01)
