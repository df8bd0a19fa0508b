"""The normalisation that a model states is taken; else the one under which it does best."""

from dataclasses import replace

import numpy as np
import pytest

from litesmith import Builder, Model, Quant
from litesmith.data.guess_norm import _shared_information
from litesmith.data.opened_samples import OpenedSamples
from litesmith.data.preparation import NORMS, Preparation
from litesmith.data.sources import open_data
from tests.tflite.test_read_metadata import described

LEVELS = (40, 60, 80, 110, 121, 150, 180, 220)  # of which the first four are dark
MIDDLE = 115.5


def bright_or_dark(norm: str, *, first: int = 0, last: int = 0, softmax: bool = True) -> Model:
    """Tells images brighter than the middle from darker ones if it gets them by this norm.

    `first` and `last` are classes before and behind the two that are never right.
    """
    zero = np.mean((MIDDLE - np.array(NORMS[norm].mean)) / NORMS[norm].std)
    gain = 40 * np.mean(NORMS[norm].std) / 255
    b = Builder()
    x = b.input("image", (1, 8, 8, 3))
    mean = b.op("MEAN", x, np.array([1, 2, 3], np.int32), keep_dims=False)
    signs = np.array([0] * first + [gain, -gain] + [0] * last, np.float32)
    unlikely = np.array([-50] * first + [0, 0] + [-50] * last)
    bias = (unlikely - zero * signs).astype(np.float32)
    scores = b.op("FULLY_CONNECTED", b.op("RESHAPE", mean, [1, 1]), signs[:, None], bias)
    return b.model(b.op("SOFTMAX", scores) if softmax else scores)


def images(count: int = 32) -> tuple[np.ndarray, np.ndarray]:
    levels = np.resize(LEVELS, count)
    speckle = np.random.default_rng(0).integers(-2, 3, (count, 8, 8, 3))
    return (levels[:, None, None, None] + speckle).astype(np.uint8), (levels < MIDDLE).astype(int)


@pytest.mark.parametrize("norm", ["tf", "unit", "raw", "torch"])
@pytest.mark.parametrize("softmax", [True, False])
def test_labels_tell_the_norm(norm: str, softmax: bool) -> None:
    x, y = images()
    data = open_data({"x": x, "y": y}, bright_or_dark(norm, softmax=softmax))
    assert isinstance(data, OpenedSamples) and data.preparation.norm == norm
    [note] = data.notes
    assert f"normalisation {norm} (" in note
    assert "100.0 % of 32 labelled samples right" in note and f"--norm {norm}" in note


def test_decided_answers_tell_the_norm_without_labels() -> None:
    data = open_data(images()[0], bright_or_dark("raw"))
    assert isinstance(data, OpenedSamples) and data.preparation.norm == "raw"
    assert "guessed" in data.notes[0] and "mirror" in data.notes[0]


def test_shared_information_is_high_for_decided_and_different_answers_that_agree() -> None:
    decided = np.eye(4)[[0, 1, 2, 3]]
    assert _shared_information(decided, decided) == pytest.approx(np.log(4))
    undecided = np.full((4, 4), 0.25)
    same = np.eye(4)[[2, 2, 2, 2]]
    disagreeing = np.eye(4)[[1, 2, 3, 0]]
    assert _shared_information(undecided, undecided) == pytest.approx(0)
    assert _shared_information(same, same) == pytest.approx(0)
    assert _shared_information(decided, disagreeing) < np.log(4) - 0.5


def test_labels_of_other_classes_are_no_evidence() -> None:
    x, y = images()
    mixed = np.random.default_rng(1).permutation(y)
    data = open_data({"x": x, "y": mixed}, bright_or_dark("raw"))
    assert isinstance(data, OpenedSamples) and data.preparation.norm == "raw"
    assert "agree" in data.notes[0]


def test_a_guess_without_scores_is_not_sure() -> None:
    b = Builder()
    model = b.model(b.op("RELU", b.input("image", (1, 8, 8, 3))))
    [note] = open_data(images()[0], model).notes
    assert "not sure" in note and "--norm" in note


def test_metadata_comes_before_a_guess_and_the_user_before_metadata() -> None:
    model = described(bright_or_dark("tf"), [10], [20])
    data = open_data(images()[0], model)
    assert isinstance(data, OpenedSamples)
    assert data.preparation.mean == (10,) and data.preparation.std == (20,)
    assert data.notes == ("normalisation (x − 10) / 20: from the model's metadata",)
    given = open_data(images()[0], model, preparation=Preparation(norm="raw"))
    assert isinstance(given, OpenedSamples) and given.preparation.norm == "raw" and not given.notes


def test_metadata_comes_before_the_scale() -> None:
    b = Builder()
    x = b.input("image", (1, 8, 8, 3), "int8", Quant.of(1 / 128, 0))
    model = described(b.model(b.op("DEQUANTIZE", x, dtype="float32")), [127.5], [127.5])
    [sample] = open_data(np.full((1, 8, 8, 3), 255, np.uint8), model)
    assert sample.inputs[0].max() == 1


