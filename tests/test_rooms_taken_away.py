"""Without one of the rooms that plug in, everything else works, and one line says what is gone."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith import Builder
from litesmith.plugins import PLUGINS
from tests.slowness import patient

ROOMS = {row.room: row.missing for row in PLUGINS.values()}

# Asks for what a room has; MODEL and DATA stand for files.
ASKING = {
    "kernels": ["bench", "MODEL", "--on", "cpu:1:litesmith", "--runs", "3"],
    "networks": ["catalogue"],
    "ray_engine": ["eval", "MODEL", "--data", "DATA", "--engine", "ray"],
}


@pytest.fixture(params=sorted(ROOMS), scope="module")
def room(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def package(room: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has all rooms but one."""
    place = tmp_path_factory.mktemp(room)
    source, copy = Path(litesmith.__file__).parent, place / "litesmith"
    shutil.copytree(source, copy)  # what is compiled, too
    shutil.rmtree(copy / room)
    return place


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    b = Builder()
    x = b.input("x", (1, 8, 8, 3))
    kernel = rng.normal(size=(8, 3, 3, 3)).astype(np.float32)
    y = b.op("CONV_2D", x, kernel, np.zeros(8, np.float32), padding="SAME", stride_h=1, stride_w=1)
    litesmith.save(b.model(b.op("RELU", y)), place / "model.tflite")
    np.savez(place / "data.npz", x=rng.normal(size=(128, 8, 8, 3)).astype(np.float32))
    names = {"MODEL": "model.tflite", "DATA": "data.npz", "OUT": "out.tflite"}
    return {name: str(place / file) for name, file in names.items()}


def run(
    package: Path, words: Sequence[str], files: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    places = [str(package), os.environ.get("PYTHONPATH", "")]  # what it needs may lie there
    return subprocess.run(
        [sys.executable, "-m", "litesmith", *(files.get(word, word) for word in words)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))},
        cwd=package,
        capture_output=True,
        text=True,
        timeout=patient(300),
    )


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", "MODEL", "--json"],
        ["quantize", "MODEL", "--data", "DATA", "-o", "OUT", "--json"],
        ["bench", "MODEL", "--runs", "3", "--json"],
    ],
    ids=lambda words: words[0],
)
def test_the_rest_goes_on(package: Path, words: Sequence[str], files: dict[str, str]) -> None:
    ended = run(package, words, files)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["schema"]


def test_what_is_gone_is_told_in_one_line(package: Path, room: str, files: dict[str, str]) -> None:
    ended = run(package, ASKING[room], files)
    assert ended.returncode == 2
    assert ended.stdout == "" and ended.stderr.count("\n") == 1
    assert ROOMS[room] in ended.stderr
