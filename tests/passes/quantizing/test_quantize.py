"""The laws of `quantize`, for every scheme on every sort of float model, judged by stock LiteRT."""

from itertools import product

import numpy as np
import pytest

from litesmith.calibration.observe import tools
from litesmith.errors import BadInput, CannotApply, LitesmithError
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply, parse
from litesmith.passes.core.step import Context
from litesmith.tflite.write import to_bytes
from tests.pairwise import sampled
from tests.quantized import CONVERSIONS, TARGETS, broken_laws, results, snr
from tests.refusals import fitting, refused
from tests.zoo import MODELS, noise
from tests.zoo_float import FLOATS, Few, context, few

# Signal to noise, in decibels, that each scheme reaches on every model of the zoo.
LEAST = {
    "quantize": 25,
    "quantize(per_channel=false)": 20,
    "quantize(ranges=mse)": 25,
    "quantize(ranges=percentile)": 25,
    "quantize(to=int16x8)": 36,
    "quantize(to=w4a8)": 5,
    "quantize(to=float16)": 55,
    "quantize(to=dynamic)": 30,
    "quantize(to=dynamic-int4)": 5,
    "quantize(to=weight-int8)": 33,
    "quantize(to=weight-int8, per_channel=false)": 25,
    "quantize(to=weight-int4)": 5,
    "quantize(only=[0]) | quantize(to=int16x8)": 25,
    "quantize(to=int16x8, only=[0]) | quantize(to=dynamic)": 30,
    "quantize(to=weight-int8, only=[0]) | quantize": 25,
    "quantize(to=dynamic, only=[0]) | quantize": 25,
}

# What no scheme can keep, and why.
BEYOND = {"tiny_output": "products a million times larger than their sum"}

IO = [
    ("quantize(io=int8)", "int8"),
    ("quantize(io=uint8)", "uint8"),
    ("quantize(to=int16x8, io=int16)", "int16"),
    ("quantize(to=int16x8, only=[0]) | quantize(io=uint8)", "uint8"),
    ("quantize(only=[0], io=uint8) | quantize(to=int16x8)", "uint8"),
]

# Models in which every op has an int8 kernel.
WHOLE = sorted(
    set(FLOATS)
    - {"careless", "branches", "recurrent", "branching", "looping", "float_in_the_middle"}
    - {"passed_on", "constant_output", "weighted_by_input"}
)


def near(model: Model, quantized: Model, least: float) -> None:
    data = few(model)
    wanted = results(model, data)
    for target in TARGETS:
        for a, b in zip(wanted, results(quantized, data, target), strict=True):
            assert np.isfinite(b).all()
            assert snr(a, b) >= least, target


def schemes_of(recipe: str) -> tuple[str, ...]:
    """The types that a recipe quantizes to, of all its settings."""
    return tuple(step.to for step in parse(recipe))


SCHEMES_OF_MODELS = list(product(LEAST, FLOATS))
BOTH_ENDS = list(product((recipe for recipe, _ in IO), FLOATS))
BY_SCHEME = (
    lambda pair: (schemes_of(pair[0])[0], pair[1]),
    lambda pair: (schemes_of(pair[0])[-1], pair[1]),
    lambda pair: pair[0],
)


@pytest.mark.parametrize(
    ("recipe", "name", "words"), sampled(refused(SCHEMES_OF_MODELS + BOTH_ENDS), *BY_SCHEME)
)
def test_what_does_not_fit_is_refused_in_a_line(recipe: str, name: str, words: str) -> None:
    model = FLOATS[name]()
    before = to_bytes(model)
    with pytest.raises(CannotApply, match=words) as caught:
        apply(model, recipe, context(model))
    assert "\n" not in str(caught.value)
    assert to_bytes(model) == before, "the input was changed"


@pytest.mark.parametrize(("recipe", "name"), sampled(fitting(SCHEMES_OF_MODELS), *BY_SCHEME))
def test_every_scheme(recipe: str, name: str) -> None:
    model = FLOATS[name]()
    before = to_bytes(model)
    quantized = apply(model, recipe, context(model)).model
    assert to_bytes(model) == before, "the input was changed"
    assert broken_laws(quantized) == []
    assert to_bytes(apply(FLOATS[name](), recipe, context(model)).model) == to_bytes(quantized)
    for ours, theirs in zip(model.main.inputs, quantized.main.inputs, strict=True):
        assert (ours.name, ours.shape, ours.dtype, ours.dynamic) == (
            (theirs.name, theirs.shape, theirs.dtype, theirs.dynamic)
        )
    assert [t.name for t in quantized.main.outputs] == [t.name for t in model.main.outputs]
    assert quantized.metadata == model.metadata and quantized.attached == model.attached
    near(model, quantized, -200 if name in BEYOND else LEAST[recipe])


