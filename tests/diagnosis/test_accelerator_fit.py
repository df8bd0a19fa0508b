"""What keeps a model from an accelerator: every op that stays has a finding, and the recipe that
is told was seen to help."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from litesmith.diagnosis.accelerator_fit import Fit, obstacles, place_on, recipe_for
from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.recipe import apply, parse
from litesmith.run.core.placement import PREDICTED, Home, Placement
from tests import zoo
from tests.zoo import noise
from tests.zoo_float import context, conv

ACCELERATORS = ("edgetpu", "ethos-u55", "hexagon", "nnapi", "coreml")


@pytest.mark.parametrize("name", [*ACCELERATORS, "gpu"])
@pytest.mark.parametrize("make", [zoo.convnet, zoo.residual_int8, zoo.careless])
def test_every_op_that_stays_is_counted_once(make: Callable[[], Model], name: str) -> None:
    placement = place_on(make(), name)
    found = obstacles(placement)
    assert (not found) == placement.is_whole
    if not placement.refused:
        counts = [int(re.match(r"\d+", one.what).group()) for one in found]
        assert sum(counts) == placement.left
    assert all(one.why and one.where for one in found)


def test_what_is_no_accelerator_is_named() -> None:
    for name in ("cpu", "toaster"):
        with pytest.raises(BadInput, match=f"--for {name}: no such accelerator") as caught:
            recipe_for(zoo.convnet(), name)
        assert "edgetpu" in str(caught.value)


def carried_out(model: Model, fit: Fit) -> Model:
    """The model after the recipe, with data that is not what it was tried with."""
    return apply(model, fit.recipe, context(model, 3)).model


def told_truly(model: Model, fit: Fit) -> None:
    """The recipe gives what is told of it: the law of every fit."""
    after = place_on(carried_out(model, fit), fit.before.target)
    assert (after.taken, len(after.homes)) == (fit.after.taken, len(fit.after.homes))
    if fit.recipe:
        assert fit.after.left < fit.before.left
    else:
        assert fit.after is fit.before
    told = fit.vain or fit.after
    assert bool(obstacles(told)) == (not told.is_whole)


@pytest.mark.parametrize("name", ACCELERATORS)
@pytest.mark.parametrize(
    "make",
    [zoo.convnet, zoo.residual_int8, zoo.careless, zoo.hybrid, zoo.half_weights, zoo.custom],
)
def test_a_recipe_does_what_is_told_of_it(make: Callable[[], Model], name: str) -> None:
    model = make()
    told_truly(model, recipe_for(model, name))


def block(activation: Callable[[Builder, Tensor], Tensor]) -> Callable[[], Model]:
    """Two convolutions with something between them."""

    def make() -> Model:
        b = Builder()
        x = conv(b, b.input("image", (1, 8, 8, 3)), 4)
        return b.model(conv(b, activation(b, x), 4, 3))

    return make


def mobilenet_v3(b: Builder, x: Tensor) -> Tensor:
    return b.op("HARD_SWISH", b.op("DEPTHWISE_CONV_2D", x, noise(1, 3, 3, 4), noise(4)))


def odd_pads(b: Builder, x: Tensor) -> Tensor:
    widths = np.int32([[0, 0], [1, 0], [0, 2], [0, 0]])
    padded = b.op("PADV2", x, widths, np.float32(0))
    return b.op("MIRROR_PAD", padded, np.int32([[0, 0], [1, 1], [0, 0], [0, 0]]), mode="REFLECT")


def with_constants(b: Builder, x: Tensor) -> Tensor:
    return b.op("CONCATENATION", x, noise(1, 8, 8, 2), b.op("RELU", x), axis=3)


def one_place(b: Builder, x: Tensor) -> Tensor:
    flat = b.op("SQUEEZE", b.op("MEAN", x, [1, 2], keep_dims=True), squeeze_dims=(1, 2))
    return b.op("RESHAPE", flat, [1, 2, 2, 1])


def slopes(b: Builder, x: Tensor) -> Tensor:
    return b.op("PRELU", x, np.abs(noise(8, 8, 4, scale=0.2)).clip(0, 1))


def wide(b: Builder, x: Tensor) -> Tensor:
    """Rows picked by int64, and back to an image."""
    best = b.op("ARG_MAX", b.op("RESHAPE", x, [1, 256]), np.int32(1), output_type="INT64")
    rows = b.op("GATHER", b.const(noise(256, 4)), best)
    return b.op("ADD", x, b.op("RESHAPE", rows, [1, 1, 1, 4]))


def free_sizes() -> Model:
    b = Builder()
    x = b.input("image", (1, -1, -1, 3))
    return b.model(b.op("CONV_2D", x, noise(4, 1, 1, 3), noise(4)))


def float_ends() -> Model:
    model = zoo.convnet()
    return apply(model, "quantize(io=float)", context(model)).model


def wide_output() -> Model:
    b = Builder()
    x = conv(b, b.input("image", (1, 8, 8, 3)), 4)
    return b.model(b.op("ARG_MAX", x, np.int32(3), output_type="INT64"))


# what keeps a model from a target, and what the recipe that makes it whole must hold
CURES: dict[str, tuple[Callable[[], Model], str, str]] = {
    "hard swish": (block(mobilenet_v3), "edgetpu", "rewrite(ops=[HARD_SWISH])"),
    "leaky relu": (
        block(lambda b, x: b.op("LEAKY_RELU", x, alpha=0.1)),
        "edgetpu",
        "rewrite(ops=[LEAKY_RELU",
    ),
    "gelu": (block(lambda b, x: b.op("GELU", x)), "edgetpu", "rewrite(ops=[GELU:LOGISTIC])"),
    "odd pads": (block(odd_pads), "edgetpu", "rewrite(ops=[PADV2, MIRROR_PAD])"),
    "constants": (block(with_constants), "edgetpu", "rewrite(ops=[CONCATENATION])"),
    "slopes of places": (block(slopes), "edgetpu", "rewrite(ops=[PRELU:MAXIMUM])"),
    "prelu": (block(slopes), "coreml", "rewrite(ops=[PRELU])"),
    "int64": (block(wide), "hexagon", "rewrite(int32=true)"),
    "an int64 output": (wide_output, "hexagon", "rewrite(int32=true) | borders(int32=true)"),
    "free sizes": (free_sizes, "hexagon", "borders(fixed=true)"),
    "float ends": (float_ends, "edgetpu", "borders(io=int8)"),
    "hybrid weights": (zoo.hybrid, "edgetpu", "rewrite(unpack=true) | quantize(io=int8)"),
    "float": (zoo.convnet, "ethos-u55", "quantize(io=int8) | correct"),
    "float hard swish": (block(mobilenet_v3), "ethos-u55", "quantize(io=int8) | correct"),
}


@pytest.mark.parametrize("name", CURES)
def test_what_can_be_cured_is(name: str) -> None:
    make, target, wanted = CURES[name]
    model = make()
    fit = recipe_for(model, target)
    assert not fit.before.is_whole
    assert wanted in fit.recipe
    assert fit.after.is_whole, obstacles(fit.after)
    assert fit.needs_data == ("quantize" in fit.recipe)
    told_truly(model, fit)


def test_what_cannot_be_cured_is_told_after_the_recipe_that_leaves_the_fewest() -> None:
    def cosine(b: Builder, x: Tensor) -> Tensor:
        return b.op("COS", b.op("NEG", x))

    model = block(cosine)()
    fit = recipe_for(model, "ethos-u55")
    assert "rewrite(ops=[NEG])" in fit.recipe
    left = {home.kind for home in fit.after.homes if not home.taken}
    assert left == {"COS", "DEQUANTIZE", "QUANTIZE"}
    told_truly(model, fit)


def test_where_nothing_helps_no_recipe_is_told_but_what_stays_is() -> None:
    b = Builder()
    x = b.op("COS", b.input("image", (1, 8, 8, 3)))
    model = b.model(conv(b, x, 4))
    fit = recipe_for(model, "edgetpu")
    assert (fit.recipe, fit.after.taken) == ("", 0)
    assert fit.vain is not None
    assert "COS" in obstacles(fit.vain)[0].why


def test_a_recipe_that_leaves_most_of_a_model_is_none() -> None:
    b = Builder()
    x = conv(b, b.input("image", (1, 8, 8, 3)), 4)
    for _ in range(4):
        x = conv(b, b.op("COS", x), 4)
    fit = recipe_for(b.model(x), "edgetpu")
    assert fit.recipe == "" and fit.after == fit.before
    assert fit.vain is not None and 0 < fit.vain.taken < fit.vain.left


def test_ops_that_stay_for_another_are_one_finding() -> None:
    homes = [Home(0, "COS", False, "no COS")]
    homes += [Home(n, kind, False, "behind op 0") for n, kind in enumerate("ABCDEF", 1)]
    homes += [Home(n, kind, False, "behind op 4") for n, kind in enumerate("ABA", 7)]
    found = obstacles(Placement("npu", PREDICTED, tuple(homes), 0))
    assert [(one.what, one.why) for one in found] == [
        ("6 ops (A, B, C, D, 2 more kinds) on the CPU", "behind op 0"),
        ("3 ops (A, B) on the CPU", "behind op 4"),
        ("1 COS on the CPU", "no COS"),
    ]


def test_a_whole_model_has_no_recipe() -> None:
    fit = recipe_for(zoo.residual_int8(), "edgetpu")
    assert fit.before.is_whole
    assert (fit.recipe, fit.hint, fit.vain) == ("", "", None)


def test_float16_is_a_hint_for_the_gpu_and_no_remedy() -> None:
    b = Builder()
    model = b.model(conv(b, b.input("image", (1, 8, 8, 16)), 64))
    fit = recipe_for(model, "gpu")
    assert fit.recipe == ""
    assert fit.hint == "quantize(to=float16)"
    assert parse(fit.hint)


def test_the_rules_decide_where_there_is_no_compiler() -> None:
    assert recipe_for(block(mobilenet_v3)(), "edgetpu").after.how == PREDICTED
