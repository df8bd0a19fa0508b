"""The scores behind an output are found wherever only their shape and type were changed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith import Builder
from litesmith.ir.ops import kinds_where
from litesmith.ir.softmax_scores import ends_in_softmax, scores_of, softmax_of, trace_back
from litesmith.ir.types import Quant, Tensor

SOFTMAX = sorted(kinds_where(lambda row: row.is_softmax))
MOVES = ("CAST", "DEQUANTIZE", "EXPAND_DIMS", "RESHAPE", "SQUEEZE")


def moved(b: Builder, tensor: Tensor, move: str) -> Tensor:
    if move == "RESHAPE":
        return b.op("RESHAPE", tensor, [1, 1, 6])
    if move == "EXPAND_DIMS":
        return b.op("EXPAND_DIMS", tensor, np.int32(0))
    if move == "SQUEEZE":
        return b.op(
            "SQUEEZE", b.op("RESHAPE", tensor, [1, 6, 1]), squeeze_dims=np.array([2], np.int32)
        )
    if move == "CAST":
        return b.op("CAST", b.op("CAST", tensor, dtype="float16"), dtype="float32")
    codes = b.op("QUANTIZE", tensor, dtype="int8", quant=Quant.of(1 / 256, -128))
    return b.op("DEQUANTIZE", codes)


@given(st.lists(st.sampled_from(MOVES), max_size=4), st.sampled_from(SOFTMAX))
def test_moves_hide_no_scores(moves: list[str], kind: str) -> None:
    b = Builder()
    scores = b.op("RESHAPE", b.op("RELU", b.input("x", (1, 2, 3))), [1, 6])
    plain, chosen = scores, b.op(kind, scores)
    made = chosen
    for move in moves:
        plain, made = moved(b, plain, move), moved(b, made, move)
    graph = b.model(plain, made).main
    assert scores_of(graph, made) is scores
    assert softmax_of(graph, made).outputs == (chosen,)  # type: ignore[union-attr]
    assert trace_back(graph, made) is chosen
    assert ends_in_softmax(graph, made)
    assert scores_of(graph, plain) is plain
    assert trace_back(graph, plain) is graph.ops[0].outputs[0]
    assert not ends_in_softmax(graph, plain)


@pytest.mark.parametrize("kind", ["RELU", "TANH"])
def test_what_computes_is_no_move(kind: str) -> None:
    b = Builder()
    result = b.op(kind, b.op("SOFTMAX", b.input("x", (1, 6))))
    graph = b.model(result).main
    assert scores_of(graph, result) is result
    assert not ends_in_softmax(graph, result)


def test_inputs_and_constants_are_their_own_scores() -> None:
    b = Builder()
    given = b.input("x", (1, 6))
    result = b.op("SOFTMAX", np.ones((1, 6), np.float32))
    graph = b.model(given, result).main
    assert scores_of(graph, given) is given
    assert scores_of(graph, result) is result
    assert ends_in_softmax(graph, result)
