"""Efforts: each scheme has its recipe, and the best is never farther from the float model."""

from collections.abc import Callable

import numpy as np
import pytest

from litesmith import BadInput, Builder, CannotApply, Model
from litesmith.accuracy.evaluate import evaluate_all
from litesmith.calibration.quantize_effort import EFFORTS, carry_out, plan, with_slow_kinds
from litesmith.data.sources import open_data
from litesmith.passes.core.recipe import parse, text_of
from litesmith.passes.core.schemes import SCHEMES
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.precision.fastest_forms import estimate_forms
from tests.zoo import convnet, half_weights, noise, residual_int8, sized_late


def images(count: int = 40) -> np.ndarray:
    return noise(count, 8, 8, 3, seed=3, scale=2)


def uneven() -> Model:
    """Channels of very unlike size, which `equalize` evens out."""
    b = Builder()
    x = b.input("image", (1, 8, 8, 3))
    factors = np.logspace(-2, 1, 8).astype(np.float32)
    first = noise(8, 3, 3, 3) * factors[:, None, None, None]
    x = b.op("CONV_2D", x, first, noise(8) * factors, fused_activation_function="RELU")
    second = noise(4, 1, 1, 8, seed=1) / factors
    return b.model(b.op("CONV_2D", x, second, noise(4)))


@pytest.mark.parametrize("to", SCHEMES)
@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("has_data", [True, False])
def test_every_scheme_has_a_recipe(to: str, effort: str, has_data: bool) -> None:
    found = plan(convnet(), Quantize(to=to), effort, has_data=has_data)
    for recipe in found.recipes:
        assert sum(isinstance(step, Quantize) and step.to == to for step in recipe) == 1
    texts = [text_of(recipe) for recipe in found.recipes]
    assert (effort == "quick") == (not any("fuse" in text for text in texts))
    if not has_data:
        assert not any("correct" in text or "round" in text for text in texts)
        assert bool(found.notes) == (effort != "quick" and to != "float16")


def test_numbers_refer_to_the_file_as_it_is() -> None:
    for step in (Quantize(keep=(3,)), Quantize(only=("CONV_2D", 0))):
        (recipe,) = plan(convnet(), step, "default", has_data=True).recipes
        assert text_of(recipe).startswith("quantize(")
    (recipe,) = plan(convnet(), Quantize(keep=("SOFTMAX",)), "default", has_data=True).recipes
    assert text_of(recipe) == "cleanup | fold | fuse | quantize(keep=[SOFTMAX]) | correct"


def test_four_bits_leave_float_what_is_slow_in_integers() -> None:
    b = Builder()
    x = b.input("image", (1, 24, 24, 16))
    for seed in range(3):
        x = b.op("CONV_2D", x, noise(16, 1, 1, 16, seed=seed, scale=0.3), noise(16))
        x = b.op("PRELU", x, noise(1, 1, 16, seed=seed))
    model = b.model(x)
    found = plan(model, Quantize(to="w4a8"), "default", has_data=True)
    assert "PRELU" not in text_of(found.recipes[0])
    kept = with_slow_kinds(model, found)
    (recipe,) = kept.recipes
    assert all("PRELU" in step.keep for step in recipe if isinstance(step, Quantize))
    assert kept.notes == ("3 PRELU: left float, as int8 tends to be slower",)
    named = plan(model, Quantize(to="w4a8", keep=(0,)), "default", has_data=True)
    assert named.is_named and text_of(named.recipes[0]).startswith("quantize(to=w4a8, keep=[0])")


def test_four_bits_leave_float_what_int8_says_with_other_ops() -> None:
    """Their steps name ops by numbers, which a rewrite would change."""
    b = Builder()
    x = b.input("image", (1, 48, 48, 16))
    for seed in range(2):
        x = b.op("CONV_2D", x, noise(16, 1, 1, 16, seed=seed, scale=0.3), noise(16))
        x = b.op("AVERAGE_POOL_2D", x, filter_height=2, filter_width=2, stride_h=2, stride_w=2)
    model = b.model(x)
    found = estimate_forms(model, parse("cleanup | fold | fuse | quantize"))
    assert found is not None and found.rewrites == ("AVERAGE_POOL_2D:DEPTHWISE_CONV_2D",)
    (recipe,) = with_slow_kinds(
        model, plan(model, Quantize(to="w4a8"), "default", has_data=True)
    ).recipes
    assert all("AVERAGE_POOL_2D" in step.keep for step in recipe if isinstance(step, Quantize))


