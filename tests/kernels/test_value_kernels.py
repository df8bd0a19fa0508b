"""Ops without weights give the bits of the runtime's kernels."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from litesmith import Builder, CannotApply, Quant, Tensor
from litesmith.kernels.graph_programs import PREPARE
from tests.draws import draws
from tests.kernels.one_op import assert_same, image, needs_numba, runtime, seeds, whole

ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
shapes = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)


def scale(rng: np.random.Generator, low: float = -14, high: float = -6) -> float:
    return float(2.0 ** rng.uniform(low, high))


@needs_numba
@pytest.mark.parametrize("kind", ["ADD", "SUB", "MUL"])
@draws(40)
@given(shape=shapes, stretched=st.lists(st.booleans(), min_size=8, max_size=8), seed=seeds)
def test_two_inputs(kind: str, shape: tuple[int, ...], stretched: list[bool], seed: int) -> None:
    rng = np.random.default_rng(seed)
    if rng.random() < 0.5:
        stretched = [False] * 8
    sides = [
        tuple(1 if one else size for one, size in zip(stretched[begin:], shape, strict=False))
        for begin in (0, 4)
    ]
    if rng.random() < 0.3:
        sides[1] = sides[1][1:] or (1,)
    b = Builder()
    x, y = (image(b, side, scale(rng), name) for side, name in zip(sides, "xy", strict=True))
    activation = str(rng.choice(ACTIVATIONS))
    out = Quant.of(scale(rng, -12, -3) if kind != "MUL" else scale(rng, -20, -6))
    z = b.op(kind, x, y, dtype="int16", quant=out, fused_activation_function=activation)
    assert_same(b.model(z), rng)


@needs_numba
@pytest.mark.parametrize("count", [16, 17, 40_000, 100_003])
def test_long_rows_are_shared_among_threads(count: int) -> None:
    rng = np.random.default_rng(count)
    b = Builder()
    x, y = (image(b, (count,), scale(rng), name) for name in "xy")
    assert_same(b.model(b.op("ADD", x, y, dtype="int16", quant=Quant.of(2.0**-8))), rng)


@needs_numba
@pytest.mark.parametrize("kind", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
@draws(30)
@given(
    shape=st.tuples(*(st.integers(1, n) for n in (3, 9, 9, 40))),
    window=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.sampled_from(["SAME", "VALID"]),
    seed=seeds,
)
def test_pools(kind, shape, window, strides, padding, seed) -> None:
    assume(padding == "SAME" or (window[0] <= shape[1] and window[1] <= shape[2]))
    rng = np.random.default_rng(seed)
    b, quant = Builder(), scale(rng)
    names = dict(
        zip(
            ("filter_height", "filter_width", "stride_h", "stride_w"),
            (*window, *strides),
            strict=True,
        )
    )
    activation = str(rng.choice(ACTIVATIONS))
    x = image(b, shape, quant)
    y = b.op(
        kind,
        x,
        dtype="int16",
        quant=Quant.of(quant),
        padding=padding,
        fused_activation_function=activation,
        **names,
    )
    assert_same(b.model(y), rng)


@needs_numba
@draws(30)
@given(st.lists(st.integers(1, 8), min_size=2, max_size=4), st.booleans(), seeds)
def test_means_over_neighbours(shape: list[int], keep: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first = int(rng.integers(0, len(shape)))
    axes = list(range(first, int(rng.integers(first, len(shape))) + 1))
    b = Builder()
    x = image(b, shape, scale(rng))
    y = b.op(
        "MEAN",
        x,
        np.array(axes, np.int32),
        keep_dims=keep,
        dtype="int16",
        quant=Quant.of(scale(rng)),
    )
    assert_same(b.model(y), rng)


@needs_numba
@draws(25)
@given(st.integers(1, 5), st.integers(1, 1200), seeds)
def test_softmax(rows: int, depth: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    b = Builder()
    x = image(b, (rows, depth), scale(rng, -16, -8))
    y = b.op(
        "SOFTMAX", x, dtype="int16", quant=Quant.of(1 / 32768), beta=float(rng.choice([1.0, 0.3]))
    )
    assert_same(b.model(y), rng)


@needs_numba
@pytest.mark.parametrize("kind", ["LOGISTIC", "TANH"])
@draws(8)
@given(power=st.floats(-15, -3.1))
def test_tables_of_every_int16(kind: str, power: float) -> None:
    assume(abs(power - round(power)) > 0.01)
    b = Builder()
    x = image(b, (65536,), 2.0**power)
    model = b.model(b.op(kind, x, dtype="int16", quant=Quant.of(1 / 32768)))
    everything = np.arange(-32768, 32768).astype(np.int16)
    (ours,) = whole(model.main).run([everything])
    np.testing.assert_array_equal(ours, runtime(model, [everything])[0])


@needs_numba
@pytest.mark.parametrize("kind", ["RELU", "RELU6"])
def test_activations_that_are_ops(kind: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(4):
        b = Builder()
        x = image(b, (5, 77), scale(rng))
        assert_same(b.model(b.op(kind, x, dtype="int16", quant=Quant.of(scale(rng)))), rng)


@needs_numba
@draws(25)
@given(shapes, st.integers(0, 3), st.integers(1, 4), seeds)
def test_concatenations(shape: tuple[int, ...], axis: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    axis %= len(shape)
    b, quant = Builder(), scale(rng)
    parts: list[Tensor] = []
    for number in range(count):
        size = (*shape[:axis], int(rng.integers(1, 9)), *shape[axis + 1 :])
        parts.append(image(b, size, quant, f"x{number}"))
    assert_same(
        b.model(b.op("CONCATENATION", *parts, axis=axis, dtype="int16", quant=Quant.of(quant))), rng
    )


@needs_numba
@pytest.mark.parametrize("kind", ["SLICE", "SPLIT", "SPLIT_V", "STRIDED_SLICE", "UNPACK"])
@draws(15)
@given(shape=shapes, count=st.integers(1, 4), seed=seeds)
def test_parts_along_one_axis(kind: str, shape: tuple[int, ...], count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    axis = int(rng.integers(len(shape)))
    shape = (*shape[:axis], shape[axis] * count, *shape[axis + 1 :])
    b, quant = Builder(), Quant.of(scale(rng))
    x = image(b, shape, float(quant.scale[0]))
    made = {"dtype": "int16", "quant": quant}
    begin = int(rng.integers(shape[axis]))
    begins = [begin if n == axis else 0 for n in range(len(shape))]
    sizes = [-1 if n == axis else size for n, size in enumerate(shape)]
    if kind == "SPLIT":
        y = b.op(kind, np.int32(axis), x, num_splits=count, **made)
    elif kind == "SPLIT_V":
        parts = [1] * (shape[axis] - 1) + [1]
        y = b.op(kind, x, parts, np.int32(axis), num_splits=len(parts), **made)
    elif kind == "UNPACK":
        y = b.op(kind, x, num=shape[axis], axis=axis, **made)
    elif kind == "SLICE":
        y = b.op(kind, x, begins, sizes, **made)
    else:
        y = b.op(kind, x, begins, list(shape), [1] * len(shape), **made)
    outputs = y if isinstance(y, tuple) else (y,)
    assert_same(b.model(*outputs), rng)


@needs_numba
@draws(25)
@given(shapes, seeds)
def test_padding(shape: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    b, quant = Builder(), scale(rng)
    widths = rng.integers(0, 3, (len(shape), 2)).astype(np.int32)
    assert_same(
        b.model(b.op("PAD", image(b, shape, quant), widths, dtype="int16", quant=Quant.of(quant))),
        rng,
    )


@needs_numba
@draws(40)
@given(shapes, seeds)
def test_quantize_from_float(shape: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    b = Builder()
    y = b.op("QUANTIZE", b.input("x", shape), dtype="int16", quant=Quant.of(scale(rng, -40, 0)))
    assert_same(b.model(y), rng, rounds=4)


@needs_numba
@draws(20)
@given(shapes, seeds)
def test_quantize_from_another_scale_and_dequantize(shape: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    b = Builder()
    x = image(b, shape, scale(rng))
    assert_same(b.model(b.op("QUANTIZE", x, dtype="int16", quant=Quant.of(scale(rng)))), rng)
    b = Builder()
    assert_same(b.model(b.op("DEQUANTIZE", image(b, shape, scale(rng)), dtype="float32")), rng)


@needs_numba
def test_numbers_that_no_integer_holds() -> None:
    b = Builder()
    y = b.op("QUANTIZE", b.input("x", (19,)), dtype="int16", quant=Quant.of(1e-6))
    model = b.model(y)
    x = np.resize(np.array([np.inf, -np.inf, np.nan, 3e38, -3e38, 1e4, -1e4], np.float32), 19)
    (ours,) = whole(model.main).run([x])
    np.testing.assert_array_equal(ours, runtime(model, [x])[0])


@needs_numba
def test_sums_at_powers_of_two_are_refused() -> None:
    b = Builder()
    x, y = (image(b, (4,), 2.0**-8, name) for name in "xy")
    z = b.op("ADD", x, y, dtype="int16", quant=Quant.of(2.0**-8), pot_scale_int16=True)
    with pytest.raises(CannotApply, match="powers of two"):
        whole(b.model(z).main)


def test_the_table_is_sorted() -> None:
    assert list(PREPARE) == sorted(PREPARE)
