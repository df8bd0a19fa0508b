"""One model on every target: each has an answer and a reason."""

from pathlib import Path

import pytest

from litesmith.ir.types import Model
from litesmith.measure.everywhere import Reached, everywhere
from litesmith.measure.latency import Rule
from litesmith.run.delegates import DELEGATES
from litesmith.tflite.file import save
from tests import zoo

HOWS = {"measured", "estimated", "predicted", "refused"}


def reached(model: Model, folder: Path) -> dict[str, Reached]:
    save(model, folder / "model.tflite")
    rows, done = everywhere(str(folder / "model.tflite"), Rule(runs=12, warmup_runs=1))
    assert done.results[0].target == "cpu:1"
    return {row.target.partition(":")[0]: row for row in rows}


@pytest.mark.parametrize("make", [zoo.convnet, zoo.residual_int8])
def test_every_target_has_an_answer_and_a_reason(make, tmp_path: Path) -> None:
    found = reached(make(), tmp_path)
    assert {*found} == {d.name for d in DELEGATES} - {"numpy"}
    for row in found.values():
        assert row.how in HOWS and row.verdict and "\n" not in row.verdict
        assert row.placement is None or len(row.placement.homes) == len(make().main.ops)
        assert (row.latency_us is None) == (row.how in ("predicted", "refused")) or row.placement


def test_what_is_timed_is_compared_with_the_cpu(tmp_path: Path) -> None:
    found = reached(zoo.convnet(), tmp_path)
    assert found["cpu"].ratio is None and found["cpu"].latency_us
    for row in found.values():
        if row.how == "measured" and row.latency_us and row.target != "cpu:1":
            assert row.ratio is not None and row.difference is not None
            assert row.difference < 1e-3


def test_a_float_model_is_told_how_to_fit(tmp_path: Path) -> None:
    found = reached(zoo.convnet(), tmp_path)
    assert "int8" in found["edgetpu"].verdict
