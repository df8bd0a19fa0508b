"""Smoothed models compute the same, and what layers read is more even."""

import numpy as np
import pytest

from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply
from tests.zoo_blocks import PLACES, WIDTH, dense, normalize, runner, transformer
from tests.zoo_float import context


def block(how: str = "pieces", shared: bool = False) -> Model:
    """A normalization with one large channel, read by two layers; and by a sum where shared."""
    b = Builder()
    x = b.input("x", (1, PLACES, WIDTH))
    loud = b.op("MUL", x, np.float32(np.where(np.arange(WIDTH) == 3, 50, 1)))
    norm = normalize(b, loud, 0, how)
    made = b.op("ADD", dense(b, norm, WIDTH, 7), dense(b, norm, WIDTH, 9))
    return b.model(b.op("ADD", made, norm) if shared else made)


@pytest.mark.parametrize("how", ["pieces", "quotient", "power"])
@pytest.mark.parametrize("strength", [0.25, 0.5, 1.0])
def test_the_float_model_computes_the_same_with_no_op_more(how: str, strength: float) -> None:
    model = block(how)
    change = apply(model, f"smooth(strength={strength})", context(model))
    assert len(change.touched) == 1
    assert [op.kind for op in change.model.main.ops] == [op.kind for op in model.main.ops]
    inputs = [np.random.default_rng(5).normal(size=(1, PLACES, WIDTH)).astype(np.float32)]
    before, after = runner(model)(inputs), runner(change.model)(inputs)
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)


def test_what_a_sum_reads_too_stays_and_the_reason_is_told() -> None:
    model = block(shared=True)
    change = apply(model, "smooth", context(model))
    assert change.model is model and "other ops than layers" in change.skipped[0].why


@pytest.mark.parametrize("how", ["pieces", "difference", "rows"])
def test_a_product_in_front_of_the_layers_takes_what_the_normalization_cannot(how: str) -> None:
    model = block(how, shared=True)
    last = len(model.main.ops) - 5  # behind it: two layers and two sums
    change = apply(model, f"smooth(products=[{last}])", context(model))
    assert len(change.touched) == 1
    assert len(change.model.main.ops) == len(model.main.ops) + 1
    layers = [op for op in change.model.main.ops if op.kind == "FULLY_CONNECTED"]
    assert len({op.inputs[0] for op in layers}) == 1
    inputs = [np.random.default_rng(5).normal(size=(1, PLACES, WIDTH)).astype(np.float32)]
    before, after = runner(model)(inputs), runner(change.model)(inputs)
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)


def test_a_product_that_no_layer_would_read_is_skipped() -> None:
    model = block(shared=True)
    change = apply(model, "smooth(products=[0])", context(model))
    assert change.model is model and "no dense layer" in change.skipped[-1].why


def test_a_gain_inside_the_root_is_left_alone() -> None:
    model = block("difference")
    change = apply(model, "smooth", context(model))
    assert change.model is model and "no gain" in change.skipped[0].why


def test_without_data_nothing_is_moved() -> None:
    model = block()
    change = apply(model, "smooth")
    assert change.model is model and "give some" in change.skipped[-1].why


def test_a_strength_beyond_one_is_refused() -> None:
    with pytest.raises(BadInput, match="from 0 to 1"):
        apply(transformer(1), "smooth(strength=2)")
