"""A file that is quantized is timed beside its source; where it is slower, the ops are named."""

from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith.anatomy.source_file import open_source
from litesmith.cli.text.speed_text import print_speed
from litesmith.front.speed_check import MadeFile, SpeedCheck, blame
from litesmith.passes.core.recipe import apply, parse
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.regression.size_report import Latency
from litesmith.run.core.target import Target
from litesmith.tflite.file import save
from litesmith.timing.statistics import Ratio
from tests import zoo
from tests.cli.test_cli import fresh_litesmith
from tests.cli.test_cli import litesmith as typed
from tests.zoo_float import context
from tests.zoo_slow import int8_of, prelu_net

SLOWER = Latency(100.0, 200.0, Ratio((2.0,) * 12, (100.0, 200.0)), "cpu:1")


@pytest.fixture
def float_file(tmp_path: Path) -> Path:
    save(prelu_net(), tmp_path / "float.tflite")
    rows = np.random.default_rng(0).normal(size=(8, 16, 16, 16)).astype(np.float32)
    np.savez(tmp_path / "d.npz", image=rows)
    return tmp_path / "float.tflite"


def _made(path: Path, recipe: str) -> MadeFile:
    source = open_source(path)
    model = apply(source.model, recipe, context(source.model)).model
    out = path.with_name("out.tflite")
    save(model, out)
    return MadeFile(source, parse(recipe), model, out)


@pytest.mark.parametrize("recipe", ["quantize", "cleanup | fold | fuse | quantize | correct"])
def test_a_slower_file_has_its_ops_named(float_file: Path, recipe: str, capsys) -> None:
    made = _made(float_file, recipe)
    speed = blame(made, Target(), SpeedCheck(SLOWER), runs=4)
    assert speed.blamed[0].kind == "PRELU"
    assert made.step is not None
    print_speed(speed, made.step, is_recipe=True)
    shown = " ".join(capsys.readouterr().out.split())
    assert "3 PRELU" in shown
    assert "keep=[PRELU" in shown
    assert "litesmith quantize" in shown


def test_a_file_that_is_not_slower_has_nobody_to_blame(float_file: Path) -> None:
    faster = Latency(200.0, 100.0, Ratio((0.5,) * 12, (200.0, 100.0)), "cpu:1")
    assert not blame(_made(float_file, "quantize"), Target(), SpeedCheck(faster)).blamed


@pytest.mark.parametrize("step", [Quantize(to="int8"), Quantize(to="dynamic"), Quantize("int16x8")])
@pytest.mark.parametrize("is_recipe", [False, True])
def test_every_slower_file_has_a_way_out(step: Quantize, is_recipe: bool, capsys) -> None:
    print_speed(SpeedCheck(SLOWER), step, is_recipe=is_recipe)
    shown = " ".join(capsys.readouterr().out.split())
    assert "2.00 × slower" in shown
    assert "float16" in shown or "quantize" in shown


def test_apply_times_what_it_quantizes_and_nothing_else(float_file: Path, tmp_path: Path) -> None:
    out, data = tmp_path / "a.tflite", tmp_path / "d.npz"
    timed = litesmith.apply(float_file, "quantize", str(data), out=out, trust_data=True, runs=4)
    assert timed.speed is not None and timed.speed.latency is not None
    assert {"latency", "slower_ops"} <= set(timed.to_json())
    others = [
        litesmith.apply(float_file, "cleanup", out=tmp_path / "b.tflite"),
        litesmith.apply(float_file, "quantize(to=dynamic)"),
    ]
    assert [one.speed for one in others] == [None, None]
    assert all("latency" not in one.to_json() for one in others)


def test_apply_says_the_time(float_file: Path, tmp_path: Path) -> None:
    words = ("apply", float_file, "quantize(to=dynamic)", "-o", tmp_path / "c.tflite")
    shown = typed(*words, "--runs", "4")
    assert shown.returncode == 0, shown.stderr
    assert "time on cpu:1: " in shown.stdout


# inspect


def test_inspect_expects_what_int8_costs(tmp_path: Path) -> None:
    found = litesmith.inspect(int8_of(prelu_net(64, 32))).findings
    (slow,) = (one for one in found if "leave XNNPACK" in one.what)
    assert "3 PRELU in int8" in slow.what
    assert "expected" in slow.why
    assert "not measured" in slow.why
    assert slow.command == "litesmith quantize FLOAT.tflite --data DATA -o OUT.tflite"


@pytest.mark.parametrize("make", [prelu_net, zoo.convnet, zoo.residual_int8])
def test_inspect_says_so_of_no_other_model(make) -> None:
    assert not any("leave XNNPACK" in one.what for one in litesmith.inspect(make()).findings)


def test_inspect_runs_nothing(tmp_path: Path) -> None:
    save(int8_of(prelu_net(64, 32)), tmp_path / "m.tflite")
    shown = fresh_litesmith("inspect", tmp_path / "m.tflite", PYTHONPROFILEIMPORTTIME="1")
    assert "leave XNNPACK" in shown.stdout
    assert "litesmith.anatomy.known_times" in shown.stderr
    for module in ("ai_edge_litert", "litesmith.profiling", "litesmith.timing"):
        assert module not in shown.stderr
