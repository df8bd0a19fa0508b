"""`litesmith retrain` as a user meets it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from litesmith.cli import main
from litesmith.tflite.file import digest, save
from tests import zoo
from tests.training.flowers import backbone, write_pictures


class Shown(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Shown]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("retrain")
    save(backbone(), place / "backbone.tflite")
    save(zoo.residual_int8(), place / "int8.tflite")
    write_pictures(place / "data")
    write_pictures(place / "one", 4, ("only",))
    return place


@pytest.fixture
def run(made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(made)

    def run(*words: object) -> Shown:
        monkeypatch.setattr("sys.argv", ["litesmith", *map(str, words)])
        return Shown(main._run(), *capsys.readouterr())

    return run


def test_in_words_and_its_report(made: Path, run: Run) -> None:
    words = ("retrain", "backbone.tflite", "--data", "data", "--norm", "unit", "-o", "out.tflite")
    shown = run(*words)
    assert shown.returncode == 0, shown.stderr
    *lines, last = shown.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines) and "\x1b" not in shown.stdout
    assert last == "litesmith quantize out.tflite --to int8 --data data -o out-int8.tflite"
    assert "out.tflite: top-1 " in shown.stdout and "note: 6 of 36 items" in shown.stderr
    folder = made / "out-retrain"
    record = json.loads((folder / "retrain.json").read_bytes())
    assert record["digest"] == digest(made / "out.tflite")
    assert (folder / "evidence" / f"{record['digest']}.json").is_file()
    (trial,) = (folder / "trials.jsonl").read_text("utf-8").splitlines()
    assert json.loads(trial)["model_digest"] == record["digest"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    (folder / "report.html").unlink()
    assert run("report", "out-retrain").returncode == 0
    assert (folder / "report.html").read_text(encoding="utf-8") == page
    assert "litesmith retrain backbone.tflite --data data" in page


def test_as_json(run: Run) -> None:
    words = ("--norm", "unit", "-o", "j.tflite", "--json", "--evidence", "proof")
    shown = run("retrain", "backbone.tflite", "--data", "data", *words)
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)
    assert {"schema", "out", "value", "low", "high", "n", "classes", "confusion"} <= {*told}
    assert told["out"] == "j.tflite" and told["classes"] == ["blue", "green", "red"]
    assert Path(told["report"]).parent.name == "proof"


def test_the_result_needs_no_flags(run: Run) -> None:
    words = ("--data", "data", "--norm", "unit", "-o", "plain.tflite")
    assert run("retrain", "backbone.tflite", *words).returncode == 0
    shown = run("eval", "plain.tflite", "--data", "data", "--json")
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["value"] > 0.9


REFUSED = {
    ("backbone.tflite", "-o", "x.tflite"): "retrain needs data",
    ("backbone.tflite", "--data", "one", "-o", "x.tflite"): "one class only",
    ("backbone.tflite", "--data", "data/red", "-o", "x.tflite"): "no classes to learn",
    ("int8.tflite", "--data", "data", "-o", "x.tflite"): "give the float file",
    ("backbone.tflite", "--data", "data", "-o", "backbone.tflite"): "is the input",
    ("backbone.tflite", "--data", "data", "-o", "no/x.tflite"): "does not exist",
    ("backbone.tflite", "--data", "data", "-o", "x.tflite", "--at", "7x"): "--at 7x",
    ("backbone.tflite", "--data", "gone", "-o", "x.tflite"): "gone",
    ("backbone.tflite", "--data", "data", "-o", "x.tflite", "--fine-tune", "0"): "--fine-tune 0",
    ("backbone.tflite", "--data", "data", "-o", "x.tflite", "--resume"): "--resume",
}


@pytest.mark.parametrize("words", REFUSED, ids=lambda words: " ".join(words))
def test_what_cannot_be_done_is_one_line(words: tuple[str, ...], made: Path, run: Run) -> None:
    shown = run("retrain", *words)
    assert shown.returncode == 2 and shown.stdout == ""
    *_, last = shown.stderr.splitlines()
    assert last.startswith("litesmith: ") and REFUSED[words] in last
    assert not (made / "x.tflite").exists() and not (made / "x-retrain").exists()
