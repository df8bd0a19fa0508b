"""`litesmith tune` as a user meets it: what it prints, what it leaves, how it ends."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

from litesmith.cli.main import _run  # pyright: ignore[reportPrivateUsage]
from litesmith.operating_system import quote
from litesmith.run.session import Session
from litesmith.tflite.file import digest, save
from tests.cli.test_cli import fresh_litesmith, litesmith
from tests.interruptible import started
from tests.platforms import posix
from tests.search.choosing.taught import examples, taught, written
from tests.slowness import patient
from tests.training.small import classifier

KEYS = "best float value drop latency_ratio bytes_ratio within_budget front"
BLINK = ("--runs", 12)
SMALLEST = ("--max-drop", "5pt", "--minimize", "size")


def tune(place: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return litesmith("tune", "model.tflite", "--data", "data.npz", *BLINK, *words, cwd=place)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, its data, and what one run of the command has printed and left."""
    place = tmp_path_factory.mktemp("command")
    written(place)
    np.save(place / "unlabelled.npy", examples()["x"])
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    shown = tune(place, *SMALLEST, "-o", "out", "--json")
    assert shown.returncode == 0, shown.stderr
    assert all((place / name).read_bytes() == content for name, content in before.items())
    (place / "shown.json").write_text(shown.stdout)
    return place


@pytest.fixture
def copied(place: Path, tmp_path: Path) -> Path:
    return copytree(place, tmp_path / "copy")


def summary(place: Path) -> dict[str, object]:
    return json.loads((place / "out" / "tune.json").read_bytes())


# What it gives.


def test_json_has_what_programs_rely_on(place: Path) -> None:
    shown = json.loads((place / "shown.json").read_text("utf-8"))
    assert shown["schema"] == 1
    assert set(KEYS.split()) <= set(shown)
    assert {"file", "recipe", "target"} <= set(shown["best"])
    assert shown["within_budget"] is True and shown["verdict"] == "proven"
    best = place / shown["best"]["file"]
    assert shown["bytes_ratio"] == best.stat().st_size / (place / "model.tflite").stat().st_size
    assert shown["drop"] == 0 and shown["value"] == 1
    with Session(best) as session:
        session.run()


def test_the_folder_has_the_report_and_the_command(place: Path) -> None:
    assert "<html" in (place / "out" / "report.html").read_text("utf-8")
    told = summary(place)
    assert told["state"] == "done"
    wanted = (
        "tune model.tflite --data data.npz --runs 12 --max-drop 5pt --minimize size -o out --json"
    )
    assert str(told["command"]).endswith(wanted)


def test_again_it_answers_from_its_records_in_words(copied: Path) -> None:
    shown = tune(copied, *SMALLEST, "-o", "out", "--resume")
    assert shown.returncode == 0
    assert "nothing was measured again" in shown.stderr
    words = " ".join(shown.stdout.split())
    assert words.startswith("proven: ") and str(summary(place=copied)["sentence"]) in words
    assert all(count in words.split() for count in ("40", "53", "107"))  # the parts of the data
    assert all(str(Path("out", name)) in words for name in ("best.tflite", "report.html"))
    assert "\x1b" not in shown.stdout
    assert "set aside" in shown.stdout and "fits" in shown.stdout
    lines = shown.stdout.splitlines()
    assert any(": the same file as " in line and ", set aside: " in line for line in lines)
    best = quote(str(Path("out/best.tflite")))
    assert f"  litesmith bench {best} --on cpu:1" in lines  # can be pasted as it is


def test_the_recipe_makes_the_same_bytes(place: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.tflite"
    shown = fresh_litesmith(
        "apply", "model.tflite", "out/recipe.json", "-o", again, "--json", cwd=place
    )
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)
    assert told["same"] is True
    assert digest(again) == digest(place / "out" / "best.tflite") == told["digest"]
    shown = litesmith("apply", "model.tflite", "out/recipe.json", "-o", again, cwd=place)
    assert "the same bytes as the search wrote" in shown.stdout


