"""Real models on wrongly prepared data, where they lie beside the checkout."""

from pathlib import Path

import numpy as np
import pytest

from litesmith.accuracy.chance import at_chance
from litesmith.data.preparation import Preparation
from litesmith.data.sources import open_data
from litesmith.tflite.file import load

FOLDER = Path(__file__).parents[2] / "shared" / "assets"

pytestmark = pytest.mark.skipif(
    not (FOLDER / "data").is_dir(), reason="no real data beside the checkout"
)

SETTINGS = {
    Preparation(norm="tf"): "",
    Preparation(norm="raw"): "with --norm tf it would be",
    Preparation(norm="caffe"): "with --norm tf it would be",
    Preparation(norm="tf", label_offset=0): "with --label-offset 1 it would be",
}


# Two of the wrong ones are alike.
FULL = {preparation: [pytest.mark.full] for preparation in SETTINGS if preparation.norm == "caffe"}


@pytest.mark.parametrize(
    "preparation",
    [pytest.param(one, marks=FULL.get(one, []), id=one.text) for one in SETTINGS],
)
def test_wrong_preparation_is_named(preparation: Preparation) -> None:
    model = load(FOLDER / "models" / "mobilenet_v1_0.25_224.tflite")
    data = open_data(FOLDER / "data" / "imagenet_val", model, preparation=preparation)
    told, wanted = at_chance(model, data), SETTINGS[preparation]
    assert told is None if not wanted else wanted in (told or "")


def test_shuffled_labels_are_named() -> None:
    model = load(FOLDER / "models" / "pretrainedResnet.tflite")
    with np.load(FOLDER / "data" / "cifar10_test.npz") as archive:
        x, y = archive["x"], np.random.default_rng(0).permutation(archive["y"])
    told = at_chance(model, open_data({"x": x, "y": y}, model, preparation=Preparation(norm="raw")))
    assert told is not None and "no better than guessing" in told and "none of these" in told
