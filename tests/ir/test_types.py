"""Records and tensors as values."""

import numpy as np
import pytest

from litesmith.errors import BadModel
from litesmith.ir.dtype import pack_strings
from litesmith.ir.types import Quant, Record, Tensor


def test_a_record_has_the_schemas_defaults() -> None:
    options = Record("Conv2DOptions", {"stride_w": 2})
    assert options.integer("stride_w") == 2
    assert options.integer("dilation_w_factor") == 1
    assert options.word("padding") == "SAME"
    assert Record("ReshapeOptions")["new_shape"] is None
    assert Record("SoftmaxOptions").number("beta") == 0.0


def test_what_a_record_does_not_have() -> None:
    with pytest.raises(KeyError, match=r"no field 'speed'; it has padding"):
        Record("Conv2DOptions")["speed"]
    with pytest.raises(BadModel, match="does not know"):
        Record("Conv2DOptions", {"padding": 9}).word("padding")
    with pytest.raises(BadModel, match="an integer belongs"):
        Record("Conv2DOptions", {"stride_w": "two"}).integer("stride_w")
    with pytest.raises(BadModel, match="a number belongs"):
        Record("SoftmaxOptions", {"beta": "much"}).number("beta")


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ({"new_shape": (1, 2)}, {"new_shape": np.array([1, 2])}, True),
        ({"new_shape": (1, 2)}, {"new_shape": (1, 3)}, False),
        ({"new_shape": (1, 2)}, {}, False),
        ({"new_shape": np.array([1, 2])}, {"new_shape": None}, False),
        ({}, {}, True),
    ],
)
def test_records_are_equal_by_content(a: dict, b: dict, same: bool) -> None:
    assert (Record("ReshapeOptions", a) == Record("ReshapeOptions", b)) is same
    assert (Record("ReshapeOptions", b) == Record("ReshapeOptions", a)) is same


def test_a_field_at_its_default_is_as_good_as_none() -> None:
    assert Record("Conv2DOptions", {"dilation_w_factor": 1}) == Record("Conv2DOptions")
    assert Record("Conv2DOptions") != Record("Pool2DOptions")


def test_set_makes_a_copy() -> None:
    one = Record("Conv2DOptions", {"stride_w": 1})
    two = one.set(stride_w=2)
    assert (one["stride_w"], two["stride_w"]) == (1, 2)


def test_tensors_are_themselves_only() -> None:
    assert Tensor("x", (1,)) != Tensor("x", (1,))


def test_sizes() -> None:
    assert Tensor("x", (3, 5), "int4").nbytes == 8
    assert Tensor("x", ()).nbytes == 4
    assert Tensor("x", (2**20,) * 4).elements == 2**80


def test_no_numbers_no_values() -> None:
    for tensor in (Tensor("x", (1,)), Tensor("s", (1,), "string", np.zeros(9, np.uint8))):
        with pytest.raises(ValueError, match="holds no array of numbers"):
            tensor.values()


def test_texts() -> None:
    assert Tensor("s", (2,), "string", pack_strings([b"a", b"bc"])).texts() == [b"a", b"bc"]
    with pytest.raises(ValueError, match="holds no strings"):
        Tensor("x", (1,)).texts()


def test_one_zero_point_serves_all_scales() -> None:
    quant = Quant.of(np.ones(3, np.float32), 5, axis=1)
    assert quant.zero_point.tolist() == [5, 5, 5]
    assert quant.per_channel
