"""`rewrite`: every way gives the same results, within what it states, and the kind is gone."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import erf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.ir.check import problems
from litesmith.ir.types import Model, Quant, Tensor
from litesmith.passes.core.recipe import apply
from litesmith.passes.rewriting.rewrite import WAYS, ways_for
from litesmith.passes.tidy.resize import Resize
from litesmith.tflite.write import to_bytes
from tests.draws import draws
from tests.op_cases_shaping import CASES
from tests.op_models import build
from tests.op_models import run as answers
from tests.runtime import run
from tests.zoo import hybrid, noise
from tests.zoo_float import context

Make = Callable[[Builder, Tensor], Tensor | tuple[Tensor, ...]]


def unary(kind: str, *constants: np.ndarray, **options) -> Make:
    return lambda b, x: b.op(kind, x, *constants, **options)


def binary(kind: str, other: np.ndarray | None = None, **options) -> Make:
    held = noise(4, seed=3) + 2 if other is None else other
    return lambda b, x: b.op(kind, x, held, **options)


def pooled(kind: str) -> Make:
    size = {"filter_height": 2, "filter_width": 2, "stride_h": 2, "stride_w": 2}
    return unary(kind, **size, fused_activation_function="RELU6")


def averaged(window: tuple[int, int], stride: tuple[int, int], padding: str) -> Make:
    moves = {"stride_h": stride[0], "stride_w": stride[1], "padding": padding}
    size = {"filter_height": window[0], "filter_width": window[1]}
    return unary("AVERAGE_POOL_2D", **size, **moves, fused_activation_function="RELU")


def product(b: Builder, x: Tensor) -> Tensor:
    gate = b.op("RELU6", b.op("ADD", x, np.float32(3)))
    return b.op("MUL", b.op("MUL", x, gate), np.float32(1 / 6))


def quotient(b: Builder, x: Tensor) -> Tensor:
    gate = b.op("ADD", np.float32([3]), x, fused_activation_function="RELU6")
    return b.op("DIV", b.op("MUL", gate, x), np.float32(6))


def windowed(size: int, stride: int = 1, depth: int = 4) -> Make:
    weights = noise(8, size, size, depth)
    moves = {"stride_w": stride, "stride_h": stride, "padding": "SAME"}
    return unary("CONV_2D", weights, noise(8), fused_activation_function="RELU6", **moves)


def joined(b: Builder, x: Tensor) -> Tensor:
    first, last = noise(1, 6, 5, 2), noise(1, 6, 5, 1, seed=1)
    return b.op("CONCATENATION", first, x, last, x, axis=3)


def means(b: Builder, x: Tensor) -> Tensor:
    turned = b.op("TRANSPOSE", x, [0, 3, 1, 2])
    return b.op("MEAN", b.op("MEAN", turned, [3]), [2])


def flattened(b: Builder, x: Tensor) -> Tensor:
    flat = b.op("RESHAPE", b.op("MEAN", x, [1, 2], keep_dims=True), [1, 4])
    return b.op("FULLY_CONNECTED", flat, noise(3, 4), noise(3))


def at_one_place(last: str) -> Make:
    def make(b: Builder, x: Tensor) -> Tensor:
        place = b.op("MEAN", x, [1, 2], keep_dims=True)
        made = b.op("CONV_2D", place, noise(7, 1, 1, 4), noise(7), fused_activation_function="RELU")
        if last == "SQUEEZE":
            return b.op("SQUEEZE", made, squeeze_dims=(1, 2))
        return b.op("RESHAPE", made, [1, 7])

    return make


def parted(kind: str) -> Make:
    def make(b: Builder, x: Tensor) -> tuple[Tensor, ...]:
        if kind == "SPLIT":
            b.op("SPLIT", np.int32(3), x, num_splits=2)
        elif kind == "SPLIT_V":
            b.op("SPLIT_V", x, [1, 5], np.int32(1), num_splits=2)
        else:
            b.op("UNPACK", x, num=4, axis=3)
        return b.last.outputs

    return make


def packed(b: Builder, x: Tensor) -> Tensor:
    return b.op("PACK", x, b.op("RELU", x), values_count=2, axis=2, shape=(1, 6, 2, 5, 4))


def sliced(b: Builder, x: Tensor) -> Tensor:
    return b.op(
        "STRIDED_SLICE",
        x,
        [0, -4, 1, 2],
        [1, 0, -1, 3],
        [1, 1, 1, 1],
        begin_mask=1,
        end_mask=3,
        shrink_axis_mask=8,
    )


def enlarged(window: tuple[int, int], across: int = 5, down: int = 2) -> Make:
    """MediaPipe's transposed convolution, which stock runtimes do not know."""

    def make(b: Builder, x: Tensor) -> Tensor:
        _, high, wide, depth = x.shape
        return b.op(
            "CUSTOM",
            x,
            noise(3, *window, depth),
            noise(3, seed=1),
            custom="Convolution2DTransposeBias",
            custom_options=np.array([1, across, down], "<i4").view(np.uint8),
            shape=(1, high * down, wide * across, 3),
        )

    return make


