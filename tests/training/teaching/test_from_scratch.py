"""A network of the catalogue learns a user's classes from random weights, and is itself again."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith import BadInput, Training
from litesmith import networks as catalogue
from litesmith.cli import main
from litesmith.data.preparation import Preparation
from litesmith.errors import CannotApply
from litesmith.installing import install_command
from litesmith.progress import Note, Status
from litesmith.tflite.file import load, save
from litesmith.tflite.read_metadata import metadata
from litesmith.training.recipe_context import has_torch
from litesmith.training.settings import TrainingRecord
from litesmith.training.teaching.retrain_request import RetrainRequest
from litesmith.training.teaching.retrain_result import Retrained
from litesmith.training.teaching.retraining import carry_out, default_out, default_training
from tests.training.flowers import backbone

needs_torch = pytest.mark.skipif(not has_torch(), reason="torch is not installed: `train`")

QUICK = Training(epochs=4, rate=0.02, batch=16)
TINY = "resnet8:0.5@16"


def stripes(seed: int, count: int = 192) -> dict[str, np.ndarray]:
    """Pictures of noise with stripes across (0) or down (1), which a mirror leaves as they are."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    across = np.sin(np.arange(16) + random.uniform(0, 6, (count, 1)))[:, :, None, None]
    lines = np.where(labels[:, None, None, None] == 0, across, across.transpose(0, 2, 1, 3))
    pixels = 128 + 60 * lines + random.normal(0, 30, (count, 16, 16, 3))
    return {"x": pixels.clip(0, 255).astype(np.uint8), "y": labels}


def tints(seed: int, count: int = 320) -> dict[str, np.ndarray]:
    """Pictures of noise that are rather red, green or blue."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    pixels = random.normal(128, 40, (count, 32, 32, 3)) + 60 * np.eye(3)[labels][:, None, None]
    return {"x": pixels.clip(0, 255).astype(np.uint8), "y": labels}


def tones(seed: int, count: int = 192) -> dict[str, np.ndarray]:
    """Features of sounds, in which one of three bands is loud for a while."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    values = random.normal(-20, 10, (count, 49, 10, 1))
    for place, label in enumerate(labels):
        begin = random.integers(0, 29)
        values[place, begin : begin + 20, 3 * label + 1] += 30
    return {"x": values.astype(np.float32), "y": labels}


def trained(place: Path, name: str = TINY, training: Training = QUICK, **more: object) -> Retrained:
    data = more.pop("data", None) or stripes(0)
    return litesmith.retrain(name, data, place / "out.tflite", training=training, **more)


