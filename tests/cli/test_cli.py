"""The command line as a user meets it: a child process, its two streams and its exit status."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from litesmith._version import VERSION
from litesmith.tflite.file import digest, save
from litesmith.tflite.write import to_bytes
from tests import zoo
from tests.forked import forked
from tests.interruptible import started
from tests.platforms import posix
from tests.slowness import patient

AS_MODULE = "import runpy; runpy.run_module('litesmith', run_name='__main__', alter_sys=True)"


def litesmith(
    *words: object, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "COLUMNS": "80", **environment}
    return forked(AS_MODULE, [*map(str, words)], cwd=cwd, variables=variables, seconds=180)


def fresh_litesmith(
    *words: object, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "litesmith", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "80", **environment},
        timeout=patient(180),
        check=False,
    )


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.tflite"
    save(zoo.careless(), path)
    return path


def test_a_command_that_is_none_is_refused_with_the_likely_one() -> None:
    refused = litesmith("tun")
    assert refused.returncode == 2
    assert refused.stderr == "litesmith: no command 'tun'; did you mean tune?\n"
    assert litesmith("xyzzy").stderr == (
        "litesmith: no command 'xyzzy'; `litesmith --help` lists all\n"
    )


def test_version_and_help() -> None:
    assert fresh_litesmith("--version").stdout == f"litesmith {VERSION}\n"
    shown = fresh_litesmith("--help")
    assert shown.returncode == 0
    for command in ("inspect", "apply", "diff", "demo"):
        assert command in shown.stdout


def test_inspect_fits_80_columns_and_is_plain_in_a_pipe(model: Path) -> None:
    shown = fresh_litesmith("inspect", model, "--ops")
    assert shown.returncode == 0
    assert "\x1b" not in shown.stdout
    commands = [line for line in shown.stdout.splitlines() if "litesmith apply" in line]
    assert commands
    assert str(model) in commands[0]
    assert all(len(line) <= 80 for line in shown.stdout.splitlines() if line not in commands)
    assert "TRANSPOSE" in shown.stdout


def test_inspect_json(model: Path) -> None:
    shown = json.loads(litesmith("inspect", model, "--json", "--ops").stdout)
    assert shown["schema"] == 1
    wanted = (
        "file_bytes gzip_bytes parameters macs peak_activation_bytes ops inputs outputs findings"
    )
    assert set(wanted.split()) <= set(shown)
    assert shown["file_bytes"] == model.stat().st_size
    assert shown["ops"]["TRANSPOSE"] == 2
    assert {"what", "why", "command"} == set(shown["findings"][0])
    assert len(shown["op_list"]) == sum(shown["ops"].values())


@pytest.mark.parametrize("name", zoo.MODELS)
def test_inspect_shows_any_model(tmp_path: Path, name: str) -> None:
    save(zoo.MODELS[name](), tmp_path / "m.tflite")
    shown = litesmith("inspect", tmp_path / "m.tflite", "--ops")
    assert shown.returncode == 0, shown.stderr


def test_apply_writes_and_tells(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    before = model.read_bytes()
    shown = litesmith("apply", model, "cleanup | fold | fuse", "-o", out)
    assert shown.returncode == 0, shown.stderr
    assert model.read_bytes() == before
    assert out.stat().st_size < model.stat().st_size
    assert "->" in shown.stdout
    asked = litesmith("apply", model, "cleanup", "-o", out, "--json")
    told = json.loads(asked.stdout)
    assert told["bytes"] == out.stat().st_size
    assert told["digest"] == digest(out)
    assert told["touched"]
    assert all(set(skip) == {"where", "why"} for skip in told["skipped"])


@pytest.mark.parametrize("words", [("--help",), ("inspect", "MODEL", "--json"), ("polish",)])
def test_a_forked_command_is_the_one_that_is_started(model: Path, words: tuple[str, ...]) -> None:
    """What the tests of commands rely on."""
    typed = [model.name if word == "MODEL" else word for word in words]
    forked, fresh = (one(*typed, cwd=model.parent) for one in (litesmith, fresh_litesmith))
    assert (forked.stdout, forked.stderr) == (fresh.stdout, fresh.stderr)
    assert forked.returncode == fresh.returncode


def test_the_empty_recipe_copies(model: Path, tmp_path: Path) -> None:
    assert litesmith("apply", model, "", "-o", tmp_path / "copy.tflite").returncode == 0
    same = litesmith("diff", model, tmp_path / "copy.tflite")
    assert "the same graph" in " ".join(same.stdout.split())
    assert (tmp_path / "copy.tflite").read_bytes() == model.read_bytes()


def test_diff(model: Path, tmp_path: Path) -> None:
    litesmith("apply", model, "cleanup", "-o", tmp_path / "out.tflite")
    shown = litesmith("diff", model, tmp_path / "out.tflite")
    assert shown.returncode == 0
    assert "TRANSPOSE: 2 -> 0" in shown.stdout
    told = json.loads(litesmith("diff", model, tmp_path / "out.tflite", "--json").stdout)
    assert told["same"] is False
    assert {"kind", "where", "before", "after"} == set(told["differences"][0])


def test_bad_input_is_one_plain_line_and_status_2(model: Path, tmp_path: Path) -> None:
    onnx = tmp_path / "other.onnx"
    onnx.write_bytes(b"\x08\x07\x12\x07pytorch")
    empty = tmp_path / "empty.tflite"
    empty.touch()
    cases = [
        (["inspect", tmp_path / "none.tflite"], "no such file"),
        (["inspect", tmp_path], "is a folder"),
        (["inspect", onnx], "ONNX"),
        (["inspect", empty], "empty"),
        (["inspect"], "MODEL"),
        (["inspect", model, "--fast"], "--fast"),
        (["inspekt", model], "inspekt"),
        (["apply", model, "polish", "-o", tmp_path / "o"], "no step 'polish'"),
        (["apply", model, "upgrade", "-o", tmp_path / "o"], "nothing to do"),
        (["apply", model, "cleanup"], "-o"),
        (["apply", model, "cleanup", "-o", model], "an input file is never changed"),
        (["apply", model, "cleanup", "-o", tmp_path], "is a folder"),
        (["apply", model, "cleanup", "-o", tmp_path / "no" / "o"], "does not exist"),
        (["apply", model, "cleanup", "-o", "/proc/out.tflite"], "cannot be written"),
        (["apply", model, "cleanup", "-o", tmp_path / ("x" * 300)], "cannot be written"),
        (["apply", model, 'upgrade(io="\\q")', "-o", tmp_path / "o"], "quote it as JSON does"),
        (["apply", model, f"fold(shapes={'[' * 5000}", "-o", tmp_path / "o"], "deep"),
        (["apply", model, "fuse(pad=true, pad=false)", "-o", tmp_path / "o"], "twice"),
        (["diff", model, onnx], "ONNX"),
    ]
    before = sorted(tmp_path.iterdir())
    for words, message in cases:
        result = litesmith(*words)
        assert result.returncode == 2, (words, result)
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1, result.stderr
        assert result.stderr.startswith("litesmith: ")
        assert message in result.stderr
    assert sorted(tmp_path.iterdir()) == before


@posix
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted(tmp_path: Path, number: signal.Signals, status: int) -> None:
    """A model from a pipe that never ends its sentence, and a user who has waited enough."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = ["apply", pipe, "cleanup", "-o", tmp_path / "out.tflite"]
    child = started("-m", "litesmith", *words)
    with pipe.open("wb") as feed:  # opens once the child reads
        feed.write(b"\x1c\0\0\0TFL3")
        feed.flush()
        time.sleep(0.3)
        child.send_signal(number)
        child.wait(timeout=patient(20))
    assert child.returncode == status
    if number == signal.SIGINT:
        assert child.stderr is not None
        assert "stopped" in child.stderr.read()
    assert list(tmp_path.iterdir()) == [pipe]