def enlarged_by_mediapipe(model: Model, x: np.ndarray) -> np.ndarray:
    """What MediaPipe's own CPU code gives: each value is spread over a window of the output."""
    (op,) = model.main.ops
    weights, bias = (tensor.values() for tensor in op.inputs[1:])
    _, across, down = np.frombuffer(bytes(op.rest["custom_options"]), "<i4")
    cut = [
        max(0, reach - (size - 1) % stride - 1)
        for reach, size, stride in zip(
            weights.shape[1:3], x.shape[1:3], (down, across), strict=True
        )
    ]
    _, high, wide, _ = x.shape
    _, window_high, window_wide, _ = weights.shape
    whole = np.zeros((down * (high - 1) + window_high, across * (wide - 1) + window_wide, 3))
    for row, column in np.ndindex(high, wide):
        spread = np.einsum("ohwi,i->hwo", weights, x[0, row, column])
        top, left = row * down, column * across
        whole[top : top + window_high, left : left + window_wide] += spread
    top, left = cut[0] // 2, cut[1] // 2
    bottom, right = cut[0] - top, cut[1] - left
    return whole[top : len(whole) - bottom, left : whole.shape[1] - right][None] + bias


def resized(kind: str, places: tuple[int, int]) -> Make:
    def make(b: Builder, x: Tensor) -> Tensor:
        if places == (1, 1):
            x = b.op("MEAN", x, [1, 2], keep_dims=True)
        return b.op(kind, x, [18, 10], half_pixel_centers=True, version=3)

    return make


