"""`litesmith prune`, `cluster`, `qat` and `apply` with training, as a user meets them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from litesmith.anatomy.source_file import SourceFile
from litesmith.anatomy.weights import weight_facts
from litesmith.cli import main
from litesmith.data.preparation import Preparation
from litesmith.errors import BadInput, CannotApply
from litesmith.front.given_data import Calibration
from litesmith.front.recipe_job import Job, Lessons, keep_records
from litesmith.installing import install_command
from litesmith.passes.core.recipe import parse
from litesmith.tflite.file import digest, load, save
from litesmith.training.settings import Training
from tests import zoo
from tests.interruptible import started, wait_for_file
from tests.platforms import posix
from tests.slowness import patient
from tests.zoo import noise

torch = pytest.importorskip("torch")

CLASSES = 5
BLINK = ("--runs", 12)  # both files are timed in
QUICK = ("--data", "train.npz", "--epochs", 1, "--rate", 0.001, *BLINK)
AS_COMMAND = "from litesmith.cli.main import main; main()"


class Shown(NamedTuple):
    """What a command printed, and its status."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Shown]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with models, and data for them that can and cannot be used."""
    save(zoo.convnet(), tmp_path / "model.tflite")
    save(zoo.residual_int8(), tmp_path / "int8.tflite")
    x, y = noise(144, 8, 8, 3, seed=3, scale=2), np.arange(144) % CLASSES
    np.savez(tmp_path / "train.npz", x=x, y=y)
    np.savez(tmp_path / "val.npz", x=noise(40, 8, 8, 3, seed=4, scale=2), y=np.arange(40) % 5)
    np.savez(tmp_path / "odd.npz", x=x, y=np.where(np.arange(144) == 77, CLASSES + 2, y))
    np.save(tmp_path / "int8.npy", noise(144, 4, 4, 4, seed=5))
    np.save(tmp_path / "few.npy", x[:12])
    x[7, 0, 0, 0] = np.nan
    np.savez(tmp_path / "nan.npz", x=x, y=y)
    return tmp_path


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
def told(run: Run) -> Callable[..., dict[str, Any]]:
    """What a command says to programs."""

    def told(command: str, *words: object) -> dict[str, Any]:
        shown = run(command, "model.tflite", "-o", "out.tflite", *words, "--json")
        assert shown.returncode == 0, shown.stderr
        return json.loads(shown.stdout)

    return told


def test_prune_in_words(place: Path, run: Run) -> None:
    words = ("prune", "model.tflite", "-o", "out.tflite", *QUICK, "--eval", "val.npz")
    shown = run(*words)
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == "" and "\x1b" not in shown.stdout
    *lines, last = shown.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert last == "litesmith eval out.tflite --data val.npz --against model.tflite"
    text = " ".join(shown.stdout.split())
    for part in (
        "recipe: cleanup | fold | fuse | prune",
        "pruned FULLY_CONNECTED",
        "left 1 DEPTHWISE_CONV_2D: depthwise weights are few",
        " steps at rate 0.001, ",
        "trained on 144 samples of train.npz (norm=none)",
        "change disk ",
        " zstd ",
        "on ARM, XNNPACK's sparse path takes none of the 1 convolutions:",
        "checked in the written file: 1 layers keep their zeros and codes",
        "top-1 ",
        "the original has ",
    ):
        assert part in text, part
    assert not (place / "out.tflite.training").exists()


def test_cluster_for_programs(place: Path, told: Run) -> None:
    found = told("cluster", *QUICK, "-k", 8, "--own", "FULLY_CONNECTED:4", "--samples", 64)
    keys = "schema out bytes gzip_bytes zstd_bytes digest touched skipped macs latency weights"
    assert set(keys.split()) <= set(found)
    assert found["digest"] == digest(place / "out.tflite")
    assert found["verified"] is True and found["samples"] == 64
    assert "cluster(k=8, own=[FULLY_CONNECTED:4])" in found["recipe"]
    assert found["trained"][0].startswith("cluster: trained ")
    values = {facts.op: facts.values for facts in weight_facts(load(place / "out.tflite"))}
    assert values["CONV_2D"] <= 8 and values["FULLY_CONNECTED"] <= 4
    assert "arm" not in found


