"""One scale for each tensor: groups, dictated scales, and who is converted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import litesmith
from litesmith.ir.build import Builder
from litesmith.ir.ops import OPS
from litesmith.ir.types import Model, Quant, Tensor
from litesmith.passes.core.recipe import apply
from litesmith.passes.quantizing.scales import FLOAT, chosen_form, covered, form_of, hull, quant_of
from tests.quantized import TARGETS, broken_laws, results, snr
from tests.zoo import noise
from tests.zoo_float import context, conv, dense, few, image

NUMBERS = st.floats(-(2.0**99), 2.0**99, width=32)


@given(NUMBERS, NUMBERS, st.sampled_from(["int8", "int16"]))
def test_a_form_covers_its_range_and_stores_zero(a: float, b: float, dtype: str) -> None:
    low, high = min(a, b), max(a, b)
    form = chosen_form(dtype, (low, high))
    reached = covered(form)
    step = form[1]
    assert reached[0] <= min(low, 0) + step and reached[1] >= max(high, 0) - step
    info = np.iinfo(dtype)
    assert info.min <= form[2] <= info.max and (dtype == "int8" or form[2] == 0)


@given(NUMBERS, NUMBERS, st.sampled_from(["int8", "int16"]))
def test_a_form_is_stored_as_it_is(a: float, b: float, dtype: str) -> None:
    form = chosen_form(dtype, (min(a, b), max(a, b)))
    assert form_of(Tensor("t", (1,), dtype, quant=quant_of(form))) == form


def test_what_has_no_single_form() -> None:
    assert form_of(Tensor("t", (2,))) == FLOAT
    assert form_of(Tensor("t", (2,), "int32")) is None
    assert form_of(Tensor("t", (2,), "int8", quant=Quant.of(np.ones(2, np.float32)))) is None
    assert quant_of(FLOAT) is None


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1))
def test_a_hull_holds_all(spans: list[tuple[float, float]]) -> None:
    low, high = hull(spans)
    assert all(low <= a and b <= high for a, b in spans)


def quantized(model: Model, settings: str = "io=int8") -> Model:
    result = apply(model, f"quantize({settings})", context(model)).model
    assert broken_laws(result) == []
    return result


def kinds(model: Model) -> list[str]:
    return [op.kind for op in model.main.ops]


def test_a_group_has_the_scale_of_its_widest_member() -> None:
    b = Builder()
    x = image(b)
    narrow, wide = conv(b, x, 2), b.op("CONV_2D", x, noise(2, 1, 1, 8, scale=30), noise(2))
    model = quantized(b.model(b.op("CONCATENATION", narrow, wide, axis=3)))
    assert kinds(model) == ["CONV_2D", "CONV_2D", "CONCATENATION"]


@pytest.mark.parametrize("between", ["nothing", "CONV_2D", "RESHAPE", "MAX_POOL_2D"])
@pytest.mark.parametrize("io", ["float", "int8"])
def test_another_reader_of_a_narrow_member_does_not_suffer(between: str, io: str) -> None:
    """What is concatenated with something far wider is read by a layer, too."""
    b = Builder()
    x, y = b.input("x", (1, 6, 6, 8)), b.input("y", (1, 6, 6, 8))
    wide = b.op("CONV_2D", y, noise(3, 1, 1, 8, scale=30), noise(3))
    if between != "nothing":
        x = conv(b, x, 8)
    if between == "RESHAPE":
        x = b.op("RESHAPE", x, [1, 6, 6, 8])
    if between == "MAX_POOL_2D":
        x = b.op("MAX_POOL_2D", x, filter_height=2, filter_width=2)
    joined = b.op("CONCATENATION", x, wide, axis=3)
    model = b.model(joined, conv(b, x, 4, 4))
    data = few(model)
    for target in TARGETS:
        wanted, got = results(model, data), results(quantized(model, f"io={io}"), data, target)
        assert min(snr(a, b) for a, b in zip(wanted, got, strict=True)) >= 30


@pytest.mark.parametrize("kind", ["SOFTMAX", "LOGISTIC", "TANH"])
@pytest.mark.parametrize("to", ["int8", "int16x8"])
def test_a_dictated_scale_is_taken_over_where_values_fit(kind: str, to: str) -> None:
    b = Builder()
    x = b.op(kind, dense(b, b.input("x", (1, 40)), 8))
    x = b.op("CONCATENATION", b.op("RESHAPE", x, [1, 8]), x, axis=1)
    model = b.model(dense(b, x, 3))
    io = {"int8": "int8", "int16x8": "int16"}[to]
    graph = quantized(model, f"to={to}, io={io}").main
    assert not {"QUANTIZE", "DEQUANTIZE"} & {op.kind for op in graph.ops}
    scale = OPS[kind].fixed[io][0]
    joined = next(op for op in graph.ops if op.kind == "CONCATENATION").outputs[0]
    assert form_of(joined) == (io, float(np.float32(scale)), OPS[kind].fixed[io][1])


def test_a_dictated_scale_is_converted_where_values_do_not_fit() -> None:
    b = Builder()
    x = dense(b, b.input("x", (1, 40)), 8)
    model = b.model(dense(b, b.op("CONCATENATION", b.op("LOGISTIC", x), x, axis=1), 3))
    assert kinds(quantized(model)).count("QUANTIZE") == 1


def test_two_dictated_scales_meet() -> None:
    """One of them may serve both; neither is stored beyond its reach."""
    b = Builder()
    x = dense(b, b.input("x", (1, 40)), 8)
    both = b.op("CONCATENATION", b.op("LOGISTIC", x), b.op("TANH", x), axis=1)
    model = b.model(both)
    assert kinds(quantized(model)).count("QUANTIZE") <= 2
    data = few(model)
    for target in TARGETS:
        assert snr(results(model, data)[0], results(quantized(model), data, target)[0]) > 28


def test_constants_are_held_by_their_group() -> None:
    """A constant that is wider than all that was seen is not clipped."""
    b = Builder()
    x = conv(b, image(b), 2)
    far = b.const(np.full((1, 6, 6, 1), 500, np.float32))
    model = b.model(b.op("CONCATENATION", x, far, axis=3))
    (got,) = results(quantized(model), few(model))
    np.testing.assert_allclose(got[..., 2], 500, rtol=0.01)


def test_one_constant_for_two_scales() -> None:
    b = Builder()
    one = b.const(np.full(4, 0.7, np.float32))
    x = conv(b, image(b), 4)
    y = b.op("MAXIMUM", b.op("MUL", x, np.float32(50)), one)
    model = b.model(b.op("MAXIMUM", x, one), y)
    data = few(model)
    for a, b_ in zip(results(model, data), results(quantized(model), data), strict=True):
        assert snr(a, b_) > 25


@pytest.mark.parametrize("activation", ["RELU6", "RELU_N1_TO_1", "RELU"])
def test_a_fused_activation_bounds_the_range(activation: str) -> None:
    b = Builder()
    x = b.op("CONV_2D", image(b), noise(4, 3, 3, 8, scale=9), noise(4))
    x = b.op("CONV_2D", x, noise(4, 1, 1, 4), noise(4), fused_activation_function=activation)
    low, high = {"RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1), "RELU": (0, np.inf)}[activation]
    form = form_of(quantized(b.model(x)).main.outputs[0])
    assert form is not None
    reached = covered(form)
    assert low - form[1] <= reached[0] <= low + form[1] and reached[1] <= high + form[1]


def test_an_infinite_bound_limits_nothing() -> None:
    """As a clip without an upper end is written."""
    b = Builder()
    hidden = b.op("FULLY_CONNECTED", b.input("x", (1, 64)), noise(64, 64), None)
    clipped = b.op("MAXIMUM", b.op("MINIMUM", hidden, np.float32(np.inf)), np.float32(0))
    model = b.model(b.op("FULLY_CONNECTED", clipped, noise(8, 64), None))
    data = noise(64, 64, seed=1)
    made = litesmith.apply(model, "quantize", data).model
    found = litesmith.evaluate(made, data, against=model, metric="snr")
    assert found.value is not None and found.value > 25