@pytest.mark.parametrize(("recipe", "name"), sampled(fitting(BOTH_ENDS), *BY_SCHEME))
def test_inputs_and_outputs_in_integers(recipe: str, name: str) -> None:
    model, dtype = FLOATS[name](), dict(IO)[recipe]
    quantized = apply(model, recipe, context(model)).model
    assert broken_laws(quantized) == []
    near(model, quantized, -200 if name in BEYOND else 20)
    change = apply(model, recipe, context(model))
    left = " ".join(skip.where for skip in change.skipped)
    ends = (*quantized.main.inputs, *quantized.main.outputs)
    given = (*model.main.inputs, *model.main.outputs)
    for ours, theirs in zip(given, ends, strict=True):
        if ours.dtype == "float32" and "only" not in recipe:
            assert theirs.dtype == dtype or repr(ours.name) in left
        assert ours.dtype == "float32" or theirs.dtype == ours.dtype
    for signature in quantized.signatures:
        assert {t for _, t in (*signature.inputs, *signature.outputs)} == set(ends)
    ours, theirs = model.signatures, quantized.signatures
    assert [s.key for s in ours] == [s.key for s in theirs]
    assert [[n for n, _ in (*s.inputs, *s.outputs)] for s in ours] == [
        [n for n, _ in (*s.inputs, *s.outputs)] for s in theirs
    ]


@pytest.mark.parametrize("name", WHOLE)
def test_what_can_be_integer_is_integer_throughout(name: str) -> None:
    """No float tensor inside; conversions only between the scales that kernels dictate."""
    model = FLOATS[name]()
    graph = apply(model, "quantize(io=int8)", context(model)).model.main
    assert [t.name for t in graph.tensors if t.dtype == "float32"] == []
    kinds = [op.kind for op in graph.ops if op.kind in CONVERSIONS]
    assert "DEQUANTIZE" not in kinds
    assert len(kinds) <= {"fixed_scales": 3, "different_ranges": 1, "picked": 1}.get(name, 0)


@pytest.mark.parametrize("recipe", ["quantize", "quantize | correct", "quantize(to=w4a8) | round"])
def test_threads_do_not_matter(recipe: str) -> None:
    model = FLOATS["convnet"]()
    one, two = (
        apply(model, recipe, Context(tools(few(model), threads=threads))).model
        for threads in (1, 2)
    )
    assert to_bytes(one) == to_bytes(two)


@pytest.mark.parametrize("settings", ["", "ranges=mse", "ranges=percentile", "to=int16x8"])
@pytest.mark.parametrize("name", ["residual", "fixed_scales", "picked"])
def test_the_order_of_samples_does_not_matter(name: str, settings: str) -> None:
    model = FLOATS[name]()
    data = few(model, 12)
    order = np.random.default_rng(3).permutation(12)
    turned = Few(tuple(data.rows[place] for place in order))
    one, two = (
        apply(model, f"quantize({settings})", Context(tools(d, threads=1))).model
        for d in (data, turned)
    )
    assert to_bytes(one) == to_bytes(two)


def test_metadata_stays() -> None:
    model = FLOATS["described"]()
    quantized = apply(model, "quantize(io=int8)", context(model)).model
    assert quantized.metadata == model.metadata
    assert quantized.attached == model.attached
    assert quantized.rest == model.rest


# Names.


@pytest.mark.parametrize("names", ["[99]", "[-1]", "[nothing]", '["conv*x"]', '[""]', "[0, TANH]"])
@pytest.mark.parametrize("setting", ["keep", "only"])
@pytest.mark.parametrize("to", ["int8", "dynamic"])
def test_unknown_names(names: str, setting: str, to: str) -> None:
    model = FLOATS["residual"]()
    with pytest.raises(BadInput, match="no op"):
        apply(model, f"quantize(to={to}, {setting}={names})", context(model))


@pytest.mark.parametrize("names", ["[1]", "[conv_2d]", '["conv_2d_6"]', '["*_6", 0]'])
def test_only_changes_only_these(names: str) -> None:
    model = FLOATS["residual"]()
    chosen = {
        "[1]": {1},
        "[conv_2d]": {0, 1, 2},
        '["conv_2d_6"]': {1},
        '["*_6", 0]': {0, 1},
    }[names]
    left = {0, 1, 2, 3} - chosen
    for settings, others in (("only", chosen), *((("keep", left),) if left != {3} else ())):
        graph = apply(model, f"quantize({settings}={names})", context(model)).model.main
        ops = [op for op in graph.ops if op.kind not in CONVERSIONS]
        assert {n for n, op in enumerate(ops) if op.outputs[0].quant is not None} == others