@posix
def test_a_closed_pipe_is_no_error(model: Path) -> None:
    child = subprocess.run(
        f"{sys.executable} -m litesmith inspect {model} --ops | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.stdout.startswith("model.tflite")
    assert "Traceback" not in child.stderr


@posix
@pytest.mark.parametrize("where", [">&-", "> /dev/full"])
def test_output_that_goes_nowhere_is_no_bug_of_ours(model: Path, where: str) -> None:
    child = subprocess.run(
        f"{sys.executable} -m litesmith inspect {model} {where}",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in child.stderr
    assert child.returncode in (0, 2)


@posix
def test_a_pipe_has_the_size_of_what_came_through(model: Path) -> None:
    shown = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m litesmith inspect <(cat {model}) --json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(shown.stdout)["file_bytes"] == model.stat().st_size


def test_a_model_that_cannot_be_copied_can_be_inspected(tmp_path: Path) -> None:
    b = zoo.Builder()
    y = b.op("CUSTOM", b.input("x", (1,)), custom="DISPATCH_OX", shape=(1,))
    data = to_bytes(b.model(y)).replace(b"DISPATCH_OX", b"DISPATCH_OP")
    (tmp_path / "compiled.tflite").write_bytes(data)
    assert litesmith("inspect", tmp_path / "compiled.tflite").returncode == 0
    refused = litesmith("apply", tmp_path / "compiled.tflite", "", "-o", tmp_path / "o")
    assert refused.returncode == 2
    assert "before compilation" in refused.stderr


def test_foreign_names_cannot_paint_the_terminal(tmp_path: Path) -> None:
    b = zoo.Builder()
    y = b.op("ABS", b.input("[red]\x1b[2J\udcff", (1,)), name="[/]")
    save(b.model(y), tmp_path / "m.tflite")
    shown = litesmith("inspect", tmp_path / "m.tflite", "--ops", FORCE_COLOR="1")
    assert shown.returncode == 0
    assert "\x1b[2J" not in shown.stdout
    assert "[red]\\x1b[2J\\xff" in shown.stdout
    told = json.loads(litesmith("inspect", tmp_path / "m.tflite", "--json").stdout)
    assert told["inputs"][0]["name"] == "[red]\\x1b[2J\\xff"