def test_qat_for_programs(place: Path, told: Run) -> None:
    found = told("qat", *QUICK, "--to", "w4a8", "--io", "int8", "--per-tensor", "--labels", 0)
    model = load(place / "out.tflite")
    assert model.main.inputs[0].dtype == "int8"
    assert {"int4"} == {facts.dtype for facts in weight_facts(model)}
    assert found["recipe"].endswith("qat(to=w4a8, io=int8, per_channel=false)")
    assert found["weights"][0]["dtype"] == "int4"


def test_apply_in_words(place: Path, run: Run) -> None:
    recipe = "prune(sparsity=0.6) | cluster(k=8) | qat"
    shown = run("apply", "model.tflite", recipe, "-o", "out.tflite", *QUICK)
    assert shown.returncode == 0, shown.stderr
    text = " ".join(shown.stdout.split())
    for part in ("pruned FULLY_CONNECTED", "clustered CONV_2D", "gzip", "change", "on ARM"):
        assert part in text
    assert all(f"{step}: trained " in text for step in ("prune", "cluster", "qat"))
    assert "checked in the written file: 2 layers keep their zeros and codes" in text
    weights = {facts.op: facts for facts in weight_facts(load(place / "out.tflite"))}
    assert weights["FULLY_CONNECTED"].zeros >= 0.6 * 320
    assert weights["CONV_2D"].unique <= 8


def test_blocks_of_a_wide_layer_are_stored_sparse(place: Path, told: Run) -> None:
    b = zoo.Builder()
    x = b.op("FULLY_CONNECTED", b.input("x", (1, 256)), noise(256, 256), None)
    save(b.model(b.op("FULLY_CONNECTED", x, noise(8, 256), None)), place / "model.tflite")
    found = told("prune", "--sparsity", 0.9, "--block", "1x4", *BLINK)
    assert found["recipe"].endswith("prune(sparsity=0.9, block=1x4) | sparsify")
    assert any(weight["sparse"] for weight in found["weights"])
    assert found["bytes"] < 0.3 * found["before"]["bytes"]
    assert any("no data to train on" in skip["why"] for skip in found["skipped"])


def test_nothing_is_trained_where_nobody_wants_it(place: Path, told: Run) -> None:
    found = told("prune", "--data", "train.npz", "--no-tune", *BLINK)
    assert found["trained"] == [] and found["zeros"] >= 160
    assert not any("not tuned" in skip["why"] for skip in found["skipped"])


def test_data_that_nothing_was_trained_on_was_looked_at(run: Run) -> None:
    words = ("--data", "train.npz", "--no-tune", *BLINK)
    shown = run("prune", "model.tflite", "-o", "out.tflite", *words)
    assert shown.returncode == 0, shown.stderr
    assert "looked at 144 samples of train.npz" in shown.stdout
    assert "trained" not in shown.stdout


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_codes_that_are_lost_are_status_one(run: Run, more: tuple[str, ...]) -> None:
    loses = "cluster | quantize(to=weight-int8, per_channel=false)"
    for recipe in (loses, loses.replace("false", "true"), "quantize(to=float16) | prune"):
        shown = run("apply", "model.tflite", recipe, "-o", "out.tflite", *BLINK, *more)
        assert shown.returncode == (recipe == loses), shown


def test_help_offers_what_can_be_trained(run: Run) -> None:
    shown = run("qat", "--help").stdout
    assert "w4a8" in shown and "float16" not in shown


@pytest.fixture
def begun(place: Path) -> Lessons:
    """A training that has left a record."""
    (place / "out.tflite.training").mkdir()
    (place / "out.tflite.training" / "stage-0.pt").write_bytes(b"")
    lessons = Lessons(pruning(place))
    lessons.begun = True
    return lessons


def pruning(place: Path) -> Job:
    given = Calibration("train.npz", Preparation())
    source = SourceFile(zoo.convnet())
    return Job(source, place / "out.tflite", parse("prune"), given, Training())


@pytest.mark.parametrize(
    ("error", "is_noted"),
    [
        (CannotApply("prune: this model has no such layer"), False),
        (BadInput("qat(io=bool): no such type"), False),
        (MemoryError(), True),
        (OSError(28, "No space left on device"), True),
    ],
)
def test_only_what_does_not_come_again_is_told_to_resume(
    error: Exception, is_noted: bool, place: Path, begun: Lessons
) -> None:
    with pytest.raises(type(error)) as caught, keep_records(pruning(place), begun):
        raise error
    assert bool(getattr(caught.value, "__notes__", ())) == is_noted


