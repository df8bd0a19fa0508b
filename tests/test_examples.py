"""The examples run, stay short, and do what they say; so does the Python of the guide."""

import gzip
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import litesmith
from examples.tasks.make import MAKERS
from tests.cli.test_cli import litesmith as run_litesmith
from tests.forked import forked
from tests.runtime import run

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def call(script: Path, *words: Path | str) -> str:
    return run_script(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')", *words)


def run_script(program: str, *words: Path | str, cwd: Path | None = None) -> str:
    """What a program of Python's prints; it ends well."""
    done = forked(
        program, [*map(str, words)], cwd=cwd, variables={**os.environ, "COLUMNS": "80"}, seconds=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("built") / "model.tflite"
    call(ROOT / "examples" / "02_build.py", place)
    return place


def test_build(model: Path) -> None:
    (scores,) = run(model.read_bytes())
    assert scores.shape == (1, 10)
    assert abs(scores.sum() - 1) < 1e-5


def test_inspect(model: Path) -> None:
    shown = call(ROOT / "examples" / "01_inspect.py", model)
    assert "314 parameters" in shown
    assert "1 CONV_2D" in shown


def test_step(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    call(ROOT / "examples" / "03_step.py", model, out)
    assert len(gzip.compress(out.read_bytes())) < len(gzip.compress(model.read_bytes()))
    assert abs(run(out.read_bytes())[0] - run(model.read_bytes())[0]).max() < 0.05


def test_session(model: Path) -> None:
    shown = call(ROOT / "examples" / "04_session.py", model)
    assert "input image: float32 (1, 32, 32, 3)" in shown
    assert "output scores: float32 (1, 10)" in shown


def test_quantize(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    shown = call(ROOT / "examples" / "05_quantize.py", model, out)
    assert float(re.search(r"snr (\S+) dB on 64 samples", shown).group(1)) > 25
    assert out.stat().st_size < model.stat().st_size + 2000  # a small model's constants are few


def test_train(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    out = tmp_path / "out.tflite"
    shown = call(ROOT / "examples" / "06_train.py", model, out)
    assert "clustered CONV_2D" in shown and "trained" in shown
    assert run(out.read_bytes())[0].shape == (1, 10)


def test_tune() -> None:
    shown = call(ROOT / "examples" / "07_tune.py")
    assert re.search(r"(proven|likely|unclear) \S+ is .* × smaller", shown)


def test_catalogue(tmp_path: Path) -> None:
    shown = call(ROOT / "examples" / "08_catalogue.py", tmp_path / "out.tflite")
    assert re.search(r"mobilenet_v1:0.25@96 +2\d{5} parameters", shown)
    assert run((tmp_path / "out.tflite").read_bytes())[0].shape == (1, 5)


def test_retrain() -> None:
    shown = call(ROOT / "examples" / "09_retrain.py")
    assert shown == "('grass', 'sky'): 100% right of 8 that were held out\n"


def test_choose() -> None:
    shown = call(ROOT / "examples" / "10_choose.py")
    assert re.search(r"model int8 +accuracy 9\d\.\d%", shown)
    assert re.search(r"model( int8)?: the most accurate of the two under 1.00 MB", shown)


def test_custom_op() -> None:
    shown = call(ROOT / "examples" / "11_custom_op.py")
    assert re.fullmatch(
        r"(as machine code|.* runs in Python: .*) \[\[-0\. +-0\.5 +1\. *\]\]\n", shown
    )


def test_from_scratch() -> None:
    pytest.importorskip("torch")
    shown = call(ROOT / "examples" / "12_from_scratch.py")
    share = float(re.search(r"resnet8:0.5@16: (\S+)% right of 192 in", shown).group(1))
    assert share > 90


def test_the_python_of_the_guide(model: Path) -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert code
    for block in code:
        run_script(block, cwd=model.parent)
    assert (model.parent / "better.tflite").exists()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_short(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 30
    assert re.search(rf"\b{path.stem}\.py\b", Path(__file__).read_text("utf-8")), "no test runs it"


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= 600
    assert len(re.findall(r"!\[[^]]+\]\((\S+)\)", README)) == 1


def test_the_readme_has_three_commands_and_the_one_that_tests() -> None:
    first, second = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)
    assert len(first.splitlines()) == 3
    assert "\n" not in second and second.endswith("-m pytest -n 3")  # which .ci/run takes apart


def test_the_readme_has_four_rows_of_figures_that_are_measured() -> None:
    section = README.partition("## Compared")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    measured = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    assert len(rows) == 4
    for figure in re.findall(r"\d+\.\d+", "".join(rows)):
        assert figure in measured


@pytest.mark.parametrize("task", sorted(MAKERS))
def test_the_data_of_a_task_is_made_and_scored(task: str, tmp_path: Path) -> None:
    place = tmp_path / task
    call(ROOT / "examples" / "tasks" / "make.py", task, place)
    more = {
        "anomaly": {"data": place / "data.npz", "task": "anomaly"},
        "classification": {"norm": "unit", "class_names": str(place / "classes.txt")},
        "embedding": {"data": place / "data.npz", "task": "embedding"},
        "questions": {"data": place / "questions.json", "vocab": str(place / "vocab.txt")},
        "regression": {"data": place / "data.csv"},
        "speech": {
            "class_names": str(place / "data" / "letters.txt"),
            "features": "logmel:20,rate=8000",
        },
        "text": {"data": place / "data.tsv", "vocab": str(place / "vocab.txt")},
    }
    asked = {"data": place / "data"} | more.get(task, {"norm": "unit"})
    samples = 160 if task == "embedding" else 20
    found = litesmith.evaluate(place / "model.tflite", samples=samples, **asked)
    wanted = {"speech": 0, "regression": pytest.approx(0, abs=0.3)}
    assert found.value == wanted.get(task, pytest.approx(1, abs=0.3))
    by_labels = ("anomaly", "classification", "embedding", "regression")
    assert task in by_labels or any("if that is wrong: --task" in note for note in found.notes)


def test_a_task_of_your_own(tmp_path: Path) -> None:
    script = shutil.copy(ROOT / "examples" / "13_own_task.py", tmp_path)
    told = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert "counted <Evaluation: __main__:Counting 0" in told.stdout, told.stderr
    words = ("model.tflite", "--data", "scenes.npz", "--task", f"{Path(script).name}:Counting")
    typed = run_litesmith("eval", *words, cwd=tmp_path)
    assert "Counting 0 [0, 0] on 50 samples" in typed.stdout, typed.stderr


def test_a_float_file_becomes_a_c_array_that_fits() -> None:
    shown = call(ROOT / "examples" / "14_microcontroller.py")
    assert "it fits" in shown and "small_ops.h" in shown
