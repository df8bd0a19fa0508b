"""Which model is picked: laws over options that are made up."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput
from litesmith.search.choosing.pick import (
    CEILINGS,
    COSTS,
    Alternative,
    Requirements,
    find_as_good,
    find_front,
    pick,
    standing,
)

# Few numbers, so that there are equals and ties.
NUMBERS = st.integers(1, 5).map(float)
MERITS = st.integers(0, 5).map(lambda number: number / 5)


@st.composite
def option_lists(draw: st.DrawFn, knows: bool = True) -> list[Alternative]:
    count = draw(st.integers(1, 7))
    found: list[Alternative] = []
    for place in range(count):
        merit = draw(MERITS) if knows else None
        costs = [draw(NUMBERS) for _ in range(4)]
        found.append(Alternative(f"m{place}", merit, merit, "share", *costs))
    return found


ASKED = st.builds(
    Requirements,
    st.dictionaries(st.sampled_from(["latency", "size", "memory"]), NUMBERS, max_size=3),
    st.none() | MERITS,
    st.none() | st.sampled_from([*COSTS]),
)


def worse(a: Alternative, b: Alternative) -> bool:
    """Every difference counts."""
    ours, theirs = standing(a), standing(b)
    return ours is None or theirs is None or any(x > y for x, y in zip(ours, theirs, strict=True))


def never(a: Alternative, b: Alternative) -> bool:
    """All is noise."""
    return False


def dominates(a: Alternative, b: Alternative) -> bool:
    ours = (a.p50_us, a.bytes, -(a.merit or 0))
    theirs = (b.p50_us, b.bytes, -(b.merit or 0))
    no_worse = all((x or 0) <= (y or 0) for x, y in zip(ours, theirs, strict=True))
    return no_worse and ours != theirs


@given(option_lists())
def test_the_front_is_what_nothing_dominates(options: list[Alternative]) -> None:
    wanted = {o.name for o in options if not any(dominates(other, o) for other in options)}
    assert {*find_front(options)} == wanted


@given(option_lists(knows=False))
def test_without_accuracy_the_front_is_of_time_and_size(options: list[Alternative]) -> None:
    assert {*find_front(options)} == {
        o.name for o in options if not any(dominates(other, o) for other in options)
    }


@given(option_lists(), ASKED)
def test_the_pick_fits_and_none_that_fits_serves_better(
    options: list[Alternative], asked: Requirements
) -> None:
    found = pick(options, asked, worse)
    fitting = [o for o in options if not o.misses(asked)]
    goal = asked.goal(knows_accuracy=True)
    if not fitting:
        assert found.name is None
        assert found.nearest in {o.name for o in options}
        return
    best = next(o for o in options if o.name == found.name)
    assert best in fitting
    assert found.reason.startswith(f"{best.name}: ")
    if goal == "accuracy":
        assert best.merit == max(o.merit or 0 for o in fitting)
    else:
        assert best.cost(goal) == min(o.cost(goal) or 0 for o in fitting)


@given(option_lists(), ASKED, st.randoms())
def test_the_order_of_options_changes_nothing(
    options: list[Alternative], asked: Requirements, random: object
) -> None:
    shuffled = list(options)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert pick(shuffled, asked, worse) == pick(options, asked, worse)
    assert {*find_front(shuffled)} == {*find_front(options)}


@given(option_lists(), st.sampled_from(["accuracy", "latency"]))
def test_the_most_accurate_and_the_fastest_are_on_the_front(
    options: list[Alternative], goal: str
) -> None:
    asked = Requirements(minimize=None if goal == "accuracy" else goal)
    assert pick(options, asked, worse).name in find_front(options)


@given(option_lists())
def test_a_lower_ceiling_never_gains_accuracy(options: list[Alternative]) -> None:
    merits = {o.name: o.merit or 0.0 for o in options}
    before = 1.0
    for limit in (5.0, 4.0, 3.0, 2.0, 1.0):
        name = pick(options, Requirements({"latency": limit}), worse).name
        now = -1.0 if name is None else merits[name]
        assert now <= before
        before = now


@given(option_lists())
def test_where_every_difference_counts_none_on_the_front_is_matched(
    options: list[Alternative],
) -> None:
    names = find_front(options)
    places = {o.name: standing(o) for o in options}
    for option in options:
        if option.name in names:
            near = find_as_good(option, options, worse)
            assert {*near} == {
                n for n, at in places.items() if n != option.name and at == places[option.name]
            }


@given(option_lists())
def test_where_all_is_noise_all_are_as_good(options: list[Alternative]) -> None:
    names = {*find_front(options)}
    for option in options:
        others = {o.name for o in options} - {option.name}
        wanted = others if option.name in names else names
        assert {*find_as_good(option, options, never)} == wanted


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Requirements(), "b: the most accurate of all 3"),
        (
            Requirements({"latency": 10_000.0}),
            "a: the most accurate of the 2 under 10.0 ms; b is 1.20 pt better but takes 14.0 ms",
        ),
        (
            Requirements(min_accuracy=0.7),
            "a: the fastest of the 2 with at least 70.00 %; c takes 5.00 ms but has 60.00 %",
        ),
        (Requirements(minimize="size"), "c: the smallest of all 3"),
        (
            Requirements({"latency": 1000.0}),
            "none is under 1.00 ms; nearest is c, which takes 5.00 ms",
        ),
        (
            Requirements({"latency": 8_000.0}, 0.5),
            "c: the only one under 8.00 ms with at least 50.00 %; a is 10.80 pt better but takes "
            "9.00 ms",
        ),
    ],
)
def test_the_reason_is_one_sentence(asked: Requirements, words: str) -> None:
    options = [
        Alternative("a", 0.708, 0.708, "share", 9_000.0, 4e6, 3e6, 9e6),
        Alternative("b", 0.720, 0.720, "share", 14_000.0, 8e6, 6e6, 18e6),
        Alternative("c", 0.600, 0.600, "share", 5_000.0, 1e6, 1e6, 4e6),
    ]
    assert pick(options, asked, worse).reason == words


def test_one_that_is_as_accurate_within_the_noise_is_told() -> None:
    options = [
        Alternative("slow", 0.720, 0.720, "share", 14_000.0, 8e6),
        Alternative("fast", 0.715, 0.715, "share", 3_000.0, 9e6),
    ]
    found = pick(options, Requirements(), never)
    assert found.name == "slow"
    assert found.reason.endswith("fast is as accurate within the noise and takes 3.00 ms")
    assert "within the noise" not in pick(options, Requirements(), worse).reason


def test_less_of_an_error_is_better() -> None:
    options = [Alternative("a", -0.3, 0.3, "", 1.0, 1.0), Alternative("b", -0.2, 0.2, "", 1.0, 1.0)]
    assert pick(options, Requirements(), worse).name == "b"
    assert find_front(options) == ("b",)


def test_what_has_no_accuracy_is_not_picked_beside_what_has() -> None:
    options = [
        Alternative("a", None, None, "", 1.0, 1.0),
        Alternative("b", 0.5, 0.5, "share", 9.0, 9.0),
    ]
    assert pick(options, Requirements(minimize="latency"), worse).name == "b"
    assert find_front(options) == ("b",)


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("max_latency", "10", "max_latency='10': give 10ms"),
        ("max_latency", "0ms", "nothing is so little"),
        ("max_size", "-4MB", "nothing is so little"),
        ("max_memory", "much", "max_memory='much': give 20MB"),
    ],
)
def test_ceilings_that_make_no_sense_are_refused(option: str, text: str, words: str) -> None:
    assert option in CEILINGS
    with pytest.raises(BadInput, match=words):
        Requirements.parse({option: text}, None, None)


@pytest.mark.parametrize("text", ["80", "101%", "-1%", "most"])
def test_an_accuracy_is_a_share(text: str) -> None:
    with pytest.raises(BadInput, match=r"give a share, as in 80% or 0\.8"):
        Requirements.parse({}, text, None)


def test_bounds_are_read_as_typed() -> None:
    asked = Requirements.parse({"max_latency": "10ms", "max_size": "1.5MiB"}, "80%", "memory")
    assert asked == Requirements({"latency": 10_000.0, "size": 1.5 * 2**20}, 0.8, "memory")
    assert asked.texts == ("at most 10.0 ms", "at most 1.57 MB", "at least 80.00 %")
    with pytest.raises(BadInput, match="there are latency, size, download, memory"):
        Requirements(minimize="weight")


@given(option_lists(), ASKED)
def test_nothing_is_picked_by_times_of_a_busy_machine(
    options: list[Alternative], asked: Requirements
) -> None:
    """Whatever the times are: the pick does not move with them, or there is none."""
    unclear = [replace(o, is_unclear=True) for o in options]
    other = [replace(o, p50_us=6 - (o.p50_us or 0.0)) for o in unclear]
    found, turned = pick(unclear, asked, never), pick(other, asked, never)
    counts = "latency" in (asked.goal(knows_accuracy=True), *asked.ceilings)
    assert found.is_unclear == counts
    if counts:
        assert found.name is None and found.reason.startswith("unclear: the machine was busy")
    assert found.name == turned.name
