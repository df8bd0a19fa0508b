"""`litesmith.resize`: every way to give a shape, and what every function makes of the result."""

from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith.errors import BadInput
from litesmith.operating_system import quote
from litesmith.tflite.write import to_bytes
from tests.training.flowers import backbone, write_pictures
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


SHAPE = {"x": (5, 4)}


def test_choose_takes_files_in_a_shape(tmp_path: Path) -> None:
    """The copies are in the folder of the evidence."""
    paths = [tmp_path / "a.tflite", tmp_path / "b.tflite"]
    for path, width in zip(paths, (1, 3), strict=True):
        b = litesmith.Builder()
        x = b.input("x", (-1, 4))
        weight, bias = np.ones((width, 4), np.float32), np.zeros(width, np.float32)
        litesmith.save(b.model(b.op("FULLY_CONNECTED", x, weight, bias)), path)
    out = tmp_path / "chosen"
    litesmith.choose(paths, shape=SHAPE, out=out, seconds=0.05)
    copies = [litesmith.load(place) for place in sorted(out.rglob("*.tflite"))]
    assert [copy.main.outputs[0].shape for copy in copies] == [(5, 1), (5, 3)]
    with pytest.raises(BadInput, match=r"a\.tflite: .*no input 'y'"):
        litesmith.choose(paths, shape={"y": (5, 4)}, out=out)


def test_gate_measures_the_shape(tmp_path: Path) -> None:
    """The record calls the model as its file, and counts what it is in that shape."""
    path, baseline = tmp_path / "model.tflite", tmp_path / "base.json"
    litesmith.save(resizable(), path)
    made = litesmith.update_baseline(baseline, path, shape=SHAPE, seconds=0.3)
    assert made.baseline.model == str(path)
    assert made.command.endswith(f"{quote(str(path))} --shape x=5,4")
    found = litesmith.gate(baseline, path, shape=SHAPE, seconds=0.3)
    assert (found.model, found.digest) == (str(path), made.baseline.digest)
    assert litesmith.gate(baseline, path, seconds=0.3).digest != found.digest
    with pytest.raises(BadInput, match="no input 'y'"):
        litesmith.gate(baseline, path, shape={"y": (5, 4)})


def test_retrain_learns_in_the_shape(tmp_path: Path) -> None:
    path, out = tmp_path / "backbone.tflite", tmp_path / "out.tflite"
    litesmith.save(backbone(), path)
    data = write_pictures(tmp_path / "data")
    litesmith.retrain(path, data, out, shape={"image": (1, 24, 24, 3)}, norm="unit")
    assert litesmith.load(out).main.inputs[0].shape == (1, 24, 24, 3)
    with pytest.raises(BadInput, match=r"shape=.*random weights"):
        litesmith.retrain("resnet8", data, out, shape=(1, 24, 24, 3))
