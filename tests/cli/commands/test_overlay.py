"""`profile --overlay` and `doctor --overlay` as a user meets them."""

import json
from pathlib import Path

import numpy as np
import pytest

from litesmith.operating_system import quote
from litesmith.tflite.file import load, save
from tests import zoo
from tests.cli.test_cli import litesmith
from tests.diagnosis.test_op_losses import IMAGES, as_data, convnet, quantized

Files = tuple[Path, Path, Path]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """A float model, a quantized one, and data."""
    folder = tmp_path_factory.mktemp("models")
    model = convnet()
    save(model, folder / "float.tflite")
    save(quantized(model, as_data(model)), folder / "int8.tflite")
    np.savez(folder / "d.npz", x=IMAGES)
    return folder / "float.tflite", folder / "int8.tflite", folder / "d.npz"


def ops(path: Path) -> list[str]:
    return [str(index) for index in range(len(load(path).main.ops))]


@pytest.mark.parametrize("command", ["profile --runs 12", "doctor --seconds 0.05"])
def test_times(command: str, files: Files, tmp_path: Path) -> None:
    model, out = files[0], tmp_path / "t.json"
    shown = litesmith(*command.split(), model, "--overlay", out)
    assert shown.returncode == 0, shown.stderr
    typed = f"model-explorer {quote(str(model))} --node_data_paths={quote(str(out))}"
    assert shown.stdout.endswith(f"  {typed}\n")
    main = json.loads(out.read_text("utf-8"))["main"]
    assert main["name"] == "time on cpu:1, µs"
    assert list(main["results"]) == ops(model)


def test_errors(files: Files, tmp_path: Path) -> None:
    reference, model, data = files
    out = tmp_path / "e.json"
    words = (
        "doctor",
        model,
        "--data",
        data,
        "--against",
        reference,
        "--overlay",
        out,
        "--json",
        "--seconds",
        0.05,
    )
    shown = litesmith(*words)
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["verdict"]  # one object, and nothing beside it
    main = json.loads(out.read_text("utf-8"))["main"]
    assert main["name"] == "SNR of each op alone, dB"
    assert list(main["results"]) == ops(model)


def test_what_cannot_be_shown_is_refused_before_the_work(files: Files, tmp_path: Path) -> None:
    _, model, data = files
    save(zoo.custom(), tmp_path / "custom.tflite")
    out = tmp_path / "o.json"
    cases = {
        "opens .json files": ("profile", model, "--overlay", tmp_path / "o.txt"),
        "does not exist": ("profile", model, "--overlay", tmp_path / "no" / "o.json"),
        "give --against FLOAT": ("doctor", model, "--data", data, "--overlay", out),
        "leave out --overlay": ("doctor", model, "--for", "gpu", "--overlay", out),
        "custom op": ("doctor", tmp_path / "custom.tflite", "--data", data, "--overlay", out),
    }
    for told, words in cases.items():
        shown = litesmith(*words)
        assert shown.returncode == 2
        assert told in shown.stderr and shown.stderr.count("\n") == 1
        assert not shown.stdout
    assert not out.exists()
