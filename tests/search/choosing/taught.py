"""A small model that knows its classes, data for it, and searches that are over in seconds."""

from pathlib import Path

import numpy as np

from litesmith.calibration.observe import tools
from litesmith.data.samples import Data
from litesmith.data.sources import open_data
from litesmith.evidence import Trial
from litesmith.ir.build import Builder
from litesmith.ir.types import Array, Model
from litesmith.passes.core.recipe import apply
from litesmith.passes.core.step import Context
from litesmith.search.trial.trial_record import Record
from litesmith.tflite.file import save
from tests.training.small import CLASSES, labelled

WIDE = 16  # what `labelled` makes
BLINK = 12  # runs that times are taken in: the intervals are wide, all else is as ever


def taught() -> Model:
    """The nearest of the four points that the items of `labelled` lie around, in two layers."""
    centres = np.random.default_rng(9).normal(0, 2, (CLASSES, WIDE)).astype(np.float32)
    both = np.concatenate([np.eye(WIDE), -np.eye(WIDE)]).astype(np.float32)
    weight = 0.3 * np.concatenate([centres, -centres], axis=1)
    bias = -0.15 * (centres**2).sum(axis=1)
    b = Builder()
    x = b.input("x", (1, WIDE))
    zeros = np.zeros(len(both), np.float32)
    hidden = b.op("FULLY_CONNECTED", x, both, zeros, fused_activation_function="RELU")
    return b.model(b.op("SOFTMAX", b.op("FULLY_CONNECTED", hidden, weight, bias)))


def examples(count: int = 200, seed: int = 0) -> dict[str, Array]:
    items, labels = labelled(count, seed)
    return {"x": items, "y": labels}


def opened(model: Model, count: int = 200, seed: int = 0) -> Data:
    return open_data(examples(count, seed), model)


def written(folder: Path, model: Model | None = None, count: int = 200) -> tuple[Path, Path]:
    """The model and its data as files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "model.tflite", folder / "data.npz"
    save(taught() if model is None else model, paths[0])
    write_data(paths[1], examples(count))
    return paths


def write_data(place: Path, arrays: dict[str, Array]) -> None:
    np.savez(place, x=arrays["x"], y=arrays["y"])


def integer(model: Model) -> Model:
    """The same on integers."""
    return apply(model, "quantize", Context(tools(opened(model, 32), threads=1))).model


def record(
    name: str = "int8",
    *,
    status: str = "fits",
    value: float = 0.9,
    ratio: float = 0.5,
    size: int = 1000,
    room: float = 0.01,
    allowed: float = 0.01,
    branch: str = "",
    **details: object,
) -> Record:
    """A trial as a search would have it."""
    facts: dict[str, object] = {
        "name": name,
        "kind": "candidate",
        "branch": branch or name,
        "status": status,
        "bytes": size,
        "gzip_bytes": size // 2,
        "accuracy": {"metric": "top1", "unit": "share", "value": value},
        "latency": {"target": "cpu:1", "ratio": ratio},
        "room": {"estimate": room, "low": room - 0.01, "high": room + 0.01, "allowed": allowed},
    }
    return Record(Trial("", "in", f"of {name}", details={**facts, **details}))
