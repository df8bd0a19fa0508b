"""A normalisation is for images, and for each image its own."""

import numpy as np

from litesmith import Builder, Quant
from litesmith.data.preparation import Preparation
from litesmith.data.samples import as_stored
from litesmith.data.sources import open_data


def test_a_vector_beside_an_image_is_not_normalised() -> None:
    b = Builder()
    image, vector = b.input("image", (1, 8, 8, 3)), b.input("vector", (1, 5))
    mean = b.op("MEAN", image, np.array([1, 2, 3], np.int32), keep_dims=False)
    model = b.model(b.op("ADD", vector, mean))
    x = {"image": np.full((3, 8, 8, 3), 255, np.uint8), "vector": np.full((3, 5), 100.0)}
    for norm in ("tf", "torch"):
        for sample in open_data(x, model, preparation=Preparation(norm=norm)):
            assert sample.inputs[0].min() >= 1 and sample.inputs[0].max() < 3
            assert sample.inputs[1].tolist() == [[100] * 5]


def test_a_vector_alone_is_normalised_as_told() -> None:
    b = Builder()
    model = b.model(b.op("RELU", b.input("x", (1, 5))))
    [sample] = open_data(np.full((1, 5), 255.0), model, preparation=Preparation(norm="unit"))
    assert sample.inputs[0].tolist() == [[1] * 5]


def test_each_image_has_what_the_model_states_for_it() -> None:
    b = Builder()
    quants = Quant.of(1 / 255, 0), Quant.of(2 / 255, 100)
    both = [b.input(n, (1, 8, 8, 3), "uint8", q) for n, q in zip("ab", quants, strict=True)]
    real = [b.op("DEQUANTIZE", x, dtype="float32") for x in both]
    model = b.model(b.op("ADD", *real))
    pixels = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3)).astype(np.uint8)
    data = open_data({"a": pixels, "b": 255 - pixels}, model)
    for place, sample in enumerate(data):
        stored = [as_stored(t, x) for t, x in zip(both, sample.inputs, strict=True)]
        np.testing.assert_array_equal(stored[0][0], pixels[place])
        np.testing.assert_array_equal(stored[1][0], 255 - pixels[place])
    assert any(note.startswith("input 'b': ") for note in data.notes)