def test_a_full_disk_is_told_to_resume(
    place: Path, begun: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BadInput) as caught, keep_records(pruning(place), begun):
        save(zoo.convnet(), place / "out.tflite")
    assert "resume=True continues" in caught.value.__notes__[0]


@pytest.mark.parametrize("command", ["prune", "cluster"])
def test_without_torch_it_is_done_at_once_and_said(
    command: str, told: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    found = told(command, *QUICK)
    assert found["trained"] == []
    assert any(install_command("train") in skip["why"] for skip in found["skipped"])


def test_without_torch_there_is_no_qat(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    shown = run("qat", "model.tflite", "-o", "out.tflite", *QUICK)
    assert shown.returncode == 2 and install_command("train") in shown.stderr
    assert shown.stderr.count("\n") == 1
    shown = run("prune", "model.tflite", "-o", "out.tflite", *QUICK, "--resume")
    assert shown.returncode == 2 and "--resume: nothing is trained here" in shown.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("qat model.tflite", "qat trains on data: give --data"),
        ("qat model.tflite --data none.npz", "none.npz: does not exist"),
        ("qat model.tflite --data nan.npz", "NaN or infinity"),
        ("qat model.tflite --data nan.npz --trust-data", "is infinite or not a number"),
        ("qat model.tflite --data odd.npz", "labels are outside the model's classes 0 to 4"),
        ("qat model.tflite --data odd.npz --trust-data", "1 of 144 labels are outside"),
        ("qat model.tflite --data few.npy", "12 samples are too few to train on"),
        ("qat model.tflite --data train.npz --to int3", "qat(to=int3): there are"),
        ("qat model.tflite --data train.npz --io bool", "io=bool"),
        ("qat model.tflite --data train.npz --keep LSTM", "'LSTM'"),
        ("qat model.tflite --data train.npz --eval train.npz", "other samples than those"),
        ("qat model.tflite --data train.npz --epochs 0", "--epochs 0: a number above 0"),
        ("qat model.tflite --data train.npz --epochs inf", "--epochs inf: a number above 0"),
        ("qat model.tflite --data train.npz --minutes -1", "--minutes -1: a number above 0"),
        ("qat model.tflite --data train.npz --rate nan", "--rate nan: a number above 0"),
        ("qat model.tflite --data train.npz --batch -1", "--batch -1: a number from 0 on"),
        ("qat model.tflite --data train.npz --labels 1.5", "--labels 1.5: a share from 0 to 1"),
        ("qat model.tflite --data train.npz --labels nan", "--labels nan: a share from 0 to 1"),
        ("qat model.tflite --data train.npz --seed -1", "--seed -1: a number from 0 on"),
        ("qat model.tflite --data train.npz --augment all", "--augment all: there are auto, "),
        ("qat model.tflite --data train.npz --device tpu", "device tpu: cannot be used"),
        ("qat model.tflite --data train.npz --resume", "leave out --resume"),
        ("qat int8.tflite --data int8.npy", "quantized already"),
        ("prune int8.tflite --data int8.npy", "is quantized; prune the float model"),
        ("prune int8.tflite", "is quantized; prune the float model"),
        ("prune model.tflite --sparsity 1", "prune(sparsity=1.0): a share of zeros"),
        ("prune model.tflite --sparsity -0.1 --data train.npz", "prune(sparsity=-0.1)"),
        ("prune model.tflite --sparsity nan", "prune(sparsity=nan)"),
        ("prune model.tflite --block 3x3", "prune(block=3x3): there are 1x1, "),
        ("prune model.tflite --schedule fast", "prune(schedule=fast): there are "),
        ("prune model.tflite --resume", "--resume: nothing is trained here"),
        ("cluster int8.tflite", "is quantized; cluster the float model"),
        ("cluster model.tflite -k 1", "cluster(k=1): k from 2 to 256 is needed"),
        ("cluster model.tflite -k 257 --data train.npz", "cluster(k=257): k from 2 to 256"),
        ("cluster model.tflite --own dense", "a name and its k are needed"),
        ("apply model.tflite qat", "qat: there is no data to train on; give --data"),
        ("apply model.tflite prune|qat|prune --data train.npz", "put it before qat"),
        ("apply model.tflite quantize|cluster --data none.npz", "cluster works on float weights"),
        ("apply model.tflite prune|quantize|qat", "put it before quantize"),
        ("apply model.tflite qat --labels 2 --data train.npz", "--labels 2: a share from 0 to 1"),
    ],
)
def test_bad_input_is_one_line(words: str, text: str, place: Path, run: Run) -> None:
    before = sorted(place.iterdir())
    shown = run(*words.split(), "-o", "out.tflite")
    assert shown.returncode == 2, shown
    *warnings, last = shown.stderr.splitlines()
    assert text in last
    assert not warnings or "--trust-data" in words or "few" in words
    assert not shown.stdout
    assert sorted(place.iterdir()) == before, "nothing is left behind"


