"""Which ops are better left float: by costs that are given, not measured."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from litesmith.calibration.observe import tools
from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.recipe import apply, parse, text_of
from litesmith.passes.core.step import Context
from litesmith.passes.quantizing.integer_graph import conversions
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.precision.fastest_forms import (
    FastestForms,
    apply_forms,
    estimate_forms,
    fastest_forms,
    find_fastest,
    names_of,
    slower_kinds,
)
from litesmith.precision.form_costs import FormCosts, estimated_costs, form_costs
from litesmith.run.core.target import Target
from tests.draws import draws
from tests.zoo import noise
from tests.zoo_float import FLOATS, few

SIDE, CHANNELS = 32, 16
BASE = parse("cleanup | fold | fuse | quantize | correct")


def faces(blocks: int = 4, kind: str = "PRELU", slope: float | None = None) -> Model:
    """Convolutions with an activation between them that has no fast integer kernel."""
    b = Builder()
    x = b.input("x", (1, SIDE, SIDE, CHANNELS))
    for number in range(blocks):
        weight = noise(CHANNELS, 3, 3, CHANNELS, seed=number, scale=0.1)
        x = b.op("CONV_2D", x, weight, noise(CHANNELS, seed=number + 50, scale=0.1))
        if kind == "PRELU":
            slopes = np.abs(noise(1, 1, CHANNELS, seed=number + 90)) / 4
            x = b.op("PRELU", x, np.full_like(slopes, slope) if slope else slopes)
        else:
            x = b.op(kind, x)
    return b.model(x)


def quantized(model: Model) -> Model:
    return apply(model, "quantize", Context(tools(few(model, 2), threads=1))).model


def given_costs(model: Model, integer: dict[str, float], conversion: float) -> FormCosts:
    """Ten microseconds for every op in float; in integers by kind."""
    outputs = [*model.main.inputs, *(t for op in model.main.ops for t in op.outputs)]
    return FormCosts(
        (10.0,) * len(model.main.ops),
        tuple(integer.get(op.kind) for op in model.main.ops),
        dict.fromkeys(outputs, conversion),
    )


def test_what_is_slow_in_integers_stays_float_by_kind() -> None:
    model = faces()
    found = find_fastest(model, given_costs(model, {"CONV_2D": 3.0, "PRELU": 99.0}, 1.0))
    assert found.keep == ("PRELU",)
    assert [(one.kind, one.ops, one.integer_us, one.float_us) for one in found.kept] == [
        ("PRELU", 4, 396.0, 40.0)
    ]
    # Four convolutions, four activations, and a conversion before and after each convolution.
    assert found.predicted_us == 4 * 3.0 + 4 * 10.0 + 8 * 1.0
    assert found.integer_us == 4 * 3.0 + 4 * 99.0 + 2 * 1.0
    assert found.float_us == 80.0


def test_dear_conversions_leave_all_in_integers_or_layers_alone() -> None:
    model = faces()
    dear = find_fastest(model, given_costs(model, {"CONV_2D": 3.0, "PRELU": 11.0}, 50.0))
    assert dear.keep == () and dear.predicted_us == dear.integer_us
    hopeless = find_fastest(model, given_costs(model, {"CONV_2D": 30.0, "PRELU": 99.0}, 1.0))
    assert hopeless.keep == ("PRELU",), "layers are integers all the same: that was asked for"
    assert hopeless.by_kind is None, "no layer would be left to quantize"


@given(st.sets(st.sampled_from(range(8))))
@draws(20)
def test_names_stand_for_the_same_ops(kept: set[int]) -> None:
    model = faces()
    step = Quantize(keep=names_of(model.main, sorted(kept)))
    assume(not kept >= {n for n in range(8) if model.main.ops[n].kind == "CONV_2D"})
    made = apply(model, (step,), Context(tools(few(model, 2), threads=1))).model
    real = [op for op in made.main.ops if op not in conversions(made.main).ops]
    assert {n for n, op in enumerate(real) if op.outputs[0].quant is None} == kept


def test_the_table_knows_prelu_and_leaves_plain_networks_alone() -> None:
    found = estimate_forms(faces(), BASE)
    assert found is not None and found.is_other and found.predicted_us < found.integer_us
    plain = estimate_forms(faces(kind="LEAKY_RELU"), BASE)
    assert plain is not None and not plain.is_other


def test_one_slope_is_said_as_leaky_relu() -> None:
    found = estimate_forms(faces(slope=0.25), BASE)
    assert found is not None and found.rewrites == ("PRELU:LEAKY_RELU",)
    assert "rewrite(ops=[PRELU:LEAKY_RELU]) | quantize" in text_of(apply_forms(BASE, found))


def decoder(channels: int) -> Model:
    """An image enlarged twice, each time with a layer behind it."""
    b = Builder()
    x = b.input("x", (1, 16, 16, channels))
    for size in (32, 64):
        x = b.op("RESIZE_NEAREST_NEIGHBOR", x, [size, size], half_pixel_centers=True, version=3)
        x = b.op("CONV_2D", x, noise(channels, 1, 1, channels), noise(channels))
    return b.model(x)


def test_few_channels_are_repeated_by_concatenation_and_many_are_not() -> None:
    way = "RESIZE_NEAREST_NEIGHBOR:CONCATENATION"
    narrow, wide = (estimate_forms(decoder(channels), BASE) for channels in (8, 256))
    assert narrow is not None and narrow.rewrites == (way,)
    plain = find_fastest(decoder(8), estimated_costs(decoder(8), quantized(decoder(8))))
    assert narrow.predicted_us < plain.predicted_us
    assert wide is not None and not wide.rewrites


def beside(kind: str) -> Model:
    """An op whose input others read too, so that nothing fuses with it; layers around it."""
    b = Builder()
    x = b.input("x", (1, 56, 56, 32))
    for number in range(2):
        y = b.op("CONV_2D", x, noise(32, 3, 3, 32, seed=number, scale=0.1), noise(32))
        both = b.op("CONCATENATION", y, b.op(kind, y), axis=3)
        x = b.op("CONV_2D", both, noise(32, 1, 1, 64, seed=number, scale=0.1), noise(32))
    return b.model(x)


def pooled(window: int, stride: int) -> Model:
    b = Builder()
    x = b.input("x", (1, 56, 56, 32))
    for number in range(2):
        x = b.op("CONV_2D", x, noise(32, 3, 3, 32, seed=number, scale=0.1), noise(32))
        x = b.op(
            "AVERAGE_POOL_2D",
            x,
            padding="VALID",
            filter_height=window,
            filter_width=window,
            stride_h=stride,
            stride_w=stride,
        )
    return b.model(b.op("CONV_2D", x, noise(32, 1, 1, 32), noise(32)))


@pytest.mark.parametrize("kind", ["RELU", "RELU6", "RELU_N1_TO_1"])
def test_an_activation_that_nothing_takes_in_is_a_clamp_in_integers(kind: str) -> None:
    found = estimate_forms(beside(kind), BASE)
    assert found is not None and found.rewrites == (f"{kind}:MAX_POOL_2D",) and not found.keep
    assert found.predicted_us < 0.5 * find_fastest_of(beside(kind)).integer_us


def find_fastest_of(model: Model) -> FastestForms:
    return find_fastest(model, estimated_costs(model, quantized(model)))


def test_small_pools_are_convolutions_in_integers_and_large_ones_are_not() -> None:
    small, large = (estimate_forms(pooled(size, 2), BASE) for size in (2, 7))
    assert small is not None and large is not None
    assert small.rewrites == ("AVERAGE_POOL_2D:DEPTHWISE_CONV_2D",)
    assert not large.rewrites and "AVERAGE_POOL_2D" in large.keep


def test_two_scores_at_many_places_are_a_logistic_in_float() -> None:
    """A softmax takes its time for each place, and so does an int8 layer of two channels."""
    b = Builder()
    x = b.op("CONV_2D", b.input("x", (1, 64, 64, 32)), noise(32, 3, 3, 32, scale=0.1), noise(32))
    two = b.op("CONV_2D", x, noise(2, 1, 1, 32), noise(2))
    found = estimate_forms(b.model(b.op("SOFTMAX", two, beta=1.0)), BASE)
    assert found is not None and found.rewrites == ("SOFTMAX:LOGISTIC",)
    assert "LOGISTIC" in found.keep and "FULLY_CONNECTED" in found.keep


def test_a_recipe_takes_what_was_found() -> None:
    found = FastestForms(("PRELU", 3), 1.0, 2.0, 3.0)
    told = text_of(apply_forms(parse("fuse | quantize(ranges=mse) | correct"), found))
    assert told == "fuse | quantize(keep=[PRELU, 3], ranges=mse) | correct"
    assert text_of(apply_forms(parse("qat"), found)) == "qat(keep=[PRELU, 3])"
    stored = FastestForms(("LSTM",), 1.0, 2.0, 3.0, stored=("LSTM",))
    told = text_of(apply_forms(parse("quantize | correct"), stored))
    assert told == "quantize(keep=[LSTM]) | quantize(to=dynamic, only=[LSTM]) | correct"
    told = text_of(apply_forms(parse("quantize | correct"), stored._replace(is_all=True)))
    assert told == "quantize(to=dynamic, only=[LSTM]) | correct"


@pytest.mark.parametrize("name", sorted(set(FLOATS) - {"branches", "branching", "looping"}))
def test_every_model_has_costs_and_a_choice_that_can_be_made(name: str) -> None:
    data = few(FLOATS[name](), 2)
    context = Context(tools(data, threads=1))
    model = apply(FLOATS[name](), "cleanup | fold(float16=true) | fuse", context).model
    costs = estimated_costs(model, quantized(model))
    assert len(costs.floats) == len(costs.integers) == len(model.main.ops)
    found = find_fastest(model, costs)
    assert found.predicted_us <= found.integer_us + 1e-6
    apply(model, (replace(Quantize(), keep=found.keep),), context)


def test_times_are_measured_once_and_kept() -> None:
    """The second time nothing runs: the very same numbers come back."""
    model, target = faces(2), Target.parse("cpu:1")
    first = form_costs(model, quantized(model), target, 8)
    assert all(us >= 0 for us in first.floats) and any(us > 0 for us in first.floats)
    found = fastest_forms(model, BASE, target, 8)
    assert found is not None and found.predicted_us > 0
    assert slower_kinds(model, BASE, quantized(model), target, 8) is not None


def test_where_ops_cannot_be_timed_there_is_no_choice() -> None:
    assert fastest_forms(faces(2), BASE, Target.parse("numpy")) is None


LSTM = "UNIDIRECTIONAL_SEQUENCE_LSTM"


def reading(units: int, *layers: int, inputs: int = 64) -> Model:
    """An LSTM, and layers behind it."""
    b = Builder()
    x = b.input("x", (1, 12, inputs))
    weights = [noise(units, inputs, seed=s, scale=0.1) for s in range(4)]
    recurrent = [noise(units, units, seed=s, scale=0.05) for s in range(4)]
    biases = [noise(units, seed=s) for s in range(4)]
    states = [Tensor(name, (1, units), variable=True) for name in ("h", "c")]
    gates = (*weights, *recurrent, *[None] * 3, *biases, None, None, *states)
    x = b.op(LSTM, x, *gates, fused_activation_function="TANH")
    for number, width in enumerate(layers):
        weight = noise(width, x.shape[-1], seed=number, scale=0.1)
        x = b.op("FULLY_CONNECTED", x, weight, noise(width), keep_num_dims=True)
    return b.model(x)


@pytest.mark.parametrize("layers", [(), (16,)])
def test_a_model_that_keeps_a_state_is_timed_as_a_whole(layers: tuple[int, ...]) -> None:
    """Its LSTM is in the form that runs fastest; alone, it is not float with float weights, for a
    small file was asked for."""
    model = reading(128, *layers)
    found = fastest_forms(model, BASE, Target.parse("cpu:1"), 8)
    assert found is not None and found.by_runs
    assert found.predicted_us <= found.integer_us
    assert set(found.stored) <= {LSTM}
    assert found.is_all == (not layers and found.is_other)
    made = apply_forms(parse("cleanup | fuse | quantize"), found)
    after = apply(model, made, Context(tools(few(model, 2), threads=1))).model
    (op,) = [op for op in after.main.ops if op.kind == LSTM]
    assert layers or all(t is not None and t.dtype == "int8" for t in op.inputs[1:9])


def test_an_lstm_too_small_for_int8_weights_may_still_stay_float() -> None:
    model = reading(4, 16, inputs=8)
    found = fastest_forms(model, BASE, Target.parse("cpu:1"), 8)
    assert found is not None and found.by_runs and not found.is_all


@pytest.mark.parametrize("slow_us", [11.0, 99.0])
def test_what_was_measured_as_a_whole_is_what_is_predicted(slow_us: float) -> None:
    """Times of ops beside other ops added up to 1.8 times the run of a small model."""
    model = faces()
    plain = given_costs(model, {"CONV_2D": 3.0, "PRELU": slow_us}, 1.0)
    added, known = (find_fastest(model, plain._replace(integer_us=us)) for us in (None, 50.0))
    assert known.integer_us == 50.0 and known.keep == added.keep
    share = 0.5 if known.keep else 0.0
    # What the sum was off by belongs to the ops that are still there.
    left = added.predicted_us / added.integer_us if known.keep else 1.0
    moved = (1 - share) * (50.0 - added.integer_us) * left
    assert known.predicted_us == pytest.approx(added.predicted_us + moved)
