"""Fine-tuning trains what it is asked to, and never ships what judges say is worse."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import litesmith  # noqa: E402
from litesmith import Training  # noqa: E402
from litesmith.data.preparation import Preparation  # noqa: E402
from litesmith.passes.core.layers import layers_of  # noqa: E402
from litesmith.progress import Note, Status  # noqa: E402
from litesmith.tflite.file import load, save  # noqa: E402
from litesmith.training.settings import TrainingRecord  # noqa: E402
from litesmith.training.teaching.retrain_request import RetrainRequest  # noqa: E402
from litesmith.training.teaching.retrain_result import Retrained  # noqa: E402
from litesmith.training.teaching.retraining import carry_out  # noqa: E402
from tests.training.flowers import backbone, write_pictures  # noqa: E402

QUICK = Training(epochs=2, rate=0.003, batch=8)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tuned")
    save(backbone(), place / "backbone.tflite")
    write_pictures(place / "data", 16)
    return place


def tuned(place: Path, which: str, training: Training = QUICK) -> Retrained:
    return litesmith.retrain(
        place / "backbone.tflite",
        place / "data",
        place / "out.tflite",
        preparation=Preparation(norm="unit"),
        fine_tune=which,
        training=training,
    )


def weights(model: litesmith.Model) -> list[np.ndarray]:
    return [layer.weight.values() for layer in layers_of(model.main).values()]


@pytest.mark.parametrize(("which", "kept"), [("1", 1), ("all", 0)])
def test_the_layers_that_were_asked_for_are_trained(place: Path, which: str, kept: int) -> None:
    found = tuned(place, which)
    assert found.tuned is not None and found.tuned.model is not None
    before, after = weights(backbone()), weights(load(found.out))
    same = [np.array_equal(a, b) for a, b in zip(before, after, strict=False)]
    assert same == [True] * kept + [False] * (len(before) - kept)
    assert found.head_alone is not None
    assert found.tuned.after >= found.tuned.before


def test_what_is_no_better_is_rolled_back(place: Path) -> None:
    found = tuned(place, "all", Training(epochs=1, rate=1e-12, batch=8))
    assert found.tuned is not None and found.tuned.model is None
    assert "no better than the head alone" in found.tuned.told
    assert all(
        np.array_equal(a, b)
        for a, b in zip(weights(backbone()), weights(load(found.out)), strict=False)
    )


def test_an_interrupted_training_ends_in_the_same_bytes(place: Path) -> None:
    records = place / "records"
    records.mkdir()

    def request(resume: bool, folder: Path | None = records) -> RetrainRequest:
        return RetrainRequest(
            place / "backbone.tflite",
            place / "data",
            place / "out.tflite",
            preparation=Preparation(norm="unit"),
            fine_tune="all",
            training=QUICK,
            record=TrainingRecord(folder, resume, every=0),
        )

    def stop(event: Status | Note) -> None:
        if isinstance(event, Status) and event.more and event.done == 5:  # a step of the training
            raise KeyboardInterrupt

    whole = carry_out(request(False, None)).digest
    (place / "out.tflite").unlink()
    with pytest.raises(KeyboardInterrupt):
        carry_out(request(False), stop)
    assert not (place / "out.tflite").exists() and list(records.glob("stage-*.pt"))
    assert carry_out(request(True)).digest == whole
