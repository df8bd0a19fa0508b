"""Cut masks leave every output as it was, and int8 its steps."""

import numpy as np
import pytest

from litesmith.blocks.attention import attentions
from litesmith.blocks.wiring import Wiring
from litesmith.calibration.context import context_of
from litesmith.data.sources import open_data
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply
from litesmith.passes.core.step import Context
from litesmith.passes.quantizing.attention_range import attention_scores, lowest_peaks, raise_lows
from tests.zoo import noise
from tests.zoo_blocks import runner, tokens, transformer


def text_context(model: Model) -> Context:
    rows = tokens(24)
    ids, mask = (np.concatenate([row[n] for row in rows]) for n in range(2))
    return context_of(open_data({"ids": ids, "mask": mask}, model))


def constants(model: Model) -> list[float]:
    return [float(t.data.min()) for t in model.main.tensors if t.data is not None and t.data.size]


@pytest.mark.parametrize("masked", [-1e4, -1e9, float(np.finfo(np.float32).min)])
def test_outputs_stay_equal_and_no_number_is_far_away(masked: float) -> None:
    model = transformer(2, masked=masked)
    change = apply(model, "masks", text_context(model))
    assert len(change.touched) == 2
    assert len(change.model.main.ops) == len(model.main.ops)
    assert min(constants(change.model)) > -200
    before, after = runner(model), runner(change.model)
    for inputs in tokens(12, seed=7):
        np.testing.assert_array_equal(before(inputs), after(inputs))


def test_a_mask_that_is_near_enough_stays() -> None:
    model = transformer(1, masked=-25.0)
    assert apply(model, "masks", text_context(model)).model is model


def test_without_data_a_reason_is_given() -> None:
    model = transformer(1)
    change = apply(model, "masks")
    assert change.model is model and "give data" in change.skipped[0].why


def causal(kind: str) -> Model:
    """Scores of a product, a constant mask, a softmax and a second product."""
    b = Builder()
    query, key = b.input("q", (1, 4, 8)), b.input("k", (1, 8, 4))
    scores = b.op("BATCH_MATMUL", query, key)
    hides = np.triu(np.full((1, 4, 4), 1e9, np.float32), 1)
    if kind == "SELECT_V2":
        seen = b.const(hides == 0)
        scores = b.op("SELECT_V2", seen, scores, np.float32(-1e9))
    else:
        scores = b.op(kind, scores, hides if kind == "SUB" else -hides)
    return b.model(b.op("BATCH_MATMUL", b.op("SOFTMAX", scores), noise(1, 4, 8)))


@pytest.mark.parametrize("kind", ["ADD", "SUB", "SELECT_V2"])
def test_constant_masks_are_cut_however_they_hide(kind: str) -> None:
    model = causal(kind)
    random = np.random.default_rng(0)
    data = {"q": random.normal(size=(16, 4, 8)), "k": random.normal(size=(16, 8, 4))}
    data = {name: array.astype(np.float32) for name, array in data.items()}
    change = apply(model, "masks", context_of(open_data(data, model)))
    assert len(change.touched) == 1
    assert all(abs(value) < 200 for value in constants(change.model))
    inputs = [data["q"][:1], data["k"][:1]]
    before, after = runner(model)(inputs), runner(change.model)(inputs)
    np.testing.assert_allclose(after, before, atol=1e-6)


def test_ranges_of_scores_end_where_a_softmax_gives_no_share() -> None:
    model = transformer(1)
    context = text_context(model)
    assert context.tools is not None
    scores = attention_scores(model)
    peaks = lowest_peaks(model, scores, context.tools.observe)
    assert len(peaks) == 1 and min(peaks.values()) > -100
    ranges = {scores[0]: (-1e4, 9.0)}
    (low, high) = raise_lows(ranges, peaks, "int8")[scores[0]]
    assert high == 9.0 and low == peaks[scores[0]] - 8


def test_attention_is_what_is_looked_at() -> None:
    model = transformer(2)
    softmaxes = [one.softmax.inputs[0] for one in attentions(Wiring.of(model.main))]
    assert attention_scores(model) == softmaxes
