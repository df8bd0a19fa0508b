"""Moves that clean-up does without give the same bits, and what must stay stays."""

from collections.abc import Callable

import numpy as np
import pytest

from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Quant, Tensor
from litesmith.passes.core.recipe import apply
from litesmith.tflite.write import to_bytes
from tests.runtime import run
from tests.zoo import noise

SCALE = Quant.of(0.05, -3)


def cleaned(model: Model) -> list[str]:
    """The kinds of ops that are left, once the runtime has given the same bits before and after."""
    after = apply(model, "cleanup").model
    pairs = zip(run(to_bytes(model), seed=3), run(to_bytes(after), seed=3), strict=True)
    for one, other in pairs:
        assert one.tobytes() == other.tobytes()
    return [op.kind for op in after.main.ops]


def test_a_transpose_of_ones_is_a_reshape() -> None:
    b = Builder()
    x = b.op("RELU", b.input("x", (1, 1, 40)))
    moved = b.op("TRANSPOSE", x, [0, 2, 1])
    assert cleaned(b.model(b.op("NEG", moved))) == ["RELU", "RESHAPE", "NEG"]


def test_a_transpose_that_moves_something_or_has_a_free_size_stays() -> None:
    for shape in ((1, 2, 40), (-1, 1, 40)):
        b = Builder()
        x = b.op("TRANSPOSE", b.op("RELU", b.input("x", shape)), [0, 2, 1])
        assert "TRANSPOSE" in cleaned(b.model(b.op("NEG", x)))


