"""Recipes with data and training, as Python users call them."""

import doctest
from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith import BadInput
from litesmith.data.preparation import Preparation
from litesmith.tflite.write import to_bytes
from tests.zoo import convnet, noise


def images(count: int = 12) -> np.ndarray:
    return noise(count, 8, 8, 3, seed=3, scale=2)


def dtypes(model: litesmith.Model) -> set[str]:
    return {t.dtype for op in model.main.ops for t in op.outputs}


def test_without_data_it_is_the_recipe_alone() -> None:
    model = convnet()
    assert litesmith.apply(model, "").model is model
    assert litesmith.apply(model, "quantize(to=float16)").touched


def test_data_of_any_sort_gives_the_same() -> None:
    model = convnet()
    files = [
        to_bytes(litesmith.apply(model, "quantize | correct", data).model)
        for data in (images(), {"x": images()}, (one for one in images()), lambda: iter(images()))
    ]
    assert len(set(files)) == 1
    assert "int8" in dtypes(litesmith.load(files[0]))


def test_the_preparation_and_the_number_of_samples_count() -> None:
    model = convnet()
    pixels = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 3)).astype(np.uint8)
    scales = [
        litesmith.apply(model, "quantize", pixels, preparation=Preparation(norm=norm), samples=n)
        .model.main.ops[0]
        .outputs[0]
        .quant
        for norm, n in (("unit", 12), ("raw", 12), ("unit", 1))
    ]
    steps = [float(quant.scale[0]) for quant in scales if quant is not None]
    assert steps[1] / steps[0] == pytest.approx(255, rel=0.02)
    assert steps[2] <= steps[0]


def test_integers_need_data() -> None:
    with pytest.raises(BadInput, match="needs data"):
        litesmith.apply(convnet(), "quantize")


def test_a_quantized_file_is_corrected_beside_its_float_model(tmp_path: Path) -> None:
    model = convnet()
    litesmith.save(model, tmp_path / "float.tflite")
    quick = litesmith.load(to_bytes(litesmith.apply(model, "quantize", images()).model))
    with pytest.raises(litesmith.CannotApply, match="needs the float model"):
        litesmith.apply(quick, "correct", images())
    for reference in (model, tmp_path / "float.tflite", str(tmp_path / "float.tflite")):
        later = litesmith.apply(quick, "correct", images(), reference=reference)
        at_once = litesmith.apply(model, "quantize | correct", images())
        biases = [
            [op.inputs[2].values().tolist() for op in m.main.ops if len(op.inputs) > 2]
            for m in (later.model, at_once.model)
        ]
        assert biases[0] == biases[1]


def test_the_example_of_the_package_runs() -> None:
    pytest.importorskip("torch")
    failed, tried = doctest.testmod(litesmith)
    assert tried > 5 and not failed


def test_training_is_by_its_seed_and_settings() -> None:
    pytest.importorskip("torch")
    model, data = convnet(), images(64)
    files = [
        to_bytes(litesmith.apply(model, "cluster(k=4)", data, training=training).model)
        for training in (
            litesmith.Training(epochs=2, rate=0.01),
            litesmith.Training(epochs=2, rate=0.01),
            litesmith.Training(epochs=2, rate=0.01, seed=1),
        )
    ]
    assert files[0] == files[1] != files[2]
