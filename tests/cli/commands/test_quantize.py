"""`litesmith quantize`, `apply --data` and `cache` as a user meets them."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from litesmith.calibration.claims import Claims, OpGroup
from litesmith.calibration.observed_cache import VARIABLE
from litesmith.cli import main
from litesmith.cli.text.apply_text import print_left
from litesmith.cli.text.quantize_text import float_text
from litesmith.ir.model_text import OpName
from litesmith.passes.core.step import Skip
from litesmith.phrases import phrase
from litesmith.tflite.file import digest, load, save
from tests import zoo
from tests.zoo import noise

Run = Callable[..., Any]
BASICS = ("quantize", "model.tflite", "-o", "out.tflite", "--runs", "3")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a model, data for it with and without labels, and quantized models."""
    save(zoo.convnet(), tmp_path / "model.tflite")
    for make in (zoo.hybrid, zoo.residual_int8, zoo.legacy_uint8, zoo.custom):
        save(make(), tmp_path / f"{make.__name__}.tflite")
    x = noise(140, 8, 8, 3, seed=3, scale=2)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "val.npz", x=noise(50, 8, 8, 3, seed=4, scale=2), y=np.arange(50) % 5)
    np.save(tmp_path / "other.npy", x[:, :4])
    np.save(tmp_path / "few.npy", x[:3])
    bad = x.copy()
    bad[7, 0, 0, 0] = np.nan
    np.save(tmp_path / "nan.npy", bad)
    return tmp_path


class Shown(NamedTuple):
    """What a command printed, and its status."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line in the folder, without the cost of a process of its own."""
    monkeypatch.chdir(place)

    def run(*words: object) -> Shown:
        monkeypatch.setattr("sys.argv", ["litesmith", *map(str, words)])
        status = main._run()
        return Shown(status, *capsys.readouterr())

    return run


@pytest.fixture
def told(run: Run) -> Run:
    """What quantize says to programs."""

    def told(*words: object) -> dict[str, Any]:
        shown = run(*BASICS, *words, "--json")
        assert shown.returncode == 0, shown.stderr
        return json.loads(shown.stdout)

    return told


def test_text(run: Run) -> None:
    shown = run(*BASICS, "--data", "x.npy", "--eval", "val.npz")
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == ""
    assert "\x1b" not in shown.stdout
    *lines, last = shown.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert last == "litesmith eval out.tflite --data val.npz --against model.tflite"
    text = " ".join(shown.stdout.split())
    for part in (
        "recipe: cleanup | fold | fuse | quantize | correct",
        "moved 1 CONV_2D, 1 DEPTHWISE_CONV_2D",
        "corrected 1 CONV_2D, 1 DEPTHWISE_CONV_2D",
        "out.tflite: ",
        "gzipped",
        "fully integer runs in XNNPACK but for 1 SOFTMAX",
        "an SNR of ",
        "calibrated on 140 samples of x.npy (norm=none)",
        "top-1 ",
        "on 50 samples the original has ",
        "pt [",
    ):
        assert part in text


def test_json(place: Path, told: Run) -> None:
    found = told("--data", "x.npy", "--samples", 130, "--keep", "SOFTMAX,dep*", "--keep", "0")
    assert found["schema"] == 1
    assert found["digest"] == digest(place / "out.tflite")
    assert found["bytes"] == (place / "out.tflite").stat().st_size > found["gzip_bytes"] > 100
    assert found["recipe"].startswith("quantize(keep=[SOFTMAX, dep*, 0]) | correct")
    assert (found["data"], found["samples"], found["random_data"]) == ("x.npy", 130, False)
    assert found["preparation"] == "norm=none"
    kinds = {group["kind"] for group in found["claims"]["float_ops"]}
    assert {"CONV_2D", "SOFTMAX"} <= kinds and not found["claims"]["fully_integer"]
    assert found["claims"]["runs"] and found["claims"]["snr_db"] > 10
    assert any(text.startswith("moved ") for text in found["touched"])


def test_the_settings_reach_the_file(place: Path, told: Run) -> None:
    told("--data", "x.npy", "--io", "uint8", "--per-tensor", "--effort", "quick")
    model = load(place / "out.tflite")
    assert [t.dtype for t in (*model.main.inputs, *model.main.outputs)] == ["uint8", "uint8"]
    assert {op.kind for op in model.main.ops} >= {"QUANTIZE"}
    for op in model.main.ops:
        quants = [t.quant for t in op.inputs if t is not None and t.quant is not None]
        assert not any(quant.per_channel for quant in quants)
    (signature,) = model.signatures
    original = load(place / "model.tflite").signatures[0]
    assert signature.key == original.key
    assert [name for name, _ in signature.inputs] == [name for name, _ in original.inputs]
    assert signature.inputs[0][1] is model.main.inputs[0]