def test_ops_whose_sizes_are_only_known_later_have_a_form() -> None:
    model = sized_late()
    found = plan(model, Quantize(to="w4a8"), "quick", has_data=True)
    assert with_slow_kinds(model, found) == found


def test_half_precision_is_unpacked_first() -> None:
    (recipe,) = plan(half_weights(), Quantize(), "default", has_data=True).recipes
    assert text_of(recipe) == "cleanup | fold(float16=true) | fuse | quantize | correct"


def test_unknown_words_are_refused() -> None:
    with pytest.raises(BadInput, match="no effort 'more'; there are quick, default, best"):
        plan(convnet(), Quantize(), "more", has_data=True)
    with pytest.raises(BadInput, match="no scheme 'int7' to quantize to; there are dynamic"):
        plan(convnet(), Quantize(to="int7"), "quick", has_data=True)


@pytest.mark.parametrize("make", [convnet, uneven])
def test_best_is_near_on_new_samples(make: Callable[[], Model]) -> None:
    model = make()
    data = open_data(images(), model)
    quick, best = (
        carry_out(model, plan(model, Quantize(), effort, has_data=True), data)
        for effort in ("quick", "best")
    )
    fresh = open_data(noise(400, 8, 8, 3, seed=9, scale=2), model)
    models = [quick.change.model, best.change.model]
    found = evaluate_all(models, fresh, against=model, metric="snr")
    gain = found[1].value - found[0].value
    assert "tried on 30 samples, judged by the other 10: " in best.notes[0]
    assert ("equalize" in text_of(best.recipe)) == (make is uneven)
    assert gain > (3 if make is uneven else 0)


@pytest.mark.parametrize("seed", range(4))
def test_chance_does_not_choose(seed: int) -> None:
    """What is near by luck on the few samples held out is not taken for the better."""
    model = convnet()
    data = open_data(noise(40, 8, 8, 3, seed=seed, scale=2), model)
    usual, best = (
        carry_out(model, plan(model, Quantize(), effort, has_data=True), data)
        for effort in ("default", "best")
    )
    fresh = open_data(noise(300, 8, 8, 3, seed=100 + seed, scale=2), model)
    models = [usual.change.model, best.change.model]
    found = evaluate_all(models, fresh, against=model, metric="snr")
    assert found[1].value > found[0].value - 0.05


def test_few_samples_are_not_split() -> None:
    model = convnet()
    data = open_data(images(9), model)
    outcome = carry_out(model, plan(model, Quantize(), "best", has_data=True), data)
    assert text_of(outcome.recipe).endswith("quantize | correct") and not outcome.notes


def test_steps_that_do_not_fit_are_left_out_with_the_reason() -> None:
    b = Builder()
    x = b.input("x", (1, 4))
    own = b.op("VAR_HANDLE", shape=(), dtype="resource", shared_name="last")
    y = b.op("FULLY_CONNECTED", x, noise(4, 4), noise(4))
    b.add("ASSIGN_VARIABLE", own, y)
    model = b.model(y)
    data = open_data(noise(40, 4), model)
    for effort in ("default", "best"):
        outcome = carry_out(model, plan(model, Quantize(), effort, has_data=True), data)
        assert text_of(outcome.recipe) == "cleanup | fold | fuse | quantize"
        assert "state" in outcome.notes[0]


def test_nothing_to_quantize_is_said() -> None:
    model = residual_int8()
    data = open_data(noise(8, 4, 4, 4), model)
    with pytest.raises(CannotApply, match="quantized already"):
        carry_out(model, plan(model, Quantize(), "default", has_data=True), data)
