"""Recipes that train: what pruning and clustering made stays to the written int8 file."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the extra `train`")

from litesmith.data.sources import open_data  # noqa: E402
from litesmith.errors import BadInput, CannotApply  # noqa: E402
from litesmith.front.apply import apply  # noqa: E402
from litesmith.ir.types import Model  # noqa: E402
from litesmith.passes.core.layers import layers_of  # noqa: E402
from litesmith.passes.core.recipe import parse  # noqa: E402
from litesmith.passes.core.step import Change, Context  # noqa: E402
from litesmith.passes.quantizing.qat import Qat  # noqa: E402
from litesmith.tflite.read import read  # noqa: E402
from litesmith.tflite.write import to_bytes  # noqa: E402
from litesmith.training.recipe_context import trainings  # noqa: E402
from litesmith.training.settings import Training  # noqa: E402
from tests.quantized import TARGETS, broken_laws, results, snr  # noqa: E402
from tests.training.small import (  # noqa: E402
    classifier,
    codes,
    inputs,
    interface,
    labelled,
    pictures,
    regression,
    zeros,
)

TRAINING = Training(epochs=2, rate=3e-3)
WEIGHTS = 16 * 24 + 20 * 16  # of `regression`
INTEGER = ("int8", "int16x8", "w4a8")
STORED = ("dynamic", "dynamic-int4", "weight-int8", "weight-int4")


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> None:
    torch.set_num_threads(1)


def trained(recipe: str, model: Model | None = None, training: Training = TRAINING) -> Change:
    """What a recipe makes of a small model, read back from its bytes."""
    model = model or regression()
    change = apply(model, recipe, inputs(model)[0], training=training).change
    return replace(change, model=read(memoryview(to_bytes(change.model))))


@pytest.mark.parametrize("per_channel", ["true", "false"])
@pytest.mark.parametrize("to", INTEGER)
def test_the_result_obeys_the_exporters_laws(to: str, per_channel: str) -> None:
    change = trained(f"qat(to={to}, per_channel={per_channel})")
    assert not broken_laws(change.model)
    assert interface(change.model) == interface(regression())
    data = open_data(inputs(regression())[0], regression())
    wanted = results(regression(), data)[0]
    for target in TARGETS:
        least = 10 if to == "w4a8" else 25
        assert snr(wanted, results(change.model, data, target)[0]) > least
    assert any("held-out loss" in line or "kept" in line for line in change.notes)


@pytest.mark.parametrize("settings", ["io=int8", "io=uint8", "to=int16x8, io=int16", "keep=[0]"])
def test_inputs_and_outputs_of_integers_train_too(settings: str) -> None:
    change = trained(f"qat({settings})")
    assert not broken_laws(change.model)
    data = open_data(inputs(regression())[0], regression())
    wanted, got = (results(model, data)[0] for model in (regression(), change.model))
    assert snr(wanted, got) > 25


@pytest.mark.parametrize("to", STORED)
def test_stored_weights_train_too(to: str) -> None:
    change = trained(f"qat(to={to})")
    dtype = "int4" if "int4" in to else "int8"
    assert [layer.weight.dtype for layer in layers_of(change.model.main).values()] == [dtype] * 2
    assert interface(change.model) == interface(regression())


def test_pictures_are_moved_and_nothing_breaks() -> None:
    change = trained("qat", pictures())
    assert not broken_laws(change.model)


@pytest.mark.parametrize("last", ["qat", "qat(to=int16x8)", "qat(to=weight-int8)"])
@pytest.mark.parametrize("schedule", ["constant", "gradual"])
def test_zeros_and_codes_stay_to_the_end(last: str, schedule: str) -> None:
    pruned = trained(f"prune(sparsity=0.5, schedule={schedule})").model
    change = trained(f"prune(sparsity=0.5, schedule={schedule}) | cluster(k=8) | {last}")
    assert sum(zeros(pruned)) == WEIGHTS // 2
    assert all(now >= then for now, then in zip(zeros(change.model), zeros(pruned), strict=True))
    assert max(codes(change.model)) <= 8
    assert {layer.weight.dtype for layer in layers_of(change.model.main).values()} == {"int8"}


@pytest.mark.parametrize("block", ["1x1", "1x4", "2:4"])
def test_blocks_of_zeros_stay(block: str) -> None:
    change = trained(f"prune(sparsity=0.5, block={block}) | qat")
    for layer in layers_of(change.model.main).values():
        values = layer.weight.values().reshape(layer.channels, -1, 4)
        if block == "1x4":
            whole = int((values == 0).all(axis=2).sum()) * 4
            assert whole >= 0.9 * np.count_nonzero(values == 0) > 0
        if block == "2:4":
            assert ((values == 0).sum(axis=2) >= 2).all()
    assert sum(zeros(change.model)) >= WEIGHTS // 2


@pytest.mark.parametrize("last", ["qat(to=w4a8)", "qat(per_channel=false)"])
def test_coarse_steps_are_rounded_with_care_and_keep_zeros(last: str) -> None:
    change = trained(f"prune(sparsity=0.5) | {last}")
    assert sum(zeros(change.model)) >= WEIGHTS // 2
    assert sum(line.startswith("rounded ") for line in change.touched) == 2


def test_one_scale_for_all_keeps_codes() -> None:
    for recipe in (
        "cluster(k=8, per_channel=false)",
        "cluster(k=8, per_channel=false, tune=false)",
    ):
        change = trained(f"{recipe} | qat(per_channel=false)")
        assert max(codes(change.model)) <= 8


def test_the_same_seed_is_the_same_file() -> None:
    recipe = "prune(sparsity=0.5) | cluster(k=8) | qat"
    assert to_bytes(trained(recipe).model) == to_bytes(trained(recipe).model)


def test_trainings_are_counted() -> None:
    for recipe, count in (("quantize", 0), ("qat", 1), ("prune | cluster(tune=false) | qat", 2)):
        assert trainings(parse(recipe)) == count


def test_labels_take_part_in_a_recipe() -> None:
    model, (items, labels) = classifier(), labelled()
    training = Training(epochs=6, labels=1.0, rate=1e-2)
    change = apply(model, "qat", {"x": items, "y": labels}, training=training)
    others, theirs = labelled(seed=1)
    answers = [results(m, open_data(others, m))[0] for m in (model, change.model)]
    before, after = (float((a.reshape(64, -1).argmax(axis=1) == theirs).mean()) for a in answers)
    assert after > max(0.85, before)


def test_what_cannot_be_trained_is_one_line() -> None:
    model = regression()
    items = inputs(model)[0]
    quantized = apply(model, "quantize", items).model
    for recipe, given, why in (
        ("qat", None, "no data"),
        ("qat", items[:10], "too few"),
        ("qat(to=float16)", items, "to=float16"),
    ):
        with pytest.raises((BadInput, CannotApply), match=why) as caught:
            apply(model, recipe, given, training=TRAINING)
        assert "\n" not in str(caught.value)
    with pytest.raises(CannotApply, match="quantized already"):
        apply(quantized, "qat", items, training=TRAINING)
    with pytest.raises(CannotApply, match="no data to train on"):
        Qat().apply(model, Context())


def test_training_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert trained("prune(sparsity=0.5) | qat")
