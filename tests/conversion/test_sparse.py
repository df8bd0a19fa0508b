"""Sparse tensors of .onnx files become dense, where they are what a network may hold."""

from pathlib import Path

import numpy as np
import pytest

from litesmith.conversion.onnx_file import read_onnx
from litesmith.errors import BadModel
from litesmith.ir.types import Array

onnx = pytest.importorskip("onnx", reason="the package onnx makes the files")


def read(folder: Path, values: Array, places: Array, shape: tuple[int, ...]) -> Array:
    """The dense tensor that is read from a file with a sparse one."""
    from onnx import helper, numpy_helper

    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(values, "w"), numpy_helper.from_array(places, "at"), shape
    )
    wanted = helper.make_tensor_value_info("w", 1, None)
    graph = helper.make_graph([], "main", [], [wanted], sparse_initializer=[sparse])
    (folder / "m.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    return read_onnx(folder / "m.onnx").graph.constants["w"]


def test_zeros_are_where_nothing_is(tmp_path: Path) -> None:
    values, wanted = np.array([3, 5], np.float32), np.zeros((2, 3), np.float32)
    wanted[0, 1], wanted[1, 2] = values
    for places in (np.array([1, 5]), np.array([[0, 1], [1, 2]])):
        np.testing.assert_array_equal(read(tmp_path, values, places, (2, 3)), wanted)


@pytest.mark.parametrize(
    ("places", "shape"),
    [
        ([0, 1], (1 << 14, 1 << 14)),  # a gigabyte of a hundred bytes
        ([0, 6], (2, 3)),
        ([0, -1], (2, 3)),
        ([0], (2, 3)),
        ([0, 1], (-2, 3)),
        ([[0], [1]], (2, 3)),
        ([[0, 9], [1, 1]], (2, 3)),
    ],
)
def test_what_makes_no_sense_is_refused(
    places: list[int], shape: tuple[int, ...], tmp_path: Path
) -> None:
    with pytest.raises(BadModel, match="sparse tensor"):
        read(tmp_path, np.array([3, 5], np.float32), np.array(places), shape)
