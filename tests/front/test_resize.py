"""`litesmith.resize`: every way to give a shape, and what every function makes of the result."""

from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith.errors import BadInput
from litesmith.tflite.write import to_bytes
from tests.zoo import resizable


@pytest.mark.parametrize(
    "shape", [{"x": (5, 4)}, {"x": [5, 4]}, (5, 4), [5, 4], "x=5,4", "5,4", ["x=5,4"], ("5,4",)]
)
def test_every_way_gives_the_same(shape: object, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    litesmith.save(resizable(), path)
    expected = to_bytes(litesmith.resize(resizable(), {"x": (5, 4)}))
    for source in (resizable(), path, str(path), path.read_bytes()):
        assert to_bytes(litesmith.resize(source, shape)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [{"x": 5}, {"x": (1.5, 4)}, {"x": "5,4"}, 5, None, (), {"x": ()}])
def test_what_is_no_shape_is_refused(shape: object) -> None:
    with pytest.raises(BadInput):
        litesmith.resize(resizable(), shape)  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers() -> None:
    made = litesmith.resize(resizable(), {"x": tuple(np.array([5, 4]))})
    assert made.main.inputs[0].shape == (5, 4)


def test_functions_take_the_result() -> None:
    model = litesmith.resize(resizable(), {"x": (5, 4)})
    assert litesmith.inspect(model).model.main.outputs[0].shape == (5, 2, 2)
    assert litesmith.bench(model, runs=12).to_rows()
    data = np.ones((3, 5, 4), np.float32)
    assert litesmith.evaluate(model, data, against=model).value is not None
