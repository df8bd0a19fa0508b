"""Channels removed for time: as fast as asked by a clock, at no greater loss than needed."""

from collections.abc import Sequence

import numpy as np
import pytest

from litesmith.errors import BadInput, CannotApply
from litesmith.ir.build import Builder
from litesmith.ir.check import check
from litesmith.ir.ops import op_macs
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply
from litesmith.passes.core.step import Clock, Context
from litesmith.passes.shrinking.channel_choice import choose_levels
from litesmith.passes.shrinking.channel_loss import guessed, reader, readers_of
from litesmith.passes.shrinking.channel_rules import Channels, channel_ids
from litesmith.passes.shrinking.channel_times import WidthTimes
from litesmith.passes.shrinking.channel_units import Unit, find_units
from litesmith.passes.shrinking.remove_channels import all_gone, without
from tests.runtime import run
from tests.zoo_float import context, conv, dense, image

# Kernels compute so many outputs at once: a clock that grows in steps.
TILE = 8


def op_times(model: Model, _: str = "") -> list[float]:
    """A made-up machine: time by tiles of outputs, and a little for every op."""
    times: list[float] = []
    for op in model.main.ops:
        width = op.outputs[0].shape[-1]
        times.append(1 + op_macs(op) / width * -(-width // TILE) * TILE / 1000)
    return [*times, 5.0]


def times_as_fast(before: Model, after: Model, _: str = "") -> float:
    return sum(op_times(before)) / sum(op_times(after))


CLOCK = Clock(op_times, times_as_fast)


def network() -> Model:
    """Two blocks with a sum, then a head."""
    b = Builder()
    x = conv(b, image(b), 16, 1, fused_activation_function="RELU")
    y = conv(b, conv(b, x, 32, 2, fused_activation_function="RELU"), 16, 3)
    x = conv(b, b.op("ADD", x, y), 32, 4, fused_activation_function="RELU")
    mean = b.op("MEAN", x, [1, 2], keep_dims=False)
    return b.model(dense(b, mean, 5, 5))


@pytest.mark.parametrize("speedup", [1.2, 2.0])
@pytest.mark.parametrize("data", [False, True], ids=["weights", "data"])
def test_a_model_is_as_fast_as_asked_and_little_faster(speedup: float, data: bool) -> None:
    model = network()
    given = context(model) if data else Context()
    made = apply(
        model, f"prune(block=channels, speedup={speedup})", Context(given.tools, clock=CLOCK)
    )
    check(made.model)
    assert times_as_fast(model, made.model) >= 0.99 * speedup
    assert times_as_fast(model, made.model) <= 1.5 * speedup
    assert "faster on cpu:1, measured in turns" in made.touched[-1]
    for ours, theirs in zip(run(made.model), run(model), strict=True):
        assert ours.shape == theirs.shape and np.isfinite(ours).all()


def units_of(model: Model, channels: Channels) -> list[Unit]:
    layers = readers_of(model.main, channels)
    seen = guessed(model.main, channels, layers)
    readers = [reader(layer, channels, seen[layer.data]) for layer in layers]
    return find_units(model.main, channels, readers, finely=True)


def priced() -> tuple[list[np.ndarray], WidthTimes]:
    """The costs of the network's levels, and the times of its widths."""
    model = network()
    channels = channel_ids(model.main)
    units = units_of(model, channels)
    costs = [np.array([u.lost(n) for n in range(len(u.levels))]) for u in units]
    return costs, WidthTimes(model, channels, units, op_times)


def test_predicted_times_are_those_of_the_clock() -> None:
    """Where an op's time is a product of its widths, at widths that were measured."""
    model = network()
    channels = channel_ids(model.main)
    units = units_of(model, channels)
    times = WidthTimes(model, channels, units, op_times)
    assert times.whole == pytest.approx(sum(op_times(model)))
    random = np.random.default_rng(0)
    for _ in range(10):
        levels = [int(random.integers(len(unit.levels))) for unit in units]
        small = without(model, channels, all_gone(units, levels))
        assert times.of(levels) == pytest.approx(sum(op_times(small)), rel=0.1)
        for unit in range(len(units)):
            assert times.along(levels, unit)[levels[unit]] == pytest.approx(times.of(levels))


def test_what_a_unit_saves_depends_on_its_neighbours_alone() -> None:
    """Else a choice of widths would ask every op for every unit again after each step."""
    costs, times = priced()
    levels = [1] * len(costs)
    for unit, cost in enumerate(costs):
        saved, now = times.saved(levels, unit), times.of(levels)
        for level in range(len(cost)):
            moved = [*levels[:unit], level, *levels[unit + 1 :]]
            assert now - saved[level] == pytest.approx(times.of(moved))
            far = set(range(len(costs))) - times.beside(unit)
            for other in far:
                assert np.array_equal(times.saved(moved, other), times.saved(levels, other))
    assert unit in times.beside(unit) and any(
        len(times.beside(u)) < len(costs) for u in range(len(costs))
    )


def test_a_search_never_ends_in_what_is_minded_more() -> None:
    costs, times = priced()

    def proof(levels: Sequence[int]) -> float:
        return times.whole / times.of(levels)

    def judge(levels: Sequence[int]) -> float:
        return float(sum(levels))

    first = choose_levels(costs, times, 1.4, proof)
    found = choose_levels(costs, times, 1.4, proof, judge, tries=40)
    assert min(first.times_as_fast, found.times_as_fast) >= 1.4 * 0.99
    assert judge(found.levels) <= judge(first.levels)


def test_times_that_are_off_are_put_right_by_what_is_measured() -> None:
    """Where a run is faster than its ops tell, fewer channels go than they ask for."""
    costs, times = priced()
    asked = 1.5
    plain = choose_levels(costs, times, asked, lambda levels: times.whole / times.of(levels))
    fast = choose_levels(costs, times, asked, lambda levels: 1.1 * times.whole / times.of(levels))
    assert fast.times_as_fast >= 0.99 * asked
    assert times.of(fast.levels) > times.of(plain.levels)


@pytest.mark.parametrize("tries", [0, 10])
def test_what_was_measured_to_be_nearly_as_fast_is_not_lost(tries: int) -> None:
    """Where the next measurement asks for more than all channels together can give."""
    costs, times = priced()
    asked = 0.99 * times.whole / times.of([len(cost) - 1 for cost in costs])
    measured = iter([0.97, *[0.8] * 9])

    def proof(_: Sequence[int]) -> float:
        return asked * next(measured)

    found = choose_levels(costs, times, asked, proof, lambda levels: float(sum(levels)), tries)
    assert found.times_as_fast == pytest.approx(0.97 * asked)


@pytest.mark.parametrize(
    ("settings", "error", "told"),
    [
        ("block=channels, speedup=0.5", BadInput, "above 1"),
        ("block=channels, speedup=1.5, sparsity=0.3", BadInput, "without sparsity"),
        ("speedup=1.5", BadInput, "block=channels"),
        ("block=channels, speedup=90.0", CannotApply, "ask for less"),
    ],
)
def test_what_cannot_be(settings: str, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        apply(network(), f"prune({settings})", Context(clock=CLOCK))


def test_without_a_clock_no_speed_is_promised() -> None:
    with pytest.raises(CannotApply, match="nothing here measures time"):
        apply(network(), "prune(block=channels, speedup=1.5)")