# way -> a model with the kind that goes, of an image 6×5 with 4 channels
MODELS: dict[str, Make] = {
    "ABS": unary("ABS"),
    "ABS:MAXIMUM": unary("ABS"),
    "ADD:RANK": binary("ADD", noise(5, 4)),
    "AVERAGE_POOL_2D:ACTIVATION": pooled("AVERAGE_POOL_2D"),
    "AVERAGE_POOL_2D:DEPTHWISE_CONV_2D": averaged((3, 2), (2, 1), "VALID"),
    "AVERAGE_POOL_2D:MEAN": lambda b, x: b.op(
        "AVERAGE_POOL_2D",
        x,
        padding="VALID",
        filter_height=6,
        filter_width=5,
        stride_h=2,
        stride_w=1,
    ),
    "BATCH_MATMUL": binary("BATCH_MATMUL", noise(4, 3)),
    "CONCATENATION": joined,
    "CONV_2D:FULLY_CONNECTED": windowed(1),
    "DIV": binary("DIV"),
    "DIV:HARD_SWISH": quotient,
    "DIV:RANK": binary("DIV", noise(5, 4) + 3),
    "EXPAND_DIMS": binary("EXPAND_DIMS", np.int32(1)),
    "FULLY_CONNECTED": lambda b, x: b.op(
        "FULLY_CONNECTED", x, noise(3, 4), noise(3), keep_num_dims=True, version=5
    ),
    "GELU": unary("GELU"),
    "GELU:LOGISTIC": unary("GELU"),
    "HARD_SWISH": unary("HARD_SWISH"),
    "L2_NORMALIZATION": unary("L2_NORMALIZATION"),
    "LEAKY_RELU": unary("LEAKY_RELU", alpha=0.1),
    "LEAKY_RELU:PRELU": unary("LEAKY_RELU", alpha=-0.3),
    "MAX_POOL_2D:ACTIVATION": pooled("MAX_POOL_2D"),
    "MEAN": binary("MEAN", np.int32([2, 1])),
    "MEAN:JOIN": means,
    "MEAN:KEEP_DIMS": binary("MEAN", np.int32([-1])),
    "MIRROR_PAD": binary("MIRROR_PAD", np.int32([[0, 0], [2, 1], [0, 3], [0, 0]])),
    "MUL:HARD_SWISH": product,
    "MUL:RANK": binary("MUL", noise(5, 4)),
    "NEG": unary("NEG"),
    "PACK": packed,
    "PAD": binary("PAD", np.int32([[0, 0], [1, 0], [0, 0], [2, 3]])),
    "PADV2": lambda b, x: b.op(
        "PADV2", x, np.int32([[0, 0], [1, 0], [0, 2], [0, 0]]), np.float32(0)
    ),
    "PRELU": binary("PRELU", noise(1, 1, 4)),
    "PRELU:LEAKY_RELU": binary("PRELU", np.full((1, 1, 4), 0.2, np.float32)),
    "PRELU:MAXIMUM": binary("PRELU", np.abs(noise(1, 1, 4, scale=0.3))),
    "RELU6:MAX_POOL_2D": unary("RELU6"),
    "RELU:MAX_POOL_2D": unary("RELU"),
    "RELU_0_TO_1": unary("RELU_0_TO_1"),
    "RELU_N1_TO_1:MAX_POOL_2D": unary("RELU_N1_TO_1"),
    "RESHAPE:CONV_2D": at_one_place("RESHAPE"),
    "RESHAPE:FULLY_CONNECTED": flattened,
    "RESIZE_BILINEAR": resized("RESIZE_BILINEAR", (1, 1)),
    "RESIZE_NEAREST_NEIGHBOR": resized("RESIZE_NEAREST_NEIGHBOR", (6, 5)),
    "RESIZE_NEAREST_NEIGHBOR:CONCATENATION": binary("RESIZE_NEAREST_NEIGHBOR", np.int32([12, 20])),
    "SOFTMAX:LOGISTIC": lambda b, x: b.op("SOFTMAX", b.op("RESHAPE", x, [6, 10, 2]), beta=0.7),
    "SPLIT": parted("SPLIT"),
    "SPLIT_V": parted("SPLIT_V"),
    "SQUARE": unary("SQUARE"),
    "RSQRT": lambda b, x: b.op("RSQRT", b.op("ADD", b.op("MUL", x, x), np.float32(0.5))),
    "SQUARED_DIFFERENCE": binary("SQUARED_DIFFERENCE"),
    "SQUEEZE": lambda b, x: b.op("SQUEEZE", x, squeeze_dims=(0,)),
    "SQUEEZE:CONV_2D": at_one_place("SQUEEZE"),
    "STRIDED_SLICE": sliced,
    "SUB": binary("SUB", fused_activation_function="RELU"),
    "SUB:RANK": binary("SUB", noise(5, 4)),
    "TRANSPOSE": binary("TRANSPOSE", np.int32([1, 0, 2, 3])),
    "UNPACK": parted("UNPACK"),
}

# What a way states of its error, where that is more than the rounding of float32.
STATED = {"GELU": 0.00048, "GELU:LOGISTIC": 0.0207}
ROUNDING = 2e-6

# Ways that keep an op of the kind, with less to it.
KEEPING = {"CONCATENATION", "MEAN:JOIN", "PAD", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"}


def built(make: Make, shape: tuple[int, ...] = (1, 6, 5, 4)) -> Model:
    b = Builder()
    made = make(b, b.input("x", shape))
    return b.model(*(made if isinstance(made, tuple) else (made,)), signature="serve")


def kinds(model: Model) -> Counter[str]:
    return Counter(op.kind for op in model.main.ops)


def same(before: Model, after: Model, within: float = ROUNDING) -> None:
    for seed in range(3):
        for a, b in zip(run(before, seed), run(after, seed), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            scale = max(float(np.abs(a).max(initial=0)), 1) if within == ROUNDING else 1
            np.testing.assert_allclose(a, b, rtol=0, atol=within * scale)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (windowed(3), []),
        (windowed(1, stride=2), ["its window skips places"]),
        (windowed(1, depth=2), ["its channels are in groups"]),
    ],
)
def test_only_windows_of_one_place_are_connected(make: Make, why: list[str]) -> None:
    model = built(make)
    change = apply(model, "rewrite(ops=[CONV_2D:FULLY_CONNECTED])")
    assert not change.touched and [skip.why for skip in change.skipped] == why


@pytest.mark.parametrize(("to", "codes"), [("int8", 0), ("w4a8", 1)])
def test_integer_windows_of_one_place_are_connected(to: str, codes: int) -> None:
    """int8 has the same bits; of int4, the kernels of both ops round in their own ways."""
    model = built(windowed(1))
    before = apply(model, f"quantize(to={to})", context(model)).model
    after = apply(before, "rewrite(ops=[CONV_2D:FULLY_CONNECTED])").model
    assert not list(problems(after)) and not kinds(after)["CONV_2D"]
    for seed in range(3):
        for a, b in zip(run(before, seed), run(after, seed), strict=True):
            step = float(after.main.ops[-1].inputs[0].quant.scale[0])  # type: ignore[union-attr]
            np.testing.assert_allclose(a, b, rtol=0, atol=1.001 * codes * step)


