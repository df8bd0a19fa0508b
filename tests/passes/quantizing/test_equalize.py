"""Equalized models compute the same, with channels that are more alike."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.ir.edit import regraph, with_graphs
from litesmith.ir.types import Array, Model, Op, Tensor, Value
from litesmith.numeric.affine import rows_of
from litesmith.numeric.ranges import Seen
from litesmith.passes.core.recipe import apply
from litesmith.passes.core.step import Change, Context, Run, Tools
from litesmith.tflite.write import to_bytes
from tests.zoo import noise


def runner(model: Model) -> Run:
    """The model in stock LiteRT."""
    interpreter = Interpreter(model_content=to_bytes(replace(model, signatures=())))
    interpreter.allocate_tensors()

    def run(inputs: Sequence[Array]) -> list[Array]:
        for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]

    return run


def samples(model: Model, count: int = 8) -> list[tuple[Array, ...]]:
    return [
        tuple(noise(*t.shape, seed=seed, scale=1) for t in model.main.inputs)
        for seed in range(count)
    ]


def opened(model: Model) -> AbstractContextManager[Run]:
    return nullcontext(runner(model))


def observe(model: Model, tensors: Sequence[Tensor], what: frozenset[str]) -> Mapping[Tensor, Seen]:
    run = runner(with_graphs(model, [regraph(model.main, outputs=tensors)]))
    seen = {tensor: Seen(what) for tensor in tensors}
    for inputs in samples(model):
        for tensor, array in zip(tensors, run(inputs), strict=True):
            seen[tensor].add(array)
    return seen


DATA = Context(tools=Tools(lambda model: samples(model), observe, opened))


def equalized(model: Model, context: Context = DATA, recipe: str = "equalize") -> Change:
    """The change, after a look that the model computes the same on its samples."""
    change = apply(model, recipe, context)
    before, after = runner(model), runner(change.model)
    for inputs in samples(model):
        for a, b in zip(before(inputs), after(inputs), strict=True):
            np.testing.assert_allclose(b, a, rtol=0, atol=2e-5 * np.abs(a).max())
    return change


def constant(op: Op, place: int = 1) -> Array:
    tensor = op.inputs[place]
    assert tensor is not None
    return tensor.values()


def spread(values: Array) -> float:
    return float(values.max() / values.min())


# Factors that batch normalization might have left on the six channels of the first layer.
UNLIKE = np.array([0.01, 0.1, 1, 1, 5, 20], np.float32)


def pair(second: str, activation: str = "RELU", size: float = 1.0, **options: str) -> Model:
    """A layer with unlike channels, read by another."""
    b = Builder()
    unlike = (UNLIKE * size)[:, None, None, None]
    x = b.op("CONV_2D", b.input("x", (1, 6, 6, 3)), noise(6, 3, 3, 3) * unlike,
             noise(6) * UNLIKE * size, fused_activation_function=activation)  # fmt: skip
    if second == "FULLY_CONNECTED":
        x = b.op("MEAN", x, [1, 2])
        return b.model(b.op(second, x, noise(4, 6) / UNLIKE / size, noise(4)))
    shape = (4, 3, 3, 6) if second == "CONV_2D" else (1, 3, 3, 6)
    return b.model(b.op(second, x, noise(*shape) / UNLIKE / size, noise(shape[0] * 6 if
                        second != "CONV_2D" else 4), **options))  # fmt: skip


SECONDS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


@pytest.mark.parametrize("second", SECONDS)
@pytest.mark.parametrize("context", [DATA, Context()], ids=["data", "weights"])
def test_unlike_channels_become_alike(second: str, context: Context) -> None:
    model = pair(second)
    change = equalized(model, context)
    assert len(change.touched) == 1 and not change.skipped
    before, after = (np.abs(rows_of(constant(m.main.ops[0]), 0)).max(1)
                     for m in (model, change.model))  # fmt: skip
    assert spread(before) > 500 and spread(after) < 10
    readers = (np.abs(constant(m.main.ops[-1])).reshape(-1, 6).max(0)
               for m in (model, change.model))  # fmt: skip
    assert spread(next(readers)) > 500 and spread(next(readers)) < 10


def test_before_a_depthwise_layer_every_channel_spans_the_range() -> None:
    change = equalized(pair("DEPTHWISE_CONV_2D"))
    (tensor,) = change.model.main.ops[0].outputs
    seen = observe(change.model, [tensor], frozenset({"channels"}))[tensor]
    alive = seen.channel_peak[seen.channel_peak > 0]
    assert spread(alive) < 1.01


@pytest.mark.parametrize(
    "recipe", ["equalize(strength=0.0)", "equalize(strength=0.0, absorb=false)"]
)
@pytest.mark.parametrize("context", [DATA, Context()], ids=["data", "weights"])
def test_no_strength_no_change(recipe: str, context: Context) -> None:
    model = pair("CONV_2D")
    assert apply(model, recipe, context).model is model


@pytest.mark.parametrize("context", [DATA, Context()], ids=["data", "weights"])
def test_half_the_strength_goes_half_the_way(context: Context) -> None:
    def factors(recipe: str) -> Array:
        model = pair("CONV_2D")
        ops = apply(model, recipe, context).model.main.ops
        return np.log(constant(ops[0], 2) / constant(model.main.ops[0], 2))

    np.testing.assert_allclose(
        factors("equalize(strength=0.5)"), factors("equalize") / 2, atol=1e-5
    )
    with pytest.raises(BadInput, match=r"strength=1\.5; it is from 0 to 1"):
        apply(pair("CONV_2D"), "equalize(strength=1.5)", context)


@pytest.mark.parametrize("context", [DATA, Context()], ids=["data", "weights"])
def test_twice_is_once(context: Context) -> None:
    once = equalized(pair("CONV_2D"), context).model
    again = equalized(once, context).model
    first, second = (constant(m.main.ops[0])[1:] for m in (once, again))
    np.testing.assert_allclose(second, first, rtol=0.05)  # channel 0 went as far as it may


@pytest.mark.parametrize(
    ("context", "recipe"), [(Context(), "equalize(relu6=true)"), (DATA, "equalize")]
)
def test_what_ends_at_six_needs_data_and_leave(context: Context, recipe: str) -> None:
    change = equalized(pair("CONV_2D", "RELU6"), context, recipe)
    assert not change.touched
    assert "ends at 6" in change.skipped[0].why


@pytest.mark.parametrize("second", SECONDS)
@pytest.mark.parametrize("size", [0.01, 1.0])
def test_channels_stay_well_below_six(second: str, size: float) -> None:
    """And those that reach it are left alone."""
    model = pair(second, "RELU6", size)
    change = equalized(model, recipe="equalize(relu6=true)")
    factors = constant(change.model.main.ops[0], 2) / constant(model.main.ops[0], 2)
    before, after = model.main.ops[0].outputs[0], change.model.main.ops[0].outputs[0]
    peak = observe(model, [before], frozenset({"channels"}))[before].channel_peak
    grown = observe(change.model, [after], frozenset({"channels"}))[after].channel_peak
    assert factors.min() > 0.999
    assert (grown[peak < 1.5] < 1.501).all()
    np.testing.assert_allclose(factors[peak >= 1.5], 1, rtol=1e-6)
    assert (factors > 2).any()


@pytest.mark.parametrize("activation", ["TANH", "RELU_N1_TO_1"])
def test_other_activations_let_no_factor_through(activation: str) -> None:
    change = apply(pair("CONV_2D", activation), "equalize")
    assert not change.touched
    assert f"the activation {activation}" in change.skipped[0].why


def residual() -> Model:
    """Two layers into a sum, pooled, padded and resized on the way."""
    b = Builder()
    x = b.input("x", (1, 8, 8, 3))
    unlike = UNLIKE[:, None, None, None]
    x = b.op("CONV_2D", x, noise(6, 3, 3, 3) * unlike, noise(6), fused_activation_function="RELU")
    y = b.op("CONV_2D", x, noise(6, 3, 3, 6, seed=1) * unlike / UNLIKE, noise(6) * UNLIKE)
    x = b.op("ADD", x, y, fused_activation_function="RELU")
    x = b.op("MAX_POOL_2D", x, filter_height=2, filter_width=2, stride_h=2, stride_w=2)
    x = b.op("PAD", b.op("LEAKY_RELU", x), [(0, 0), (1, 1), (0, 1), (0, 0)])
    x = b.op("RESHAPE", b.op("MEAN", x, [1, 2], keep_dims=True), [1, 6])
    return b.model(b.op("FULLY_CONNECTED", x, noise(4, 6) / UNLIKE, noise(4)))


@pytest.mark.parametrize("context", [DATA, Context()], ids=["data", "weights"])
def test_a_factor_passes_through_sums_and_pools(context: Context) -> None:
    change = equalized(residual(), context)
    assert len(change.touched) == 1 and not change.skipped
    first, last = change.model.main.ops[0], change.model.main.ops[-1]
    assert spread(np.abs(rows_of(constant(first), 0)).max(1)) < 100
    assert spread(np.abs(constant(last)).max(0)) < 100


def after(make: Callable[[Builder, Tensor], tuple[Tensor, ...]]) -> Model:
    """A layer, something built on its output."""
    b = Builder()
    x = b.op("CONV_2D", b.input("x", (1, 4, 4, 3)), noise(6, 1, 1, 3), noise(6))
    return b.model(*make(b, x))


def dense(b: Builder, x: Tensor, weight: Tensor | None = None) -> Tensor:
    return b.op("CONV_2D", x, weight or noise(4, 1, 1, x.shape[-1]), noise(4))


def shared(b: Builder, x: Tensor) -> tuple[Tensor, ...]:
    weight = b.const(noise(4, 1, 1, 6))
    return dense(b, x, weight), dense(b, b.op("RELU", x), weight)


def sum_with_input(b: Builder, x: Tensor) -> tuple[Tensor, ...]:
    return (dense(b, b.op("ADD", x, b.input("y", (1, 4, 4, 6)))),)


LEFT_ALONE: dict[str, tuple[Callable[[Builder, Tensor], tuple[Tensor, ...]], str]] = {
    "an output": (lambda b, x: (dense(b, x), x), "an input or an output of the graph"),
    "a sum with an input": (sum_with_input, "an input or an output of the graph"),
    "another reader": (lambda b, x: (dense(b, x), b.op("EXP", x)), "lets no factor through"),
    "shared weights": (shared, "serve other ops too"),
    "sums of channels": (
        lambda b, x: (dense(b, b.op("ADD", x, b.op("SUM", x, [3], keep_dims=True))),),
        "lets no factor",
    ),
    "a constant sum": (lambda b, x: (dense(b, b.op("ADD", x, noise(6))),), "lets no factor"),
    "padded channels": (
        lambda b, x: (dense(b, b.op("PAD", x, [(0, 0)] * 3 + [(0, 2)])),),
        "PAD 'pad_5' lets no factor through",
    ),
    "flattened": (
        lambda b, x: (
            dense(b, x),
            b.op("FULLY_CONNECTED", b.op("RESHAPE", x, [1, 96]), noise(2, 96), None),
        ),
        "does not keep channels apart",
    ),
    "groups": (
        lambda b, x: (b.op("CONV_2D", x, noise(4, 1, 1, 3), noise(4)),),
        "does not read whole channels",
    ),
    "computed weights": (
        lambda b, x: (b.op("CONV_2D", x, b.op("NEG", b.input("w", (4, 1, 1, 6))), noise(4)),),
        "are no float32 constants",
    ),
}


@pytest.mark.parametrize("name", LEFT_ALONE)
@pytest.mark.parametrize("context", [DATA, Context()], ids=["data", "weights"])
def test_left_alone(name: str, context: Context) -> None:
    make, why = LEFT_ALONE[name]
    model = after(make)
    change = apply(model, "equalize", context)
    assert change.model is model
    assert why in " ".join(skip.why for skip in change.skipped)


def offset(activation: str, second: str, *biases: Array, **options: Value) -> Model:
    """A layer of which two channels are always far above zero, read by another."""
    b = Builder()
    high = noise(6) + np.array([40, 0, 0, 20, 0, 0], np.float32)
    act: dict[str, Value] = {"fused_activation_function": activation}
    if second == "FULLY_CONNECTED":
        x = b.op(second, b.input("x", (600, 3)), noise(6, 3), high, **act)
        return b.model(b.op(second, x, noise(4, 6), *biases, **options))
    x = b.op("CONV_2D", b.input("x", (1, 24, 24, 3)), noise(6, 1, 1, 3), high, **act)
    shape = (4, 3, 3, 6) if second == "CONV_2D" else (1, 3, 3, 6)
    return b.model(b.op(second, x, noise(*shape), *biases, **options))


SECOND_LAYERS: dict[str, Callable[[str], Model]] = {
    "convolution": lambda a: offset(a, "CONV_2D", noise(4), padding="VALID"),
    "depthwise": lambda a: offset(a, "DEPTHWISE_CONV_2D", noise(6), padding="VALID"),
    "dense": lambda a: offset(a, "FULLY_CONNECTED", noise(4)),
    "dense without bias": lambda a: offset(a, "FULLY_CONNECTED"),
}


@pytest.mark.parametrize("activation", ["NONE", "RELU"])
@pytest.mark.parametrize("second", SECOND_LAYERS)
def test_what_a_channel_always_holds_goes_into_the_next_bias(activation: str, second: str) -> None:
    model = SECOND_LAYERS[second](activation)
    change = equalized(model, recipe="equalize(strength=0.0)")
    assert "moved the offset of 2 channels" in change.touched[0]
    biases = constant(change.model.main.ops[0], 2)
    assert biases[0] < 25 and biases[3] < 13
    np.testing.assert_array_equal(biases[[1, 2]], constant(model.main.ops[0], 2)[[1, 2]])


def test_an_offset_takes_many_values_to_be_believed() -> None:
    b = Builder()
    x = b.input("x", (1, 3))
    x = b.op("FULLY_CONNECTED", x, noise(6, 3), noise(6) + 40, fused_activation_function="RELU")
    change = equalized(b.model(b.op("FULLY_CONNECTED", x, noise(4, 6))))
    assert not any("offset" in text for text in change.touched)


@pytest.mark.parametrize(
    ("activation", "padding"), [("RELU6", "VALID"), ("RELU", "SAME"), ("NONE", "SAME")]
)
def test_no_offset_moves_past_padding_or_into_a_ceiling(activation: str, padding: str) -> None:
    model = offset(activation, "CONV_2D", noise(4), padding=padding)
    change = equalized(model, recipe="equalize(strength=0.0, relu6=true)")
    assert not change.touched


def test_a_spoiled_sample_leaves_a_group_alone() -> None:
    b = Builder()
    weight = np.full((6, 1, 1, 3), 3e38, np.float32)
    x = b.op("CONV_2D", b.input("x", (1, 2, 2, 3)), weight, noise(6))
    model = b.model(dense(b, x))
    change = apply(model, "equalize", DATA)
    assert change.model is model
    assert "infinite or not a number" in change.skipped[0].why


def test_dead_channels_stay() -> None:
    model = pair("CONV_2D")
    op = model.main.ops[0]
    weight, bias = (constant(op, place).copy() for place in (1, 2))
    weight[2], bias[2] = 0, -1
    inputs = (op.inputs[0], *(replace(t, data=d) for t, d in zip(op.inputs[1:], (weight, bias),
              strict=True) if t is not None))  # fmt: skip
    graph = regraph(model.main, ops=[replace(op, inputs=inputs), *model.main.ops[1:]])
    for context in (DATA, Context()):
        change = equalized(with_graphs(model, [graph]), context)
        first = change.model.main.ops[0]
        assert constant(first, 2)[2] == -1 and not constant(first)[2].any()


def test_a_layer_whose_output_contradicts_its_weights_is_left_alone() -> None:
    b = Builder()
    x = b.input("x", (1, 4, 4, 2))
    y = b.op("CONV_2D", x, noise(3, 1, 1, 2), None, shape=(1, 4, 4, 4))
    z = b.op("CONV_2D", y, noise(5, 1, 1, 4), None, shape=(1, 4, 4, 5))
    assert not apply(b.model(z), "equalize").touched


def test_a_bias_of_another_rank_keeps_its_shape() -> None:
    b = Builder()
    x = b.input("x", (1, 4, 4, 2))
    y = b.op("CONV_2D", x, noise(8, 1, 1, 2), noise(8, 1), fused_activation_function="RELU")
    model = b.model(b.op("CONV_2D", y, noise(5, 1, 1, 8), None))
    made = apply(model, "equalize").model.main.ops[0].inputs[2]
    assert made is not None and made.shape == (8, 1)
