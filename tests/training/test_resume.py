"""Trainings that were interrupted: they end in the same file, or say why they cannot."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the extra `train`")

from litesmith.calibration.observe import tools  # noqa: E402
from litesmith.data.samples import Data  # noqa: E402
from litesmith.errors import BadInput  # noqa: E402
from litesmith.ir.types import Model  # noqa: E402
from litesmith.passes.core.step import Context  # noqa: E402
from litesmith.passes.quantizing.quantize import Quantize  # noqa: E402
from litesmith.passes.shrinking.prune import Prune  # noqa: E402
from litesmith.tflite.write import to_bytes  # noqa: E402
from litesmith.training.settings import Look, Training, TrainingRecord, Watch  # noqa: E402
from litesmith.training.step_tuner import Tuner  # noqa: E402
from tests.training.small import damaged, data_of, regression  # noqa: E402

SHORT = Training(epochs=2)


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> None:
    torch.set_num_threads(1)


def quantized(model: Model, data: Data, to: str = "int8") -> Model:
    return Quantize(to).apply(model, Context(tools(data, threads=1))).model


def interrupting(after: int) -> Callable[[Look], None]:
    calls = iter(range(10**6))

    def watch(look: Look) -> None:
        if next(calls) == after:
            raise KeyboardInterrupt

    return watch


KINDS = ("float", "gradual", "int8", "w4a8")


def result(
    kind: str,
    folder: Path | None = None,
    *,
    resume: bool = False,
    watch: Watch | None = None,
) -> bytes:
    """A training of some kind, as bytes."""
    original = regression()
    data = data_of(original)
    tuner = Tuner(
        original, data, SHORT, record=TrainingRecord(folder, resume, every=0), watch=watch
    )
    if kind == "float":
        return to_bytes(tuner(damaged(original)).model)
    if kind == "gradual":
        context = Context(tools(data, threads=1), tune=tuner)
        return to_bytes(Prune(0.5, schedule="gradual").apply(original, context).model)
    return to_bytes(tuner(quantized(original, data, kind), origin=original).model)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", [3, 6, 11, 17])
def test_an_interrupted_training_ends_in_the_same_file(
    tmp_path: Path, kind: str, after: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        result(kind, tmp_path, watch=interrupting(after))
    assert result(kind, tmp_path, resume=True) == result(kind)


@pytest.mark.parametrize("what", ["model", "origin", "data", "setting", "original"])
def test_a_record_of_something_else_is_refused(tmp_path: Path, what: str) -> None:
    original, other = regression(), regression(5)
    data = data_of(original)
    begun = quantized(original, data)
    Tuner(original, data, SHORT, record=TrainingRecord(tmp_path, every=0))(begun, origin=original)
    tuner = Tuner(
        other if what == "original" else original,
        data_of(original, seed=3) if what == "data" else data,
        replace(SHORT, seed=8) if what == "setting" else SHORT,
        record=TrainingRecord(tmp_path, resume=True, every=0),
    )
    with pytest.raises(BadInput, match="another model, recipe, data or setting"):
        tuner(
            quantized(other, data) if what == "model" else begun,
            origin=other if what == "origin" else original,
        )


def test_a_record_of_another_schedule_is_refused(tmp_path: Path) -> None:
    original = regression()
    data = data_of(original)
    for sparsity, resume in ((0.5, False), (0.7, True)):
        tuner = Tuner(original, data, SHORT, record=TrainingRecord(tmp_path, resume, every=0))
        context = Context(tools(data, threads=1), tune=tuner)
        step = Prune(sparsity, schedule="gradual")
        if not resume:
            step.apply(original, context)
            continue
        with pytest.raises(BadInput, match="another model, recipe, data or setting"):
            step.apply(original, context)


def test_more_minutes_do_not_make_it_another_training(tmp_path: Path) -> None:
    original = regression()
    data = data_of(original)
    hurt = damaged(original)
    known = Tuner(original, data, SHORT, record=TrainingRecord(tmp_path, every=0))(hurt).model
    longer = replace(SHORT, minutes=3.0)
    record = TrainingRecord(tmp_path, resume=True, every=0)
    again = Tuner(original, data, longer, record=record)(hurt).model
    assert to_bytes(known) == to_bytes(again)
