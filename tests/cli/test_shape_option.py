"""`--shape`: commands on copies in other sizes, which speak of the models that were typed."""

import json
from pathlib import Path

import pytest

import litesmith
from litesmith.cli.commands import COMMANDS
from litesmith.errors import BadInput, CannotApply, CannotRun
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.operating_system import quote
from tests.cli.typed import run_command
from tests.platforms import links
from tests.run.test_free_sizes import sound_model
from tests.zoo import noise, resizable


def dense() -> Model:
    b = Builder()
    return b.model(b.op("FULLY_CONNECTED", b.input("x", (-1, 64)), noise(32, 64), noise(32)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "sound.tflite"
    litesmith.save(sound_model(), place)
    return place


def test_every_command_that_runs_or_looks_at_a_model_takes_it() -> None:
    takers = {n for n, row in COMMANDS.items() if any(o.argument == "shape" for o in row.options)}
    looking = {
        "inspect",
        "profile",
        "bench",
        "doctor",
        "targets",
        "eval",
        "compare",
        "apply",
        "view",
    }
    making = {"quantize", "tune", "prune", "cluster", "qat", "choose", "retrain"}
    assert takers == looking | making | {"convert", "gate"}


def test_inspect_shows_the_sizes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = path.read_bytes()
    assert run_command("inspect", model=path, shape=["sound=1,40"], as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["inputs"][0]["shape"] == [1, 40]
    assert told["outputs"][0]["shape"] == [1, 1, 25, 3]
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == ["sound.tflite"]


def test_bench_compares_shapes(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")  # the name fits beside numbers of any length
    shapes = ["sound=1,16", "sound=1,1600"]
    assert run_command("bench", models=[path], shape=shapes, runs=12, as_json=True) == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    assert [row["model"] for row in rows] == [f"{path} 1,16", f"{path} 1,1600"]
    assert run_command("bench", models=[path], shape=["1,16"], runs=12) == 0
    shown = capsys.readouterr()
    assert "sound." in shown.out
    assert "litesmith-" not in shown.out + shown.err


@links
def test_records_name_a_file_that_stays(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = path.parent / "times.jsonl"
    for _ in range(2):  # the copy of the first time serves again
        assert run_command("bench", models=[path], shape=["1,16"], runs=12, log=log) == 0
    kept = path.parent / "sound-1x16.tflite"
    assert f"{kept} is {path} in this shape" in " ".join(capsys.readouterr().err.split())
    assert litesmith.load(kept).main.inputs[0].shape == (1, 16)
    assert all(json.dumps(str(kept)) in line for line in log.read_text("utf-8").splitlines())
    kept.write_bytes(b"something else")
    with pytest.raises(BadInput, match="is another model"):
        run_command("bench", models=[path], shape=["1,16"], runs=12, log=log)
    assert kept.read_bytes() == b"something else"
    kept.unlink()
    kept.symlink_to(path.parent / "elsewhere")  # where nothing is yet
    with pytest.raises(BadInput, match="is another model"):
        run_command("bench", models=[path], shape=["1,16"], runs=12, log=log)
    assert not (path.parent / "elsewhere").exists()


def test_doctor_suggests_commands_that_can_be_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "my model.tflite"
    litesmith.save(resizable(), place)
    typed = {"model": place, "shape": ["x=3,4"], "seconds": 0.05}
    assert run_command("doctor", **typed) in (0, 1)
    shown = capsys.readouterr()
    assert "litesmith-" not in shown.out
    assert run_command("doctor", **typed, as_json=True) in (0, 1)
    found = json.loads(capsys.readouterr().out)["findings"]
    commands = [one["command"] for one in found if "my model" in one.get("command", "")]
    assert all(f"{quote(str(place))} --shape x=3,4" in command for command in commands)


def test_what_is_made_has_the_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = tmp_path / "dense.tflite", tmp_path / "out.tflite"
    litesmith.save(dense(), model)
    assert run_command("quantize", model=model, out=out, to="dynamic", shape=["3,64"], runs=12) == 0
    assert litesmith.load(out).main.inputs[0].shape == (3, 64)
    out.unlink()
    assert run_command("apply", model=model, recipe="cleanup", out=out, shape=["x=2,64"]) == 0
    assert litesmith.load(out).main.outputs[0].shape == (2, 32)
    shown = capsys.readouterr()
    assert "litesmith-" not in shown.out + shown.err


def test_both_models_of_a_comparison_have_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = tmp_path / "a.tflite", tmp_path / "b.tflite"
    for place in (a, b):
        litesmith.save(dense(), place)
    assert run_command("compare", a=a, b=b, shape=["3,64"], seconds=0.2, as_json=True) in (0, 1)
    told = json.dumps(json.loads(capsys.readouterr().out))
    assert "litesmith-" not in told


def test_gate_names_the_file_that_was_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, baseline, page = (tmp_path / n for n in ("dense.tflite", "base.json", "page.md"))
    litesmith.save(dense(), model)
    typed = {"baseline": baseline, "model": model, "shape": ["x=3,64"], "seconds": 0.3}
    assert run_command("gate", **typed, update=True) == 0
    shown = capsys.readouterr()
    assert "--shape x=3,64" in shown.out
    assert run_command("gate", **typed, markdown=page) in (0, 1)
    told = shown.out + capsys.readouterr().out + baseline.read_text("utf-8") + page.read_text()
    assert "litesmith-" not in told and "dense.tflite" in told
    assert sorted(tmp_path.iterdir()) == sorted((model, baseline, page))


@pytest.mark.parametrize(
    ("command", "typed", "words"),
    [
        ("inspect", {"shape": ["y=1,4"]}, "no input 'y'; there are sound"),
        ("inspect", {"shape": ["1"]}, "give 2 sizes"),
        ("profile", {"shape": ["1,0"]}, "from 1 on"),
        ("inspect", {"shape": ["1,16", "1,17"]}, "bench alone takes several"),
        ("inspect", {"shape": ["1,15"]}, "CONV_2D"),
    ],
)
def test_refusals(command: str, typed: dict[str, list[str]], words: str, path: Path) -> None:
    with pytest.raises((BadInput, CannotApply), match=words) as caught:
        run_command(command, model=path, **typed)
    assert "\n" not in str(caught.value)


def test_a_shape_needs_a_model() -> None:
    with pytest.raises(BadInput, match="give one"):
        run_command("targets", shape=["1,16"])


def test_errors_name_the_file_that_was_typed(tmp_path: Path) -> None:
    b = Builder()
    x = b.input("x", (-1, 2))
    place = tmp_path / "custom.tflite"
    other = b.op("CUSTOM", b.input("y", (1,)), custom="No", shape=(1,))
    litesmith.save(b.model(b.op("ABS", x), other), place)
    with pytest.raises(CannotRun) as caught:
        run_command("profile", model=place, shape=["x=3,2"])
    assert "litesmith-" not in str(caught.value)
