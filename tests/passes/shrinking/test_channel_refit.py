"""Layers fitted to what they gave: nothing lost that can be made up for."""

from collections.abc import Sequence

import numpy as np
import pytest

from litesmith.calibration.observe import tools
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.passes.core.layers import layers_of
from litesmith.passes.core.recipe import apply
from litesmith.passes.core.step import Context, Tools
from litesmith.passes.shrinking.channel_cut import without
from litesmith.passes.shrinking.channel_refit import Refit
from litesmith.passes.shrinking.channel_rules import channel_ids
from tests.runtime import run
from tests.zoo_float import Few, context, conv, dense, few, image


def network(activation: str) -> Model:
    b = Builder()
    x = conv(b, image(b), 8, 1, fused_activation_function="RELU")
    x = conv(b, x, 8, 2, fused_activation_function=activation)
    return b.model(dense(b, b.op("MEAN", x, [1, 2], keep_dims=False), 5, 3))


def errors(model: Model, small: Model) -> float:
    ours, theirs = run(small), run(model)
    return float(sum(((a - b) ** 2).sum() for a, b in zip(ours, theirs, strict=True)))


def fitted(model: Model, small: Model, gone: Sequence[int], tools: Tools) -> Model:
    channels = channel_ids(model.main)
    samples = list(tools.samples(model))
    refit = Refit(model, lambda _: True, samples * 8, tools)
    return refit.fitted(small, lambda one: ~np.isin(channels.places[one.weight][0], gone))


@pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU6"])
def test_what_is_fitted_is_nearer_to_what_was(activation: str) -> None:
    model = network(activation)
    tools = context(model).tools
    assert tools is not None
    channels = channel_ids(model.main)
    first = channels.last(model.main.ops[0].outputs[0])
    gone = [int(one) for one in first[:3]]
    small = without(model, channels, gone)
    assert errors(model, fitted(model, small, gone, tools)) < 0.5 * errors(model, small)


def test_a_whole_model_stays_as_it_is() -> None:
    model = network("RELU")
    tools = context(model).tools
    assert tools is not None
    assert errors(model, fitted(model, model, [], tools)) < 1e-6


@pytest.mark.parametrize("size", [1e17, 1e30])
@pytest.mark.filterwarnings("error")
def test_layers_of_numbers_whose_squares_overflow_stay_finite(size: float) -> None:
    """They were fitted to sums of infinite numbers, and the file had weights that are none."""
    model = network("RELU")
    rows = [tuple(size * array for array in arrays) for arrays in few(model, 32).rows]
    given = Context(tools(Few(tuple(rows)), threads=1))
    made = apply(model, "prune(block=channels, sparsity=0.4)", given).model
    for layer in layers_of(made.main).values():
        assert np.isfinite(layer.weight.values()).all()
