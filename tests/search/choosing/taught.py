"""A small model that knows its classes, data for it, and searches that are over in seconds."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from litesmith.calibration.observe import tools
from litesmith.data.samples import Data
from litesmith.data.sources import open_data
from litesmith.evidence.measurement import Trial
from litesmith.evidence.records import Score, Speed
from litesmith.evidence.tune_record import RoomLeft, Tried
from litesmith.ir.build import Builder
from litesmith.ir.types import Array, Model
from litesmith.passes.core.recipe import apply
from litesmith.passes.core.step import Context
from litesmith.search.trial.tried_model import TriedModel
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
) -> TriedModel:
    """A trial as a search would have it; `details` replaces what is said otherwise."""
    made = Tried(
        name=name,
        branch=branch or name,
        why="",
        kind="candidate",
        key=name,
        status=status,
        bytes=size,
        gzip_bytes=size // 2,
        accuracy=Score("top1", "top-1", "share", value, None, None, 9),
        latency=Speed("cpu:1", "measured", None, None, ratio, None, None, ""),
        room=RoomLeft(
            *(None if math.isnan(room) else end for end in (room, room - 0.01, room + 0.01)),
            reason="",
            allowed=allowed,
        ),
    )
    made = replace(made, **details)  # pyright: ignore[reportArgumentType]
    return TriedModel(Trial("", "in", f"of {name}", details=made))