def test_the_recipe_can_be_followed_from_another_folder(place: Path, tmp_path: Path) -> None:
    recipe, model = place / "out" / "recipe.json", place / "model.tflite"
    shown = litesmith("apply", model, recipe, "-o", "again.tflite", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr


def test_where_nothing_fits_it_says_what_is_nearest_and_fails(copied: Path) -> None:
    words = ("--min-snr", "250dB", "--minimize", "size", "-o", "out")
    shown = tune(copied, *words)
    assert shown.returncode == 1
    assert shown.stdout.startswith("missed: ") and "nearest is" in shown.stdout
    assert "litesmith doctor" in shown.stdout
    assert not (copied / "out" / "best.tflite").exists()
    assert (copied / "out" / "report.html").exists()
    told = json.loads(tune(copied, *words, "--json").stdout)
    assert set(KEYS.split()) <= set(told)
    assert told["best"] is None and told["within_budget"] is False
    assert told["nearest"]["name"] and told["next"]


# How it ends early.


def _started(place: Path) -> subprocess.Popen[str]:
    """A run that takes some seconds."""
    words = ("tune", "model.tflite", "--data", "data.npz", "--runs", 6000, *SMALLEST, "-o", "out")
    return started("-m", "litesmith", *words, cwd=place)


def _wait_for_lines(place: Path, count: int) -> None:
    trials, started = place / "out" / "trials.jsonl", time.monotonic()
    while not trials.exists() or len(trials.read_bytes().splitlines()) < count:
        assert time.monotonic() - started < patient(120), "no trial was recorded"
        time.sleep(0.05)


@posix
def test_ctrl_c_keeps_the_best_and_another_run_goes_on(place: Path, tmp_path: Path) -> None:
    written(tmp_path)
    child = _started(tmp_path)
    _wait_for_lines(tmp_path, 3)
    second = tune(tmp_path, *SMALLEST, "-o", "out")
    assert second.returncode == 2
    assert second.stderr.splitlines()[-1].endswith(
        "another run is at work in it; choose another -o"
    )
    child.send_signal(signal.SIGINT)
    _, told = child.communicate(timeout=patient(60))
    assert child.returncode == 130
    assert "Traceback" not in told
    facts = summary(tmp_path)
    assert facts["state"] == "stopped"
    best = facts["best"]
    assert isinstance(best, dict) and best["digest"] == digest(tmp_path / "out" / "best.tflite")
    assert "resumes" in str(facts["next"]) and "the same command resumes" in told
    assert litesmith("report", "out", cwd=tmp_path).returncode == 0
    shown = tune(tmp_path, *SMALLEST, "-o", "out", "--resume", "--json")
    assert shown.returncode == 0, shown.stderr
    ends = [digest(where / "out" / "best.tflite") for where in (place, tmp_path)]
    assert ends[0] == ends[1]


def test_a_killed_run_leaves_whole_files_and_no_lock(tmp_path: Path) -> None:
    written(tmp_path)
    child = _started(tmp_path)
    _wait_for_lines(tmp_path, 1)
    child.kill()
    child.communicate()
    shown = tune(tmp_path, *SMALLEST, "-o", "out", "--json")
    assert shown.returncode == 0, shown.stderr
    assert not list((tmp_path / "out").rglob("*.part"))


# Bad input.


def _refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command is refused with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["litesmith", "tune", *words])
        status = _run()
    shown = capsys.readouterr()
    assert (status, shown.out) == (2, ""), shown.err
    lines = [line for line in shown.err.splitlines() if "warning:" not in line]
    assert len(lines) == 1 and lines[0].startswith("litesmith: ")
    return lines[0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("MODEL --max-drop 1pt", "give --data"),
        ("MODEL --data DATA", "give one of --max-drop, --min-agreement and --min-snr"),
        ("MODEL --data DATA --max-drop 1pt --min-snr 20", "give one of --max-drop"),
        ("MODEL --data DATA --max-drop 1", "a drop of 1: top-1 is a share; give 1pt or 1%"),
        ("MODEL --data DATA --max-drop -1pt", "drop of"),
        ("MODEL --data DATA --min-agreement 2", "--min-agreement 2"),
        ("MODEL --data PLAIN --max-drop 1pt", "has no labels"),
        ("MODEL --data DATA --max-drop 5pt --minimize power", "there are latency, size"),
        ("MODEL --data DATA --max-drop 5pt --on numpy", "no product runs on it"),
        ("MODEL --data DATA --max-drop 5pt --on warp:9", "warp"),
        ("MODEL --data DATA --max-drop 5pt --minutes 0", "above 0"),
        ("MODEL --data DATA --max-drop 5pt --max-size 4", "--max-size 4"),
        ("MODEL --data DATA --max-drop 5pt --max-latency 0ms", "--max-latency 0ms"),
        ("MODEL --data DATA --max-drop 5pt --resume", "holds no search to go on with"),
        ("MODEL --data NONE --max-drop 5pt", "none.npz"),
        ("NONE --data DATA --max-drop 5pt", "none.npz"),
        ("MODEL --data DATA --max-drop 5pt --calibrate NONE", "none.npz"),
        ("OTHER --data PLAIN --min-agreement 90% -o USED", "holds the search of another model"),
    ],
)
def test_bad_input_is_one_plain_line_and_status_2(
    copied: Path, capsys: pytest.CaptureFixture[str], words: str, told: str
) -> None:
    save(classifier(), copied / "other.tflite")
    names = {
        "MODEL": "model.tflite",
        "OTHER": "other.tflite",
        "DATA": "data.npz",
        "PLAIN": "unlabelled.npy",
        "NONE": "none.npz",
        "USED": "out",
    }
    typed = [str(copied / names[word]) if word in names else word for word in words.split()]
    fresh = copied / "fresh"
    line = _refused(typed if "-o" in typed else [*typed, "-o", str(fresh)], capsys)
    assert told in line
    assert not list(copied.rglob("*.part"))
    assert not (fresh / "trials.jsonl").exists()


def test_too_few_samples_are_told_how_many_it_takes(tmp_path: Path) -> None:
    written(tmp_path, taught(), count=100)
    shown = tune(tmp_path, "--max-drop", "1pt", "-o", "out")
    assert shown.returncode == 2
    assert "needs 385; give 722 independent samples in all, or allow a larger drop" in shown.stderr
    assert shown.stdout == ""
