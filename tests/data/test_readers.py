"""Labels: the same classes in whatever form and from whatever source they come."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.accuracy.evaluate import evaluate_all
from litesmith.data.opened_samples import OpenedSamples
from litesmith.data.preparation import Preparation
from litesmith.data.readers import as_classes
from litesmith.data.sources import open_data
from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.tflite.write_metadata import Described, describe
from tests.data.test_images import noise, saved
from tests.data.test_sources import scorer

RAW = Preparation(norm="raw", label_offset=0)
CLASSES = np.array([2, 0, 3, 1, 2])

FORMS = {
    "integers": CLASSES,
    "a column": CLASSES[:, None],
    "floats": CLASSES.astype(np.float32),
    "a column of floats": CLASSES[:, None].astype(np.float64),
    "one-hot": np.eye(4, dtype=np.float32)[CLASSES],
    "one-hot integers": np.eye(4, dtype=np.uint8)[CLASSES],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_from_arrays_and_generators_is_the_same(form: str) -> None:
    x, y = np.zeros((5, 8, 8, 3), np.float32), FORMS[form]

    def one_by_one() -> Iterator[object]:
        yield from zip(x, y, strict=True)

    for source in ({"x": x, "y": y}, one_by_one):
        data = open_data(source, scorer(), preparation=RAW)
        assert isinstance(data, OpenedSamples) and data.classes is not None
        assert data.classes.tolist() == CLASSES.tolist()
        labels = [s.label for s in data]
        assert [b.tolist() for b in labels if b is not None] == [[c] for c in CLASSES]
        assert any("taken as class numbers" in n for n in data.notes) == (
            "float" in form or "one-hot" in form
        )


@pytest.mark.parametrize(
    "labels",
    [[0.5, 1], [-1.0, 2], [np.nan, 1], [np.inf, 1], [1e20, 1], [[0.5, 0.5]], [[1.0, 1.0]]],
)
def test_other_numbers_stay(labels: list[object]) -> None:
    assert as_classes(np.array(labels)).classes is None


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=20))
def test_whole_numbers_survive(numbers: list[int]) -> None:
    found = as_classes(np.array(numbers, np.float64))
    assert found.classes is not None and found.classes.tolist() == numbers and found.notes


def test_a_folder_with_a_huge_number_is_a_name(tmp_path: Path) -> None:
    for number, name in enumerate(("3", "99999999999999999999")):
        saved(tmp_path / name / "a.png", noise(8, 8, number))
    data = open_data(tmp_path, scorer(), preparation=RAW)
    assert isinstance(data, OpenedSamples) and data.classes is not None
    assert data.classes.tolist() == [0, 1]
    assert "in the order of their names" in data.notes[0]


def folders(place: Path, names: list[str]) -> Path:
    for number, name in enumerate(names):
        saved(place / name / "a.png", noise(8, 8, number))
    return place


def labelled(*labels: str) -> Model:
    return describe(scorer(classes=len(labels)), [Described()], list(labels))


FLOWERS = ["daisy", "dandelion", "roses", "sunflowers", "tulips"]


@pytest.mark.parametrize(
    ("model", "names", "told"),
    [
        (scorer(classes=11), FLOWERS, "its 5 classes (daisy"),
        (scorer(classes=4), FLOWERS, "are not the 4 of the model"),
        (labelled("cat", "dog", "emu", "fox", "gnu"), FLOWERS, "5 (cat, dog, emu, fox, gnu)"),
        (labelled(*FLOWERS[:4], "gnu"), FLOWERS, "(tulips)"),
        (labelled("cat", "dog"), ["cat", "dog"], ""),
        (labelled("cat, Felis catus", "hot_dog", "emu"), ["Felis catus", "hot dog"], ""),
        (scorer(classes=5), FLOWERS, ""),
        (scorer(classes=6), FLOWERS, ""),
        (scorer(classes=11), ["0", "3", "7"], ""),
    ],
)
def test_classes_that_cannot_be_the_models_are_told(
    model: Model, names: list[str], told: str, tmp_path: Path
) -> None:
    data = open_data(folders(tmp_path, names), model, preparation=RAW)
    assert told in data.items.misfit and bool(told) == bool(data.items.misfit)
    if told:
        with pytest.raises(BadInput, match="are not the"):
            evaluate_all([model], data)
        agreement = evaluate_all([model], data, against=model, metric="agreement")
        assert agreement[0].value == 1


def test_a_list_of_labels_in_the_folder_that_is_not_the_models(tmp_path: Path) -> None:
    folders(tmp_path, FLOWERS)
    (tmp_path / "labels.txt").write_text("\n".join(FLOWERS))
    assert open_data(tmp_path, scorer(classes=30), preparation=RAW).items.misfit
    assert not open_data(tmp_path, scorer(classes=5), preparation=RAW).items.misfit


def test_no_offset_is_told_of_classes_that_are_not_the_models(tmp_path: Path) -> None:
    model = scorer(classes=1001)  # one more than ImageNet has, for a background
    data = open_data(folders(tmp_path, FLOWERS), model, preparation=Preparation(norm="raw"))
    assert data.items.misfit and not any("label offset" in note for note in data.notes)


def test_a_batch_of_one_may_be_left_out_beside_an_input_without() -> None:
    b = Builder()
    x, gain = b.input("x", (1, 4, 4, 1)), b.input("gain", ())
    model = b.model(b.op("MUL", x, gain))
    images, gains = np.ones((6, 4, 4, 1), np.float32), np.arange(6, dtype=np.float32)
    for held in (images, images[:, None]):
        found = list(open_data({"x": held, "gain": gains}, model))
        assert [sample.inputs[0].shape for sample in found] == [(1, 4, 4, 1)] * 6
        assert [float(sample.inputs[1]) for sample in found] == gains.tolist()
