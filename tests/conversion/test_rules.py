"""Rules beside numpy, for what ONNX's own tests do not reach."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from litesmith.conversion.core.lowering import Unsupported
from litesmith.conversion.core.source import Node, SourceGraph, SourceModel, Value
from litesmith.conversion.lower_model import lowered
from litesmith.ir.types import Array
from tests.conversion.one_node import converted, numbers, run
from tests.draws import draws

_INT32 = arrays(np.int32, (8,), elements=st.integers(-(2**31), 2**31 - 1))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("ij,j->i", [(3, 4), (4,)]),
        ("i,j->ij", [(3,), (4,)]),
        ("ijk->k", [(2, 3, 4)]),
        ("ij->ji", [(3, 4)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (2, 5, 4, 3)]),
        ("bn,anm,bm->ba", [(2, 5), (3, 5, 4), (2, 4)]),
        ("ij,jk", [(3, 4), (4, 5)]),
        ("abcdij,abcdjk->abcdik", [(2, 1, 2, 3, 2, 4), (2, 1, 2, 3, 4, 2)]),
    ],
)
def test_einsum_is_numpy_s(equation: str, shapes: list[tuple[int, ...]]) -> None:
    values = [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]
    inputs = {f"x{i}": value for i, value in enumerate(values)}
    wanted = np.einsum(equation, *values)
    np.testing.assert_allclose(run("Einsum", inputs, equation=equation), wanted, 1e-4, 1e-5)


def test_a_diagonal_is_refused_with_a_way_out() -> None:
    (left,) = converted("Einsum", {"x": numbers(3, 3)}, equation="ii->i").left
    assert left.why == "ii->i takes a diagonal; write it with Mul and ReduceSum"


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("BitwiseAnd", np.bitwise_and),
        ("BitwiseOr", np.bitwise_or),
        ("BitwiseXor", np.bitwise_xor),
    ],
)
@draws(40)
@given(a=_INT32, b=_INT32)
def test_bits_are_numpy_s(kind: str, wanted: np.ufunc, a: Array, b: Array) -> None:
    np.testing.assert_array_equal(run(kind, {"a": a, "b": b}), wanted(a, b))


@draws(20)
@given(x=_INT32)
def test_bits_turned_over(x: Array) -> None:
    np.testing.assert_array_equal(run("BitwiseNot", {"x": x}), ~x)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_determinant_is_numpy_s(size: int) -> None:
    x = numbers(2, size, size)
    np.testing.assert_allclose(run("Det", {"x": x}), np.linalg.det(x), 1e-4, 1e-5)


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_a_product_that_goes_on(reverse: int, exclusive: int) -> None:
    x = numbers(2, 7)
    wanted = x[:, ::-1] if reverse else x
    if exclusive:
        wanted = np.concatenate([np.ones((2, 1), np.float32), wanted[:, :-1]], 1)
    wanted = np.cumprod(wanted, 1)
    wanted = wanted[:, ::-1] if reverse else wanted
    inputs = {"x": x, "axis": np.array(1)}
    found = run("CumProd", inputs, ["axis"], reverse=reverse, exclusive=exclusive)
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)


def test_a_pool_with_wide_gaps_is_the_one_of_numpy() -> None:
    x = numbers(1, 2, 20, 20)
    found = run("MaxPool", {"x": x}, kernel_shape=(9, 9), dilations=(2, 2), strides=(1, 1))
    windows = np.lib.stride_tricks.sliding_window_view(x, (17, 17), (2, 3))[..., ::2, ::2]
    np.testing.assert_array_equal(found, windows.max((-2, -1)))


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_a_response_among_channels(size: int) -> None:
    x = numbers(1, 7, 3, 2)
    found = run("LRN", {"x": x}, size=size, alpha=0.3, beta=0.75, bias=1.5)
    squares = np.stack(
        [
            (x[:, max(c - (size - 1) // 2, 0) : c + size // 2 + 1] ** 2).sum(1)
            for c in range(x.shape[1])
        ],
        1,
    )
    np.testing.assert_allclose(found, x / (1.5 + 0.3 / size * squares) ** 0.75, 1e-5)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("shares", [1, 2])
def test_a_convolution_that_moves_nothing_is_a_plain_one(groups: int, shares: int) -> None:
    x, weight = numbers(2, 4, 9, 8), numbers(6, 4 // groups, 3, 2, seed=1)
    how = {"group": groups, "strides": (2, 1), "dilations": (1, 2), "pads": (1, 0, 2, 1)}
    wanted = run("Conv", {"x": x, "w": weight}, **how)
    offset = np.zeros((2, shares * 12, *wanted.shape[2:]), np.float32)
    found = run("DeformConv", {"x": x, "w": weight, "o": offset}, offset_group=shares, **how)
    np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)


def test_attention_longer_than_can_be_written_out_is_refused() -> None:
    x = numbers(1, 200, 4)
    given_ = {"q": x, "k": x, "v": x}
    made = converted("LinearAttention", given_, update_rule="linear", q_num_heads=1, kv_num_heads=1)
    assert [left.why for left in made.left] == [
        "its 200 steps depend on each other, and at most 128 are written out; export it for a "
        "shorter sequence and carry the state"
    ]


def test_a_setting_that_is_an_input_is_named_with_the_way_out() -> None:
    inputs = {"x": numbers(1, 1, 4, 4), "roi": np.zeros(0, np.float32)}
    inputs["scales"] = np.array([1, 1, 2, 2], np.float32)
    made = converted("Resize", inputs)
    assert made.wanted == ("scales",)
    assert [left.why for left in made.left] == [
        "its scales come from input 'scales', and LiteRT wants them constant; fix the input: "
        "--fix scales=VALUE"
    ]


def test_a_node_that_makes_no_sense_is_left_with_a_reason() -> None:
    made = converted("Concat", {"a": numbers(2, 3), "b": numbers(4, 5)}, axis=7)
    assert [left.kind for left in made.left] == ["Concat"]


LARGE = np.array([1 << 15, 1 << 15], np.int64)
GROWING = {
    "ConstantOfShape": {"sizes": LARGE},
    "Expand": {"x": np.ones((1, 1), np.float32), "sizes": LARGE},
    "Tile": {"x": np.ones((1, 1), np.float32), "times": LARGE},
    "Pad": {"x": np.ones((1, 1), np.float32), "frame": np.array([0, 0, *LARGE - 1])},
    "Range": {"start": np.float32(0), "limit": np.float32(1 << 29), "step": np.float32(1)},
}


@pytest.mark.parametrize("kind", GROWING)
def test_a_few_bytes_do_not_become_a_file_that_fills_the_disk(kind: str) -> None:
    """Constants that are computed were held against nothing but the largest tensor, of 4 GB."""
    given = {name: np.asarray(value) for name, value in GROWING[kind].items()}
    made = converted(kind, given, fixed=tuple(given))
    assert made.model is None and "would add over" in made.left[0].why


def test_a_number_that_stands_for_many_is_one_number() -> None:
    """As in a .pt2 whose weight has no strides."""
    one = np.broadcast_to(np.float32(1), (1 << 15, 1 << 15))
    node = Node("Abs", ("w",), ("y",), {})
    graph = SourceGraph("one", (node,), (), (Value("y", "float32", None),), {"w": one})
    with pytest.raises(Unsupported, match="would add over"):
        lowered(SourceModel(graph, 22))
