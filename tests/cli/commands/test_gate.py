"""`litesmith gate` as a user and as CI meet it, and what lies in examples/ci."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree, which
from xml.etree import ElementTree

import numpy as np
import pytest

from litesmith.tflite.file import save
from tests.cli.test_cli import litesmith
from tests.regression.test_gate_run import labelled, scorer

ROOT = Path(__file__).parents[3]
CI = ROOT / "examples" / "ci"
UNTIMED = ("--allow", "latency=off", "--allow", "memory=off")
DATA = ("--data", "val.npz")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models, data and a baseline that asks for no times."""
    folder = tmp_path_factory.mktemp("gate")
    save(scorer(), folder / "model.tflite")
    save(scorer(3.0), folder / "coarse.tflite")
    np.savez(folder / "val.npz", **labelled())
    np.savez(folder / "other.npz", **labelled(seed=1))
    words = ("b.json", "model.tflite", "--update", *DATA, *UNTIMED)
    done = litesmith("gate", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "the baseline is model.tflite" in done.stdout
    assert "litesmith gate b.json model.tflite --data val.npz" in done.stdout
    return folder


@pytest.fixture
def place(first: Path, tmp_path: Path) -> Path:
    copytree(first, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_fine_is_0_and_fits_80_columns(place: Path) -> None:
    shown = litesmith("gate", "b.json", "model.tflite", *DATA, cwd=place)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("model.tflite is within what b.json allows\n")
    assert "\x1b" not in shown.stdout
    assert all(len(line) <= 80 for line in shown.stdout.splitlines())


def test_worse_is_1_with_the_reason_and_the_command(place: Path) -> None:
    shown = litesmith("gate", "b.json", "coarse.tflite", *DATA, "--samples", 600, cwd=place)
    assert shown.returncode == 1, shown
    told = " ".join(shown.stdout.split())
    assert told.startswith("coarse.tflite is worse than b.json allows: top-1, file size")
    assert "more than allowed and beyond chance" in told
    command = "litesmith compare model.tflite coarse.tflite --data val.npz --samples 600"
    assert command in shown.stdout
    assert litesmith(*command.split()[1:], "--seconds", 0.05, cwd=place).returncode == 0
    within = [line for line in shown.stdout.splitlines() if not line.startswith("  litesmith")]
    assert all(len(line) <= 80 for line in within)


def test_strictly_what_is_not_known_is_1(place: Path) -> None:
    words = ("gate", "b.json", "model.tflite")
    loose, strict = (litesmith(*words, *more, cwd=place) for more in ((), ("--strict",)))
    assert (loose.returncode, strict.returncode) == (0, 1)
    assert "not certain: accuracy" in loose.stdout
    assert "model.tflite is not shown to be within what b.json allows: accuracy" in strict.stdout


def test_json_markdown_junit_and_the_summary_say_the_same(place: Path) -> None:
    (place / "summary.md").write_text("what another step wrote\n")
    outs = ("--json", "--markdown", "gate.md", "--junit", "gate.xml")
    words = ("gate", "b.json", "coarse.tflite", *DATA, *outs)
    shown = litesmith(*words, cwd=place, GITHUB_STEP_SUMMARY=str(place / "summary.md"))
    assert shown.returncode == 1, shown.stderr
    told = json.loads(shown.stdout, parse_constant=pytest.fail)
    assert (told["schema"], told["verdict"], told["target"]) == (1, "worse", "cpu:1")
    verdicts = {check["quantity"]: check["verdict"] for check in told["checks"]}
    assert verdicts["accuracy"] == "worse" and verdicts["latency"] == "off"
    accuracy = told["checks"][0]
    assert accuracy["low"] <= accuracy["difference"] <= accuracy["high"] < 0
    assert accuracy["n"] == 600
    markdown = (place / "gate.md").read_text("utf-8")
    assert markdown.startswith("### ✕ coarse.tflite is worse than b.json allows")
    assert "| top\\-1 |" in markdown and "✕ **worse**" in markdown
    assert (place / "summary.md").read_text("utf-8") == f"what another step wrote\n{markdown}\n"
    suite = ElementTree.parse(place / "gate.xml").getroot()
    failures = [c for c in verdicts.values() if c == "worse"]
    assert (suite.get("tests"), suite.get("failures")) == (str(len(verdicts)), str(len(failures)))
    assert len(suite.findall("testcase/failure")) == len(failures)
    assert len(suite.findall("testcase/skipped")) == 2  # what is switched off


def test_a_summary_that_cannot_be_written_is_a_warning(place: Path) -> None:
    shown = litesmith(
        "gate", "b.json", "model.tflite", *DATA, cwd=place, GITHUB_STEP_SUMMARY=str(place)
    )
    assert shown.returncode == 0
    assert "no summary is written there" in shown.stderr


def test_the_command_that_an_update_ends_with_has_the_reference(place: Path) -> None:
    np.savez(place / "plain.npz", x=labelled()["x"])
    more = ("--data", "plain.npz", "--against", "coarse.tflite", *UNTIMED)
    made = litesmith("gate", "snr.json", "model.tflite", "--update", *more, cwd=place)
    assert made.returncode == 0, made.stderr
    (command,) = [line for line in made.stdout.splitlines() if line.startswith("litesmith gate")]
    done = litesmith(*command.split()[1:], cwd=place)
    assert done.returncode == 0, done.stderr


def test_update_as_json_keeps_what_is_allowed(place: Path) -> None:
    words = ("b.json", "coarse.tflite", "--update", "--allow", "size=9%", "--json", *DATA)
    shown = litesmith("gate", *words, cwd=place)
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)
    assert told["allow"]["size"] == "9%" and told["allow"]["latency"] == "off"
    assert litesmith("gate", "b.json", "coarse.tflite", *DATA, cwd=place).returncode == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("none.json", "model.tflite"), "none.json: no such file; `litesmith gate --update`"),
        (("val.npz", "model.tflite"), "val.npz: is no JSON, so no baseline"),
        (("model.tflite", "model.tflite"), "model.tflite: is no JSON"),
        (("b.json", "none.tflite"), "none.tflite: no such file"),
        (("b.json", "val.npz"), "val.npz: "),
        (("b.json", "model.tflite", "--data", "other.npz"), "other.npz: not the data of b.json"),
        (("b.json", "model.tflite", *DATA, "--samples", "50"), "val.npz: not the data of b.json"),
        (("b.json", "model.tflite", "--on", "cpu:2"), "b.json: is of cpu:1, not of cpu:2"),
        (("b.json", "model.tflite", "--allow", "speed=1%"), "no such quantity; there are accuracy"),
        (("b.json", "model.tflite", "--seconds", "0"), "give a number above 0"),
        (("b.json", "model.tflite", "--for", "gpu"), "give it with --update"),
        (("b.json", "model.tflite", "--update", "--junit", "x"), "--update compares nothing"),
        (("model.tflite", "model.tflite", "--update"), "model.tflite: is the input"),
        (("val.npz", "model.tflite", "--update"), "val.npz: is no baseline of `litesmith gate`"),
        (("b.json", "model.tflite", "--markdown", "b.json"), "b.json: is the input"),
        (("b.json", "model.tflite", *DATA, "--junit", "val.npz"), "val.npz: is the input"),
        (("b.json", "model.tflite", "--markdown", "no/x.md"), "the folder no does not exist"),
    ],
)
def test_bad_input_is_one_line_and_2(first: Path, words: tuple[str, ...], told: str) -> None:
    before = (first / "b.json").read_bytes()
    shown = litesmith("gate", *words, cwd=first)
    assert shown.returncode == 2, shown
    assert told in shown.stderr
    assert len([line for line in shown.stderr.splitlines() if "note:" not in line]) == 1
    assert not shown.stdout
    assert (first / "b.json").read_bytes() == before


