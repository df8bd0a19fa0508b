"""The rules of the gate, on numbers that are made up: what alarms, and what does not."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.accuracy.paired import Estimate, share_difference
from litesmith.errors import BadInput
from litesmith.regression.gate_rules import (
    FINE,
    OFF,
    QUANTITIES,
    UNCLEAR,
    UNKNOWN,
    WORSE,
    Allowed,
    accuracy_bound,
    accuracy_verdict,
    change_verdict,
    delegation_verdict,
    growth_verdict,
    join_clocks,
    judge_latency,
    latency_change,
    memory_verdict,
    overall,
    ratio_change,
    read_allowances,
)

FIVE = Allowed.parse("latency", "5%")
HALF_A_POINT = 0.005

blocks = st.lists(st.floats(0.2, 5), min_size=6, max_size=40).map(tuple)


@pytest.mark.parametrize("name", QUANTITIES)
def test_every_quantity_has_a_usual_allowance(name: str) -> None:
    usual = Allowed.parse(name, QUANTITIES[name].usual)
    assert 0 <= usual.amount < 0.1
    assert Allowed.parse(name, OFF).amount == math.inf
    assert Allowed.parse(name, OFF).typed == OFF


@given(st.sampled_from(list(QUANTITIES)), st.integers(0, 9999), st.data())
def test_an_allowance_is_read_as_it_is_typed(name: str, number: int, data: st.DataObject) -> None:
    unit = data.draw(st.sampled_from(QUANTITIES[name].units))
    typed = f"{number / 100 if unit else number:g}{unit}"
    allowed = Allowed.parse(name, typed)
    assert allowed.amount == pytest.approx(number / 1e4 if unit else number)
    assert Allowed.parse(name, allowed.typed) == allowed
    assert read_allowances([f"{name}={typed}"]) == {name: allowed}


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("latency", "as in latency=5%"),
        ("speed=5%", "no such quantity; there are accuracy, latency, size"),
        ("latency=5pt", "give 5%, or off"),
        ("latency=-5%", "give 5%, or off"),
        ("accuracy=1", "give 0.5pt or 1%, or off"),
        ("delegation=5%", "a number of ops, or off"),
        ("size=nan%", "give 2%, or off"),
    ],
)
def test_a_wrong_allowance_is_one_line_with_the_way_out(typed: str, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        read_allowances([typed])


def paired(count: int, won: int, lost: int) -> Estimate:
    """The difference of two models of which one wins some samples and loses some."""
    before, after = np.zeros(count), np.zeros(count)
    before[:lost], after[lost : lost + won] = 1, 1
    return share_difference(after, before)


@given(st.integers(1, 5000))
def test_the_same_answers_are_fine_whatever_is_allowed(count: int) -> None:
    assert accuracy_verdict(paired(count, 0, 0), 1, 0.0) == FINE


@given(st.integers(0, 180))
def test_a_drop_of_0_8_points_on_5000_samples_is_called_where_under_8_percent_change(
    won: int,
) -> None:
    assert accuracy_verdict(paired(5000, won, won + 40), 1, HALF_A_POINT) == WORSE


def test_a_drop_that_chance_explains_is_unclear() -> None:
    assert accuracy_verdict(paired(5000, 300, 340), 1, HALF_A_POINT) == UNCLEAR
    assert accuracy_verdict(paired(100, 0, 2), 1, HALF_A_POINT) == UNCLEAR


@given(st.integers(50, 5000), st.integers(0, 50), st.integers(0, 50), st.floats(0, 0.1))
def test_no_alarm_without_a_drop_that_is_above_the_bound_and_beyond_chance(
    count: int, won: int, lost: int, bound: float
) -> None:
    count = max(count, won + lost)
    difference = paired(count, won, lost)
    verdict = accuracy_verdict(difference, 1, bound)
    if (lost - won) / count <= bound or difference.high >= 0:
        assert verdict != WORSE
    if won >= lost:
        assert verdict == FINE


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_where_less_is_better_signs_turn_and_where_nobody_knows_any_change_is_lost(
    value: float, below: float, above: float, bound: float
) -> None:
    found = Estimate(value, value - below, value + above)
    mirrored = Estimate(-value, -value - above, -value + below)
    assert accuracy_verdict(found, 1, bound) == accuracy_verdict(mirrored, -1, bound)
    either = {accuracy_verdict(found, 1, bound), accuracy_verdict(found, -1, bound)}
    assert (accuracy_verdict(found, 0, bound) == WORSE) == (WORSE in either)


def test_what_became_infinite_is_worse_and_what_is_no_number_is_unclear() -> None:
    infinite = Estimate(math.inf, math.inf, math.inf)
    assert accuracy_verdict(infinite, -1, 1.0) == WORSE
    assert accuracy_verdict(infinite, 1, 1.0) == FINE
    assert accuracy_verdict(Estimate(math.nan, 0, 0), 1, 1.0) == UNCLEAR


def test_points_are_of_shares_only() -> None:
    points, share = Allowed.parse("accuracy", "0.5pt"), Allowed.parse("accuracy", "1%")
    assert accuracy_bound(points, 0.7, "share") == 0.005
    assert accuracy_bound(share, -30.0, "dB") == pytest.approx(0.3)
    with pytest.raises(BadInput, match="no share and has no points; give a share of its value"):
        accuracy_bound(points, 3.0, "")


@given(blocks)
def test_what_is_held_against_itself_has_not_changed(some: tuple[float, ...]) -> None:
    change = ratio_change(some, some)
    assert change.value == 1
    assert change.low <= 1 <= change.high


@given(blocks, blocks, st.floats(0.5, 2))
def test_a_change_grows_as_the_times_do(
    now: tuple[float, ...], then: tuple[float, ...], factor: float
) -> None:
    plain = ratio_change(now, then)
    scaled = ratio_change([factor * ratio for ratio in now], then)
    assert np.allclose(scaled, np.array(plain) * factor)
    assert plain.low <= plain.value <= plain.high


def test_too_few_blocks_tell_nothing() -> None:
    few = ratio_change([1.5] * 5, [1.0] * 12)
    assert (few.low, few.high) == (0.0, math.inf)
    assert change_verdict(few, FIVE) == UNCLEAR


def test_the_steadier_clock_decides_and_one_that_only_one_has_does_not() -> None:
    then = {"wall": tuple(np.linspace(0.5, 2, 12)), "processor": (1.0,) * 12}
    now = {**then, "processor": (1.2,) * 12, "sun": (9.0,) * 12}
    change = latency_change(now, then)
    assert (change.clock, change.times.value) == ("processor", 1.2)
    assert latency_change({"sun": (1.0,) * 12}, then).clock == ""


def noise(seed: int, spread: float, disturbed: float) -> np.random.Generator:
    return np.random.default_rng([seed, round(1e6 * spread), round(1e6 * disturbed)])


def chunk(
    random: np.random.Generator, true: float, spread: float, disturbed: float
) -> dict[str, tuple[float, ...]]:
    """Ratios that spread around the true one; some are of loads that others took the core from."""
    steady = random.normal(0, spread, 12)
    outliers = random.normal(0, 0.4, 12) * (random.random(12) < disturbed)
    return {"wall": tuple(true * np.exp(steady + outliers))}


def verdicts(true: float, spread: float, disturbed: float, count: int = 200) -> list[str]:
    found: list[str] = []
    for seed in range(count):
        random = noise(seed, spread, disturbed)
        then = chunk(random, 1.0, spread / 2, 0.0)
        chunks = (chunk(random, true, spread, disturbed) for _ in range(20))
        found.append(judge_latency(chunks, then, FIVE).verdict)
    return found


@pytest.mark.parametrize("spread", [0.001, 0.01, 0.03])
@pytest.mark.parametrize("disturbed", [0.0, 0.2])
def test_an_unchanged_model_does_not_alarm_in_any_weather(spread: float, disturbed: float) -> None:
    assert WORSE not in verdicts(1.0, spread, disturbed)


@pytest.mark.parametrize("spread", [0.001, 0.01, 0.02])
@pytest.mark.parametrize("disturbed", [0.0, 0.2])
def test_ten_percent_more_is_called_in_any_weather(spread: float, disturbed: float) -> None:
    assert verdicts(1.10, spread, disturbed).count(WORSE) >= 198


def test_at_the_bound_itself_alarms_are_few() -> None:
    assert verdicts(1.05, 0.01, 0.1).count(WORSE) <= 20


def test_a_disturbance_that_passes_is_no_alarm() -> None:
    then, usual, bad = ({"wall": (ratio,) * 12} for ratio in (1.0, 1.0, 1.4))
    assert judge_latency([bad, usual, usual], then, FIVE).verdict != WORSE
    assert judge_latency([bad], then, FIVE).verdict == UNCLEAR
    assert judge_latency([bad], then, FIVE).is_above
    assert not judge_latency([bad, usual, usual], then, FIVE).is_above
    assert judge_latency([bad, bad], then, FIVE).verdict == WORSE


def test_a_clear_answer_ends_the_measurement() -> None:
    asked = 0

    def chunks():
        nonlocal asked
        while True:
            asked += 1
            yield {"wall": (1.0,) * 12}

    assert judge_latency(chunks(), {"wall": (1.0,) * 12}, FIVE).verdict == FINE
    assert asked == 1


def test_blocks_are_joined_by_clocks_that_all_chunks_have() -> None:
    first, second = {"wall": (1.0,), "processor": (2.0,)}, {"wall": (3.0,)}
    assert join_clocks(first, second) == {"wall": (1.0, 3.0)}
    assert join_clocks({}, first) == first


@given(st.floats(0.5, 2))
def test_sizes_are_exact(ratio: float) -> None:
    allowed = Allowed.parse("size", "2%")
    if ratio > 1.0201:
        assert growth_verdict(ratio, allowed) == WORSE
    if ratio <= 1.02:
        assert growth_verdict(ratio, allowed) == FINE


def test_memory_has_room_for_noise_and_more_of_it_elsewhere() -> None:
    allowed = Allowed.parse("memory", "5%")
    assert memory_verdict(10_000_000, 10_700_000, allowed, same_machine=True) == FINE
    assert memory_verdict(10_000_000, 10_800_000, allowed, same_machine=True) == WORSE
    assert memory_verdict(10_000_000, 12_000_000, allowed, same_machine=False) == FINE
    assert memory_verdict(10_000_000, 13_000_000, allowed, same_machine=False) == WORSE
    assert memory_verdict(1_000, 100_000, allowed, same_machine=True) == FINE


def test_delegation_is_worse_with_an_op_more_left_or_many_macs_fewer() -> None:
    none, two, off = (Allowed.parse("delegation", text) for text in ("0", "2", OFF))
    assert delegation_verdict((0, 1.0), (0, 1.0), none) == FINE
    assert delegation_verdict((1, 1.0), (0, 1.0), none) == FINE
    assert delegation_verdict((0, 1.0), (1, 1.0), none) == WORSE
    assert delegation_verdict((0, 1.0), (2, 1.0), two) == FINE
    assert delegation_verdict((1, 1.0), (1, 0.5), two) == WORSE
    assert delegation_verdict((1, 1.0), (9, 0.1), off) == FINE


def test_small_ops_outside_are_no_fault_where_the_time_is_judged() -> None:
    none = Allowed.parse("delegation", "0")
    assert delegation_verdict((0, 1.0), (2, 1.0), none, is_timed=True) == FINE
    assert delegation_verdict((0, 1.0), (2, 0.5), none, is_timed=True) == WORSE


def test_all_together() -> None:
    assert overall([FINE, OFF]) == FINE
    assert overall([FINE, UNKNOWN]) == FINE
    assert overall([FINE, UNKNOWN], strict=True) == WORSE
    assert overall([FINE, OFF], strict=True) == FINE
    assert overall([UNCLEAR, FINE]) == UNCLEAR
    assert overall([UNCLEAR, WORSE, FINE]) == WORSE