def test_windows_of_one_place_are_connected_whatever_the_batch() -> None:
    b = Builder()
    x = b.input("x", (-1, 6, 5, 4))
    model = b.model(windowed(1)(b, x))
    change = apply(model, "rewrite(ops=[CONV_2D:FULLY_CONNECTED])")
    assert change.touched and change.model.main.outputs == model.main.outputs
    for size in (1, 3):
        sized = (Resize((f"x={size},6,5,4",)),)
        one, other = (apply(m, sized).model for m in (model, change.model))
        same(one, other)
        assert other.main.outputs[0].shape == (size, 6, 5, 8)


def test_weights_of_other_types_stay_in_their_convolution() -> None:
    model = built(windowed(1))
    wide = apply(model, "quantize(to=int16x8)", context(model)).model
    change = apply(wide, "rewrite(ops=[CONV_2D:FULLY_CONNECTED])")
    assert not change.touched
    assert ["computed, or of a type" in skip.why for skip in change.skipped] == [True]


def shapeless(kind: str) -> Model:
    """An op on an image of which the file does not say how large it is."""
    b = Builder()
    large = b.op("MUL", b.input("size", (2,), "int32"), np.array([2, 2], np.int32))
    x = b.op("RESIZE_BILINEAR", b.input("x", (1, 4, 4, 3)), large, shape=())
    inputs = {"CONV_2D": (noise(4, 1, 1, 3), noise(4)), "AVERAGE_POOL_2D": ()}
    sizes = inputs.get(kind, (np.array([8, 8], np.int32),))
    options = {"half_pixel_centers": True} if kind.startswith("RESIZE") else {}
    window = {"filter_height": 4, "filter_width": 4} if kind.endswith("POOL_2D") else {}
    return b.model(b.op(kind, x, *sizes, shape=(), **options, **window))


@pytest.mark.parametrize(
    "way",
    [
        "AVERAGE_POOL_2D:MEAN",
        "CONV_2D:FULLY_CONNECTED",
        "RESIZE_BILINEAR",
        "RESIZE_NEAREST_NEIGHBOR",
        "RESIZE_NEAREST_NEIGHBOR:CONCATENATION",
    ],
)
def test_images_of_unknown_size_are_left_alone(way: str) -> None:
    change = apply(shapeless(way.partition(":")[0]), f"rewrite(ops=[{way}])")
    assert not change.touched
    assert {skip.why for skip in change.skipped} == {"the shape of its image is not known"}


def test_every_way_has_a_model() -> None:
    assert {*MODELS, "CUSTOM", "CUSTOM:ADD"} == set(WAYS)


@pytest.mark.parametrize("name", MODELS)
def test_a_way_gives_the_same(name: str) -> None:
    model = built(MODELS[name])
    change = apply(model, f"rewrite(ops=[{name}])")
    assert not list(problems(change.model))
    assert change.touched, change.skipped
    kind = name.partition(":")[0]
    gone = name.endswith((":RANK", ":ACTIVATION", ":KEEP_DIMS")) or name in KEEPING
    assert gone or kinds(change.model)[kind] == 0
    assert [t.name for t in change.model.main.outputs] == [t.name for t in model.main.outputs]
    same(model, change.model, STATED.get(name, ROUNDING))
    again = apply(change.model, f"rewrite(ops=[{name}])")
    assert not again.touched
    assert to_bytes(again.model) == to_bytes(change.model)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_way_gives_the_same_on_every_case_of_its_op(name: str) -> None:
    kind = WAYS[name].at or name.partition(":")[0]
    for one in CASES[kind]:
        case = build(kind, one)
        change = apply(case.model, f"rewrite(ops=[{name}], int32=true)")
        assert not list(problems(change.model))
        if not change.touched:
            assert to_bytes(change.model) == to_bytes(case.model)
            continue
        pairs = zip(answers(case.model, case.fed), answers(change.model, case.fed), strict=True)
        for a, b in pairs:
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            within = STATED.get(name, 1e-5) * max(float(np.abs(a).max(initial=0)), 1)
            np.testing.assert_allclose(a, b, rtol=0, atol=within)