def test_the_command_of_the_workflow_runs(place: Path) -> None:
    yaml = pytest.importorskip("yaml")
    flow = yaml.safe_load((CI / "gate.yml").read_text("utf-8"))
    assert "pull_request" in flow[True]  # YAML takes the word on for true
    steps = flow["jobs"]["gate"]["steps"]
    (command,) = [step["run"] for step in steps if "litesmith gate" in step.get("run", "")]
    for old, new in (("b.json", "gate/baseline.json"), ("val.npz", "gate/val.npz")):
        (place / new).parent.mkdir(exist_ok=True)
        (place / old).rename(place / new)
    (place / "models").mkdir()
    (place / "model.tflite").rename(place / "models" / "model.tflite")
    (place / "gate" / "baseline.json").chmod(0o444)
    shown = litesmith(*command.split()[1:], cwd=place)
    assert shown.returncode == 0, shown.stderr
    (kept,) = [step["with"]["path"] for step in steps if "upload" in step.get("uses", "")]
    assert all((place / name).exists() for name in kept.split())


def test_the_pre_commit_entry_names_the_hook() -> None:
    yaml = pytest.importorskip("yaml")
    (repo,) = yaml.safe_load((CI / "pre-commit-config.yaml").read_text("utf-8"))["repos"]
    (hook,) = repo["hooks"]
    assert Path(hook["entry"]).name == "pre-commit-hook"
    assert (hook["language"], hook["pass_filenames"]) == ("script", False)


