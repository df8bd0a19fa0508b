"""`litesmith demo`: the whole job on what ships with the package."""

import json
import subprocess
from pathlib import Path

import pytest

from litesmith.demo_files import DATA, LICENCE, MODEL, TOP1, content
from litesmith.run.session import Session
from litesmith.tflite.file import digest
from tests.cli.test_cli import litesmith


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def shown(place: Path) -> subprocess.CompletedProcess[str]:
    """What the command prints that a README begins with."""
    return litesmith("demo", "--runs", 12, cwd=place)


def facts(place: Path) -> dict[str, object]:
    return json.loads((place / "litesmith-demo" / "tuned" / "tune.json").read_bytes())


def test_it_ends_well_with_the_next_command(
    shown: subprocess.CompletedProcess[str], place: Path
) -> None:
    assert shown.returncode == 0, shown.stderr
    words = " ".join(shown.stdout.split())
    assert str(Path("litesmith-demo/tuned/report.html")) in words
    assert words.endswith("litesmith tune YOUR.tflite --data YOUR_DATA --max-drop 1pt")
    assert str(facts(place)["sentence"]) in words
    warned = [line for line in shown.stderr.splitlines() if "warning" in line]
    assert all("other programs use" in line for line in warned), "a busy machine is no fault"


def test_the_result_is_smaller_within_the_budget_and_runs(
    shown: subprocess.CompletedProcess[str], place: Path
) -> None:
    told, folder = facts(place), place / "litesmith-demo"
    assert told["state"] == "done" and told["verdict"] in ("proven", "likely", "unclear")
    best = folder / "tuned" / "best.tflite"
    assert best.stat().st_size < (folder / MODEL).stat().st_size / 1.9
    with Session(best) as session:
        session.run()
    assert "<html" in (folder / "tuned" / "report.html").read_text("utf-8")


def test_the_model_is_as_good_as_it_is_said_to_be(
    shown: subprocess.CompletedProcess[str], place: Path
) -> None:
    first = facts(place)["float"]
    assert isinstance(first, dict)
    assert first["accuracy"]["low"] <= TOP1 <= first["accuracy"]["high"]


def test_what_ships_lies_beside_it_as_it_shipped(
    shown: subprocess.CompletedProcess[str], place: Path
) -> None:
    for name in (MODEL, DATA, LICENCE):
        assert (place / "litesmith-demo" / name).read_bytes() == content(name)


def test_the_command_it_shows_is_answered_from_the_same_records(
    shown: subprocess.CompletedProcess[str], place: Path
) -> None:
    """The user may type it: nothing is measured again, and the same file comes out."""
    lines = shown.stdout.splitlines()
    line = next(line for line in lines if line.startswith("litesmith tune lite"))
    wanted = digest(place / "litesmith-demo" / "tuned" / "best.tflite")
    again = litesmith(*line.split()[1:], "--runs", 12, cwd=place)
    assert again.returncode == 0, again.stderr
    assert "nothing was measured again" in again.stderr
    assert digest(place / "litesmith-demo" / "tuned" / "best.tflite") == wanted


def test_a_place_that_cannot_be_is_refused_in_one_line(place: Path) -> None:
    (place / "file").touch()
    refused = litesmith("demo", "-o", "file", cwd=place)
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1 and "file" in refused.stderr