BETWEEN: dict[str, Callable[[Builder, Tensor], Tensor]] = {
    "alone": lambda b, x: b.op("TANH", x),
    "one number": lambda b, x: b.op("MUL", x, np.float32(3)),
    "channels": lambda b, x: b.op("ADD", x, noise(4, 1, 1)),
    "channels first": lambda b, x: b.op("SUB", noise(4, 1, 1), x),
    "a row": lambda b, x: b.op("MAXIMUM", x, noise(6)),
    "several": lambda b, x: b.op("RELU6", b.op("MUL", b.op("LOGISTIC", x), noise(4, 5, 6))),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_transposes_around_values_go(name: str) -> None:
    b = Builder()
    x = b.op("TRANSPOSE", b.op("RELU", b.input("x", (1, 5, 6, 4))), [0, 3, 1, 2])
    back = b.op("TRANSPOSE", BETWEEN[name](b, x), [0, 2, 3, 1])
    assert "TRANSPOSE" not in cleaned(b.model(b.op("NEG", back)))


def test_transposes_that_do_not_undo_each_other_become_one() -> None:
    b = Builder()
    x = b.op("TRANSPOSE", b.input("x", (2, 3, 4, 5)), [0, 3, 1, 2])
    y = b.op("TRANSPOSE", b.op("MUL", x, noise(5, 1, 4)), [3, 2, 1, 0])
    assert cleaned(b.model(y)) == ["MUL", "TRANSPOSE"]


def read_twice(b: Builder, x: Tensor) -> Tensor:
    return b.op("ADD", b.op("TANH", x), x)


def along_an_axis(b: Builder, x: Tensor) -> Tensor:
    return b.op("SOFTMAX", x)


def widened(b: Builder, x: Tensor) -> Tensor:
    return b.op("ADD", x, noise(3, 4, 5, 6))


@pytest.mark.parametrize("between", [read_twice, along_an_axis, widened])
def test_transposes_around_others_stay(between: Callable[[Builder, Tensor], Tensor]) -> None:
    b = Builder()
    x = b.op("TRANSPOSE", b.input("x", (1, 5, 6, 4)), [0, 3, 1, 2])
    back = b.op("TRANSPOSE", between(b, x), [0, 2, 3, 1])
    assert cleaned(b.model(back)).count("TRANSPOSE") == 2


MOVES: dict[str, Callable[[Builder, Tensor], Tensor]] = {
    "none": lambda b, x: x,
    "transposed": lambda b, x: b.op("TRANSPOSE", x, [0, 2, 1, 3]),
    "reshaped and cut": lambda b, x: b.op(
        "SLICE", b.op("RESHAPE", x, [1, 8, 8, 4]), [0, 0, 0, 0], [1, 4, 8, 4]
    ),
    "largest": lambda b, x: b.op(
        "MAX_POOL_2D", x, filter_width=2, filter_height=2, stride_w=2, stride_h=2
    ),
}


def island(
    move: Callable[[Builder, Tensor], Tensor], scale: Quant = SCALE, dtype: str = "int8"
) -> Model:
    """Integers made float for a move, and integers again."""
    b = Builder()
    x = b.input("x", (1, 8, 8, 4), dtype, SCALE)
    codes = b.op("ADD", x, x, quant=SCALE, version=2)
    moved = move(b, b.op("DEQUANTIZE", codes, dtype="float32", version=2))
    back = b.op("QUANTIZE", moved, dtype=dtype, quant=scale)
    return b.model(b.op("MUL", back, back, quant=SCALE, version=2))


@pytest.mark.parametrize("name", MOVES)
def test_a_move_of_integers_needs_no_float(name: str) -> None:
    left = cleaned(island(MOVES[name]))
    assert not {"QUANTIZE", "DEQUANTIZE"} & set(left)


def clamped(b: Builder, x: Tensor) -> Tensor:
    settings = {"filter_width": 2, "filter_height": 2, "stride_w": 2, "stride_h": 2}
    return b.op("MAX_POOL_2D", x, fused_activation_function="RELU", **settings)


def computed(b: Builder, x: Tensor) -> Tensor:
    return b.op("TANH", x)


@pytest.mark.parametrize("move", [clamped, computed])
def test_what_computes_stays_float(move: Callable[[Builder, Tensor], Tensor]) -> None:
    assert "DEQUANTIZE" in cleaned(island(move))


def test_another_scale_stays() -> None:
    left = cleaned(island(MOVES["transposed"], Quant.of(0.1, 0)))
    assert {"QUANTIZE", "DEQUANTIZE"} <= set(left)


def test_an_output_keeps_its_codes_and_name() -> None:
    b = Builder()
    x = b.op("DEQUANTIZE", b.input("x", (1, 4), "int8", SCALE), dtype="float32", version=2)
    y = b.op("QUANTIZE", b.op("RESHAPE", x, [4]), dtype="int8", quant=SCALE, name="answer")
    model = b.model(y)
    assert cleaned(model) == ["RESHAPE"]
    assert apply(model, "cleanup").model.main.outputs[0].name == "answer"


def test_a_slice_of_a_slice_is_one() -> None:
    b = Builder()
    row = b.op("SLICE", b.op("NEG", b.input("x", (5, 12))), [2, 0], [2, 12])
    parts = [b.op("RELU", b.op("SLICE", row, [1, at], [1, 6])) for at in (0, 6)]
    assert cleaned(b.model(*parts)) == ["NEG", "SLICE", "RELU", "SLICE", "RELU"]


@pytest.mark.parametrize(("order", "goes"), [([2, 0, 1, 3], True), ([2, 1, 0, 3], False)])
def test_parts_of_a_transpose_need_none_where_their_order_stays(
    order: list[int], goes: bool
) -> None:
    b = Builder()
    packed = b.op("NEG", b.input("x", (4, 5, 3, 6)))
    turned = b.op("TRANSPOSE", packed, order)
    flat = b.op("RESHAPE", turned, [3, 20, 6])
    parts = [b.op("RELU", b.op("SLICE", flat, [at, 0, 0], [1, 20, 6])) for at in range(3)]
    assert ("TRANSPOSE" not in cleaned(b.model(*parts))) == goes


def test_rows_and_then_columns_are_one_slice() -> None:
    b = Builder()
    x = b.op("NEG", b.input("x", (1, 8, 6, 3)))
    rows = b.op("STRIDED_SLICE", x, [0, 1, 0, 0], [1, 8, 6, 3], [1, 2, 1, 1])
    mask = {"begin_mask": 11, "end_mask": 15}
    columns = b.op("STRIDED_SLICE", rows, [0, 0, 1, 0], [0, 0, 0, 0], [1, 1, 2, 1], **mask)
    assert cleaned(b.model(b.op("RELU", columns))) == ["NEG", "STRIDED_SLICE", "RELU"]
    again = b.op("STRIDED_SLICE", rows, [0, 1, 0, 0], [1, 4, 6, 3], [1, 2, 1, 1])
    assert cleaned(b.model(b.op("RELU", again))).count("STRIDED_SLICE") == 2
