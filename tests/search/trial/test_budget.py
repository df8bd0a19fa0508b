"""What is asked of a search, and what is said of a model that was measured for it."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from litesmith.accuracy.evaluate import Against, Evaluation
from litesmith.accuracy.metrics import METRICS
from litesmith.accuracy.paired import share_difference, wilson
from litesmith.errors import BadInput
from litesmith.evidence.measurement import Measurement
from litesmith.evidence.records import Score, Speed
from litesmith.evidence.tune_record import Tried
from litesmith.micro.boards import Room as MicroRoom
from litesmith.search.trial.budget import (
    LEAST_SAMPLES,
    LIKELY,
    MISSED,
    PROVEN,
    Budget,
    Drop,
    Limits,
    Room,
    at_look,
    describe_time,
    verdict,
)
from litesmith.search.trial.measured_values import score_of

AMOUNTS = st.decimals(0, 99, places=3, allow_nan=False).map(float)
SIZES = st.floats(-1, 1).map(lambda x: round(x, 6))
RANK = {PROVEN: 2, LIKELY: 1, MISSED: 0}


def score(metric: str, value: float, spread: float = 0.0, against: Against | None = None) -> Score:
    """The score of a hundred samples."""
    unit = METRICS[metric].unit if metric in METRICS else ""
    measurement = Measurement(metric, unit, (value,), "cpu:1", "", "")
    ends = value - spread, value + spread
    found = Evaluation(metric, unit, value, *ends, 100, measurement, "rows", "", (), against)
    return score_of(found)


def dropped(metric: str, reference: float, difference: float, spread: float = 0.0) -> Score:
    """One of a model that was held against a reference."""
    better = METRICS[metric].better if metric in METRICS else 0
    ends = difference - spread, difference + spread
    against = Against(reference, difference, *ends, better=better)
    return score(metric, reference + difference, against=against)


@pytest.mark.parametrize(
    ("text", "drop"),
    [
        ("1pt", Drop(0.01)),
        ("0.5pt", Drop(0.005)),
        (" 1.1 PT ", Drop(0.011)),
        ("1%", Drop(0.01, is_relative=True)),
        ("0pt", Drop(0.0)),
        ("0.05", Drop(0.05, in_units=True)),
        ("12", Drop(12.0, in_units=True)),
    ],
)
def test_drops(text: str, drop: Drop) -> None:
    assert Drop.parse(text) == drop


@pytest.mark.parametrize("text", ["", "nan", "inf", "one", "nanpt", "one pt", "1 pt %", "1,5pt"])
def test_an_ambiguous_drop_says_both_ways(text: str) -> None:
    with pytest.raises(BadInput, match=r"1pt or 1%, points .* or a share") as caught:
        Drop.parse(text)
    assert "\n" not in str(caught.value) and repr(text) in str(caught.value)


@pytest.mark.parametrize("text", ["-1pt", "−1%", "100pt", "1e5%"])
def test_a_drop_is_no_gain_and_not_all(text: str) -> None:
    with pytest.raises(BadInput, match="give 0 or more and less than 100"):
        Drop.parse(text)


@pytest.mark.parametrize("text", ["1", "0.01", "0"])
def test_a_number_alone_is_for_what_is_no_share(text: str) -> None:
    drop = Drop.parse(text)
    assert drop.allowed(3.0, title="MAE", unit="") == float(text)
    assert Drop.parse(drop.text) == drop
    with pytest.raises(BadInput, match=r"top-1 is a share; give 1pt or 1%"):
        drop.allowed(0.7, title="top-1")
    with pytest.raises(BadInput, match="from 0 on"):
        Drop.parse(f"-{text or 1}1")


def test_points_are_of_shares() -> None:
    with pytest.raises(BadInput, match=r"MAE is not a share .* as in 0.05"):
        Drop.parse("1pt").allowed(3.0, title="MAE", unit="")


@given(AMOUNTS, st.booleans())
def test_drops_are_read_as_they_are_shown(amount: float, relative: bool) -> None:
    drop = Drop.parse(f"{amount}{'%' if relative else 'pt'}")
    assert Drop.parse(drop.text) == drop
    assert drop.share == pytest.approx(amount / 100)
    assert drop.text in Budget(drop).text or not amount


def test_texts_and_metrics() -> None:
    asked = {
        "a drop of at most 1 pt": (Budget.parse("1pt"), "auto"),
        "no drop": (Budget.parse("0%"), "auto"),
        "agreement with the float model of at least 98.5 %": (
            Budget.parse(min_agreement="0.985"),
            "agreement",
        ),
        "an SNR of at least 20 dB": (Budget.parse(min_snr="20dB"), "snr"),
    }
    assert {b.text: (b, b.metric) for b, _ in asked.values()} == asked


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ((), "give one of"),
        (("1pt", "98%"), "give one of"),
        ((None, "98"), "min_agreement='98': give 98% or 0.98"),
        ((None, None, "20pt"), "min_snr='20pt': give 20dB"),
    ],
)
def test_budgets_that_cannot_be(texts: tuple[str | None, ...], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        Budget.parse(*texts)


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.1])
def test_bounds_are_numbers_that_can_be_met(value: float) -> None:
    with pytest.raises(BadInput):
        Budget(min_agreement=value)
    with pytest.raises(BadInput):
        Drop(value)


def test_an_snr_is_finite() -> None:
    with pytest.raises(BadInput, match="give a number of decibels"):
        Budget(min_snr=math.inf)


def test_room_of_a_share() -> None:
    room = Budget.parse("1pt").room(dropped("top1", 0.7, -0.004, 0.002))
    assert room == pytest.approx((0.006, 0.004, 0.008, ""))
    assert verdict(room) == PROVEN
    relative = Budget.parse("1%").room(dropped("top1", 0.7, -0.004, 0.004))
    assert relative == pytest.approx((0.003, -0.001, 0.007, ""))
    assert verdict(relative) == LIKELY


def test_room_where_less_is_better() -> None:
    budget = Budget.parse("1%")
    worse = budget.room(dropped("rmse", 10.0, 0.2, 0.05))
    assert worse == pytest.approx((-0.1, -0.15, -0.05, ""))
    assert verdict(worse) == MISSED
    assert verdict(budget.room(dropped("rmse", 10.0, -0.2, 0.05))) == PROVEN
    with pytest.raises(BadInput, match=r"RMSE is not a share and has no points; .* 1%"):
        Budget.parse("1pt").room(dropped("rmse", 10.0, 0.0))


@given(SIZES, st.floats(0, 0.5))
def test_where_nobody_knows_what_is_better_any_change_is_a_loss(
    difference: float, spread: float
) -> None:
    budget = Budget.parse("10%")
    rooms = [budget.room(dropped("my:metric", 1.0, d, spread)) for d in (difference, -difference)]
    assert rooms[0] == rooms[1]
    assert rooms[0].low <= rooms[0].estimate <= rooms[0].high <= 0.1


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (score("agreement", 0.9), "cannot drop; give labels"),
        (dropped("rmse", math.inf, 0.0), "infinite or not a number"),
        (dropped("rmse", 1.0, math.nan), "infinite or not a number"),
    ],
)
def test_what_cannot_be_told_is_missed_with_the_reason(found: Score, told: str) -> None:
    room = Budget.parse("1%").room(found)
    assert told in room.reason
    assert verdict(room) == MISSED


def test_bounds_on_agreement_and_snr() -> None:
    budget = Budget(min_agreement=0.9)
    assert verdict(budget.room(score("agreement", 0.95, 0.04))) == PROVEN
    assert verdict(budget.room(score("agreement", 0.95, 0.06))) == LIKELY
    assert verdict(budget.room(score("agreement", 0.89, 0.06))) == MISSED
    assert budget.room(score("snr", 20.0)).reason == "SNR was measured, not agreement"
    decibels = Budget(min_snr=20.0)
    assert decibels.room(score("snr", 23.0, 1.0)) == pytest.approx((3.0, 2.0, 4.0, ""))
    assert decibels.room(score("snr", math.nan)).reason


@given(st.tuples(SIZES, st.floats(0, 1), st.floats(0, 1)), st.floats(0, 1), st.floats(0, 1))
def test_more_room_is_no_worse(
    start: tuple[float, float, float], more: float, narrower: float
) -> None:
    estimate, below, above = start
    room = Room(estimate, estimate - below, estimate + above)
    larger = Room(estimate + more, estimate + more - narrower * below, estimate + more + above)
    assert RANK[verdict(larger)] >= RANK[verdict(room)]


@given(AMOUNTS, AMOUNTS, SIZES, st.floats(0, 0.1))
def test_a_wider_budget_is_no_harder(
    one: float, other: float, difference: float, spread: float
) -> None:
    found = dropped("top1", 0.7, difference, spread)
    for unit in ("pt", "%"):
        rooms = [Budget.parse(f"{x}{unit}").room(found) for x in sorted((one, other))]
        assert RANK[verdict(rooms[0])] <= RANK[verdict(rooms[1])]


@pytest.mark.parametrize(
    ("estimate", "half", "is_near"),
    [
        (-0.004, 0.01, True),
        (-0.006, 0.01, False),  # more than a standard error
        (0.0, 0.01, False),
        (0.004, 0.01, False),
        (-0.004, 0.0, False),
        (math.nan, math.nan, False),
    ],
)
def test_near_is_what_chance_may_have_missed_by(
    estimate: float, half: float, is_near: bool
) -> None:
    assert Room(estimate, estimate - half, estimate + half).is_near is is_near


@given(st.integers(1, 2000), st.integers(0, 2000))
def test_a_drop_that_is_just_allowed_is_inside(count: int, lost: int) -> None:
    assume(lost <= count * 0.9)
    share = lost / count
    room = Budget(Drop(share)).room(dropped("top1", 0.9, 0.9 - share - 0.9))
    assert verdict(room) == PROVEN


@given(st.floats(0.001, 0.3), st.floats(0.1, 1))
def test_needed_samples_can_show_the_drop(share: float, reference: float) -> None:
    count = Budget(Drop(share)).needed_samples(reference)
    assert count >= LEAST_SAMPLES
    assert count >= 3.84 / share
    hits = np.ones((count,))
    equal = share_difference(hits, hits)
    assert equal.low > -share  # so that a model without a loss can be proven
    relative = Budget(Drop(share, is_relative=True)).needed_samples(reference)
    assert relative >= count


@given(st.floats(0, 0.999))
def test_needed_samples_can_prove_an_agreement(share: float) -> None:
    count = Budget(min_agreement=share).needed_samples(math.nan)
    assert wilson(1.0, count)[0] >= share - 1e-9


def test_where_no_count_follows_there_is_a_least_one() -> None:
    for budget in (Budget.parse("0pt"), Budget(min_snr=20.0), Budget(min_agreement=1.0)):
        assert budget.needed_samples(0.7) == LEAST_SAMPLES
    assert Budget.parse("1%").needed_samples(0.0) == LEAST_SAMPLES
    assert Budget.parse("1%").needed_samples(12.0, unit="") == LEAST_SAMPLES
    assert Budget.parse("1pt").needed_samples(0.7) == 385


def sized(size: int, ram: int | None = None, flash: int | None = None) -> Tried:
    return Tried("a", "b", "c", "candidate", "k", bytes=size, ram_bytes=ram, flash_bytes=flash)


def test_limits() -> None:
    limits = Limits.parse("4MB", "10ms")
    assert limits == Limits(4_000_000, 10_000.0)
    assert limits.texts == ("at most 4.00 MB", "at most 10.0 ms")
    assert limits.misses(sized(4_000_000), 10_000.0) == ()
    assert limits.misses(sized(4_000_001), 11_500.0) == (
        "1 B above the 4.00 MB that a file may have",
        "1.50 ms above the 10.0 ms that a run may take",
    )
    assert limits.misses(sized(1), None) == ("its time is not known, and the limit is 10.0 ms",)
    assert Limits.parse() == Limits()
    assert Limits().misses(sized(10**12), None) == Limits().texts == ()


def test_limits_of_a_microcontroller() -> None:
    limits = Limits.parse(chip=MicroRoom(65_536, 1_048_576))
    assert limits.texts == ("at most 65.5 KB of RAM", "at most 1.05 MB of flash")
    assert limits.ceilings == {"ram": 65_536, "flash": 1_048_576}
    assert limits.misses(sized(9, 65_536, 1_048_576), None) == ()
    assert limits.misses(sized(9, 75_536, 1_048_577), None) == (
        "it lacks 10.0 KB of RAM: 65.5 KB are there",
        "it lacks 1 B of flash: 1.05 MB are there",
    )
    assert Limits.parse(chip=MicroRoom(None, 5)).ceilings == {"flash": 5}


@pytest.mark.parametrize(
    ("size", "latency", "told"),
    [
        ("4", None, "max_size='4': give 4MB, 500kB or 1.5MiB"),
        ("0MB", None, "max_size='0MB': nothing is so little"),
        ("-1MB", None, "max_size='-1MB': nothing is so little"),
        (None, "10", "max_latency='10': give 10ms, 800us or 1.2s"),
        (None, "0ms", "max_latency='0ms': nothing is so little"),
    ],
)
def test_limits_that_cannot_be(size: str | None, latency: str | None, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        Limits.parse(size, latency)


@given(st.integers(0, 10**9), st.floats(0, 1e9), st.integers(1, 10**9), st.floats(1, 1e9))
def test_a_ceiling_is_missed_only_above_it(
    size: int, latency: float, most_size: int, most_latency: float
) -> None:
    misses = Limits(most_size, most_latency).misses(sized(size), latency)
    assert len(misses) == (size > most_size) + (latency > most_latency)


# Several questions to the same samples.


@given(st.floats(-0.1, 0.1), st.floats(0, 0.1), st.integers(1, 50))
def test_each_look_has_to_pass_by_more(estimate: float, half: float, look: int) -> None:
    room = Room(estimate, estimate - half, estimate + half)
    first, this, later = (at_look(room, n) for n in (1, look, look + 1))
    assert first.low == pytest.approx(room.low) and first.high == pytest.approx(room.high)
    assert later.low <= this.low + 1e-12 and later.high >= this.high - 1e-12
    assert this.estimate == estimate


def test_four_looks_take_the_interval_of_one_in_eighty() -> None:
    assert at_look(Room(0.0, -1.96, 1.96), 4).low == pytest.approx(-2.498, abs=1e-3)


def test_a_number_is_understood_or_refused_by_its_name() -> None:
    assert Budget.parse(min_agreement=0.98).min_agreement == 0.98
    assert Budget.parse(min_snr=20).min_snr == 20.0
    assert Budget.parse(1).max_drop == Drop(1.0, in_units=True)
    with pytest.raises(BadInput, match="max_latency=10: give 10ms"):
        Limits.parse(max_latency=10)


@pytest.mark.parametrize(
    ("ratio", "told"),
    [
        (0.4133, "about 2.4 × faster"),
        (0.96, "about 1.04 × faster"),
        (1.013, "about 1.01 × slower"),
        (0.9, "about 1.1 × faster"),
    ],
)
def test_a_first_look_never_tells_a_gain_of_nothing(ratio: float, told: str) -> None:
    bounds = sorted((ratio * 0.998, ratio * 1.002))
    assert describe_time(Speed("cpu:1", "measured", 100, 100, ratio, *bounds, verdict="")) == told