def child(place: Path, *words: object, program: str = AS_COMMAND) -> subprocess.Popen[str]:
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    return started("-c", program, *words, cwd=place, env=variables)


def once_there(path: Path, process: subprocess.Popen[str]) -> None:
    """Waits until a file is there, and a little longer."""
    wait_for_file(path, process)
    time.sleep(0.1)


@posix
def test_interrupted_killed_and_resumed_it_is_the_same_file(place: Path, run: Run) -> None:
    recipe = "prune(sparsity=0.6, schedule=gradual) | qat"
    words = ["apply", "model.tflite", recipe, "--data", "train.npz", "--epochs", 12, *BLINK]
    # So often that a kill soon after the start finds a record.
    words += ["--rate", 0.001, "--record-every", 0.05, "-o"]
    (place / "whole").mkdir()  # a folder of its own: what it writes is not looked at
    folder, out = place / "out.tflite.training", place / "out.tflite"
    process = child(place, *words, "out.tflite")
    once_there(folder / "stage-0.pt", process)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=patient(60))
    assert process.returncode == 130
    assert complaint.splitlines()[-1] == (
        "litesmith: stopped; no half-written file is left; "
        "out.tflite.training keeps what was trained: --resume continues"
    )
    assert not out.exists() and not [*place.glob(".litesmith*")]
    process = child(place, *words, "out.tflite", "--resume")
    once_there(folder / "stage-1.pt", process)
    process.kill()
    process.communicate(timeout=patient(60))
    assert process.returncode == -signal.SIGKILL
    assert not out.exists() and (folder / "stage-1.pt").exists()
    process = child(place, *words, "out.tflite", "--resume")
    _, complaint = process.communicate(timeout=patient(60))
    assert (process.returncode, complaint) == (0, "")
    assert not folder.exists()
    assert run(*words, "whole/out.tflite").returncode == 0
    assert out.read_bytes() == (place / "whole" / "out.tflite").read_bytes()


def test_a_record_that_nobody_asks_for_is_started_anew(place: Path, run: Run) -> None:
    folder = place / "out.tflite.training"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    words = ("prune", "model.tflite", "-o", "out.tflite", *QUICK)
    (folder / "stage-0.pt").write_bytes(b"torn")
    shown = run(*words, "--resume")
    assert shown.returncode == 2 and "is no record of a training" in shown.stderr
    assert shown.stderr.count("\n") == 1
    torch.save({"key": "another", "state": {}}, folder / "stage-0.pt")
    shown = run(*words, "--resume")
    assert shown.returncode == 2 and "is of another model, recipe, data or set" in shown.stderr
    assert shown.stderr.count("\n") == 1 and (folder / "stage-0.pt").exists()
    shown = run(*words)
    assert shown.returncode == 0, shown.stderr
    assert "starts anew" in shown.stderr
    assert [path.name for path in folder.iterdir()] == ["notes.txt"], "what is not ours stays"


def test_a_file_in_the_way_of_the_records(place: Path, run: Run) -> None:
    (place / "out.tflite.training").write_text("mine")
    shown = run("prune", "model.tflite", "-o", "out.tflite", *QUICK)
    assert shown.returncode == 2 and "is in the way" in shown.stderr
    assert (place / "out.tflite.training").read_text("utf-8") == "mine"


@pytest.mark.parametrize("words", ["prune --help", "qat --help", "inspect model.tflite"])
def test_torch_is_not_imported_before_it_trains(words: str, place: Path) -> None:
    program = (
        "import sys, litesmith\n"
        "from litesmith.cli.main import _run\n"
        "status = _run()\n"
        "sys.exit(status or ('torch' in sys.modules) * 9)"
    )
    process = child(place, *words.split(), program=program)
    shown, complaint = process.communicate(timeout=patient(60))
    assert process.returncode == 0, complaint
    assert shown
