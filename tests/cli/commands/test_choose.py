"""`litesmith choose` as a user meets it: what it prints, what it leaves, how it ends."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from litesmith.cli.text.printing import console, shorten_names
from tests.cli.test_cli import litesmith
from tests.search.choosing.chosen import mark_times, written_models
from tests.search.choosing.taught import examples, write_data

KEYS = {"model", "value", "p50_us", "bytes", "gzip_bytes", "peak_bytes", "on_front"}
ALL = ("good.tflite", "poor.tflite", "heavy.tflite")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models, data, and what one run of the command has printed and left, on a calm machine."""
    place = tmp_path_factory.mktemp("command")
    written_models(place)
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    shown = choose(place, *ALL, "--json")
    assert shown.returncode == 0, shown.stderr
    assert all((place / name).read_bytes() == content for name, content in before.items())
    (place / "shown.json").write_text(shown.stdout)
    mark_times(place / "out", unclear=False)
    return place


def choose(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    given = [place / word if word.endswith(".tflite") else word for word in words]
    common = ("--data", place / "data.npz", "--seconds", "0.05", "-o", place / "out")
    return litesmith("choose", *given, *common)


def test_json_has_what_programs_rely_on(place: Path) -> None:
    shown = json.loads((place / "shown.json").read_text("utf-8"))
    assert shown["schema"] == 1
    assert [row["model"] for row in shown["candidates"]] == ["good", "poor", "heavy"]
    assert all(set(row) >= KEYS for row in shown["candidates"])
    assert shown["pick"] == "good" and shown["reason"].startswith("good: the most accurate")
    assert shown["pick_file"] == str(place / "good.tflite")
    assert Path(shown["report"]).read_text(encoding="utf-8").count("<svg viewBox=") >= 2


def test_a_table_in_80_columns_then_the_pick(place: Path) -> None:
    shown = choose(place, *ALL)
    assert shown.returncode == 0
    assert "nothing was measured again" in shown.stderr
    lines = shown.stdout.splitlines()
    head = next(n for n, line in enumerate(lines) if line.split()[:2] == ["model", "accuracy"])
    assert all(len(line) <= 80 for line in lines[head : head + 4])
    assert lines[head + 1].startswith("▶●  good") and "100.0 ±" in lines[head + 1]
    assert not lines[head + 3].strip().startswith("●")  # heavy is beaten
    words = " ".join(shown.stdout.split())
    assert "good: the most accurate of all 3" in words
    assert words.index("model accuracy") < words.index("good: the most")


def test_long_names_are_cut_to_one_line_and_stay_different() -> None:
    names = ["x" * 60 + "1", "x" * 60 + "2", "y" * 90, "z" + "y" * 90 + "z", "short", "a\nb"]
    shown = shorten_names(names, 54)
    assert len({*shown.values()}) == len(names)
    assert shown["short"] == "short" and shown["a\nb"] == "a\\nb"
    assert all(len(one) <= max(console.width - 54, 16) for one in shown.values())
    twins = ["x" * 60 + end + "x" * 60 for end in "ab"]  # nothing but the middle tells them
    assert shorten_names(twins, 54) == {name: name for name in twins}


def test_the_report_is_rebuilt_from_the_folder(place: Path) -> None:
    page = place / "out" / "report.html"
    before = page.read_bytes()
    page.unlink()
    assert litesmith("report", place / "out").returncode == 0
    assert page.read_bytes() == before


def test_nothing_fits_is_status_1_with_the_nearest(place: Path) -> None:
    shown = choose(place, *ALL, "--max-size", "10B", "--json")
    assert shown.returncode == 1
    told = json.loads(shown.stdout)
    assert told["pick"] is None and told["nearest"] == "poor"
    assert "nearest is poor" in told["reason"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "nothing to choose from"),
        (("nowhere/*.tflite",), "no file is so called"),
        (("gone.tflite",), "no such file"),
        (("good.tflite", "--max-latency", "10"), "--max-latency 10: give 10ms"),
        (("good.tflite", "--max-memory", "0MB"), "nothing is so little"),
        (("good.tflite", "--min-accuracy", "80"), "give a share, as in 80% or 0.8"),
        (("good.tflite", "--minimize", "weight"), "there are latency, size, download, memory"),
        (("good.tflite", "--on", "cpu:1,cpu:2"), "compared on one target"),
        (("good.tflite", "--val", "x"), "give --retrain too"),
    ],
)
def test_bad_input_is_one_line(place: Path, words: tuple[str, ...], told: str) -> None:
    done = choose(place, *words)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.count("\n") == 1 and told in done.stderr


def test_labels_of_other_classes_are_refused_with_the_way_out(place: Path, tmp_path: Path) -> None:
    arrays = examples()
    write_data(tmp_path / "more.npz", {"x": arrays["x"], "y": arrays["y"] + 3})
    np.save(tmp_path / "bare.npy", arrays["x"])
    for data, told in (("more.npz", "--retrain"), ("bare.npy", "has no labels")):
        out = ("-o", tmp_path / "out")
        done = litesmith("choose", place / "good.tflite", "--data", tmp_path / data, *out)
        assert done.returncode == 2 and told in done.stderr.splitlines()[-1]
        assert not (tmp_path / "out").exists()
