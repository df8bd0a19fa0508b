"""Real models, where they lie beside the checkout: built ones hide most bugs."""

from pathlib import Path

import numpy as np
import pytest

from litesmith.anatomy.footprint import footprint
from litesmith.passes.core.recipe import apply
from litesmith.tflite.file import load
from litesmith.tflite.write import to_bytes
from tests.runtime import run

FOLDER = Path(__file__).parents[2] / "shared" / "assets" / "models"
FILES = sorted(FOLDER.glob("*.tflite"))

pytestmark = pytest.mark.skipif(not FILES, reason="no real models beside the checkout")


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_copy_is_faithful(path: Path) -> None:
    original = path.read_bytes()
    copy = to_bytes(load(path))
    assert to_bytes(load(copy)) == copy
    assert len(copy) <= max(1.01 * len(original), len(original) + 1024)
    for a, b in zip(run(original), run(copy), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
@pytest.mark.parametrize(
    "recipe", ["cleanup | fold | fuse", "fold(float16=true, shapes=true) | fuse"]
)
def test_tidying_keeps_the_results(path: Path, recipe: str) -> None:
    model = load(path)
    tidy = to_bytes(apply(model, recipe).model)
    if recipe.startswith("cleanup"):
        assert len(tidy) <= path.stat().st_size
    for a, b in zip(run(path.read_bytes()), run(tidy), strict=True):
        most = 1e-5 * np.abs(a.astype(np.float64)).max() if a.dtype.kind == "f" else 0
        assert np.abs(a.astype(np.float64) - b.astype(np.float64)).max() <= most


# Parameters and MACs as the models' papers and makers print them.
KNOWN = {
    "mobilenet_v1_1.0_224": (4.2e6, 569e6),
    "mobilenet_v1_0.25_224": (0.47e6, 41e6),
    "mobilenet_v2_1.0_224_quant": (3.5e6, 300e6),
    "efficientnet_lite0_f32": (4.7e6, 407e6),
    "pretrainedResnet": (78e3, 12.5e6),
}


@pytest.mark.parametrize("name", KNOWN)
def test_published_figures(name: str) -> None:
    facts = footprint(load(FOLDER / f"{name}.tflite"))
    assert facts.parameters == pytest.approx(KNOWN[name][0], rel=0.06)
    assert facts.macs == pytest.approx(KNOWN[name][1], rel=0.06)