def test_metadata_stays_and_is_still_true(place: Path, told: Run) -> None:
    save(zoo.described(), place / "model.tflite")
    told("--data", "x.npy", "--io", "int8")
    before, after = load(place / "model.tflite"), load(place / "out.tflite")
    assert [name for name, _ in before.metadata] == [name for name, _ in after.metadata]
    assert before.attached == after.attached


@pytest.mark.parametrize("to", ["dynamic", "weight-int8", "float16", "weight-int4"])
def test_weights_alone_need_no_data(place: Path, to: str, told: Run) -> None:
    save(_wide(), place / "model.tflite")
    found = told("--to", to)
    assert found["data"] is None
    assert found["bytes"] < (place / "model.tflite").stat().st_size
    assert any("without data" in note for note in found["notes"]) == (to != "float16")


def _wide():
    b = zoo.Builder()
    x = b.op("FULLY_CONNECTED", b.input("x", (1, 64)), noise(128, 64), noise(128))
    return b.model(b.op("FULLY_CONNECTED", x, noise(16, 128), noise(16)))


def test_random_data_is_marked_everywhere(run: Run, told: Run) -> None:
    shown = run(*BASICS, "--random-data")
    assert shown.returncode == 0
    assert "RANDOM DATA" in shown.stdout and "RANDOM DATA" in shown.stderr
    found = told("--random-data")
    assert found["random_data"] is True and "RANDOM DATA" in found["notes"][0]


def test_lint_stops_and_can_be_overruled(place: Path, run: Run) -> None:
    shown = run(*BASICS, "--data", "few.npy")
    assert shown.returncode == 2
    assert shown.stderr.splitlines()[-1].endswith("or use it anyway with --trust-data")
    assert not (place / "out.tflite").exists()
    shown = run(*BASICS, "--data", "few.npy", "--trust-data")
    assert shown.returncode == 0
    assert "litesmith: warning: few.npy: 3 samples" in shown.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "--to int8 needs data"),
        ((), "--to dynamic"),
        ((), "--random-data"),
        (("--to", "int3", "--random-data"), "no scheme 'int3' to quantize to; there are dynamic, "),
        (("--effort", "max", "--random-data"), "no effort 'max'; there are quick, default, best"),
        (("--keep", "LSTM", "--random-data"), "no op is of kind or writes a tensor 'LSTM'"),
        (("--only", "77", "--random-data"), "no op 77; the main graph has 5 ops"),
        (("--io", "bool", "--random-data"), "io=bool"),
        (("--ranges", "all", "--random-data"), "ranges=all"),
        (("--data", "other.npy"), "data has 4×8×3, the model's input 'image' wants 8×8×3"),
        (("--data", "nan.npy"), "NaN or infinity"),
        (("--data", "none.npy"), "none.npy: does not exist"),
        (("--data", "x.npy", "--random-data"), "give one of them"),
        (("--data", "x.npy", "--eval", "none"), "none: does not exist"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], text: str, run: Run) -> None:
    shown = run(*BASICS, *words)
    assert shown.returncode == 2, shown
    assert text in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert not shown.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hybrid", "quantized already, int8 weights, float activations"),
        ("residual_int8", "start from the float model"),
        ("legacy_uint8", 'litesmith apply MODEL "upgrade" -o OUT.tflite'),
        ("custom", "no layer of the model can be changed"),
    ],
)
def test_what_cannot_be_quantized_says_what_it_is(
    place: Path, name: str, text: str, run: Run
) -> None:
    words = ("quantize", f"{name}.tflite", "-o", "out.tflite", "--random-data")
    shown = run(*words)
    assert shown.returncode == 2, shown
    assert text in shown.stderr and shown.stderr.count("\n") == 1
    assert not (place / "out.tflite").exists()


def test_the_input_is_never_written(place: Path, run: Run) -> None:
    before = digest(place / "model.tflite")
    words = ("quantize", "model.tflite", "-o", "model.tflite", "--random-data")
    shown = run(*words)
    assert shown.returncode == 2 and "is the input" in shown.stderr
    assert digest(place / "model.tflite") == before


def test_the_printed_recipe_gives_the_same_file(place: Path, run: Run, told: Run) -> None:
    found = told("--data", "x.npy")
    words = ("apply", "model.tflite", found["recipe"], "-o", "same.tflite", "--data", "x.npy")
    shown = run(*words)
    assert shown.returncode == 0, shown.stderr
    assert digest(place / "same.tflite") == found["digest"]


def test_apply_beside_a_reference(run: Run, told: Run) -> None:
    told("--data", "x.npy", "--effort", "quick")
    words = ("apply", "out.tflite", "correct", "-o", "corrected.tflite", "--data", "x.npy")
    shown = run(*words)
    assert shown.returncode == 2 and "needs the float model" in shown.stderr
    shown = run(*words, "--reference", "model.tflite")
    assert shown.returncode == 0, shown.stderr
    assert "corrected CONV_2D" in shown.stdout


