"""Transformers and recurrent networks have wider forms where int8 ruins them; others none."""

from collections.abc import Callable

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
from tests.zoo_blocks import runner, tokens, transformer, two_product_lstm, unrolled_lstm


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


def state_rows(model: Model, count: int, seed: int = 0, far: float = 1) -> dict[str, np.ndarray]:
    """Inputs of a recurrence; of `x`, one channel reaches so many times as far as the others."""
    random = np.random.default_rng(seed)
    shapes = {t.name: t.shape for t in model.main.inputs}
    rows = {n: random.normal(size=(count, *s[1:])).astype(np.float32) for n, s in shapes.items()}
    rows["x"][..., 0] *= far
    return rows


def recurrent_noise(model: Model, made: Model) -> float:
    given = state_rows(model, 30, seed=3)
    rows = [[array[n : n + 1] for array in given.values()] for n in range(30)]
    wanted, found = (np.concatenate(list(map(runner(one), rows))) for one in (model, made))
    return float(((found - wanted) ** 2).sum() / (wanted**2).sum())


@pytest.mark.parametrize("make", [unrolled_lstm, two_product_lstm])
def test_the_state_of_a_recurrence_takes_int16_where_all_is_integers(
    make: Callable[[], Model],
) -> None:
    model = make()
    data = open_data(state_rows(model, 32), model)
    todo = plan(model, Quantize(), "quick", has_data=True)
    made = carry_out(model, todo, data).change.model
    states = [op for op in made.main.ops if op.kind in ("ADD", "LOGISTIC", "MUL", "TANH")]
    assert states and all(op.outputs[0].dtype == "int16" for op in states)
    alone = apply(model, "quantize", context_of(data)).model
    assert recurrent_noise(model, made) < recurrent_noise(model, alone) / 2


def test_layers_behind_a_recurrence_stay_int8() -> None:
    model = two_product_lstm()
    todo = plan(model, Quantize(), "quick", has_data=True)
    made = carry_out(model, todo, open_data(state_rows(model, 32), model)).change.model
    layers = [op for op in made.main.ops if op.kind == "FULLY_CONNECTED"]
    assert [op.outputs[0].dtype for op in layers] == [*["int16"] * 6, "int8"]


def test_what_callers_hand_over_in_int8_is_taken_by_int8_layers() -> None:
    model = unrolled_lstm()
    todo = plan(model, Quantize(io="int8"), "quick", has_data=True)
    made = carry_out(model, todo, open_data(state_rows(model, 32), model)).change.model
    dtypes = {tensor.name: tensor.dtype for tensor in made.main.inputs}
    assert dtypes["x"] == dtypes["h"] == "int8"


@pytest.mark.parametrize(("far", "dtype"), [(20.0, "int16"), (1.0, "int8")])
def test_a_layer_that_reads_far_channels_of_an_input_takes_int16(far: float, dtype: str) -> None:
    model = two_product_lstm(has_front=True)
    todo = plan(model, Quantize(), "quick", has_data=True)
    made = carry_out(model, todo, open_data(state_rows(model, 32, far=far), model)).change.model
    first = next(op for op in made.main.ops if op.kind == "FULLY_CONNECTED")
    assert first.outputs[0].dtype == dtype
