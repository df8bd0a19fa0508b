"""`litesmith eval` as a user meets it."""

import json
from pathlib import Path

import numpy as np
import pytest

from litesmith import Builder, Model, Quant
from litesmith.tflite.file import save
from litesmith.units import gain_text, score_text, total_text
from tests.cli.test_cli import litesmith
from tests.data.test_images import noise, saved
from tests.data.test_sources import scorer as pixels


def scorer(scale: float = 0.0) -> Model:
    """A model whose scores are its inputs, rounded to a scale if one is given."""
    b = Builder()
    x = b.input("x", (1, 4))
    if not scale:
        return b.model(b.op("ADD", x, np.zeros(4, np.float32)))
    y = b.op("QUANTIZE", x, dtype="int8", quant=Quant.of(scale, 0))
    return b.model(b.op("DEQUANTIZE", y, dtype="float32"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a model, a coarse copy of it, and data with and without labels."""
    save(scorer(), tmp_path / "model.tflite")
    save(scorer(2.0), tmp_path / "coarse_copy_with_a_name_that_goes_on_and_on.tflite")
    random = np.random.default_rng(0)
    labels = random.integers(0, 4, 1200)
    x = (random.normal(0, 1, (1200, 4)) + np.eye(4)[labels]).astype(np.float32)
    np.savez(tmp_path / "labelled.npz", x=x, y=labels)
    np.save(tmp_path / "plain.npy", x)
    return tmp_path


def test_text(place: Path) -> None:
    words = ("--data", "labelled.npz", "--against", "model.tflite")
    coarse = "coarse_copy_with_a_name_that_goes_on_and_on.tflite"
    shown = litesmith("eval", coarse, *words, cwd=place)
    assert shown.returncode == 0, shown.stderr
    assert "\x1b" not in shown.stdout
    assert all(len(line) <= 80 for line in shown.stdout.splitlines())
    told = " ".join(shown.stdout.split())
    for text in ("top-1 ", "on 1,200 samples", "cpu:1, LiteRT ", "against model.tflite: "):
        assert text in told
    assert "pt [−" in told
    assert "]: worse" in told
    assert "top-1 agreement " in told


def test_json(place: Path) -> None:
    alone = litesmith("eval", "model.tflite", "--data", "labelled.npz", "--json", cwd=place)
    assert alone.returncode == 0, alone.stderr
    told = json.loads(alone.stdout)
    wanted = {"schema", "metric", "value", "low", "high", "n", "preparation", "target", "runtime"}
    assert wanted <= set(told)
    assert (told["schema"], told["metric"], told["n"]) == (1, "top1", 1200)
    assert told["low"] < told["value"] < told["high"] <= 1
    assert "reference" not in told
    words = ("--data", "labelled.npz", "--against", "model.tflite", "--json", "--samples", 200)
    shown = litesmith("eval", "model.tflite", *words, cwd=place)
    told = json.loads(shown.stdout)
    assert (told["n"], told["difference"], told["agreement"]) == (200, 0, 1)
    assert told["difference_low"] < 0 < told["difference_high"]
    assert told["reference"] == told["value"]


def test_drift_without_labels(place: Path) -> None:
    words = ("--data", "plain.npy", "--against", "model.tflite", "--json")
    coarse = "coarse_copy_with_a_name_that_goes_on_and_on.tflite"
    told = json.loads(litesmith("eval", coarse, *words, cwd=place).stdout)
    assert (told["metric"], told["unit"]) == ("snr", "dB")
    assert 0 < told["value"] < 20
    assert told["difference"] is told["reference"] is told["verdict"] is None


def test_a_model_against_itself(place: Path) -> None:
    words = ("--data", "plain.npy", "--against", "model.tflite", "--metric", "agreement")
    shown = litesmith("eval", "model.tflite", *words, cwd=place)
    assert "top-1 agreement 100.00 % [99.68, 100.00]" in shown.stdout
    assert "against model.tflite\nthe outputs are equal on every sample\n" in shown.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("model.tflite",), "eval needs data"),
        (("model.tflite", "--data", "none.npz"), "none.npz"),
        (("none.tflite", "--data", "plain.npy"), "no such file"),
        (("model.tflite", "--data", "plain.npy"), "no labels"),
        (("model.tflite", "--data", "plain.npy", "--against", "none.tflite"), "no such file"),
        (("model.tflite", "--data", "labelled.npz", "--metric", "f2"), "no metric 'f2'"),
        (("model.tflite", "--data", "labelled.npz", "--metric", "auc"), "auc needs labels 0 and 1"),
        (("model.tflite", "--data", "labelled.npz", "--on", "tpu"), "no target 'tpu'"),
    ],
)
def test_bad_input_is_one_line(place: Path, words: tuple[str, ...], told: str) -> None:
    shown = litesmith("eval", *words, cwd=place)
    assert shown.returncode == 2, shown
    assert told in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert not shown.stdout


def test_scores_as_text() -> None:
    assert score_text(0.6915, "share", 0.67088, 0.71136) == "69.15 % [67.09, 71.14]"
    assert score_text(23.44, "dB") == "23.4 dB"
    assert score_text(float("inf"), "", 0, float("inf")) == "∞ [0, ∞]"
    assert gain_text(-0.0045, "share", -0.011, 0.002) == "−0.45 pt [−1.10, +0.20]"
    assert gain_text(1.5, "", 1, 2) == "+1.5 [+1, +2]"
    assert total_text(50000) == "50,000"


def test_lost_numbers_are_worse_and_the_json_is_valid(place: Path) -> None:
    b = Builder()
    save(b.model(b.op("SQRT", b.input("x", (1, 4)))), place / "lost.tflite")
    x = np.load(place / "plain.npy")[:40]
    np.savez(place / "targets.npz", x=x, y=x / 3)
    pairs = {
        ("lost", "model"): "worse",
        ("model", "lost"): "better",
        ("lost", "lost"): None,
    }
    for (one, other), verdict in pairs.items():
        words = (f"{one}.tflite", "--data", "targets.npz", "--against", f"{other}.tflite")
        shown = litesmith("eval", *words, "--json", cwd=place)
        assert shown.returncode == 0, shown.stderr
        told = json.loads(shown.stdout, parse_constant=pytest.fail)
        assert (told["metric"], told["verdict"], told["difference"]) == ("rmse", verdict, None)
    words = ("lost.tflite", "--data", "targets.npz", "--against", "lost.tflite")
    text = litesmith("eval", *words, cwd=place).stdout
    assert "both are infinitely wrong" in text


def test_data_that_looks_wrong_is_said(place: Path) -> None:
    x = np.load(place / "plain.npy")[:40]
    x[7, 0] = np.nan
    np.savez(place / "nan.npz", x=x, y=np.arange(40) % 4)
    shown = litesmith("eval", "model.tflite", "--data", "nan.npz", cwd=place)
    assert shown.returncode == 0
    assert "litesmith: warning: nan.npz: 1 of 40 samples hold NaN" in shown.stderr
    np.savez(place / "far.npz", x=np.abs(x), y=np.arange(40))
    shown = litesmith("eval", "model.tflite", "--data", "far.npz", "--metric", "top1", cwd=place)
    assert shown.returncode == 2 and not shown.stdout
    assert "36 of 40 labels are outside the model's classes 0 to 3, first 4" in shown.stderr


def test_copies_and_groups_are_told(place: Path) -> None:
    random = np.random.default_rng(0)
    x = np.repeat(random.normal(size=(40, 4)), 10, axis=0).astype(np.float32)
    np.savez(place / "copies.npz", x=x, y=np.zeros(400, np.int64), who=np.arange(400) // 80)
    words = ("eval", "model.tflite", "--data", "copies.npz", "--json")
    for more, told in (((), 40), (("--group", "who"), 5), (("--group", "none"), 400)):
        shown = litesmith(*words, *more, cwd=place)
        assert shown.returncode == 0, shown.stderr
        found = json.loads(shown.stdout)
        assert (found["n"], found["independent"]) == (400, told)
        said = f"400 samples, {told} independent"
        assert any(said in note for note in found["notes"]) == (told < 400)
    wrong = litesmith(*words, "--group", "nobody", cwd=place)
    assert wrong.returncode == 2 and "--group nobody" in wrong.stderr


def test_folders_of_other_classes_are_refused(tmp_path: Path) -> None:
    for number, name in enumerate(("daisy", "rose", "tulip")):
        saved(tmp_path / "data" / name / "a.png", noise(8, 8, number))
    save(pixels(classes=11), tmp_path / "model.tflite")
    done = litesmith("eval", "model.tflite", "--data", "data", "--norm", "raw", cwd=tmp_path)
    assert done.returncode == 2 and not done.stdout
    assert "its 3 classes (daisy, rose, tulip) are not the 11 of the model" in done.stderr
