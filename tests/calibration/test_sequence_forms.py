"""Transformers and recurrent networks have wider forms where int8 ruins them; others none."""

import numpy as np
import pytest

from litesmith.blocks.structure import structure_of
from litesmith.calibration.context import context_of
from litesmith.calibration.quantize_effort import carry_out, plan
from litesmith.calibration.sequence_forms import with_sequence_forms
from litesmith.data.samples import Data
from litesmith.data.sources import open_data
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply, parse
from litesmith.passes.quantizing.quantize import Quantize
from tests.zoo import convnet
from tests.zoo_blocks import runner, tokens, transformer, unrolled_lstm


def text_data(model: Model) -> Data:
    rows = tokens(40)
    ids, mask = (np.concatenate([row[n] for row in rows]) for n in range(2))
    return open_data({"ids": ids, "mask": mask}, model)


def noise_of(model: Model, made: Model) -> float:
    """The power of the error on new samples, in parts of the signal's."""
    rows = tokens(30, seed=3)
    wanted, found = (np.concatenate(list(map(runner(one), rows))) for one in (model, made))
    return float(((found - wanted) ** 2).sum() / (wanted**2).sum())


def test_a_network_of_convolutions_is_left_as_it_is() -> None:
    recipes = (parse("quantize"),)
    model = convnet()
    data = open_data({"image": np.zeros((8, 8, 8, 3), np.float32)}, model)
    assert with_sequence_forms(model, recipes, context_of(data), is_integer=False) == (recipes, ())


def test_normalizations_and_sums_stay_float() -> None:
    model = transformer(2)
    (recipe,), notes = with_sequence_forms(
        model, (parse("quantize"),), context_of(text_data(model)), is_integer=False
    )
    made = apply(model, recipe, context_of(text_data(model))).model
    outputs = {t.name for one in structure_of(model).normalization for t in [one.output]}
    held = {t.name: t.dtype for t in made.main.tensors}
    assert notes and all(held[name] == "float32" for name in outputs)


@pytest.mark.parametrize("is_integer", [False, True])
def test_quantize_comes_nearer_to_the_float_model_than_int8_alone(is_integer: bool) -> None:
    model = transformer(2, stretch=80)
    data = text_data(model)
    alone = apply(model, "quantize", context_of(data)).model
    todo = plan(model, Quantize(), "quick", has_data=True)
    if is_integer:
        made = carry_out(model, todo, data).change.model
        assert any(t.dtype == "int16" for t in made.main.tensors)
        assert sum(t.dtype == "float32" for op in made.main.ops for t in op.outputs) <= 3
    else:
        recipes, _ = with_sequence_forms(model, todo.recipes, context_of(data), is_integer=False)
        made = apply(model, recipes[0], context_of(data)).model
    assert noise_of(model, made) < noise_of(model, alone) / 2


def test_the_state_of_a_recurrence_takes_int16_where_all_is_integers() -> None:
    model = unrolled_lstm()
    random = np.random.default_rng(0)
    shapes = {t.name: t.shape for t in model.main.inputs}
    data = {n: random.normal(size=(32, *s[1:])).astype(np.float32) for n, s in shapes.items()}
    todo = plan(model, Quantize(), "quick", has_data=True)
    made = carry_out(model, todo, open_data(data, model)).change.model
    states = [op for op in made.main.ops if op.kind == "ADD"]
    assert states and all(op.outputs[0].dtype == "int16" for op in states)
