"""`tune` by any metric: errors, where less is better, and functions of the user's."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from tests.zoo import noise


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model of one number, and data that it is right about but for noise."""
    folder = tmp_path_factory.mktemp("regression")
    first, last = noise(64, 32, scale=0.2), noise(1, 64, seed=1, scale=0.2)
    b = Builder()
    x = b.input("x", (1, 32))
    hidden = b.op("FULLY_CONNECTED", x, first, None, fused_activation_function="RELU")
    litesmith.save(b.model(b.op("FULLY_CONNECTED", hidden, last, None)), folder / "model.tflite")
    values = noise(400, 32, seed=2, scale=1.0)
    answers = np.maximum(values @ first.T, 0) @ last.T
    labels = answers[:, 0] + noise(400, seed=3, scale=0.05)
    np.savez(folder / "data.npz", x=values, y=labels)
    return folder / "model.tflite", folder / "data.npz"


def tuned(task: tuple[Path, Path], out: Path, metric: object, drop: object) -> object:
    model, data = task
    return litesmith.tune(
        model,
        data,
        metric=metric,  # type: ignore[arg-type]
        max_drop=drop,  # type: ignore[arg-type]
        minimize="size",
        runs=12,
        out=out,
    )


def closeness(outputs: list[np.ndarray], label: float) -> float:
    """More is better, which its attribute says."""
    return 10 - abs(float(outputs[0].ravel()[0]) - label)


closeness.better = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("metric", ["mae", "rmse", closeness])
def test_a_drop_in_the_unit_of_the_metric(
    task: tuple[Path, Path], tmp_path: Path, metric: str | Callable[..., float]
) -> None:
    model, data = task
    found = tuned(task, tmp_path / "out", metric, "0.02")
    best = found.folder / "best.tflite"  # type: ignore[attr-defined]
    assert best.stat().st_size < model.stat().st_size
    before, after = (litesmith.evaluate(one, data, metric=metric).value for one in (model, best))
    assert before is not None and after is not None
    assert (before - after if callable(metric) else after - before) <= 0.02


@pytest.mark.parametrize(("metric", "drop"), [("mae", "1pt"), ("auto", "1pt"), ("mae", "-0.1")])
def test_points_of_an_error_are_refused(
    task: tuple[Path, Path], tmp_path: Path, metric: str, drop: str
) -> None:
    with pytest.raises(BadInput):
        tuned(task, tmp_path / "out", metric, drop)
    assert not (tmp_path / "out" / "best.tflite").exists()


def test_better_is_a_sign(task: tuple[Path, Path], tmp_path: Path) -> None:
    def odd(outputs: list[np.ndarray], label: float) -> float:
        return float(label)

    odd.better = "more"  # type: ignore[attr-defined]
    with pytest.raises(BadInput, match="its attribute better is 'more'"):
        tuned(task, tmp_path / "out", odd, "1%")
