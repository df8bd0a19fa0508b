"""--ops: custom ops and delegates of the user's on the command line, child processes too."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from litesmith.ir.build import Builder
from litesmith.tflite.file import load, save
from tests.cli.test_cli import litesmith

OPS = '''
print("what users print does no harm to child processes")

import numpy as np
import litesmith

@litesmith.op("HardSwish")
def hard_swish(x):
    if x.max() > 1e6:
        raise ValueError("too large")
    return x * np.clip(x + 3, 0, 6) / 6

@litesmith.delegate("negator")
class Negator:
    """Negates."""
    def claims(self, op):
        return op.kind == "NEG" or "it only negates"
    def program(self, graph):
        return lambda inputs, outputs: np.negative(inputs[0], out=outputs[0])
'''
RECIPE = 'replace(find="MUL(MUL(x, RELU6(ADD(x, 3))), 0.16666667)", op=HardSwish)'


def told_by(done: subprocess.CompletedProcess[str]) -> dict:
    """The JSON of a command, behind what the file of ops prints."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    b = Builder()
    x = b.op("NEG", b.input("x", (1, 8)))
    six = b.op("RELU6", b.op("ADD", x, np.float32(3)))
    save(b.model(b.op("MUL", b.op("MUL", x, six), np.float32(1 / 6))), tmp_path / "a.tflite")
    (tmp_path / "my_ops.py").write_text(OPS)
    return tmp_path


def test_replace_profile_and_compare(folder: Path) -> None:
    done = litesmith("apply", "a.tflite", RECIPE, "-o", "b.tflite", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert [op.label for op in load(folder / "b.tflite").main.ops] == ["NEG", "CUSTOM HardSwish"]

    words = ("--ops", "my_ops.py", "--json")
    seen = litesmith("profile", "b.tflite", "--runs", 5, *words, cwd=folder)
    (custom,) = [op for op in told_by(seen)["ops"] if op["kernel"] == "custom"]
    assert custom["kind"] == "CUSTOM HardSwish"

    told = litesmith("compare", "a.tflite", "b.tflite", "--seconds", 1, *words, cwd=folder)
    (drift,) = told_by(told)["drift"]["outputs"]
    assert drift["snr_db"] > 100


def test_a_delegate_as_a_target(folder: Path) -> None:
    told = litesmith("targets", "a.tflite", "--ops", "my_ops", "--json", cwd=folder)
    row = told_by(told)["targets"][-1]
    assert (row["name"], row["usable"], row["runs"]) == ("custom:negator", True, True)
    assert row["placement"]["taken"] == 1 and row["placement"]["how"] == "measured"
    words = ("--on", "cpu:1,custom:negator", "--ops", "my_ops", "--runs", 12, "--json")
    done = litesmith("bench", "a.tflite", *words, cwd=folder)
    assert [r["target"] for r in told_by(done)["results"]] == ["cpu:1", "custom:negator"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--ops", "absent.py"), "absent.py: no such file"),
        (("--ops", "no_such_module"), "--ops no_such_module: ModuleNotFoundError"),
        (("--on", "custom:other", "--ops", "my_ops.py"), "no delegate 'other'; there are negator"),
        (("--on", "custom"), "give custom:NAME"),
    ],
)
def test_bad_input(folder: Path, words: tuple[str, ...], message: str) -> None:
    told = litesmith("bench", "a.tflite", *words, cwd=folder)
    assert told.returncode == 2
    assert message in told.stderr and told.stderr.count("\n") == 1
