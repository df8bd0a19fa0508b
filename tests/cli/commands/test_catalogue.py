"""`litesmith catalogue` as a user meets it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from litesmith.anatomy.footprint import footprint
from litesmith.errors import BadInput
from litesmith.networks import ROWS, build, save_weights
from litesmith.tflite.file import digest, load
from litesmith.tflite.write import to_bytes
from tests.cli.typed import run_command


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_every_network_has_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    run_command("catalogue")
    out, err = capfd.readouterr()
    assert err == ""
    assert all(len(line) <= 80 for line in out.splitlines())
    for row in ROWS:
        line = next(line for line in out.splitlines() if line.startswith(f"{row.name} "))
        assert row.title in line and row.published[0].accuracy in line
        assert f"{row.data}: {row.source}" in out


def test_json_of_all(capfd: pytest.CaptureFixture[str]) -> None:
    run_command("catalogue", as_json=True)
    told = json.loads(capfd.readouterr().out)
    assert told["schema"] == 1
    assert [network["title"] for network in told["networks"]] == [row.title for row in ROWS]
    first = told["networks"][0]
    facts = footprint(build("mobilenet_v1", seed=None))
    assert (first["parameters"], first["macs"]) == (facts.parameters, facts.macs)
    assert first["published"][0]["accuracy"] == "70.6 %"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_network_alone(row, capfd: pytest.CaptureFixture[str]) -> None:
    run_command("catalogue", name=row.name)
    out, err = capfd.readouterr()
    assert err == ""
    assert all(len(line) <= 80 for line in out.splitlines())
    for printed in row.published:
        assert any(
            {printed.accuracy[:-2], *printed.macs.split()[:1]} <= set(line.split())
            for line in out.splitlines()
        )


def test_a_file_is_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.tflite"
    run_command("catalogue", name="mobilenet_v1:0.25@64", out=out, classes=3, seed=4, as_json=True)
    told = json.loads(capfd.readouterr().out)
    assert told["digest"] == digest(out)
    assert (told["bytes"], told["classes"]) == (out.stat().st_size, 3)
    assert told["name"] == "mobilenet_v1:0.25@64/3"
    assert to_bytes(load(out)) == to_bytes(build("mobilenet_v1:0.25@64", classes=3, seed=4))


def test_weights_of_the_user(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    weights, out = tmp_path / "weights.npz", tmp_path / "out.tflite"
    save_weights(build("resnet8/6", seed=8), weights)
    run_command("catalogue", name="resnet8", out=out, weights=weights)
    shown = capfd.readouterr().out
    assert "weights of weights.npz" in shown and "scores (1, 6)" in shown
    assert to_bytes(load(out)) == to_bytes(build("resnet8/6", seed=8))
    run_command("catalogue", name="resnet8", out=out, weights=weights, classes=9, head=False)
    assert load(out).main.outputs[0].shape == (1, 9)


def test_what_cannot_be_done(tmp_path: Path) -> None:
    weights = tmp_path / "weights.npz"
    save_weights(build("resnet8"), weights)
    before = weights.read_bytes()
    for arguments, message in (
        ({"out": tmp_path / "a.tflite"}, "of which network"),
        ({"name": "resnet9"}, "no network 'resnet9'"),
        ({"name": "resnet8", "weights": weights}, "with out="),
        ({"name": "resnet8", "weights": weights, "out": weights}, "an input file is never changed"),
        ({"name": "resnet8", "out": tmp_path}, "is a folder"),
        ({"name": "resnet8", "classes": 0, "out": tmp_path / "a.tflite"}, "0 classes"),
        ({"name": "resnet8", "seed": -1, "out": tmp_path / "a.tflite"}, "seed -1"),
    ):
        with pytest.raises(BadInput, match=message):
            run_command("catalogue", **arguments)
    assert weights.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["weights.npz"]


def test_the_command_itself(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "litesmith", "catalogue"]
    bad = subprocess.run([*command, "resnet8@2"], capture_output=True, text=True, check=False)
    assert bad.returncode == 2
    assert bad.stderr == (
        "litesmith: resnet8: 2 pixels are outside 4 to 2048; 4 of them make one feature\n"
    )
    good = [*command, "ds_cnn_s", "-o", "kws.tflite", "--classes", "4"]
    subprocess.run(good, check=True, capture_output=True, cwd=tmp_path)
    assert load(tmp_path / "kws.tflite").main.outputs[0].shape == (1, 4)
