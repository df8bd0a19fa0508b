"""Real networks learn flowers, where they and the pictures lie beside the checkout."""

from pathlib import Path

import pytest

import litesmith
from litesmith.tflite.file import load
from litesmith.transfer.embedding import embedding_of

FOLDER = Path(__file__).parents[2] / "shared" / "assets"
FLOWERS = FOLDER / "data" / "flowers"

pytestmark = pytest.mark.skipif(not FLOWERS.is_dir(), reason="no real models beside the checkout")


@pytest.mark.parametrize(
    ("model", "least"), [("mobilenet_v1_0.25_224", 0.78), ("pretrainedResnet", 0.6)]
)
def test_flowers_are_learned(model: str, least: float, tmp_path: Path) -> None:
    path = FOLDER / "models" / f"{model}.tflite"
    found = litesmith.retrain(path, FLOWERS, tmp_path / "out.tflite")
    assert found.value >= least and found.n == 200
    again = litesmith.evaluate(found.out, FLOWERS / "val")
    assert again.value == pytest.approx(found.value)


WIDTHS = {
    "mobilenet_v2_1.0_224_features": 1280,
    "mobilenet_v1_1.0_224": 1024,
    "efficientnet_lite0_f32": 1280,
    "vww_96_float": 256,
    "deeplabv3": 160,
}


@pytest.mark.parametrize("model", WIDTHS)
def test_where_real_networks_have_their_embedding(model: str) -> None:
    found = embedding_of(load(FOLDER / "models" / f"{model}.tflite"))
    assert found.tensor.shape[-1] == WIDTHS[model]


def test_a_network_of_maps_lists_what_could_be_meant() -> None:
    with pytest.raises(litesmith.BadInput, match=r"--at: 279 \(model_1/concat/concat\) 1×172×88"):
        embedding_of(load(FOLDER / "models" / "basic_pitch.tflite"))