@pytest.mark.parametrize("name", sorted(STATED))
def test_what_is_stated_of_an_error_is_said(name: str) -> None:
    change = apply(built(MODELS[name]), f"rewrite(ops=[{name}])")
    assert str(STATED[name]) in change.touched[0]


@pytest.mark.parametrize("name", sorted(STATED))
def test_no_error_is_larger_than_is_stated(name: str) -> None:
    """Everywhere, not only on samples: on a fine grid over all that bends."""
    x = np.linspace(-8, 8, 200_001)
    exact = x * (1 + np.vectorize(erf)(x / sqrt(2))) / 2
    inner = 1.702 * x if name == "GELU:LOGISTIC" else 1.5957691 * (x + 0.044715 * x**3)
    error = np.abs(x / (1 + np.exp(-inner)) - exact).max()
    assert 0.9 * STATED[name] < error <= STATED[name]


@draws(20)
@given(
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from(["CUSTOM", "CUSTOM:ADD"]),
)
def test_a_custom_transposed_convolution_is_a_stock_one_with_bias(
    size: tuple[int, int], window: tuple[int, int], strides: tuple[int, int], name: str
) -> None:
    """Wherever it is offered, the results are those of MediaPipe's own code."""
    model = built(enlarged(window, *strides), (1, *size, 2))
    change = apply(model, f"rewrite(ops=[{name}])")
    fits = all(
        not here % stride and reach >= stride
        for here, reach, stride in zip(size, window, strides[::-1], strict=True)
    )
    assert (kinds(change.model)["CUSTOM"] == 0) == fits
    x = noise(1, *size, 2, seed=2)
    wanted = enlarged_by_mediapipe(model, x)
    assert (wanted.shape == model.main.outputs[0].shape) == fits
    if fits:
        (found,) = answers(change.model, [x])
        np.testing.assert_allclose(found, wanted, atol=1e-5)


@draws(25)
@given(
    st.floats(0, 1, width=32),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.sampled_from(["LEAKY_RELU", "LEAKY_RELU:PRELU"]),
)
def test_any_slope_on_any_shape(slope: float, shape: list[int], name: str) -> None:
    model = built(unary("LEAKY_RELU", alpha=slope), tuple(shape))
    change = apply(model, f"rewrite(ops=[{name}])")
    assert change.touched
    same(model, change.model)


@draws(25)
@given(
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from(["SAME", "VALID"]),
)
def test_a_pool_is_a_convolution_where_nothing_is_padded_and_the_window_small(
    window: tuple[int, int], stride: tuple[int, int], padding: str
) -> None:
    size = (6, 7)
    model = built(averaged(window, stride, padding), (2, *size, 3))
    change = apply(model, "rewrite(ops=[AVERAGE_POOL_2D:DEPTHWISE_CONV_2D])")
    places = zip(size, model.main.outputs[0].shape[1:3], window, stride, strict=True)
    whole = all((count - 1) * step + reach <= extent for extent, count, reach, step in places)
    assert bool(change.touched) == (whole and window[0] * window[1] <= 25)
    same(model, change.model)


@draws(25)
@given(
    st.lists(st.integers(1, 4), min_size=0, max_size=5),
    st.sampled_from(["RELU", "RELU6", "RELU_N1_TO_1"]),
)
def test_an_activation_alone_is_a_pool_of_one_place_on_any_shape(
    shape: list[int], kind: str
) -> None:
    model = built(unary(kind), tuple(shape))
    change = apply(model, f"rewrite(ops=[{kind}:MAX_POOL_2D])")
    assert change.touched and not kinds(change.model)[kind]
    same(model, change.model, 0)


@pytest.mark.parametrize("name", ["RELU:MAX_POOL_2D", "RELU6:MAX_POOL_2D"])
def test_a_clamp_of_codes_loses_nothing_in_integers(name: str) -> None:
    """The codes of the input come out, those outside the bounds as the bounds."""
    kind = name.partition(":")[0]
    model = built(lambda b, x: b.op(kind, b.op("CONV_2D", x, noise(4, 1, 1, 4), noise(4))))
    change = apply(model, f"rewrite(ops=[{name}]) | quantize(io=int8)", context(model))
    (clamp,) = (op for op in change.model.main.ops if op.kind == "MAX_POOL_2D")
    before, after = clamp.inputs[0], clamp.outputs[0]
    assert before is not None and before.quant is not None and after.quant is not None
    assert before.quant.scale == after.quant.scale
    assert before.quant.zero_point == after.quant.zero_point


