"""`tune` for a microcontroller: a file that fits, made again to the byte, or what it lacks."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.micro.arena import add_up_arena
from tests.zoo import noise

needs_wheel = pytest.mark.skipif(
    find_spec("tflite_micro") is None, reason="tflite-micro is not installed"
)


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    """A convolution whose output makes the peak, and a layer that picks one of two classes."""
    b = Builder()
    x = b.input("x", (1, 16, 16, 1))
    y = b.op("CONV_2D", x, noise(8, 3, 3, 1), noise(8), padding="SAME")
    y = b.op("CONV_2D", y, noise(2, 3, 3, 8), noise(2), stride_h=8, stride_w=8, padding="SAME")
    y = b.op("RESHAPE", y, b.const(np.array([1, 8], np.int32)))
    model = b.model(b.op("FULLY_CONNECTED", y, noise(2, 8), noise(2)))
    path = tmp_path_factory.mktemp("micro") / "model.tflite"
    litesmith.save(model, path)
    return path, {"x": noise(90, 16, 16, 1, seed=5, scale=1.0)}


@needs_wheel
def test_it_ends_with_a_file_that_fits(
    task: tuple[Path, dict[str, np.ndarray]], tmp_path: Path
) -> None:
    path, data = task
    before = add_up_arena(litesmith.load(path)).needed
    found = litesmith.tune(path, data, min_snr=10, ram=before - 1000, out=tmp_path / "out")
    assert found.best is not None and found.is_as_asked
    assert add_up_arena(litesmith.load(found.best)).needed <= before - 1000
    assert [record.name for record in found.records] == ["float", "cleaned"]
    assert "arrange(ram=" in found.summary.best.recipe  # type: ignore[union-attr]
    assert any(warning.startswith("what limits cleaned") for warning in found.warnings)
    assert "Memory of the microcontroller" in (tmp_path / "out" / "report.html").read_text("utf-8")
    again = litesmith.tune(path, data, min_snr=10, ram=before - 1000, out=tmp_path / "out")
    assert again.fresh == 0 and again.sentence == found.sentence


def test_bytes_of_a_chip_are_asked_of_a_chip_only(
    task: tuple[Path, dict[str, np.ndarray]], tmp_path: Path
) -> None:
    path, data = task
    with pytest.raises(BadInput, match=r"^tune --on cpu:1: RAM and flash are those of"):
        litesmith.tune(path, data, min_snr=10, ram="64K", on="cpu:1", out=tmp_path)
    with pytest.raises(BadInput, match=r"^no board 'toaster'; there are arduino"):
        litesmith.tune(path, data, min_snr=10, fits="toaster", out=tmp_path)
    with pytest.raises(BadInput, match=r"^ram 0: give bytes"):
        litesmith.tune(path, data, min_snr=10, ram=0, out=tmp_path)
