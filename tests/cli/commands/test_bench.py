"""`litesmith bench` as a user meets it."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from litesmith import bench
from litesmith.cli.options.command_line import plain_switches
from litesmith.cli.text import bench_text
from litesmith.evidence.bench_record import BenchTrial
from litesmith.evidence.log import Log
from litesmith.operating_system import quote
from litesmith.tflite.file import digest, save
from litesmith.timing.statistics import FASTER, SAME, SLOWER, UNCLEAR
from litesmith.units import energy_text, number_text, ratio_text, time_interval_text
from tests import zoo
from tests.cli.test_cli import litesmith
from tests.platforms import posix

SUMMARY = re.compile(
    r"Inference timings in us: Init: \d+, First inference: \d+, "
    r"Warmup \(avg\): [\d.e+]+, Inference \(avg\): [\d.e+]+\n"
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.tflite"
    save(zoo.convnet(), path)
    return path


@pytest.mark.parametrize("option", ["--csv", "--log"])
def test_an_input_file_is_never_changed(model: Path, option: str) -> None:
    before = model.read_bytes()
    shown = litesmith("bench", model, "--runs", 6, option, model)
    assert shown.returncode == 2
    assert "never changed" in shown.stderr
    assert model.read_bytes() == before


@posix
def test_modules_of_the_current_folder_are_not_run(model: Path, tmp_path: Path) -> None:
    """By the installed command, as `python -m` itself would run them."""
    (tmp_path / "random.py").write_text("raise SystemExit(3)")
    places = Path(sys.executable).parent, os.environ["PATH"]  # beside Python, else where users look
    command = shutil.which("litesmith", path=os.pathsep.join(map(str, places)))
    assert command, places
    words = [command, "bench", model, "--runs", "2"]
    child = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr


def test_files_and_formats_that_do_not_go_together(model: Path, tmp_path: Path) -> None:
    same = litesmith("bench", model, "--csv", tmp_path / "f", "--log", tmp_path / "f")
    assert (same.returncode, "need a file each" in same.stderr) == (2, True)
    lost = litesmith("bench", model, "--copies", "--format", "benchmark_model")
    assert (lost.returncode, "has no place for" in lost.stderr) == (2, True)


def test_json(model: Path, tmp_path: Path) -> None:
    files = ("--csv", tmp_path / "rows.csv", "--log", tmp_path / "log.jsonl")
    words = ("--on", "cpu:1,cpu:1:builtin", "--runs", 24, "--json", *files)
    shown = litesmith("bench", model, *words)
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)
    assert told["schema"] == 1
    wanted = "model target p50_us p95_us create_us first_us peak_bytes samples_us"
    assert len(told["results"]) == 2
    for result in told["results"]:
        assert set(wanted.split()) <= set(result)
        assert len(result["samples_us"]) == 24
    (comparison,) = told["comparisons"]
    assert {"a", "b", "ratio", "low", "high", "verdict"} <= set(comparison)
    assert comparison["verdict"] in (FASTER, SLOWER, SAME, UNCLEAR)
    first, second = (result["p50_us"] for result in told["results"])
    assert (comparison["a_us"], comparison["b_us"]) == (first, second)
    assert comparison["ratio"] == second / first
    rows = list(csv.DictReader((tmp_path / "rows.csv").read_text("utf-8").splitlines()))
    assert [row["target"] for row in rows] == ["cpu:1", "cpu:1:builtin"]
    assert len(comparison["block_ratios"]) == comparison["blocks"]
    trials = Log(tmp_path / "log.jsonl").read({"": BenchTrial})
    assert [trial.model_digest for trial in trials] == [digest(model)] * 2
    assert trials[0].measurements[0].samples == tuple(told["results"][0]["samples_us"])


def test_tables_fit_80_columns_and_are_plain_in_a_pipe(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "a_much_longer_name_of_a_model_that_was_exported_in_a_hurry.tflite"
    save(zoo.careless(), other)
    shown = litesmith("bench", model, other, "--on", "cpu:1,cpu:1:builtin", "--runs", 12)
    assert shown.returncode == 0, shown.stderr
    assert "\x1b" not in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "each: 12 runs in 12 loads" in shown.stdout
    assert "compared with model.tflite on cpu:1" in shown.stdout


def test_copies(model: Path) -> None:
    shown = litesmith("bench", model, "--copies", "--seconds", 0.01)
    assert shown.returncode == 0, shown.stderr
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "set_tensor / get_tensor" in shown.stdout
    assert "share" in shown.stdout


def test_threads(model: Path) -> None:
    shown = litesmith("bench", model, "--threads", "auto", "--runs", 12, "--json")
    told = json.loads(shown.stdout)
    assert [s["competitors"] > 0 for s in told["threads"]] == [False, True]
    for situation in told["threads"]:
        assert situation["recommended"] in [c["threads"] for c in situation["counts"]]
        assert situation["reasons"]
    counts = told["threads"][0]["counts"][0]
    assert {"threads", "p50_us", "p95_us", "variability", "cpu_us", "joules"} == set(counts)


def test_threads_as_text(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_text.print_bench(bench(model, threads="auto", runs=6, warmup_runs=0))
    shown = capsys.readouterr().out
    for text in ("threads, alone", "busy process", "use cpu:", "CPU/run"):
        assert text in shown


def test_the_flags_of_benchmark_model(model: Path) -> None:
    flags = ("--num_threads=1", "--num_runs=5", "--warmup_runs=1", "--enable_op_profiling")
    shown = litesmith("bench", f"--graph={model}", *flags, "--format", "benchmark_model")
    assert shown.returncode == 0, shown.stderr
    assert SUMMARY.fullmatch(shown.stdout)
    assert f"litesmith profile {quote(str(model))}" in shown.stderr


def test_switches_lose_their_value() -> None:
    words = ["bench", "--enable_op_profiling=true", "--graph=x", "--enable_op_profiling=false"]
    assert plain_switches(words) == ["bench", "--enable_op_profiling", "--graph=x"]
    assert plain_switches(["--enable_op_profiling"]) == ["--enable_op_profiling"]


def test_more_threads_than_cores_is_a_warning(model: Path) -> None:
    shown = litesmith("bench", model, "--on", "cpu:99", "--runs", 2)
    assert shown.returncode == 0
    assert "warning: cpu:99 has more threads" in shown.stderr


def test_bad_input_is_one_plain_line_and_status_2(model: Path, tmp_path: Path) -> None:
    custom = tmp_path / "custom.tflite"
    save(zoo.MODELS["custom"](), custom)
    garbage = tmp_path / "garbage.tflite"
    garbage.write_bytes(b"no model at all")
    cases = [
        (["bench", tmp_path / "none.tflite"], "no such file"),
        (["bench"], "at least one model"),
        (["bench", garbage], "garbage.tflite"),
        (["bench", custom], "Mystery"),
        (["bench", model, "--on", "tpu"], "no target 'tpu'"),
        (["bench", model, "--threads", "many"], "--threads many"),
        (["bench", model, "--threads", "2", "--on", "cpu:1"], "not both"),
        (["bench", model, "--runs", "0"], "--runs 0"),
        (["bench", model, "--runs", "few"], "--runs"),
        (["bench", model, "--format", "xml"], "--format xml"),
        (["bench", model, custom, "--copies"], "one model"),
        (["bench", model, "--runs", "1", "--csv", tmp_path / "no" / "x"], "does not exist"),
        (["bench", model, "--runs", "1", "--log", tmp_path], "is a folder"),
    ]
    for words, message in cases:
        result = litesmith(*words)
        assert result.returncode == 2, (words, result)
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1, result.stderr
        assert result.stderr.startswith("litesmith: ")
        assert message in result.stderr, result.stderr


def test_numbers_as_text() -> None:
    assert ratio_text(0.5372) == "0.537×"
    assert ratio_text(0.5372, 0.53, 0.541) == "0.537× (0.530 to 0.541)"
    assert ratio_text(2, 0, float("inf")) == "2.000× (interval unknown)"
    assert time_interval_text(20_000, 13_300, 28_200) == "20.0 ms (13.3–28.2)"
    assert time_interval_text(1010, 980, 1020) == "1.01 ms (980 µs–1.02 ms)"
    assert time_interval_text(5, 0, float("inf")) == "5.00 µs (unknown)"
    assert number_text(14575.249) == "14575.2"
    assert energy_text(0.0412) == "41.2 mJ"
