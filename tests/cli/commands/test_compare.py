"""`litesmith compare` as a user meets it."""

import json
from pathlib import Path

import numpy as np
import pytest

from litesmith.tflite.file import save
from tests.cli.commands.test_evaluate import scorer
from tests.cli.test_cli import litesmith
from tests.regression.test_comparison import halves, labelled
from tests.regression.test_comparison import scorer as wider

QUICK = ("--seconds", 0.05)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models, and data with and without labels."""
    folder = tmp_path_factory.mktemp("compare")
    models = {
        "model": scorer(),
        "coarse_copy_with_a_name_that_goes_on_and_on": scorer(2.0),
        "wide": wider(classes=5),
        "two": halves(coarse=False),
        "two_coarse": halves(coarse=True),
    }
    for name, model in models.items():
        save(model, folder / f"{name}.tflite")
    data = labelled(1200)
    np.savez(folder / "labelled.npz", x=data["x"], y=data["y"])
    np.save(folder / "plain.npy", labelled(100)["x"])
    return folder


def test_text(place: Path) -> None:
    coarse = "coarse_copy_with_a_name_that_goes_on_and_on.tflite"
    words = ("model.tflite", coarse, "--data", "labelled.npz", *QUICK)
    shown = litesmith("compare", *words, cwd=place)
    assert shown.returncode == 0, shown.stderr
    assert "\x1b" not in shown.stdout
    assert all(len(line) <= 80 for line in shown.stdout.splitlines())
    told = " ".join(shown.stdout.split())
    assert f"{coarse} is " in told
    assert " than model.tflite" in told
    assert "; top-1: worse (−" in told
    for text in ("time on cpu:1", "disk", "gzip", "peak memory", "1,200 samples of labelled.npz"):
        assert text in told
    assert "drift from A, on 64 samples" in told


def test_json_of_labelled_data(place: Path) -> None:
    coarse = "coarse_copy_with_a_name_that_goes_on_and_on.tflite"
    words = ("model.tflite", coarse, "--data", "labelled.npz", "--samples", 400, "--json", *QUICK)
    shown = litesmith("compare", *words, cwd=place)
    told = json.loads(shown.stdout, parse_constant=pytest.fail)
    accuracy, latency = told["accuracy"], told["latency"]
    assert (told["schema"], accuracy["metric"], accuracy["n"]) == (1, "top1", 400)
    assert accuracy["difference"] == pytest.approx(accuracy["b"] - accuracy["a"])
    assert accuracy["low"] < accuracy["difference"] < accuracy["high"] < 0
    assert {"ratio", "low", "high", "verdict"} <= set(latency)
    assert latency["low"] <= latency["ratio"] <= latency["high"]
    assert told["bytes"] == {
        "a": (place / "model.tflite").stat().st_size,
        "b": (place / coarse).stat().st_size,
    }
    assert told["verdict"].startswith(f"{coarse} is ")


def test_json_without_labels(place: Path) -> None:
    words = ("two.tflite", "two_coarse.tflite", "--data", "plain.npy", "--json", *QUICK)
    shown = litesmith("compare", *words, cwd=place)
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout, parse_constant=pytest.fail)
    accuracy = told["accuracy"]
    assert (accuracy["metric"], accuracy["a"], accuracy["difference"]) == ("snr", None, None)
    first, second = told["drift"]["outputs"]
    assert first["snr_db"] == 200 > second["snr_db"]
    assert accuracy["b"] == pytest.approx(second["snr_db"], abs=3)
    assert "samples without labels)" in told["verdict"]


def test_without_data_random_inputs_are_said_to_be(place: Path) -> None:
    shown = litesmith("compare", "two.tflite", "two_coarse.tflite", *QUICK, cwd=place)
    assert shown.returncode == 0, shown.stderr
    told = " ".join(shown.stdout.split())
    assert "accuracy is not compared: no data was given" in told
    assert "drift from A, on 16 random inputs" in told
    assert "give --data" in told


def test_models_that_do_not_fit_are_timed(place: Path) -> None:
    words = ("model.tflite", "wide.tflite", "--data", "labelled.npz", *QUICK)
    shown = litesmith("compare", *words, cwd=place)
    assert shown.returncode == 0, shown.stderr
    told = " ".join(shown.stdout.split())
    assert "accuracy is not compared: input 'x' of A is float32 1×4, B's is float32 1×5" in told
    assert "litesmith eval scores each" in told
    assert "time on cpu:1" in told and "drift" not in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("none.tflite",), "none.tflite: no such file"),
        (("model.tflite", "--data", "none.npz"), "none.npz: does not exist"),
        (("model.tflite", "--data", "labelled.npz", "--metric", "f2"), "no metric 'f2'"),
        (("model.tflite", "--on", "tpu"), "no target 'tpu'"),
        (("model.tflite", "--seconds", "0"), "give a number above 0"),
        ((), "litesmith: compare needs B; `litesmith compare --help` has all options"),
    ],
)
def test_bad_input_is_one_line(place: Path, words: tuple[str, ...], told: str) -> None:
    shown = litesmith("compare", "model.tflite", *words, cwd=place)
    assert shown.returncode == 2, shown
    assert told in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert not shown.stdout
