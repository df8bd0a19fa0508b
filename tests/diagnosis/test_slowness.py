"""Findings from made-up profiles and from real ones; every rule is met once."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from litesmith.diagnosis.slowness import RULES, Diagnosis, ModelToDiagnose, diagnoses
from litesmith.ir.build import Builder
from litesmith.ir.edit import with_graphs
from litesmith.ir.types import Model, Quant
from litesmith.operating_system import usable_cores
from litesmith.profiling.op_times import Profile, profile_ops
from litesmith.run.core.target import Target
from tests import zoo


def patient(model: Model, target: str = "cpu:1") -> ModelToDiagnose:
    return ModelToDiagnose(
        model, Target.parse(target), profile_ops(model, target, runs=2), seconds=0.05
    )


def by_rule(name: str, who: ModelToDiagnose) -> list[Diagnosis]:
    rule = next(rule for rule in RULES if rule.__name__ == name)
    return list(rule(who))


@pytest.fixture(scope="module")
def mixed() -> ModelToDiagnose:
    """Conversions around one quantized op, and an op that XNNPACK does not take."""
    b = Builder()
    x = b.op("QUANTIZE", b.input("x", (1, 64)), dtype="int8", quant=Quant.of(0.1))
    w = b.const(np.ones((64, 64), np.int8), quant=Quant.of(0.1))
    bias = b.const(np.zeros(64, np.int32), quant=Quant.of(0.01))
    y = b.op("FULLY_CONNECTED", x, w, bias, quant=Quant.of(0.2), version=4)
    z = b.op("DEQUANTIZE", y, dtype="float32", version=2)
    return patient(b.model(b.op("CUMSUM", z, np.int32(1))))


def with_times(who: ModelToDiagnose, *times: float) -> ModelToDiagnose:
    """The same ops with other times, which add up to the run."""
    assert who.profile is not None
    total = sum(times)
    ops = tuple(
        replace(op, us=us, share=us / total, of_best=0.1 if op.macs else None, gmacs=5.0)
        for op, us in zip(who.profile.ops, times, strict=True)
    )
    made: Profile = replace(who.profile, ops=ops, plain_us=(total,))
    return replace(who, profile=made)


def test_ops_outside_and_conversions(mixed: ModelToDiagnose) -> None:
    who = with_times(mixed, 10, 40, 20, 30)
    (outside,) = by_rule("_outside", who)
    assert "CUMSUM" in outside.what
    assert outside.where.startswith("op 3 CUMSUM")
    assert outside.us == 30
    assert outside.costs == "30.0 µs a run, 30.0 %"
    (between,) = by_rule("_boundaries", who)
    assert between.us == 30
    assert "QUANTIZE" in between.what and "DEQUANTIZE" in between.what


def test_constants_that_are_unpacked_are_no_conversions() -> None:
    who = with_times(patient(zoo.half_weights(), "cpu:1:builtin"), 10, 20, 70)
    assert {"DEQUANTIZE"} < {op.kind for op in who.ops}
    assert not by_rule("_boundaries", who)


def test_conversions_beside_a_custom_op(mixed: ModelToDiagnose) -> None:
    assert mixed.profile is not None
    first, *others = mixed.profile.ops
    ops = (replace(first, kind="CUSTOM Mine"), *others)
    (between,) = by_rule("_boundaries", replace(mixed, profile=replace(mixed.profile, ops=ops)))
    assert "DEQUANTIZE" in between.what and "CUSTOM" not in between.what


def test_builtin_kernels_that_were_asked_for_are_not_outside() -> None:
    assert not by_rule("_outside", patient(zoo.convnet(), "cpu:1:builtin"))


def test_one_op_that_dominates(mixed: ModelToDiagnose) -> None:
    assert not by_rule("_dominant", with_times(mixed, 10, 40, 20, 30))
    (found,) = by_rule("_dominant", with_times(mixed, 1, 97, 1, 1))
    assert "97.0 %" in found.what
    assert "FULLY_CONNECTED" in found.where


def test_an_op_that_is_little_of_a_run_dominates_nothing(mixed: ModelToDiagnose) -> None:
    """It was said to take all of the time, and to cost a quarter of it."""
    who = with_times(mixed, 0, 97, 0, 0)
    assert who.profile is not None
    slow = replace(who, profile=replace(who.profile, plain_us=(400.0,)))
    assert by_rule("_dominant", who) and not by_rule("_dominant", slow)


def test_an_op_far_from_the_best_speed(mixed: ModelToDiagnose) -> None:
    (found,) = by_rule("_slow", with_times(mixed, 10, 40, 20, 30))
    assert found.us == pytest.approx(36)
    assert "every weight is read" in found.why


def test_more_threads_than_cores() -> None:
    target = Target("cpu", usable_cores() + 1)
    (found,) = by_rule("_threads", ModelToDiagnose(zoo.convnet(), target, None, seconds=0.05))
    assert found.command == "litesmith bench MODEL --threads auto"
    assert not by_rule("_threads", ModelToDiagnose(zoo.convnet(), Target(), None))


def test_large_inputs_of_a_fast_model() -> None:
    b = Builder()
    who = patient(b.model(b.op("RESHAPE", b.input("x", (1, 1 << 20)), [1 << 20])))
    (found,) = by_rule("_copies", who)
    assert "8.39 MB" in found.what
    assert found.us is not None and found.us > 0


def test_outputs_of_a_said_size_take_no_memory_of_that_size() -> None:
    """A damaged file said that an output has gigabytes, and twice as many were taken."""
    b = Builder()
    who = patient(b.model(b.op("RESHAPE", b.input("x", (1, 4)), [4])))
    (output,) = who.model.main.outputs
    huge = replace(output, shape=(1 << 30,))
    graph = replace(who.model.main, outputs=(huge,))
    tracemalloc.start()
    try:
        (found,) = by_rule("_copies", replace(who, model=with_graphs(who.model, [graph])))
        assert tracemalloc.get_traced_memory()[1] < 200_000_000
    finally:
        tracemalloc.stop()
    assert "4.29 GB" in found.what


def test_recipes_are_timed_and_the_rest_is_ranked() -> None:
    found = diagnoses(patient(zoo.legacy_uint8()))
    legacy = next(one for one in found if "uint8" in one.what)
    assert legacy.us is not None
    assert " a run" in legacy.costs or legacy.costs.startswith("unclear")  # on a busy machine
    costs = [one.us for one in found if one.us is not None]
    assert costs == sorted(costs, reverse=True)
    assert all(one.us is None for one in found[len(costs) :])
    assert all(one.command.startswith("litesmith ") for one in found)


def test_what_cannot_be_measured_is_said() -> None:
    who = ModelToDiagnose(zoo.custom(), Target(), None, "no kernel")
    found = diagnoses(who)
    assert [one.costs for one in found] == ["not measured"] * len(found)
    assert {one.what for one in found} >= {"no profile", "custom operators: Mystery"}
