"""Loads, rounds and turns: who comes when, and how often."""

import gc

import numpy as np
import pytest

from litesmith.errors import CannotRun
from litesmith.run.session import Session, fill_inputs
from litesmith.timing.latency import list_contenders
from litesmith.timing.statistics import SLOWER, UNCLEAR
from litesmith.timing.turns import Contender, Load, Quota, Turn, one_load, times_of
from tests import zoo


@pytest.fixture
def pair() -> tuple[Contender, ...]:
    return list_contenders([zoo.convnet(), zoo.residual_int8()])


def loaded(group: tuple[Contender, ...], quota: Quota) -> tuple[Load, ...]:
    return one_load(group, range(len(group)), quota, np.random.default_rng(0))


@pytest.mark.parametrize("runs", [1, 7, 200])
def test_runs_are_counted_exactly(pair: tuple[Contender, ...], runs: int) -> None:
    for load in loaded(pair, Quota(runs=runs, warmup_runs=2)):
        assert sum(len(turn.times_us) for turn in load.turns) == runs
        assert len(load.warmup_us) == 2
        assert load.create_us > 0
        assert load.first_us > 0


def test_every_second_round_is_a_mirror(pair: tuple[Contender, ...]) -> None:
    a, b = loaded(pair, Quota(seconds=0.2))
    assert len(a.turns) == len(b.turns) >= 2
    for first, second in zip(a.turns, b.turns, strict=True):
        assert {first.position, second.position} == {0, 1}
    leads = [turn.position for turn in a.turns]
    assert sum(leads) * 2 == len(leads)


def test_warm_up_until_steady_ends(pair: tuple[Contender, ...]) -> None:
    (load,) = loaded(pair[:1], Quota(runs=1))
    assert load.warmup_us
    (unwarmed,) = loaded(pair[:1], Quota(runs=1, warmup_runs=0))
    assert unwarmed.warmup_us == ()


def test_many_samples_are_thinned_evenly() -> None:
    turns = tuple(Turn(tuple(float(t) for t in range(n, n + 50)), 0, 0, None) for n in range(100))
    load = Load(1, 1, (), turns, "")
    every = [time for turn in turns for time in turn.times_us]
    assert len(load.samples_us) == 1000
    assert load.samples_us == tuple(every[::5])


def test_sessions_are_closed_and_the_collector_is_back_when_one_cannot_open() -> None:
    group = list_contenders([zoo.convnet(), zoo.MODELS["custom"]()])
    with pytest.raises(CannotRun, match="Mystery"):
        loaded(group, Quota(runs=1))
    assert gc.isenabled()


@pytest.mark.parametrize("name", zoo.MODELS)
def test_inputs_of_any_model_are_filled_alike(name: str) -> None:
    if name == "custom":
        pytest.skip("no kernel for it is registered")
    filled = []
    for _ in range(2):
        with Session(zoo.MODELS[name]()) as session:
            fill_inputs(session, seed=4)
            filled.append([array.copy() for array in session.inputs.values()])
            session.run()
    for first, second in zip(*filled, strict=True):
        np.testing.assert_array_equal(first, second)
        if first.dtype.kind in "iu" and first.dtype.itemsize > 2:
            assert first.min() >= 0
            assert first.max() < 3


def played(turns: list[tuple[tuple[float, ...], float]]) -> Load:
    """A load of turns, each with the times of its runs and the CPU time of one."""
    return Load(1, 1, (), tuple(Turn(us, 0, cpu, None) for us, cpu in turns), "")


def test_rounds_in_which_another_program_had_the_core_do_not_count(
    pair: tuple[Contender, ...],
) -> None:
    """In a third of the rounds either model lost its core for a while, as seen on a busy machine,
    where `compare` said 5.14 × above times of 1.39 ms and 793 µs."""
    a = [((1390.0,), 1390.0)] * 4 + [((9000.0,), 1390.0)] * 2
    b = [((793.0,), 793.0)] * 4 + [((5000.0,), 793.0)] * 2
    found = times_of(pair, [(played(a), played(b))] * 24)
    assert found.us(0) == pytest.approx(1390)
    assert found.us(1) == pytest.approx(793)
    assert found.ratio(0, 1).words == "1.75 × faster [1.75, 1.75]"
    assert found.ratio(0, 1).times_words == "1.39 ms → 793 µs"


def test_a_model_that_never_has_the_core_to_itself_is_unclear(
    pair: tuple[Contender, ...],
) -> None:
    """Runs longer than what the system gives a program at once wait in every round, and all blocks
    agree on a wrong ratio: 11 in place of 6.5."""
    short, long = played([((1000.0,), 1000.0)] * 6), played([((11000.0,), 6500.0)] * 6)
    assert times_of(pair, [(short, long)] * 24).ratio(0, 1).verdict == UNCLEAR
    calm = played([((6500.0,), 6500.0)] * 6)
    assert times_of(pair, [(short, calm)] * 24).ratio(0, 1).verdict == SLOWER


def test_one_slow_run_of_many_in_a_turn_is_no_sign_of_a_busy_machine(
    pair: tuple[Contender, ...],
) -> None:
    runs = (100.0,) * 9 + (5000.0,)
    first, second = played([(runs, 100.0)] * 4), played([((200.0,) * 10, 200.0)] * 4)
    assert times_of(pair, [(first, second)] * 24).ratio(0, 1).verdict == SLOWER
