"""Accuracy of real models on real data, where they lie beside the checkout."""

from pathlib import Path

import pytest

from litesmith.accuracy.evaluate import SAME, evaluate_all
from litesmith.data.preparation import Preparation
from litesmith.data.sources import open_data
from litesmith.tflite.file import load

FOLDER = Path(__file__).parents[2] / "shared" / "assets"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no real models beside the checkout")


@pytest.mark.parametrize(
    ("model", "data", "norm", "value"),
    [
        ("pretrainedResnet", "cifar10_test.npz", "raw", 0.8668),
        ("kws_hybrid", "kws01.npz", "", 0.9),
    ],
)
def test_known_accuracy(model: str, data: str, norm: str, value: float) -> None:
    path = FOLDER / "models" / f"{model}.tflite"
    opened = open_data(FOLDER / "data" / data, load(path), preparation=Preparation(norm=norm))
    found = evaluate_all([path], opened)[0]
    assert found.value == value
    assert found.low < value < found.high


def test_a_quantized_copy_is_no_worse() -> None:
    path = FOLDER / "models" / "pretrainedResnet_quant.tflite"
    reference = FOLDER / "models" / "pretrainedResnet.tflite"
    preparation = Preparation(norm="raw")
    data = open_data(
        FOLDER / "data" / "cifar10_test.npz", load(path), preparation=preparation, samples=1000
    )
    against = evaluate_all([path], data, against=reference)[0].against
    assert against is not None
    assert against.verdict == SAME
    assert (against.agreement or 0) > 0.95
    assert (against.snr_db or 0) > 20