@draws(20)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.floats(0.125, 3, width=32),
    st.booleans(),
)
def test_a_softmax_of_two_scores_is_a_logistic(shape: list[int], beta: float, two: bool) -> None:
    model = built(unary("SOFTMAX", beta=beta), (*shape, 2 if two else 3))
    change = apply(model, "rewrite(ops=[SOFTMAX:LOGISTIC])")
    assert bool(change.touched) == two
    same(model, change.model)


@draws(25)
@given(
    st.integers(0, 3),
    st.integers(0, 2),
    st.integers(0, 2),
    st.sampled_from(["REFLECT", "SYMMETRIC"]),
)
def test_any_mirrored_border(before: int, behind: int, across: int, mode: str) -> None:
    widths = np.int32([[0, 0], [before, behind], [across, across], [0, 0]])
    model = built(binary("MIRROR_PAD", widths, mode=mode))
    change = apply(model, "rewrite(ops=[MIRROR_PAD])")
    assert bool(change.touched) == bool(widths.any())
    same(model, change.model)


@draws(25)
@given(st.permutations([0, 1, 2, 3]), st.lists(st.sampled_from([1, 3, 4]), min_size=4, max_size=4))
def test_only_a_transposition_of_ones_is_a_reshape(order: list[int], shape: list[int]) -> None:
    model = built(binary("TRANSPOSE", np.int32(order)), tuple(shape))
    change = apply(model, "rewrite(ops=[TRANSPOSE])")
    kept = [axis for axis in order if shape[axis] != 1]
    assert bool(change.touched) == (kept == sorted(kept))
    same(model, change.model)


@draws(25)
@given(st.data())
def test_any_slice_of_steps_of_one(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=4)))
    first = [data.draw(st.integers(0, size - 1)) for size in shape]
    last = [data.draw(st.integers(a + 1, size)) for a, size in zip(first, shape, strict=True)]
    back = data.draw(st.booleans())
    starts = [a - size if back else a for a, size in zip(first, shape, strict=True)]
    shrinks = data.draw(st.integers(0, 2 ** (len(shape) - 1) - 1))
    masks = {
        "begin_mask": data.draw(st.integers(0, 3)) & ~shrinks,
        "end_mask": data.draw(st.integers(0, 3)) & ~shrinks,
        "shrink_axis_mask": shrinks,
    }
    steps = [1] * len(shape)
    model = built(lambda b, x: b.op("STRIDED_SLICE", x, starts, last, steps, **masks), shape)
    change = apply(model, "rewrite(ops=[STRIDED_SLICE])")
    assert change.touched
    same(model, change.model)


