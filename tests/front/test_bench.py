"""`bench` as a program meets it, and `--on all` as a user does."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from litesmith import bench
from litesmith.errors import BadInput
from litesmith.evidence.bench_record import BenchSummary, BenchTrial, TargetTrial
from litesmith.evidence.codec import decode
from litesmith.evidence.log import Log
from litesmith.pages.folder_kinds import write_markdown
from litesmith.progress import Status
from litesmith.run.accelerators.targets import DELEGATES
from litesmith.tflite.file import digest, save
from litesmith.timing.latency import Bench
from tests import zoo
from tests.cli.test_cli import litesmith

# No driver: the GPU is refused, and drivers in software need not build their programs.
NO_GPU = {"VK_DRIVER_FILES": "/none.json", "VK_ICD_FILENAMES": "/none.json"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.tflite"
    save(zoo.residual_int8(), path)
    return path


def test_every_target_is_in_the_evidence_and_on_the_page(model: Path, tmp_path: Path) -> None:
    out, log = tmp_path / "seen", tmp_path / "log.jsonl"
    words = ("--on", "all", "--runs", 2, "--warmup-runs", 0, "--log", log, "-o", out, "--json")
    done = litesmith("bench", model, *words, **NO_GPU)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    targets = [row["target"] for row in told["targets"]]
    assert {t.partition(":")[0] for t in targets} == {d.name for d in DELEGATES} - {"numpy"}
    for path in (log, out / "trials.jsonl"):
        trials = Log(path).read({"": TargetTrial})
        assert [trial.details.row.target for trial in trials] == targets
        assert {trial.model_digest for trial in trials} == {digest(model)}
    (kept,) = decode(BenchSummary, json.loads((out / "bench.json").read_bytes())).models
    assert [row.verdict for row in kept.targets] == [row["verdict"] for row in told["targets"]]
    placed = json.loads((out / "evidence" / f"{digest(model)}.json").read_bytes())["placements"]
    assert all(len(p["homes"]) == len(zoo.residual_int8().main.ops) for p in placed.values())
    page = (out / "report.html").read_text(encoding="utf-8")
    assert sorted(_named_targets(page)) == sorted(targets)
    assert write_markdown(out).is_file()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"on": "cpu:1,all"}, "on='cpu:1,all': all is every target there is"),
        ({"on": "all", "csv": Path("x.csv")}, "on='all' has no csv="),
        ({"on": "all", "threads": "2"}, "on='all' has no threads="),
        ({"on": "all", "copies": True}, "on='all' has no copies="),
        ({"out": Path("folder")}, "out='folder': a folder is written with on='all'"),
        ({"on": "all", "models": [Path("none.tflite")]}, "no such file"),
    ],
)
def test_what_it_has_no_answer_to_is_said_before_anything_runs(
    model: Path, asked: dict[str, Any], told: str
) -> None:
    with pytest.raises(BadInput, match=told) as refused:
        bench(**{"models": [model], **asked})
    assert "\n" not in str(refused.value)


def test_the_folder_of_another_command_is_left_alone(model: Path, tmp_path: Path) -> None:
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / "tune.json").write_text("{}")
    done = litesmith("bench", model, "--on", "all", "-o", tmp_path / "tuned")
    assert done.returncode == 2 and not done.stdout and done.stderr.count("\n") == 1
    assert "holds what `litesmith tune` wrote" in done.stderr
    assert [path.name for path in (tmp_path / "tuned").iterdir()] == ["tune.json"]


def test_what_the_shell_can_do_a_program_can_do_too(tmp_path: Path) -> None:
    seen: list[object] = []
    done = bench(
        zoo.convnet(),
        threads=1,
        copies=True,
        seconds=0.01,
        warmup_runs=0,
        csv=tmp_path / "rows.csv",
        log=str(tmp_path / "log.jsonl"),
        progress=seen.append,
    )
    assert isinstance(done, Bench)
    assert repr(done).startswith("<Bench: model 1 on cpu:1: ")
    assert "<table>" in done._repr_html_()
    assert {one["way"] for one in done.to_json()["copies"]} == {one.way for one in done.copies}
    assert (tmp_path / "rows.csv").read_text("utf-8").count("\n") == 2
    assert len(Log(tmp_path / "log.jsonl").read({"": BenchTrial})) == 1
    assert Status("copies") in seen


def test_models_in_memory_are_on_no_other_programs_target() -> None:
    with pytest.raises(BadInput, match=r"give \.tflite files"):
        bench(zoo.convnet(), on="all")


def _named_targets(page: str) -> list[str]:
    """The targets that rows are of; those of one family that answer alike share a row."""
    found: list[str] = []
    for names in re.findall(r'<th scope="row"><b>(.*?)</b>', page):
        for name in names.split(", "):
            first, *others = name.split("/")
            found += [first, *(f"{first.rpartition('-')[0]}-{other}" for other in others)]
    return found
