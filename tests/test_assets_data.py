"""Real models on real data, where they lie beside the checkout: guesses and accuracies."""

from pathlib import Path

import numpy as np
import pytest

from litesmith import Session
from litesmith.data.guess_norm import first_outputs
from litesmith.data.lint import lint
from litesmith.data.opened_samples import OpenedSamples
from litesmith.data.sources import open_data
from litesmith.tflite.file import load

FOLDER = Path(__file__).parents[2] / "shared" / "assets"

pytestmark = pytest.mark.skipif(
    not (FOLDER / "data").is_dir(), reason="no real data beside the checkout"
)

# The text of the preparation that each model was made with, as far as it differs by data.
LABELLED = {
    ("mobilenet_v1_0.25_224", "imagenet_val"): "norm=tf resize=bilinear crop=0.875 label_offset=1",
    ("mobilenet_v2_1.0_224_quant", "imagenet_val"): (
        "mean=128 std=128 resize=bilinear crop=0.875 label_offset=1"
    ),
    ("pretrainedResnet", "cifar10_test.npz"): "norm=raw",
    ("pretrainedResnet_quant", "cifar10_test.npz"): "mean=0 std=1",
    ("kws_hybrid", "kws01.npz"): "norm=none",
}

# Of 400 samples, spread over the classes; the accuracy of all of them lies within 4 points.
ACCURACY = {
    "mobilenet_v1_0.25_224": 0.514,
    "mobilenet_v2_1.0_224_quant": 0.713,
    "pretrainedResnet": 0.867,
    "pretrainedResnet_quant": 0.865,
    "kws_hybrid": 0.90,
}

UNLABELLED = {
    "deeplabv3": "mean=127.5 std=127.5",
    "face_landmark": "mean=0 std=255",
    "mobilenet_v1_0.25_224": "norm=tf",
    "pretrainedResnet": "norm=raw",
    "vww_96_float": "norm=unit",
    "vww_96_int8": "mean=0 std=255",
}


@pytest.mark.parametrize(("name", "data"), LABELLED)
def test_the_right_preparation_is_found_and_gives_the_known_accuracy(name: str, data: str) -> None:
    model = load(FOLDER / "models" / f"{name}.tflite")
    found = open_data(FOLDER / "data" / data, model, samples=400)
    assert isinstance(found, OpenedSamples) and found.preparation.text == LABELLED[name, data]
    with Session(model, "cpu:2") as session:
        outputs = first_outputs(session, found)
    right = float(np.mean(outputs.argmax(axis=1) == found.classes))
    assert right == pytest.approx(ACCURACY[name], abs=0.04)
    assert not [problem for problem in lint(found, model) if problem.serious]


@pytest.mark.parametrize("name", UNLABELLED)
def test_the_right_preparation_is_found_without_labels(name: str) -> None:
    model = load(FOLDER / "models" / f"{name}.tflite")
    found = open_data(FOLDER / "data" / "imagenet_calibration", model)
    assert isinstance(found, OpenedSamples)
    assert found.preparation.text == f"{UNLABELLED[name]} resize=bilinear crop=0.875"
    assert lint(found, model) == []