# Ops that stay, and why.
LEFT: dict[str, tuple[str, Make, str]] = {
    "a steep slope": ("LEAKY_RELU", unary("LEAKY_RELU", alpha=1.5), "slope is 1.5"),
    "slopes that differ": ("PRELU:LEAKY_RELU", binary("PRELU", noise(1, 1, 4)), "slopes differ"),
    "a negative slope": (
        "PRELU:MAXIMUM",
        binary("PRELU", -np.ones((1, 1, 4), np.float32)),
        "0 to 1",
    ),
    "a division by zero": ("DIV", binary("DIV", np.zeros(4, np.float32)), "by zero"),
    "a wide mirror": (
        "MIRROR_PAD",
        lambda b, x: b.op("MIRROR_PAD", b.op("RESHAPE", x, [1, 120]), np.int32([[0, 0], [40, 0]])),
        "more than 32",
    ),
    "steps": (
        "STRIDED_SLICE",
        lambda b, x: b.op("STRIDED_SLICE", x, [0, 0, 0, 0], [1, 6, 5, 4], [1, 2, 1, 1]),
        "in steps",
    ),
    "a pool of a part": (
        "AVERAGE_POOL_2D:MEAN",
        lambda b, x: b.op("AVERAGE_POOL_2D", x, filter_width=3, filter_height=3),
        "not the whole image",
    ),
    "a mean of channels": ("MEAN", binary("MEAN", np.int32([3])), "no mean over height"),
    "an unknown op": (
        "CUSTOM",
        lambda b, x: b.op("CUSTOM", x, custom="Secret", shape=x.shape),
        "nothing is known",
    ),
    "another padding": ("CUSTOM", enlarged((3, 3), 2, 2), "pads it in another way"),
    "ones that fill": (
        "PADV2",
        lambda b, x: b.op("PADV2", x, np.int32([[0, 0], [1, 0], [0, 2], [0, 0]]), np.float32(1)),
        "than zero",
    ),
    "half-pixel halves": (
        "RESIZE_NEAREST_NEIGHBOR",
        lambda b, x: b.op("RESIZE_NEAREST_NEIGHBOR", x, [9, 7], half_pixel_centers=True),
        "other values",
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_cannot_be_said_otherwise_stays_with_a_reason(name: str) -> None:
    way, make, why = LEFT[name]
    model = built(make)
    change = apply(model, f"rewrite(ops=[{way}])")
    assert not change.touched
    assert any(why in skip.why for skip in change.skipped), change.skipped
    assert to_bytes(change.model) == to_bytes(model)


@pytest.mark.parametrize("keep_dims", [True, False])
def test_a_mean_of_one_place_is_no_pool(keep_dims: bool) -> None:
    def means(b: Builder, x: Tensor) -> Tensor:
        for last in (True, True, keep_dims):
            x = b.op("MEAN", x, np.int32([1, 2]), keep_dims=last)
        return x

    model = built(means)
    change = apply(model, "rewrite(ops=[MEAN])")
    assert kinds(change.model) == {"AVERAGE_POOL_2D": 1, "RESHAPE": 2}
    same(model, change.model)


def test_products_that_are_no_hard_swish_stay() -> None:
    for factor, added in ((1 / 5, 3.0), (1 / 6, 2.0)):

        def near_miss(b: Builder, x: Tensor, factor=factor, added=added) -> Tensor:
            gate = b.op("RELU6", b.op("ADD", x, np.float32(added)))
            return b.op("MUL", b.op("MUL", x, gate), np.float32(factor))

        assert not apply(built(near_miss), "rewrite(ops=[MUL:HARD_SWISH])").touched


def test_a_mobilenet_v3_block_there_and_back() -> None:
    def block(b: Builder, x: Tensor) -> Tensor:
        y = b.op("HARD_SWISH", b.op("CONV_2D", x, noise(8, 1, 1, 4), noise(8)))
        y = b.op("DEPTHWISE_CONV_2D", y, noise(1, 3, 3, 8), noise(8))
        y = b.op("HARD_SWISH", y)
        return b.op("ADD", x, b.op("CONV_2D", y, noise(4, 1, 1, 8), noise(4)))

    model = built(block)
    there = apply(model, "rewrite(ops=[HARD_SWISH])").model
    back = apply(there, "rewrite(ops=[MUL:HARD_SWISH])").model
    assert kinds(there)["HARD_SWISH"] == 0
    assert kinds(back) == kinds(model)
    same(model, there)
    same(model, back)


def test_quantized_ops_are_moved_but_not_computed_anew() -> None:
    b = Builder()
    scale = Quant.of(0.1, 3)
    x = b.input("x", (1, 1, 4), "int8", scale)
    flat = b.op("SQUEEZE", x, squeeze_dims=(1,), quant=scale)
    model = b.model(b.op("HARD_SWISH", flat, quant=Quant.of(0.2, -7)))
    change = apply(model, "rewrite(ops=[SQUEEZE, HARD_SWISH])")
    assert kinds(change.model) == {"RESHAPE": 1, "HARD_SWISH": 1}
    assert "it makes int8" in change.skipped[0].why
    same(model, change.model)


def test_a_free_batch_stays_free() -> None:
    b = Builder()
    x = b.input("x", (-1, 1, 4))
    y = b.op("SQUEEZE", x, squeeze_dims=(1,))
    squeeze = replace(b.last, outputs=(replace(y, dynamic=(-1, 4)),))
    b.ops[-1] = squeeze
    change = apply(b.model(squeeze.outputs[0]), "rewrite(ops=[SQUEEZE])")
    assert change.model.main.ops[0].inputs[1].data.tolist() == [-1, 4]


def test_a_reshape_goes_with_its_last_reader() -> None:
    def heads(b: Builder, x: Tensor) -> tuple[Tensor, ...]:
        flat = b.op("RESHAPE", b.op("MEAN", x, [1, 2], keep_dims=True), [1, 4])
        return tuple(b.op("FULLY_CONNECTED", flat, noise(n, 4), noise(n)) for n in (2, 3))

    model = built(heads)
    change = apply(model, "rewrite(ops=[RESHAPE:FULLY_CONNECTED])")
    assert kinds(change.model) == {"MEAN": 1, "FULLY_CONNECTED": 2}
    same(model, change.model)


def test_float16_constants_are_looked_into() -> None:
    b = Builder()
    slopes = b.op("DEQUANTIZE", b.const(noise(1, 1, 4).astype(np.float16), dtype="float16"))
    model = b.model(b.op("PRELU", b.input("x", (1, 6, 5, 4)), slopes))
    change = apply(model, "rewrite(ops=[PRELU])")
    assert kinds(change.model) == {"MUL": 2, "RELU": 1, "ADD": 1}
    same(model, change.model)


def wide_indices(b: Builder, x: Tensor) -> tuple[Tensor, ...]:
    """The row of the largest value, and the value there; all in int64."""
    flat = b.op("RESHAPE", x, [1, 120])
    best = b.op("ARG_MAX", flat, np.int32(1), output_type="INT64")
    more = b.op(
        "ADD", b.op("MINIMUM", best, b.const([100], dtype="int64")), b.const([3], dtype="int64")
    )
    picked = b.op("GATHER", flat, more, axis=1)
    return picked, best, b.op("CAST", more, in_data_type="INT64", out_data_type="FLOAT32")


def test_indices_become_int32_and_the_outputs_keep_their_type() -> None:
    model = built(wide_indices)
    change = apply(model, "rewrite(int32=true)")
    wide = [
        t for op in change.model.main.ops for t in (*op.inputs, *op.outputs) if t.dtype == "int64"
    ]
    assert set(wide) == {change.model.main.outputs[1]}
    same(model, change.model)
    again = apply(change.model, "rewrite(int32=true)")
    assert to_bytes(again.model) == to_bytes(change.model)


def test_numbers_that_may_not_fit_keep_int64() -> None:
    b = Builder()
    x = b.input("x", (3,), "int64")
    large = b.op("ADD", x, b.const([2**40], dtype="int64"))
    model = b.model(b.op("MINIMUM", large, x), b.op("GATHER", b.const(noise(9)), x))
    change = apply(model, "rewrite(int32=true)")
    assert kinds(change.model) == {"ADD": 1, "MINIMUM": 1, "CAST": 1, "GATHER": 1}
    same(model, change.model)


def cast(b: Builder, x: Tensor, dtype: str) -> Tensor:
    return b.op("CAST", x, in_data_type=x.dtype.upper(), out_data_type=dtype.upper())


def from_wide_rows(b: Builder) -> Tensor:
    return b.op("GATHER", b.input("x", (3,), "int64"), b.const([0, 2], dtype="int32"))


def after_the_last_int32(b: Builder) -> Tensor:
    return b.op("ADD", cast(b, b.input("x", (3,), "int32"), "int64"), b.const([7], dtype="int64"))


def doubled_again_and_again(b: Builder) -> Tensor:
    x = cast(b, b.input("x", (3,), "int16"), "int64")
    for _ in range(17):
        x = b.op("ADD", x, x)
    return x


def hot_at_no_place(b: Builder) -> Tensor:
    return b.op("ONE_HOT", b.input("x", (3,), "int64"), np.int32(4), 1.0, 0.0, axis=-1)


@pytest.mark.parametrize(
    "make", [from_wide_rows, after_the_last_int32, doubled_again_and_again, hot_at_no_place]
)
def test_no_number_is_cut_to_fit_int32(make: Callable[[Builder], Tensor]) -> None:
    b = Builder()
    model = b.model(make(b))
    change = apply(model, "rewrite(int32=true)")
    largest = np.iinfo(model.main.inputs[0].dtype).max
    for values in ([largest, -largest, 1], [min(largest, 2**32 + 1), 2, -1]):
        fed = [np.array(values, model.main.inputs[0].dtype)]
        np.testing.assert_array_equal(answers(model, fed)[0], answers(change.model, fed)[0])


def test_weights_are_unpacked_to_what_they_stood_for() -> None:
    model = hybrid()
    change = apply(model, "rewrite(unpack=true)")
    assert change.touched
    assert all(t.quant is None for t in change.model.main.tensors)
    stored = {t.name: t for t in model.main.tensors if t.quant is not None}
    for tensor in change.model.main.tensors:
        if tensor.name in stored:
            old = stored[tensor.name]
            shape = [1] * len(old.shape)
            shape[old.quant.axis] = old.quant.scale.size
            np.testing.assert_allclose(tensor.data, old.values() * old.quant.scale.reshape(shape))


def test_a_way_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(
        BadInput, match=r"rewrite\(ops=\[SWISH\]\): there are ABS, ABS:MAXIMUM, ADD:RANK"
    ):
        apply(built(unary("ABS")), "rewrite(ops=[SWISH])")


def test_ways_are_found_by_the_kind_that_goes() -> None:
    assert ways_for("PRELU") == ["PRELU", "PRELU:LEAKY_RELU", "PRELU:MAXIMUM"]
    assert ways_for("TANH") == []