@pytest.mark.skipif(
    os.name == "nt" or which("git") is None or which("bash") is None,
    reason="the hook is a script for bash and git",
)
def test_the_hook_stops_a_commit_that_is_worse(place: Path) -> None:
    binary = place / "bin"
    binary.mkdir()
    command = binary / "litesmith"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m litesmith "$@"\n')
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{binary}{os.pathsep}{os.environ['PATH']}",
        **{
            f"GIT_{who}_{what}": "x@x"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
        "GIT_CONFIG_GLOBAL": os.devnull,
    }

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *words], cwd=place, env=environment, capture_output=True, text=True, check=False
        )

    (place / "my model.baseline.json").write_bytes((place / "b.json").read_bytes())
    (place / "my model.tflite").write_bytes((place / "model.tflite").read_bytes())
    assert git("init", "-q").returncode == 0
    hook = place / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_bytes((CI / "pre-commit-hook").read_bytes())
    hook.chmod(0o755)
    git("config", "litesmith.gate", "--data val.npz")
    git("add", "my model.tflite", "coarse.tflite")  # coarse has no baseline, and is let through
    fine = git("commit", "-m", "fine")
    assert fine.returncode == 0, fine.stderr
    (place / "my model.tflite").write_bytes((place / "coarse.tflite").read_bytes())
    git("add", "my model.tflite")
    (place / "my model.tflite").write_bytes((place / "model.tflite").read_bytes())
    worse = git("commit", "-m", "worse")  # what is staged counts, not what lies there
    assert worse.returncode == 1, worse
    assert "my model.tflite is worse than" in worse.stdout + worse.stderr


def test_the_hook_for_other_repositories_is_the_same_script() -> None:
    yaml = pytest.importorskip("yaml")
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert (hook["language"], hook["pass_filenames"]) == ("script", False)
    assert (ROOT / hook["entry"]) == CI / "pre-commit-hook"
    assert os.access(ROOT / hook["entry"], os.X_OK) or os.name == "nt"


@pytest.mark.skipif(os.name == "nt" or which("bash") is None, reason="a script for bash")
@pytest.mark.parametrize(("model", "status"), [("model.tflite", 0), ("coarse.tflite", 1)])
def test_the_action_hands_on_the_verdict(place: Path, model: str, status: int) -> None:
    command = place / "litesmith"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m litesmith "$@"\n')
    command.chmod(0o755)
    given = {"BASELINE": "b.json", "MODEL": model, "DATA": "val.npz", "ARGUMENTS": "--samples 600"}
    files = {"GITHUB_OUTPUT": "out.txt", "GITHUB_STEP_SUMMARY": "summary.md"}
    named = {name: str(place / file) for name, file in files.items()}
    given |= {"LITESMITH": str(command), "RUNNER_TEMP": str(place), **named}
    done = subprocess.run(
        [ROOT / "tools" / "gate-action"],
        cwd=place,
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    told = dict(line.split("=", 1) for line in (place / "out.txt").read_text("utf-8").splitlines())
    assert told["verdict"] == ("worse" if status else "ok")
    assert {"gate.md", "gate.xml", "gate.json"} == set(os.listdir(told["folder"]))
    assert "| verdict |" in (place / "summary.md").read_text("utf-8")


def test_the_action_hands_its_inputs_to_the_script_by_the_environment() -> None:
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    steps = action["runs"]["steps"]
    (gate,) = [step for step in steps if step.get("id") == "gate"]
    assert "${{" not in gate["run"]  # an input is never part of a command
    script = (ROOT / "tools" / "gate-action").read_text("utf-8")
    assert all(f"{name}" in script for name in gate["env"])
    assert set(action["inputs"]) >= {"baseline", "model", "data", "arguments", "extras"}