def test_a_result_that_gives_no_numbers_has_status_1(place: Path, run: Run) -> None:
    b = zoo.Builder()
    x = b.op("FULLY_CONNECTED", b.input("x", (1, 2)), np.ones((1, 2), np.float32), None)
    save(b.model(b.op("DIV", np.ones((1, 1), np.float32), x)), place / "model.tflite")
    sizes = np.where(np.arange(140) % 2, 1000, 0.001) * np.linspace(0.5, 1, 140)
    np.save(place / "x.npy", (sizes[:, None] * [0.25, 0.75]).astype(np.float32))
    shown = run(*BASICS, "--data", "x.npy", "--keep", "DIV", "--effort", "quick")
    assert shown.returncode == 1, shown
    assert "WARNING: output " in shown.stdout and "NaN or infinite" in shown.stdout


def test_calibrating_on_what_is_evaluated_is_refused(run: Run) -> None:
    shown = run(*BASICS, "--data", "x.npy", "--eval", "x.npy")
    assert shown.returncode == 2
    assert "also in the evaluation data" in shown.stderr


def test_cache(place: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = place / "kept"
    monkeypatch.setenv(VARIABLE, str(kept))
    assert " ".join(run("cache").stdout.split()) == f"{kept}: 0 files, 0 B"
    assert run(*BASICS, "--data", "x.npy").returncode == 0
    first = digest(place / "out.tflite")
    assert re.search(": [12] files, ", " ".join(run("cache").stdout.split()))
    assert run(*BASICS, "--data", "x.npy").returncode == 0
    assert digest(place / "out.tflite") == first
    assert re.match("removed [12] files", run("cache", "clear").stdout)
    assert not list(kept.iterdir())
    shown = run("cache", "empty")
    assert shown.returncode == 2 and "there is only clear" in shown.stderr
    monkeypatch.setenv(VARIABLE, "")
    assert "nothing is kept" in run("cache").stdout


def test_labels_that_do_not_fit_stop_before_the_work(place: Path, run: Run) -> None:
    x = noise(50, 8, 8, 3, seed=4, scale=2)
    np.savez(place / "val.npz", x=x, y=noise(50, 3))
    shown = run(*BASICS, "--data", "x.npy", "--eval", "val.npz")
    assert shown.returncode == 2 and "has a label of shape" in shown.stderr
    assert not (place / "out.tflite").exists()
    np.savez(place / "val.npz", x=x, y=np.arange(50))
    shown = run(*BASICS, "--data", "x.npy", "--eval", "val.npz")
    assert shown.returncode == 0
    assert "45 of 50 labels are outside the model's classes" in shown.stderr
    assert "top-1 agreement" in shown.stdout


def test_options_are_looked_at_before_the_data(run: Run) -> None:
    for words in (("--io", "bool"), ("--ranges", "all"), ("--keep", "LSTM"), ("--to", "int3")):
        shown = run(*BASICS, *words, "--data", "none.npy", "--eval", "none.npy")
        assert shown.returncode == 2
        assert "does not exist" not in shown.stderr and words[1] in shown.stderr


def test_the_next_command_carries_what_was_typed(run: Run) -> None:
    words = ("--data", "x.npy", "--crop", "1", "--label-offset", "1", "--norm", "raw")
    last = run(*BASICS, *words).stdout.splitlines()[-1]
    assert last == (
        "litesmith eval out.tflite --data LABELLED_DATA --norm raw --crop 1.0 --label-offset 1 "
        "--against model.tflite"
    )


def test_the_next_command_names_data_that_has_labels(place: Path, run: Run) -> None:
    x = noise(50, 8, 8, 3, seed=4, scale=2)
    np.savez(place / "val.npz", x=x, y=np.arange(50) % 5)
    last = run(*BASICS, "--data", "val.npz").stdout.splitlines()[-1]
    assert last.startswith("litesmith eval out.tflite --data val.npz ")
    assert run(*last.split()[1:]).returncode == 0


def test_a_group_is_told_with_the_words_of_its_first(capsys: pytest.CaptureFixture[str]) -> None:
    shares = ("80.8", "7", "61.25")
    reasons = [phrase("{share} % of {name!r} are zero", n, f"w{n}") for n in shares]
    print_left(
        [Skip(OpName("CONV_2D", f"c{n}"), why) for n, why in zip(shares, reasons, strict=True)]
    )
    assert capsys.readouterr().out == "left 3 CONV_2D: 80.8 % of 'w80.8' are zero\n"


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (0, "1 CAST in float"),
        (1, "1 CAST in float, beside one conversion"),
        (2, "1 CAST in float, between 2 conversions"),
    ],
)
def test_conversions_are_counted_in_words_that_fit(count: int, told: str) -> None:
    claims = Claims("", (OpGroup("CAST", 1),), count, (), "", (), 0)
    assert float_text(claims) == f"not fully integer: {told}"
