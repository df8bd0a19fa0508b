"""Outputs whose small numbers one scale loses: found, and cured as far as is told."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith.calibration.mixed_outputs import mixed_outputs
from litesmith.data.sources import open_data
from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Tensor
from litesmith.tflite.file import load, save
from tests.zoo import noise

DATA = noise(40, 1, 16, 16, 3, seed=3, scale=1.0)


def parts(b: Builder) -> tuple[Tensor, Tensor]:
    """Places that reach hundreds, and scores that reach 1."""
    x = b.input("x", (1, 16, 16, 3))
    made = b.op("CONV_2D", x, noise(6, 1, 1, 3, seed=4, scale=1.0), np.zeros(6, np.float32))
    places = b.op("MUL", b.op("SLICE", made, [0, 0, 0, 0], [1, 16, 16, 2]), np.float32(500))
    return places, b.op("LOGISTIC", b.op("SLICE", made, [0, 0, 0, 2], [1, 16, 16, 4]))


def joined() -> Model:
    b = Builder()
    return b.model(b.op("CONCATENATION", *parts(b), axis=3, name="Call: 0 [all]"))


def split() -> Model:
    b = Builder()
    return b.model(*parts(b))


def convolved() -> Model:
    """The same by one layer, whose first channels are loud."""
    b = Builder()
    x = b.input("x", (1, 16, 16, 3))
    weights = noise(6, 1, 1, 3, seed=4, scale=1.0)
    weights[:2] *= 500
    inner = b.op(
        "CONV_2D", x, np.eye(3, dtype=np.float32).reshape(3, 1, 1, 3), np.zeros(3, np.float32)
    )
    return b.model(b.op("CONV_2D", inner, weights, np.zeros(6, np.float32), name="head"))


@pytest.mark.parametrize("make", [joined, convolved])
def test_the_cures_do_as_told(tmp_path: Path, make: object) -> None:
    model = make()
    save(model, tmp_path / "m.tflite")
    found = litesmith.quantize(tmp_path / "m.tflite", DATA, effort="quick")
    (mixed,) = found.mixed
    assert (mixed.small, mixed.channels) == (4, 6)
    assert mixed.lost_least == "float"
    assert mixed.snr_db + 15 < mixed.int16_db < mixed.cured_db
    kept = litesmith.quantize(
        tmp_path / "m.tflite", DATA, keep=found.kept_for, effort="quick", out=tmp_path / "k.tflite"
    )
    assert not kept.mixed
    litesmith.apply(tmp_path / "m.tflite", found.in_int16, DATA, out=tmp_path / "w.tflite")
    wide = load(tmp_path / "w.tflite").main
    assert [op.outputs[0].dtype for op in wide.ops if op.kind == model.main.ops[-1].kind][-1] == (
        "int16"
    )
    assert "int16_db" in json.dumps(found.to_json())


def test_parts_that_are_joined_in_float_lose_what_they_lose_alone(tmp_path: Path) -> None:
    """So there is nothing to gain by splitting the output."""
    save(split(), tmp_path / "split.tflite")
    litesmith.quantize(tmp_path / "split.tflite", DATA, effort="quick", out=tmp_path / "s.tflite")
    save(joined(), tmp_path / "m.tflite")
    found = litesmith.quantize(tmp_path / "m.tflite", DATA, effort="quick")
    litesmith.quantize(
        tmp_path / "m.tflite", DATA, keep=found.kept_for, effort="quick", out=tmp_path / "k.tflite"
    )
    for item in DATA[:5]:
        with (
            litesmith.Session(tmp_path / "s.tflite") as apart,
            litesmith.Session(tmp_path / "k.tflite") as together,
        ):
            own = np.concatenate([*apart(item).values()], axis=3)
            assert np.array_equal(own, *together(item).values())


def test_an_output_of_one_size_is_none_of_these(tmp_path: Path) -> None:
    model = split()
    save(model, tmp_path / "m.tflite")
    litesmith.quantize(tmp_path / "m.tflite", DATA, effort="quick", out=tmp_path / "q.tflite")
    data = open_data(DATA, model)
    assert mixed_outputs(tmp_path / "q.tflite", model, data, model) == ()


@pytest.mark.parametrize("given", ["float", "int8"])
@pytest.mark.parametrize("make", [joined, convolved])
def test_doctor_tells_of_it_with_a_command_that_cures(
    tmp_path: Path, make: object, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save(make(), tmp_path / "m.tflite")
    np.save("x.npy", DATA)
    options: dict[str, object] = {}
    if given == "int8":
        litesmith.quantize("m.tflite", "x.npy", effort="quick", out="q.tflite")
        options = {"against": "m.tflite"}
    given_model = "q.tflite" if options else "m.tflite"
    found = litesmith.doctor(given_model, "x.npy", seconds=0.05, **options)
    (told,) = [one for one in found.findings if "several sizes" in one.what]
    assert "4 of 6 channels reach" in told.why
    assert told.costs.count("dB") == 3
    words = [word.replace("OUT.tflite", "out.tflite") for word in shlex.split(told.command)]
    done = subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    model = load("m.tflite")
    assert mixed_outputs(Path("out.tflite"), model, open_data(DATA, model), model) == ()