def test_only_of_the_weights() -> None:
    model = FLOATS["convnet"]()
    model = apply(model, "quantize(to=dynamic, only=[FULLY_CONNECTED])").model
    coded = [op for op in model.main.ops if any(t is not None and t.quant for t in op.inputs)]
    assert [op.kind for op in coded] == ["FULLY_CONNECTED"]


@pytest.mark.parametrize(
    "settings",
    [
        *("to=int7", "io=int4", "ranges=widest", "io=int16", "to=dynamic, io=int8"),
        *("block=32", "to=dynamic-int4, block=-1", "to=int16x8, block=32"),
    ],
)
def test_settings_that_do_not_fit(settings: str) -> None:
    model = FLOATS["residual"]()
    with pytest.raises(BadInput, match="quantize"):
        apply(model, f"quantize({settings})", context(model))


def test_no_data() -> None:
    with pytest.raises(BadInput, match="data"):
        apply(FLOATS["residual"](), "quantize")
    with pytest.raises(BadInput, match="no samples"):
        apply(FLOATS["residual"](), "quantize", Context(tools(Few(()))))


@pytest.mark.parametrize("name", ["residual_int8", "legacy_uint8", "int4_weights"])
def test_a_quantized_model_is_refused_with_what_it_is(name: str) -> None:
    model = MODELS[name]()
    with pytest.raises(CannotApply, match="quantized already"):
        apply(model, "quantize", context(model))


# Numbers that are hard to hold.


def layer(weight: np.ndarray, bias: np.ndarray | None) -> Model:
    b = Builder()
    x = b.input("x", (1, weight.shape[1]))
    return b.model(b.op("FULLY_CONNECTED", x, weight, bias))


@pytest.mark.parametrize("recipe", ["quantize", "quantize(to=int16x8)", "quantize(to=w4a8)"])
@pytest.mark.parametrize("after", ["", " | correct", " | round"])
def test_dead_channels_give_their_bias(recipe: str, after: str) -> None:
    model = FLOATS["dead_channel"]()
    data = few(model)
    quantized = apply(model, recipe + after, context(model)).model
    assert broken_laws(quantized) == []
    for target in TARGETS:
        (got,) = results(quantized, data, target)
        np.testing.assert_allclose(got[..., 1], 100, rtol=0.01)
        np.testing.assert_allclose(got[..., 2], 50, rtol=0.01)


@pytest.mark.parametrize("to", ["int8", "int16x8", "w4a8"])
@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e3, 1e6])
def test_a_bias_of_any_size(to: str, size: float) -> None:
    model = layer(noise(8, 40), noise(8, seed=1) * np.float32(size))
    near(model, apply(model, f"quantize(to={to})", context(model)).model, 14)


@pytest.mark.parametrize("size", [1e-30, 1e-9, 1e9, 1e30])
@pytest.mark.parametrize("to", ["int8", "int16x8", "w4a8"])
def test_weights_of_any_size(to: str, size: float) -> None:
    model = layer(noise(8, 40) * np.float32(size), noise(8, seed=1))
    near(model, apply(model, f"quantize(to={to})", context(model)).model, 14)


def test_an_output_far_finer_than_its_products_opens() -> None:
    """The runtime does not open a model whose products have 256 times the output's step."""
    for size in (10.0, 1e3, 1e6):
        b = Builder()
        x = b.input("x", (1, 8))
        pair = b.op("CONCATENATION", x, b.op("MUL", x, np.float32(-1)), axis=1)
        weight = np.full((3, 16), size, np.float32)
        model = b.model(b.op("FULLY_CONNECTED", pair, weight, np.full(3, 1e-3, np.float32)))
        quantized = apply(model, "quantize", context(model)).model
        assert broken_laws(quantized) == []
        for target in TARGETS:
            assert np.isfinite(results(quantized, few(model), target)).all()


@pytest.mark.parametrize("recipe", ["quantize", "quantize(to=int16x8)", "quantize | round"])
def test_nothing_but_zeros(recipe: str) -> None:
    zeros = np.zeros((8, 40), np.float32)
    for weight, bias in ((zeros, zeros[:, 0]), (zeros, noise(8)), (noise(8, 40), noise(8))):
        model = layer(weight, bias)
        silent = Few(((np.zeros((1, 40), np.float32),),) * 3)
        quantized = apply(model, recipe, Context(tools(silent, threads=1))).model
        wanted, got = results(model, silent), results(quantized, silent)
        np.testing.assert_allclose(got[0], wanted[0], atol=0.01)


