"""Profiles of real runs. Nothing here depends on how fast the machine is."""

import pytest

from litesmith.errors import BadInput, CannotRun
from litesmith.profiling.alignment import NO_EVENT
from litesmith.profiling.events import Run, Slice
from litesmith.profiling.op_times import Profile, arithmetic, best_gmacs, profile_ops, usual_runs
from litesmith.run.core.target import Target
from tests import zoo

NO_PROFILE = {
    "custom": "no kernel is registered",
    "resizable": "the size of what RESHAPE .* makes depends on values.*litesmith bench",
    "stateful": "SVDF .* keeps a state",
    "strings": "no plain element type",
}


@pytest.mark.parametrize("name", [name for name in zoo.MODELS if name not in NO_PROFILE])
def test_every_op_is_timed_or_named(name: str) -> None:
    model = zoo.MODELS[name]()
    found = profile_ops(model, runs=2)
    assert len(found.ops) == sum(len(graph.ops) for graph in model.graphs)
    for op in found.ops:
        assert (op.kernel and len(op.samples_us) == 2) or op.why, op
        assert op.why != NO_EVENT
        assert op.us is not None
    assert not found.unmatched
    assert len(found.runs) == len(found.plain_us) == len(found.profiled_us) == 2


@pytest.mark.parametrize("name", NO_PROFILE)
def test_what_has_no_profile_says_why(name: str) -> None:
    with pytest.raises(CannotRun, match=NO_PROFILE[name]):
        profile_ops(zoo.MODELS[name](), runs=1)


@pytest.fixture(scope="module")
def careless() -> Profile:
    return profile_ops(zoo.careless(), runs=4)


def test_fused_ops_say_where_they_went(careless: Profile) -> None:
    ops = {(op.kind, op.index): op for op in careless.ops}
    assert ops["PAD", 0].fused_into == 1
    assert ops["EXP", 6].fused_into is None
    assert ops["EXP", 6].why == "its result is not used"
    assert ops["CAST", 14].kernel == "builtin"
    assert ops["CONV_2D", 1].kernel == "xnnpack"
    assert ops["CONV_2D", 1].detail.startswith("Convolution")
    assert ops["CONV_2D", 1].macs == 6 * 6 * 3 * 3 * 3 * 2


def test_sums_and_shares(careless: Profile) -> None:
    assert careless.ops_us == pytest.approx(sum(op.us or 0 for op in careless.ops))
    assert sum(op.share for op in careless.ops) == pytest.approx(1)
    assert sum(row[1] for row in careless.by_kind()) == len(careless.ops)
    top = careless.top(3)
    assert len(top) == 3
    assert [op.us for op in top] == sorted((op.us for op in top), reverse=True)
    assert careless.run_us > 0
    assert careless.overhead > -1


def test_rows_feed_a_data_frame(careless: Profile) -> None:
    rows = careless.to_rows()
    assert all(row.keys() == rows[0].keys() for row in rows)
    assert {"index", "kind", "name", "us", "kernel", "macs", "fused_into"} <= rows[0].keys()
    assert "samples_us" not in rows[0]


def test_the_builtin_kernels_have_a_profile_too() -> None:
    found = profile_ops(zoo.convnet(), on="cpu:1:builtin", runs=2)
    assert {op.kernel for op in found.ops} == {"builtin"}


def test_two_runs_share_the_loads() -> None:
    assert len(profile_ops(zoo.convnet(), runs=7).plain_us) == 7


@pytest.mark.parametrize("target", ["numpy", "cpu:1:reference"])
def test_targets_without_a_profiler(target: str) -> None:
    with pytest.raises(CannotRun, match=f"no profile on {target}"):
        profile_ops(zoo.convnet(), on=target, runs=1)


@pytest.mark.parametrize("runs", [0, -1, 10**9])
def test_a_number_of_runs_that_makes_no_sense(runs: int) -> None:
    with pytest.raises(BadInput, match="give a number from 1"):
        profile_ops(zoo.convnet(), runs=runs)


def test_runs_that_took_unusually_long_or_short_do_not_count() -> None:
    times = [5, 9, 1000, 8, 1, 7, 6, 900]
    slices = [Slice(0, 0, "", "xnnpack", "", 0, us) for us in times]
    assert sorted(usual_runs([Run(0, 0, 0, (one,)) for one in slices])) == [1, 3, 5, 6]
    assert usual_runs([Run(0, 0, 0, ())]) == [0]


def test_the_yardstick_is_measured_for_both_arithmetics() -> None:
    best = best_gmacs(Target("cpu", 1))
    assert set(best) == {"float32", "int8"}
    assert min(best.values()) > 0
    kinds = {name: arithmetic(zoo.MODELS[name]().main.ops[-1]) for name in ("hybrid", "sparse")}
    assert kinds == {"hybrid": "int8", "sparse": "float32"}


def test_a_loop_says_that_its_time_holds_the_overhead_of_its_rounds() -> None:
    found = profile_ops(zoo.loop(), runs=1)
    assert "contains what profiling that graph costs" in found.note
    assert {op.graph for op in found.ops if op.kernel} == {0, 1, 2}
    assert found.ops_us == found.ops[0].us


def test_no_speed_is_told_of_an_op_whose_size_is_not_known() -> None:
    """Sizes of 0 made it the slowest op of all."""
    timed = {op.kind: op for op in profile_ops(zoo.sized_late(), runs=3).ops}
    assert timed["CONV_2D"].us and timed["CONV_2D"].gmacs is None
