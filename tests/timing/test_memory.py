"""A model's own memory, seen from a child process."""

from pathlib import Path

import numpy as np
import pytest

from litesmith.errors import CannotRun
from litesmith.ir.build import Builder
from litesmith.run.core.child_process import ask
from litesmith.run.core.target import Target
from litesmith.tflite.file import save
from litesmith.timing.memory import peak_bytes
from tests import zoo
from tests.platforms import linux


@linux
def test_more_weights_take_more_memory(tmp_path: Path) -> None:
    found = []
    for megabytes in (1, 30):
        b = Builder()
        x = b.input("x", (1, 1000))
        count = 250 * megabytes
        y = b.op("FULLY_CONNECTED", x, np.ones((count, 1000), "f4"), np.zeros(count, "f4"))
        save(b.model(y), tmp_path / "m.tflite")
        found.append(peak_bytes(tmp_path / "m.tflite", Target()))
    small, large = found
    assert small is not None
    assert large is not None
    # The weights are read from the mapped file and packed once.
    assert 29e6 <= large - small <= 80e6


def test_a_refusal_comes_back(tmp_path: Path) -> None:
    save(zoo.MODELS["custom"](), tmp_path / "m.tflite")
    with pytest.raises(CannotRun, match="Mystery"):
        peak_bytes(tmp_path / "m.tflite", Target())


def test_a_crash_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="failed in a child process, status 1"):
        ask("litesmith.timing.no_such_module", tmp_path, seconds=30)
