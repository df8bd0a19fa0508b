"""What version 0.1 left on disks is still read: every file, and by every command."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from shutil import copytree

import pytest

from litesmith.evidence.bench_record import BenchedInside, BenchSummary, TargetTrial
from litesmith.evidence.choose_record import CHOOSE_KINDS, ChooseSummary, ScoresBySample
from litesmith.evidence.codec import decode, encode
from litesmith.evidence.log import Log
from litesmith.evidence.retrain_record import RetrainInside, RetrainSummary, RetrainTrial
from litesmith.evidence.tune_record import TUNE_KINDS, Tried, TunedInside, TuneSummary
from litesmith.pages.folder_kinds import write_markdown, write_report
from litesmith.regression.baseline import Baseline
from litesmith.search.tuning.replay import RecipeFile
from litesmith.timing.host import machine_here
from tests.cli.test_cli import litesmith

KEPT = Path(__file__).parents[1] / "fixtures" / "version_0_1"
FILES = {
    "baseline.json": Baseline,
    "bench/bench.json": BenchSummary,
    "bench/evidence/*.json": BenchedInside,
    "choose/choose.json": ChooseSummary,
    "choose/evidence/*.json": ScoresBySample,
    "retrain/evidence/*.json": RetrainInside,
    "retrain/retrain.json": RetrainSummary,
    "tune/evidence/*.json": TunedInside,
    "tune/recipe.json": RecipeFile,
    "tune/tune.json": TuneSummary,
}
KINDS: dict[str, Mapping[str, type]] = {
    "bench": {"": TargetTrial},
    "choose": CHOOSE_KINDS,
    "retrain": {"retrained": RetrainTrial},
    "tune": TUNE_KINDS,
}
DATA = ("--data", "data.npz", "--norm", "unit")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, which the commands are run in."""
    place = copytree(KEPT, tmp_path / "kept")
    monkeypatch.chdir(place)
    return place


def is_same_machine() -> bool:
    """True where the records are of this machine and these versions."""
    trials = Log(KEPT / "tune" / "trials.jsonl").read(TUNE_KINDS)
    return machine_here() in {m.host for trial in trials for m in trial.measurements}


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_read_strictly_and_written_with_the_same_keys(name: str) -> None:
    places = sorted(KEPT.glob(name))
    assert places
    for place in places:
        shown = json.loads(place.read_bytes())
        assert encode(decode(FILES[name], shown)) == shown


@pytest.mark.parametrize("command", KINDS)
def test_every_trial_is_read_strictly_and_written_with_the_same_keys(command: str) -> None:
    log = Log(KEPT / command / "trials.jsonl")
    lines = [json.loads(line) for line in log.path.read_text("utf-8").splitlines()]
    assert lines and [encode(trial) for trial in log.read(KINDS[command])] == lines


@pytest.mark.parametrize("command", KINDS)
def test_every_folder_has_its_page_and_nothing_is_lost(kept: Path, command: str) -> None:
    page = write_report(kept / command).read_text(encoding="utf-8")
    assert "</html>" in page and "could not be read" not in page
    assert write_markdown(kept / command).read_text(encoding="utf-8").startswith("# ")


def test_a_search_goes_on_from_its_records(kept: Path) -> None:
    words = ("wide.tflite", *DATA, "--max-drop", "20pt", "--no-train", "-o", "tune", "--resume")
    lines = len((kept / "tune" / "trials.jsonl").read_text("utf-8").splitlines())
    done = litesmith("tune", *words, "--runs", 12, "--json")
    told = json.loads(done.stdout)
    assert (done.returncode == 0) == (told["best"] is not None), done.stderr
    assert (told["best"] or told["nearest"] or told["float"])["digest"]
    found = Log(kept / "tune" / "trials.jsonl").read(TUNE_KINDS)
    old = [trial.details.latency for trial in found[:lines] if isinstance(trial.details, Tried)]
    new = [trial for trial in found[lines:] if isinstance(trial.details, Tried)]
    told_anew = [trial for trial in new if trial.details.latency in old]
    assert (len(told_anew) == len(found) - lines) == is_same_machine()


def test_a_choice_is_repeated_from_its_records(kept: Path) -> None:
    words = ("wide.tflite", "narrow.tflite", *DATA, "--trust-data", "--seconds", 1, "-o", "choose")
    lines = len((kept / "choose" / "trials.jsonl").read_text("utf-8").splitlines())
    done = litesmith("choose", *words, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pick"] == "wide"
    found = Log(kept / "choose" / "trials.jsonl").read(CHOOSE_KINDS)
    assert (len(found) == lines) == is_same_machine()


def test_a_gate_checks_against_the_baseline(kept: Path) -> None:
    done = litesmith("gate", "baseline.json", "wide.tflite", *DATA, "--seconds", 1, "--json")
    checks = {one["quantity"]: one["verdict"] for one in json.loads(done.stdout)["checks"]}
    assert {checks[name] for name in ("accuracy", "size", "gzip")} == {"ok"}


def test_the_recipe_makes_the_same_bytes(kept: Path) -> None:
    done = litesmith("apply", "wide.tflite", "tune/recipe.json", "-o", "again.tflite")
    assert done.returncode == 0, done.stderr
    made, wanted = (kept / name for name in ("again.tflite", "tune/best.tflite"))
    assert sha256(made.read_bytes()).digest() == sha256(wanted.read_bytes()).digest()