@pytest.mark.parametrize("norm", sorted(NORMS))
def test_the_range_of_the_first_scale_tells_the_norm(norm: str) -> None:
    """As in a model that was quantized with a float input: no guess is needed."""
    ends = (np.array([[0.0], [255.0]]) - NORMS[norm].mean) / NORMS[norm].std
    scale = (ends.max() - ends.min()) / 255 * 0.99  # the data had no purely white pixel
    b = Builder()
    x = b.input("image", (1, 8, 8, 3))
    taken = Quant.of(scale, round(-128 - ends.min() / scale))
    y = b.op("DEQUANTIZE", b.op("QUANTIZE", x, dtype="int8", quant=taken), dtype="float32")
    data = open_data(images()[0], b.model(y))
    assert isinstance(data, OpenedSamples) and data.preparation.norm == norm
    assert "range of its first scale" in data.notes[0]


def test_a_range_that_no_norm_fills_is_no_evidence() -> None:
    b = Builder()
    taken = b.op("QUANTIZE", b.input("image", (1, 8, 8, 3)), dtype="int8", quant=Quant.of(0.1, 3))
    data = open_data(images()[0], b.model(b.op("DEQUANTIZE", taken, dtype="float32")))
    assert isinstance(data, OpenedSamples) and "not sure" in data.notes[0]


def test_damaged_metadata_is_said_and_a_guess_made() -> None:
    model = replace(
        bright_or_dark("raw"), metadata=(("TFLITE_METADATA", np.full(40, 255, np.uint8)),)
    )
    data = open_data(images()[0], model)
    assert isinstance(data, OpenedSamples) and data.preparation.norm == "raw"
    assert "damaged" in data.notes[0] and "guessed" in data.notes[1]


def test_a_model_that_cannot_run_gets_an_assumption() -> None:
    b = Builder()
    made = b.op("CUSTOM", b.input("image", (1, 8, 8, 3)), custom="Unknown", shape=(1, 4))
    [note] = open_data(images()[0], b.model(made)).notes
    assert "assumed" in note and "could not be tried" in note


def test_a_class_more_than_labels_is_a_background() -> None:
    x, y = images()
    for given in (Preparation(), Preparation(norm="tf")):
        data = open_data({"x": x, "y": y}, bright_or_dark("tf", first=1), preparation=given)
        assert isinstance(data, OpenedSamples) and data.preparation.label_offset == 1
        assert "label offset 1" in data.notes[-1]
        assert {int(s.label[0]) for s in data if s.label is not None} == {1, 2}


def test_a_class_without_samples_is_no_background() -> None:
    x, y = images()
    data = open_data({"x": x, "y": y}, bright_or_dark("tf", last=1))
    assert isinstance(data, OpenedSamples) and data.preparation.label_offset == 0
    assert not any("label offset" in note for note in data.notes)


@pytest.mark.parametrize("offset", [0, 1, -1])
def test_a_given_offset_is_taken(offset: int) -> None:
    x, y = images(8)
    given = Preparation(norm="tf", label_offset=offset)
    data = open_data({"x": x, "y": y}, bright_or_dark("tf", first=1), preparation=given)
    labels = [int(s.label[0]) for s in data if s.label is not None]
    assert labels == (y + offset).tolist() and not data.notes


def test_a_batch_of_several_is_guessed_too() -> None:
    b = Builder()
    x = b.input("image", (4, 8, 8, 1))
    mean = b.op("MEAN", x, np.array([1, 2, 3], np.int32), keep_dims=False)
    column = b.op("RESHAPE", mean, [4, 1])
    weights, bias = np.array([[0.2], [-0.2]], np.float32), np.array([-23, 23], np.float32)
    model = b.model(b.op("SOFTMAX", b.op("FULLY_CONNECTED", column, weights, bias)))
    pixels, y = images()
    data = open_data({"x": pixels[..., :1], "y": y}, model)
    assert isinstance(data, OpenedSamples) and data.preparation.norm == "raw" and len(data) == 8


@pytest.mark.parametrize("offset", [0, 1])
def test_a_background_is_found_where_the_first_classes_have_no_samples(offset: int) -> None:
    x, y = images()
    model = bright_or_dark("tf", first=100 + offset, last=899 - offset)
    assert model.main.outputs[0].shape[-1] == 1001
    for given in (Preparation(), Preparation(norm="tf")):
        data = open_data({"x": x, "y": y + 100}, model, preparation=given)
        assert isinstance(data, OpenedSamples) and data.preparation.label_offset == offset
        assert any("label offset 1" in note for note in data.notes) == bool(offset)
        assert not any("label offset" in n and "not sure" in n for n in data.notes)


def test_an_offset_that_nothing_decides_is_said() -> None:
    x, _ = images()
    model = bright_or_dark("tf", first=999)
    data = open_data({"x": x, "y": np.arange(32) + 5}, model, preparation=Preparation(norm="tf"))
    assert "label offset 1: " in data.notes[-1] and "which is not sure" in data.notes[-1]
