"""Data for steps."""

import numpy as np
import pytest

import litesmith
from litesmith import BadInput
from litesmith.calibration.context import RandomSamples, problems
from litesmith.data.preparation import Preparation
from litesmith.data.sources import open_data
from tests.zoo import convnet, noise, strings


def images(count: int = 12) -> np.ndarray:
    return noise(count, 8, 8, 3, seed=3, scale=2)


def test_random_samples_are_the_same_each_time_and_suit_the_model() -> None:
    model = convnet()
    data = RandomSamples(model, 4)
    first, again = ([s.inputs[0] for s in data] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert len(data) == 4 and not np.array_equal(first[0], first[1])
    assert first[0].shape == (1, 8, 8, 3) and first[0].dtype == np.float32
    assert "RANDOM DATA" in data.notes[0]
    assert open_data(data, model) is data
    unit = RandomSamples(model, 4, Preparation(norm="unit"))
    values = np.concatenate([s.inputs[0] for s in unit])
    assert 0 <= values.min() < 0.01 and 0.99 < values.max() <= 1
    assert unit.digest != data.digest


def test_texts_cannot_be_made_at_random() -> None:
    assert len(list(RandomSamples(strings(), 2))) == 2, "its input is a number"
    b = litesmith.Builder()
    model = b.model(b.op("RESHAPE", b.input("words", (1, 2), "string"), [2], dtype="string"))
    with pytest.raises(BadInput, match="'words' takes texts"):
        list(RandomSamples(model, 1))


def test_labels_are_no_matter_in_calibration() -> None:
    model = convnet()
    data = {"x": np.tile(images(), (11, 1, 1, 1)), "y": np.full(132, 77)}
    data["x"] = data["x"] + noise(132, 1, 1, 1)
    found = problems(open_data(data, model, preparation=Preparation(label_offset=0)), model)
    assert not [problem for problem in found if problem.serious]


def test_random_pixels_are_scaled_along_their_channels() -> None:
    b = litesmith.Builder()
    model = b.model(b.op("RELU", b.input("image", (1, 3, 8, 16))))
    values = [s.inputs[0] for s in RandomSamples(model, 4, Preparation(norm="torch"))]
    lowest = np.concatenate(values).min(axis=(0, 2, 3))
    np.testing.assert_allclose(lowest, [-2.118, -2.036, -1.804], atol=0.1)
