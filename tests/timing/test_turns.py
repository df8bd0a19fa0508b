"""Loads, rounds and turns: who comes when, and how often."""

import gc

import numpy as np
import pytest

from litesmith.errors import CannotRun
from litesmith.run.session import Session, fill_inputs
from litesmith.timing.latency import list_contenders
from litesmith.timing.turns import Contender, Load, Quota, Turn, one_load
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
