"""`litesmith doctor` as a user meets it."""

import json
import zipfile
from pathlib import Path
from shlex import split

import numpy as np
import pytest

from litesmith.ir.build import Builder
from litesmith.operating_system import usable_cores
from litesmith.passes.core.recipe import apply
from litesmith.tflite.file import load, save
from tests import zoo
from tests.cli.test_cli import litesmith
from tests.diagnosis.test_loss_commands import ROWS, loud
from tests.diagnosis.test_op_losses import IMAGES, as_data, convnet, quantized, with_scale
from tests.zoo_slow import int8_of, prelu_net

# How long remedies are timed: what is found does not depend on it.
SHORT = ("--seconds", 0.05)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "secret.tflite"
    save(zoo.described(), path)
    return path


def test_json_findings_and_a_bundle(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "b.zip"
    shown = litesmith("doctor", model, "--json", "--bundle", out, *SHORT)
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    keys = {"what", "where", "why", "costs", "command"}
    assert found["findings"]
    assert all(keys <= set(one) for one in found["findings"])
    assert all(str(model) in one["command"] for one in found["findings"])
    assert f"{out} will hold:" in shown.stderr
    assert "profile.json" in shown.stderr
    with zipfile.ZipFile(out) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    assert found["bundle"]["files"] == {name: len(c) for name, c in contents.items()}
    assert not any(b"secret" in content for content in contents.values())
    load(contents["model.tflite"])


def test_what_makes_times_unsteady_is_said(model: Path) -> None:
    crowded = f"cpu:{usable_cores() + 1}"
    shown = litesmith("doctor", model, "--on", crowded, "--json", *SHORT)
    assert shown.returncode == 0, shown.stderr
    assert any("wait for each other" in line for line in json.loads(shown.stdout)["warnings"])
    assert "litesmith: warning: " in shown.stderr and "wait for each other" in shown.stderr


def test_a_model_without_a_profile_still_gets_findings(tmp_path: Path) -> None:
    save(zoo.strings(), tmp_path / "m.tflite")
    shown = litesmith("doctor", tmp_path / "m.tflite", *SHORT)
    assert shown.returncode == 0, shown.stderr
    lines = [line for line in shown.stdout.splitlines() if "litesmith " not in line]
    assert all(len(line) <= 80 for line in lines)
    for word in ("no profile", "where", "why", "costs  not measured", "litesmith bench"):
        assert word in shown.stdout


@pytest.fixture
def cut(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A float model, a quantized one whose scores are cut off, and data."""
    model = convnet()
    save(model, tmp_path / "float.tflite")
    np.savez(tmp_path / "d.npz", x=IMAGES)
    made = quantized(model, as_data(model))
    save(with_scale(made, 2, 0.25), tmp_path / "int8.tflite")
    return tmp_path / "float.tflite", tmp_path / "int8.tflite", tmp_path / "d.npz"


def test_where_accuracy_is_lost(cut: tuple[Path, Path, Path]) -> None:
    reference, model, data = cut
    words = ("doctor", model, "--data", data, "--against", reference, *SHORT)
    shown = litesmith(*words, "--json")
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    first = found["findings"][0]
    assert first["what"] == "values cut off at the end of their range"
    assert first["costs_share"] > 0.9
    assert str(reference) in first["command"] and str(data) in first["command"]
    text = litesmith(*words)
    assert text.stdout.startswith("int8.tflite int8: ")
    lines = [line for line in text.stdout.splitlines() if "litesmith " not in line]
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize("to", ["", "quantize(to=float16)"])
def test_a_printed_command_can_be_typed(tmp_path: Path, to: str) -> None:
    model = loud(deep=True)
    save(apply(model, to).model, tmp_path / "m.tflite")
    np.savez(tmp_path / "d.npz", x=ROWS)
    words = ("doctor", "m.tflite", "--data", "d.npz", "--json", *SHORT)
    found = json.loads(litesmith(*words, cwd=tmp_path).stdout)["findings"]
    commands = [split(one["command"]) for one in found if one["command"]]
    assert commands
    for words in commands:
        made = litesmith(*words[1:], cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        load(tmp_path / "OUT.tflite")


def test_lines_that_follow_are_indented(cut: tuple[Path, Path, Path]) -> None:
    reference, model, data = cut
    shown = litesmith("doctor", model, "--data", data, "--against", reference, *SHORT).stdout
    _, _, finding = shown.partition("\n\n")
    what, *lines = finding.splitlines()
    assert not what.startswith(" ")
    named = ("  where  ", "  why    ", "  costs  ", "  litesmith ", " " * 9)
    assert len(lines) > 4
    assert all(line.startswith(named) for line in lines)


def test_a_part_of_much_data_is_taken_and_said(cut: tuple[Path, Path, Path]) -> None:
    many = cut[2].with_name("many.npz")
    np.savez(many, x=np.tile(IMAGES, (25, 1, 1, 1)))
    shown = litesmith("doctor", cut[0], "--data", many)
    assert shown.returncode == 0, shown.stderr
    assert "500 of 600 samples; --samples uses more" in shown.stderr
    assert "samples" not in litesmith("doctor", cut[0], "--data", cut[2]).stderr
    assert "of 600" not in litesmith("doctor", cut[0], "--data", many, "--samples", "90").stderr


def test_what_int8_would_cost(cut: tuple[Path, Path, Path]) -> None:
    shown = litesmith("doctor", cut[0], "--data", cut[2])
    assert shown.returncode == 0, shown.stderr
    assert "no loss beyond the noise" in " ".join(shown.stdout.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("{model}", "--against", "{model}"), "needs data"),
        (("{model}", "--data", "missing.npz"), "missing.npz"),
        (("{model}", "--data", "missing.npz", "--bundle", "b.zip"), "without it"),
        (("missing.tflite",), "no such file"),
        (("{model}", "--on", "cpu:none"), "number of threads"),
        (("{model}", "--bundle", "missing/b.zip"), "does not exist"),
        (("{model}", "--bundle", "{model}"), "never changed"),
    ],
)
def test_bad_input_is_one_line(
    model: Path, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    before = model.read_bytes()
    shown = litesmith("doctor", *(word.format(model=model) for word in words), *SHORT, cwd=tmp_path)
    assert shown.returncode == 2
    assert told in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert model.read_bytes() == before


@pytest.fixture
def swishing(tmp_path: Path) -> Path:
    """A float model with an activation that the Edge TPU does not know."""
    b = Builder()
    x = b.op("CONV_2D", b.input("image", (1, 8, 8, 3)), zoo.noise(4, 3, 3, 3), zoo.noise(4))
    path = tmp_path / "a model.tflite"
    save(b.model(b.op("HARD_SWISH", x)), path)
    return path


@pytest.mark.parametrize("target", ["edgetpu", "ethos-u55"])
def test_the_recipe_for_an_accelerator_can_be_typed(swishing: Path, target: str) -> None:
    shown = litesmith("doctor", swishing, "--for", target, "--json", cwd=swishing.parent)
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)
    assert told["is_whole"] is False
    fit = told["fit"]
    assert fit["taken"] == fit["ops"]
    assert fit["left"] == []
    assert ("HARD_SWISH" in fit["recipe"]) == (target == "edgetpu")
    assert {one["command"] for one in told["findings"]} == {fit["command"]}
    np.save(swishing.parent / "D.npy", np.random.default_rng(0).normal(size=(8, 8, 8, 3)))
    words = ["D.npy" if word == "DATA" else word for word in split(fit["command"])]
    assert words[:2] == ["litesmith", "apply"]
    done = litesmith(*words[1:], "--trust-data", cwd=swishing.parent)
    assert done.returncode == 0, done.stderr
    out = swishing.parent / words[words.index("-o") + 1]
    again = json.loads(litesmith("doctor", out, "--for", target, "--json").stdout)
    assert (again["is_whole"], again["findings"], again["fit"]["recipe"]) == (True, [], "")


def test_an_accelerator_told_to_people(swishing: Path) -> None:
    shown = litesmith("doctor", swishing, "--for", "edgetpu")
    assert shown.returncode == 0, shown.stderr
    for word in (
        "it takes int8 and uint8",
        "--data DATA",
        "RELU6(x + 3) / 6",
        "after it: 4 of 4 ops",
    ):
        assert word in shown.stdout
    lines = [line for line in shown.stdout.splitlines() if "litesmith " not in line]
    assert all(len(line) <= 80 for line in lines)


def test_what_no_recipe_helps_is_told_with_what_stays(tmp_path: Path) -> None:
    b = Builder()
    turned = b.op("COS", b.input("image", (1, 8, 8, 3)))
    model = b.model(b.op("CONV_2D", turned, zoo.noise(4, 3, 3, 3), zoo.noise(4)))
    save(model, tmp_path / "m.tflite")
    shown = litesmith("doctor", tmp_path / "m.tflite", "--for", "edgetpu")
    assert shown.returncode == 0, shown.stderr
    assert (
        "none of the recipes tried makes it take most of the model; the best is 0 of"
        in shown.stdout
    )
    assert "litesmith" not in shown.stdout, "no command that does not help"


def test_an_unknown_accelerator_is_bad_input(swishing: Path) -> None:
    shown = litesmith("doctor", swishing, "--for", "toaster")
    assert shown.returncode == 2
    assert "--for toaster: no such accelerator; there are" in shown.stderr


@pytest.fixture
def slow(tmp_path: Path) -> tuple[Path, Path]:
    """A float model, and its int8 form with activations that leave XNNPACK."""
    save(prelu_net(64, 32), tmp_path / "float.tflite")
    save(int8_of(prelu_net(64, 32)), tmp_path / "int8.tflite")
    return tmp_path / "float.tflite", tmp_path / "int8.tflite"


def test_the_float_model_is_named_where_it_is_given(slow: tuple[Path, Path]) -> None:
    reference, model = slow
    found = json.loads(litesmith("doctor", model, "--against", reference, "--json", *SHORT).stdout)
    (told,) = (one for one in found["findings"] if "slow in int8" in one["what"])
    assert "3 PRELU" in told["what"]
    assert split(told["command"])[:3] == ["litesmith", "quantize", str(reference)]
    assert sum(one["costs_share"] or 0 for one in found["findings"]) <= 1 + 1e-9
    alone = json.loads(litesmith("doctor", model, "--json", *SHORT).stdout)
    (told,) = (one for one in alone["findings"] if "slow in int8" in one["what"])
    assert split(told["command"])[2] == "FLOAT.tflite"


def test_another_model_is_no_reference(slow: tuple[Path, Path], model: Path) -> None:
    for wrong in (slow[1], model):
        shown = litesmith("doctor", slow[1], "--against", wrong, *SHORT)
        assert shown.returncode == 2
        assert "give the float model" in shown.stderr
