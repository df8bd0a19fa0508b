"""What a search refuses before long work, in one line each."""

from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith.data.sources import open_data
from litesmith.errors import BadInput
from litesmith.search.trial.data_split import split
from litesmith.tflite.file import load
from tests.search.choosing.taught import BLINK, examples, written


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("refused")
    written(place)
    return place


def test_a_model_that_guesses_is_refused_before_anything_is_tried(tmp_path: Path) -> None:
    model, _ = written(tmp_path)
    given = examples(2000)
    wrong = np.random.default_rng(0).permutation(given["y"])
    with pytest.raises(BadInput, match="no better than guessing"):
        litesmith.tune(
            model, {**given, "y": wrong}, max_drop="5pt", runs=BLINK, out=tmp_path / "out"
        )
    assert not (tmp_path / "out").exists()


def test_data_without_labels_is_refused_with_the_way_out(tmp_path: Path) -> None:
    model, _ = written(tmp_path)
    with pytest.raises(BadInput, match=r"has no labels.*--min-agreement 98%"):
        litesmith.tune(model, examples()["x"], max_drop="1pt", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_too_few_samples_are_refused_with_how_many_it_takes(tmp_path: Path) -> None:
    model, data = written(tmp_path, count=200)
    with pytest.raises(
        BadInput, match=r"107 samples are left.*needs 385; give 722 independent samples in all"
    ):
        litesmith.tune(model, data, max_drop="1pt", out=tmp_path / "few")
    enough = open_data(examples(722), load(model))
    assert len(split(enough).held_out) >= 385


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"minimize": "power"}, "minimize power: there are latency, size, download, memory"),
        ({"on": "numpy"}, "tune --on numpy: no product runs on it"),
        ({"on": "abacus"}, "no target 'abacus'.*to compile for: ethos-u55-32"),
        ({"on": "edgetpu"}, "--on edgetpu --minimize latency: nothing here.*--minimize size"),
        (
            {"on": "coreml", "minimize": "size", "max_latency": "1ms"},
            "--on coreml --max-latency: nothing here tells how long",
        ),
        ({"on": "hexagon", "minimize": "memory"}, "peaks are seen on this machine only"),
        ({"minutes": 0.0}, "a number above 0 is needed"),
        ({"runs": 0}, "runs=0: give a number from 1"),
        ({"max_drop": "1"}, "give 1pt or 1%, points of the metric"),
        ({"min_snr": "20"}, "give one of max_drop=, min_agreement= and min_snr="),
        ({"max_drop": None}, "give one of max_drop=, min_agreement= and min_snr="),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(
    place: Path, tmp_path: Path, asked: dict[str, object], told: str
) -> None:
    words = {"max_drop": "5pt", "out": tmp_path / "out", **asked}
    with pytest.raises(BadInput, match=told) as no:
        litesmith.tune(place / "model.tflite", place / "data.npz", **words)  # pyright: ignore
    assert "\n" not in str(no.value)
    assert not (tmp_path / "out").exists()