@needs_torch
@pytest.mark.parametrize(
    ("name", "data", "proof"),
    [
        (TINY, stripes(0), stripes(1)),
        ("mobilenet_v1:0.25@32", tints(0), tints(1)),
        ("ds_cnn_s:0.25", tones(0), tones(1)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_random_weights_learn(tmp_path: Path, name: str, data: dict, proof: dict) -> None:
    found = trained(tmp_path, name, data=data, val=proof)
    classes = len(np.unique(data["y"]))
    assert found.low > 1.5 / classes and found.n == len(proof["y"])
    assert found.head is None and found.scratch is not None
    assert found.scratch.best < found.scratch.first
    model = load(found.out)
    assert model.main.outputs[0].shape == (1, classes)
    assert [op.kind for op in model.main.ops] == [
        op.kind for op in catalogue.build(name, classes).main.ops
    ]


@needs_torch
@pytest.mark.parametrize(
    "name",
    [
        "resnet8:0.5@16",
        "resnet20:0.5@16",
        "mobilenet_v2:0.1@32",
        "mobilenet_v3_small:0.25@64",
        "ds_cnn_s:0.25",
    ],
)
def test_a_network_without_normalization_does_what_the_normalised_one_did(name: str) -> None:
    """On the samples that say what is usual, both are the same; in the runtime too."""
    import torch

    from litesmith.training.teaching.from_scratch import Normed

    network = Normed(catalogue.build(name, classes=5))
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters:
            parameter += 0.1 * torch.randn(parameter.shape, generator=random)
        inputs = [torch.randn((8, *network.model.main.inputs[0].shape[1:]), generator=random)]
        (normed,) = network(inputs)
        with network.settled(inputs):
            (settled,) = network(inputs)
        chances = normed.softmax(-1).numpy()
    assert torch.allclose(normed, settled, rtol=1e-3, atol=1e-3)
    with litesmith.Session(network.written(inputs)) as session:
        for one, wanted in zip(inputs[0].numpy(), chances, strict=True):
            session.inputs[network.model.main.inputs[0].name][...] = one[None]
            session.run()
            np.testing.assert_allclose(session.outputs["scores"][0], wanted, atol=2e-3)


@needs_torch
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    one, again, other = (
        trained(tmp_path, training=replace(QUICK, epochs=1, seed=seed)).digest for seed in (3, 3, 4)
    )
    assert one == again != other


@needs_torch
def test_the_file_says_how_pictures_are_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = trained(tmp_path, val=stripes(1))
    told = metadata(load(found.out))
    assert told.inputs[0] is not None
    assert (told.inputs[0].mean, told.inputs[0].std) == ((0.0,), (1.0,))
    np.savez(tmp_path / "proof.npz", **stripes(1))
    words = ["litesmith", "eval", str(found.out), "--data", str(tmp_path / "proof.npz"), "--json"]
    monkeypatch.setattr("sys.argv", words)
    assert main._run() == 0
    assert json.loads(capsys.readouterr().out)["value"] == found.value
    asked = trained(tmp_path, val=stripes(1), preparation=Preparation(norm="unit"))
    norm = metadata(load(asked.out)).inputs[0]
    assert norm is not None and norm.std == (255.0,)


@needs_torch
@pytest.mark.parametrize("row", catalogue.ROWS, ids=lambda row: row.name)
def test_every_network_has_a_normalisation(row: catalogue.Row) -> None:
    from litesmith.training.teaching.from_scratch import normalised

    made, note = normalised(RetrainRequest(Path(row.name), "data", Path("out.tflite")))
    assert made.preparation.is_chosen
    assert ("--norm says otherwise" in note) == (row.shape is None)
    if row.norm == "mean 127, std 128":
        assert (made.preparation.mean, made.preparation.std) == ((127.0,), (128.0,))


@needs_torch
def test_an_interrupted_training_ends_in_the_same_bytes(tmp_path: Path) -> None:
    records, out = tmp_path / "records", tmp_path / "out.tflite"
    records.mkdir()

    def request(resume: bool, folder: Path | None = records) -> RetrainRequest:
        return RetrainRequest(
            Path(TINY),
            stripes(0),
            out,
            training=QUICK,
            record=TrainingRecord(folder, resume, every=0),
        )

    def stop(event: Status | Note) -> None:
        if isinstance(event, Status) and event.more and event.done == 5:  # a step of the training
            raise KeyboardInterrupt

    whole = carry_out(request(False, None)).digest
    out.unlink()
    with pytest.raises(KeyboardInterrupt):
        carry_out(request(False), stop)
    assert not out.exists() and list(records.glob("stage-*.pt"))
    assert carry_out(request(True)).digest == whole


@needs_torch
def test_what_has_learned_nothing_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(CannotApply, match="nothing was learned; give more --epochs"):
        trained(tmp_path, training=Training(epochs=1, rate=1e30, batch=16))
    assert not (tmp_path / "out.tflite").exists()


@needs_torch
def test_small_classes_count_as_much_with_balance(tmp_path: Path) -> None:
    every = stripes(0)
    rare = np.concatenate([np.flatnonzero(every["y"] == 0), np.flatnonzero(every["y"] == 1)[:10]])
    data = {name: values[rare] for name, values in every.items()}
    found = trained(tmp_path, data=data, val=stripes(1), balance=True)
    assert found.scratch is not None and "epochs of 1" in found.scratch.told
    assert found.found.table[1, 1] > found.found.table[1, 0]


def refused(tmp_path: Path, name: str, **more: object) -> str:
    with pytest.raises(BadInput) as error:
        trained(tmp_path, name, **more)
    assert not (tmp_path / "out.tflite").exists()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    told = refused(tmp_path, "resnet9")
    assert told.startswith("resnet9: neither a file nor a network of the catalogue; there are")
    assert all(row.name in told for row in catalogue.ROWS)


def test_without_torch_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert refused(tmp_path, "resnet8") == (
        f"resnet8: to train it needs torch, which is not installed; {install_command('train')}"
    )


@needs_torch
@pytest.mark.parametrize(
    ("name", "more", "told"),
    [
        (f"{TINY}/3", {}, "asks for 3 classes, and the given dict has 2; leave out /3"),
        ("resnet8@2", {}, "resnet8: 2 pixels are outside 4 to 2048"),
        (TINY, {"at": "embedding"}, "at=: resnet8 learns from random weights, all of it"),
        (TINY, {"fine_tune": "last"}, "fine_tune=: resnet8 learns from random weights"),
    ],
)
def test_what_does_not_fit_is_said(tmp_path: Path, name: str, more: dict, told: str) -> None:
    assert told in refused(tmp_path, name, **more)


def test_a_file_comes_before_a_network_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_out(Path("resnet8")) == Path("resnet8-trained.tflite")
    assert default_training(Path("resnet8")).epochs > Training.epochs
    save(backbone(), Path("resnet8"))
    assert default_out(Path("resnet8")) == Path("resnet8-retrained.tflite")
    found = litesmith.retrain("resnet8", stripes(0), preparation=Preparation(norm="unit"))
    assert found.head is not None and found.scratch is None
