"""The builder: ten readable lines, and one clear line for what it cannot build."""

import numpy as np
import pytest

from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.ir.model_text import lines
from tests.runtime import run


def test_ten_lines_make_a_model_that_runs() -> None:
    b = Builder()
    x = b.input("image", (1, 8, 8, 3))
    y = b.op("CONV_2D", x, np.ones((4, 3, 3, 3), np.float32), np.zeros(4, np.float32), stride_h=2)
    y = b.op("SOFTMAX", b.op("MEAN", y, [1, 2]), name="scores")
    model = b.model(y, signature="serving_default")
    assert next(lines(model)) == "graph 0 'main'(image float32[1,8,8,3]) -> scores"
    assert run(model)[0].shape == (1, 4)


def test_python_numbers_become_what_the_runtime_expects() -> None:
    b = Builder()
    assert b.const([1, 2]).dtype == "int32"
    assert b.const(1.5).dtype == "float32"
    assert b.const([True]).dtype == "bool"
    assert b.const(np.int64(3)).dtype == "int64"
    assert b.const(["a", "bc"]).dtype == "string"
    assert not b.const([1]).values().flags.writeable


def test_a_free_dimension() -> None:
    x = Builder().input("x", (-1, 4))
    assert (x.shape, x.dynamic) == ((1, 4), (-1, 4))


def test_several_outputs() -> None:
    b = Builder()
    b.op("SPLIT", np.int32(1), b.input("x", (2, 6)), num_splits=3)
    assert [t.shape for t in b.last.outputs] == [(2, 2)] * 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b, x: b.op("CONVOLVE", x), "no operator 'CONVOLVE'"),
        (lambda b, x: b.op("WHERE", x), "shape of WHERE is not known"),
        (
            lambda b, x: b.op("SOFTMAX", x, gamma=1),
            "SoftmaxOptions has no field 'gamma'; it has beta",
        ),
        (lambda b, x: b.op("LOGISTIC", x, beta=1), "LOGISTIC has no options; got beta"),
        (lambda b, x: b.const([1], dtype="int3"), "no element type 'int3'"),
    ],
)
def test_what_cannot_be_built(call, message: str) -> None:
    b = Builder()
    with pytest.raises(BadInput, match=message):
        call(b, b.input("x", (2, 2)))
