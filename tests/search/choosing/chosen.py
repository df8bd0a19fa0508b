"""Small models to choose from, which differ in accuracy and size, and data for them."""

import json
from pathlib import Path

import numpy as np

from litesmith.ir.build import Builder
from litesmith.ir.types import Array, Model
from litesmith.tflite.file import save
from tests.search.choosing.taught import WIDE, examples, taught, write_data
from tests.training.small import CLASSES

QUICK = 0.05  # seconds: the least number of loads


def forgetful() -> Model:
    """One layer that never chooses the last class, and is right about the others."""
    weight, bias = _layer()
    bias[-1] = -1000.0
    b = Builder()
    x = b.input("x", (1, WIDE))
    return b.model(b.op("SOFTMAX", b.op("FULLY_CONNECTED", x, weight, bias)))


def heavy(rows: int = 2000) -> Model:
    """`taught` behind layers that change nothing and take their time."""
    weight, bias = _layer()
    b = Builder()
    x = b.input("x", (1, WIDE))
    wide = np.zeros((rows, WIDE), np.float32)
    wide[:WIDE] = np.eye(WIDE)
    back = np.zeros((WIDE, rows), np.float32)
    back[:, :WIDE] = np.eye(WIDE)
    there = b.op("FULLY_CONNECTED", x, wide, np.zeros(rows, np.float32))
    again = b.op("FULLY_CONNECTED", there, back, np.zeros(WIDE, np.float32))
    return b.model(b.op("SOFTMAX", b.op("FULLY_CONNECTED", again, weight, bias)))


def _layer() -> tuple[Array, Array]:
    """Weights and biases that choose the nearest of the points that `labelled` is made around."""
    centres = np.random.default_rng(9).normal(0, 2, (CLASSES, WIDE)).astype(np.float32)
    return 0.3 * centres, -0.15 * (centres**2).sum(axis=1)


MODELS = {"good": taught, "poor": forgetful, "heavy": heavy}


def written_models(folder: Path, count: int = 200) -> list[Path]:
    """The models and `data.npz` as files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.tflite" for name in MODELS]
    for path, make in zip(paths, MODELS.values(), strict=True):
        save(make(), path)
    write_data(folder / "data.npz", examples(count))
    return paths


def mark_times(folder: Path, *, unclear: bool) -> None:
    """Makes the times on record those of a busy machine or of a calm one, whatever this one was
    while they were taken: what follows from that is a choice of the tool's, not of the day's."""
    log = folder / "trials.jsonl"
    trials = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    timed = [trial["details"] for trial in trials if trial["details"]["kind"] == "timed"]
    for details in timed:
        details["is_unclear"] = unclear
    log.write_text("".join(f"{json.dumps(trial)}\n" for trial in trials), encoding="utf-8")
