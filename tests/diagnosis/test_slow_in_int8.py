"""Ops that are slow in int8 are named with what cures them; shares never exceed the whole."""

from dataclasses import replace

import numpy as np
import pytest

from litesmith.data.sources import open_data
from litesmith.diagnosis.accuracy_verdict import examine
from litesmith.diagnosis.other_forms import INT8, int8_form, race
from litesmith.diagnosis.slowness import Diagnosis, ModelToDiagnose, diagnoses
from litesmith.ir.types import Model
from litesmith.profiling.op_times import profile_ops
from litesmith.run.core.target import Target
from tests import zoo
from tests.zoo_slow import int8_of, prelu_net, transformer, without_float_form

BLINK = 0.05  # seconds that remedies are timed


def patient(model: Model, reference: Model | None = None) -> ModelToDiagnose:
    found = profile_ops(model, "cpu:1", runs=4)
    return ModelToDiagnose(model, Target(), found, seconds=BLINK, reference=reference, runs=4)


def one(found: list[Diagnosis], word: str) -> Diagnosis:
    return next(diagnosis for diagnosis in found if word in diagnosis.what)


@pytest.mark.parametrize("has_reference", [False, True])
def test_ops_without_an_int8_kernel_are_named_with_the_command(has_reference: bool) -> None:
    reference = prelu_net(64, 32)
    found = diagnoses(patient(int8_of(reference), reference if has_reference else None))
    slow = one(found, "slow in int8")
    assert "3 PRELU" in slow.what
    assert "leave XNNPACK" in slow.why
    assert "in float" in slow.why
    assert slow.command.startswith("litesmith quantize FLOAT.tflite ")
    assert "with the command below" in slow.costs
    assert not any("outside XNNPACK" in other.what for other in found)


def test_without_a_float_form_the_gain_is_expected() -> None:
    slow = one(diagnoses(patient(without_float_form())), "slow in int8")
    assert "1 PRELU" in slow.what
    assert "expected" in slow.costs
    assert slow.command.startswith("litesmith quantize FLOAT.tflite --data ")


def test_a_float_model_is_told_of_a_scheme_only_with_its_time() -> None:
    for model in (prelu_net(), zoo.convnet()):
        for told in diagnoses(patient(model)):
            if "is faster here" in told.what:
                assert "→" in told.costs
                assert "timed here" in told.why


def test_int8_leaves_float_what_is_faster_so() -> None:
    form = int8_form(prelu_net(64, 32), Target(), runs=4)
    assert form is not None
    assert form.kinds[0].kind == "PRELU"
    kept = [op for op in form.model.main.ops if op.kind == "PRELU"]
    assert form.scheme != INT8 or all(op.outputs[0].dtype == "float32" for op in kept)


def test_of_two_models_the_one_that_is_far_faster_is_picked() -> None:
    large, small = prelu_net(64, 32), prelu_net(8, 8)
    found = race([large, small], [large], Target(), BLINK)
    assert found is not None
    assert found.picked == 1
    assert len(found.us) == 3


# Shares.


def _shares(found: list[Diagnosis]) -> float:
    return sum(diagnosis.share or 0.0 for diagnosis in found)


# The runtime gives no times of single ops for these.
NO_PROFILE = {*zoo.NOT_RUNNABLE, "resizable", "stateful", "strings"}


@pytest.mark.parametrize("name", sorted({*zoo.MODELS} - NO_PROFILE))
def test_shares_add_up_to_a_run_at_most(name: str) -> None:
    who = replace(patient(zoo.MODELS[name]()), seconds=0.02)
    assert _shares(diagnoses(who)) <= 1 + 1e-9


@pytest.mark.parametrize("make", [prelu_net, transformer])
def test_shares_of_a_quantized_model_do_too(make) -> None:
    assert _shares(diagnoses(patient(int8_of(make())))) <= 1 + 1e-9


def test_what_two_findings_blame_on_one_op_is_said() -> None:
    """One op is slow, dominates, and runs outside XNNPACK."""
    who = patient(without_float_form())
    assert who.profile is not None
    times = [90.0 if op.kind == "PRELU" else 10.0 for op in who.profile.ops]
    ops = tuple(
        replace(op, us=us, share=us / 100) for op, us in zip(who.profile.ops, times, strict=True)
    )
    for run_us in (50.0, 100.0, 150.0):  # profiling may make ops slower than a run
        made = replace(who, profile=replace(who.profile, ops=ops, plain_us=(run_us,)))
        found = diagnoses(made)
        blaming = [told for told in found if 0 in told.parts]
        assert len(blaming) >= 2
        assert blaming[0].share == pytest.approx(min(0.9, 90 / run_us))
        assert [told.share for told in blaming[1:]] == [0.0] * len(blaming[1:])
        assert all("counted above" in told.costs for told in blaming[1:])
        assert _shares(found) <= 1 + 1e-9


# Accuracy: the remedy that fits and is fastest.


def _rows(model: Model) -> dict[str, np.ndarray]:
    shape = model.main.inputs[0].shape[1:]
    return {"x": np.random.default_rng(3).normal(size=(24, *shape)).astype(np.float32)}


@pytest.mark.parametrize("loud", [100.0, 1000.0])
def test_the_remedy_for_a_transformer_is_not_the_slowest(loud: float) -> None:
    model = transformer(loud=loud)
    found = examine(model, open_data(_rows(model), model), seconds=BLINK).findings
    commands = [told.command for told in found if told.command]
    assert commands
    assert not any("int16x8" in command for command in commands)
    assert all(" a run, " in told.costs for told in found if told.command)
    assert _shares(list(found)) <= 1 + 1e-9
