"""Rounding learned block by block: codes stay codes, and nothing is worse on what was kept out."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from litesmith.errors import CannotApply
from litesmith.ir.build import Builder
from litesmith.ir.check import check
from litesmith.ir.types import Model
from litesmith.passes.core.layers import layers_of
from litesmith.passes.core.recipe import apply
from litesmith.training.learned_rounding import Course, learn_rounding
from litesmith.training.recipe_context import lazy_rounding
from litesmith.training.weight_parameters import Settling
from tests.runtime import run
from tests.zoo_float import context, conv, dense, image

SHORT = Course(layers=1, shares=(0.0, 0.5, 0.9), steps=6, last_steps=4, batch=8)


def network() -> Model:
    b = Builder()
    x = conv(b, image(b), 8, 1, fused_activation_function="RELU")
    y = conv(b, conv(b, x, 8, 2, fused_activation_function="RELU"), 8, 3)
    mean = b.op("MEAN", b.op("ADD", x, y), [1, 2], keep_dims=False)
    return b.model(b.op("SOFTMAX", dense(b, mean, 5, 5), beta=1.0))


@pytest.mark.parametrize("to", ["w4a8", "dynamic-int4", "weight-int4"])
@pytest.mark.parametrize("layers", [1, 16])
def test_learned_codes_are_codes_of_the_same_graph(to: str, layers: int) -> None:
    model = network()
    given = context(model, 24)
    made = apply(model, f"quantize(to={to}) | round", given).model
    assert given.tools is not None
    found = learn_rounding(made, model, given.tools, SHORT._replace(layers=layers))
    check(found.model)
    assert not found.skipped
    assert [op.kind for op in found.model.main.ops] == [op.kind for op in made.main.ops]
    pairs = zip(layers_of(made.main).values(), layers_of(found.model.main).values(), strict=True)
    for before, after in pairs:
        assert before.weight.dtype == after.weight.dtype
        if before.weight.quant is None or after.weight.quant is None:  # few weights stay float
            assert before.weight.quant is after.weight.quant
            continue
        np.testing.assert_allclose(before.weight.quant.scale, after.weight.quant.scale, rtol=1e-6)
    for ours, theirs in zip(run(found.model), run(made), strict=True):
        assert ours.shape == theirs.shape and np.isfinite(ours).all()


def test_settled_values_are_codes_and_zeros_stay() -> None:
    torch.manual_seed(0)
    free = torch.randn(6, 4)
    free[0, 0] = 0.0
    scales = free.abs().amax(1) / 7
    codes = (free / scales[:, None]).round()
    part = Settling(codes, free, scales, 0, (-7, 7))
    for share in (0.3, 0.7, 1.0):
        part.settle(share)
        values = part() / scales[:, None]
        settled = (values - values.round()).abs() < 1e-5
        assert settled.sum() >= share * values.numel() - 1
        assert values[0, 0] == 0 and values.abs().max() <= 7 + 1e-5


def test_without_torch_it_is_said_and_the_step_goes_on() -> None:
    model = network()
    given = context(model)
    plain = apply(model, "quantize(to=w4a8) | round", given)
    told = apply(model, "quantize(to=w4a8) | round(learn=true)", given)
    assert "that needs torch" in str(told.skipped[-1].why)
    np.testing.assert_array_equal(run(plain.model)[0], run(told.model)[0])


def test_what_cannot_be_cut_is_said() -> None:
    model = network()
    given = context(model)
    made = apply(model, "quantize(to=w4a8) | round", given).model
    assert given.tools is not None
    twice = replace(made, graphs=(made.main, made.main))
    with pytest.raises(CannotApply, match="blocks cannot run apart"):
        learn_rounding(twice, model, given.tools, SHORT)
    learn = lazy_rounding()
    assert learn is not None
    found = learn(twice, model, given.tools)
    assert found.model is twice and "no rounding was learned" in str(found.skipped[0].why)