def test_tensors_of_no_elements() -> None:
    b = Builder()
    y = b.op("FULLY_CONNECTED", b.input("x", (1, 40)), noise(8, 40), noise(8))
    none = b.op("SLICE", y, [0, 0], [1, 0], shape=(1, 0))
    model = b.model(b.op("CONCATENATION", none, y, axis=1))
    near(model, apply(model, "quantize", context(model)).model, 30)
    b = Builder()
    empty = b.model(b.op("FULLY_CONNECTED", b.input("x", (0, 40)), noise(8, 40), noise(8)))
    for recipe in ("quantize", "quantize | correct", "quantize | round"):
        try:
            assert broken_laws(apply(empty, recipe, context(empty)).model) == []
        except LitesmithError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["data", "weight", "bias"])
def test_what_is_no_number_is_named(number: float, where: str) -> None:
    weight, bias, x = noise(8, 40), noise(8), noise(1, 40)
    {"data": x, "weight": weight, "bias": bias}[where].reshape(-1)[3] = number
    with pytest.raises(LitesmithError, match="infinite or not") as caught:
        apply(layer(weight, bias), "quantize", Context(tools(Few(((x,),)))))
    assert "\n" not in str(caught.value)
    assert where == "data" or "data or its" not in str(caught.value), "the data is not to blame"


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_constant_that_is_no_number_is_named(number: float) -> None:
    b = Builder()
    y = b.op("FULLY_CONNECTED", b.input("x", (1, 40)), noise(8, 40), noise(8))
    model = b.model(b.op("ADD", y, np.full(8, number, np.float32)))
    with pytest.raises(CannotApply, match="infinite or not numbers; keep that op"):
        apply(model, "quantize", context(layer(noise(8, 40), noise(8))))


@pytest.mark.parametrize("to", ["int8", "dynamic"])
def test_where_all_layers_are_kept_no_word_is_said_of_their_weights(to: str) -> None:
    with pytest.raises(CannotApply, match="left to change beside those that are kept"):
        apply(layer(noise(8, 40), noise(8)), f"quantize(to={to}, keep=[FULLY_CONNECTED])")


def test_weights_too_large_for_any_scale_are_named() -> None:
    weight, x = noise(8, 40), np.zeros((1, 40), np.float32)
    weight[0, 0] = 1e38
    x[0, 1] = 1e7
    with pytest.raises(CannotApply, match="so large that its results have no scale"):
        apply(layer(weight, noise(8)), "quantize", Context(tools(Few(((x,),)))))


@pytest.mark.parametrize("to", ["int8", "int16x8"])
def test_a_divisor_that_other_data_makes_nothing_does_not_end_the_run(to: str) -> None:
    b = Builder()
    x = b.input("x", (1, 8))
    model = b.model(b.op("DIV", np.float32(1), b.op("SQRT", x)))
    seen = np.linspace(0.02, 9, 8, dtype=np.float32)[None]
    made = apply(model, f"quantize(to={to}, only=[DIV, SQRT])", Context(tools(Few(((seen,),)))))
    (found,) = results(made.model, Few(((np.zeros((1, 8), np.float32),),)))
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("kind", "to"),
    [*product(["ADD", "SUB"], ["int8", "int16x8"]), ("SQUARED_DIFFERENCE", "int8")],
)
def test_results_that_nearly_cancel_do_not_end_the_process(kind: str, to: str) -> None:
    b = Builder()
    x = b.input("x", (1, 8))
    near = b.op("MUL", x, np.float32(1 + 1e-6))
    near = b.op("NEG", near) if kind == "ADD" else near
    model = b.model(b.op(kind, x, near))
    seen = Few(((noise(1, 8, scale=5),),))
    made = apply(model, f"quantize(to={to}, only=[{kind}])", Context(tools(seen))).model
    (found,) = results(made, seen)
    assert np.abs(found).max() < 1


def test_a_divisor_of_both_signs_stays_float() -> None:
    b = Builder()
    x = b.input("x", (1, 8))
    y = b.op("FULLY_CONNECTED", x, noise(8, 8), noise(8))
    model = b.model(b.op("DIV", y, x))
    change = apply(model, "quantize", context(model))
    assert any("both signs" in skip.why for skip in change.skipped)
    assert [t.dtype for op in change.model.main.ops if op.kind == "DIV" for t in op.outputs] == [
        "float32"
    ]
    with pytest.raises(CannotApply, match="both signs"):
        apply(model, "quantize(only=[DIV])", context(model))
