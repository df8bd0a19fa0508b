"""Work in pieces is the work: scores, facts and samples, whatever the pieces are."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from litesmith.accuracy.evaluate import Evaluation, evaluate_all
from litesmith.accuracy.metrics import METRICS, metric_name
from litesmith.calibration import observed_cache as cache
from litesmith.calibration.observe import Spread, observe
from litesmith.data.opened_samples import OpenedSamples
from litesmith.data.samples import Data
from litesmith.data.shipping import join_pieces, piece, portions
from litesmith.data.sources import open_data
from litesmith.numeric.ranges import WHAT, Seen
from litesmith.run.core.target import Target
from litesmith.tflite.file import save
from tests.search.choosing.taught import examples, integer, opened, taught
from tests.workers.here import Here
from tests.zoo import convnet

# Metrics that suit a model with four scores, and one of the user's.
OWN = [
    *(name for name, metric in sorted(METRICS.items()) if metric.needs != "task"),
    "tests.accuracy.test_sharded:right",
]
OWN = [name for name in OWN if name not in ("anomaly_auc", "auc", "labels_f1", "miou")]


def right(outputs: list[np.ndarray], label: np.ndarray) -> float:
    """Whether the class is right."""
    return float(outputs[0].argmax() == label[0])


def bare(found: Evaluation) -> tuple[object, ...]:
    """All that an evaluation tells, but for the machine."""
    rows = None if found.rows is None else found.rows.tolist()
    host = replace(found.measurement, host="")
    return replace(found, measurement=host, rows=None), rows


@pytest.mark.parametrize("metric", OWN)
@pytest.mark.parametrize("width", [1, 3, 40])
def test_a_score_by_pieces_is_the_score(metric: str, width: int) -> None:
    model, given = taught(), examples(90)
    if metric in ("mae", "rmse"):
        given["y"] = np.random.default_rng(2).normal(0, 1, (90, 4))
    data = open_data(given, model)
    worse = integer(model)
    here, there = (
        evaluate_all([worse], data, against=model, metric=metric_name(metric), engine=engine)[0]
        for engine in (None, Here(width))
    )
    assert bare(there) == bare(here)


def test_several_models_and_none_to_compare_with() -> None:
    model, data = taught(), opened(taught(), 50)
    models = [model, integer(model)]
    here = evaluate_all(models, data)
    there = evaluate_all(models, data, engine=Here())
    assert [bare(one) for one in there] == [bare(one) for one in here]


def test_a_sample_that_fails_is_told_as_here(tmp_path: Path) -> None:
    model = taught()
    wrong = examples(60)
    wrong["y"][41] = 9
    data = replace(
        open_data(wrong, model), rows=replace(open_data(wrong, model).rows, classes=None)
    )
    told: list[str] = []
    for engine in (None, Here()):
        with pytest.raises(Exception, match="row 41") as caught:
            evaluate_all([model], data, metric="top1", engine=engine)
        told.append(f"{type(caught.value).__name__} {caught.value}")
    assert told[0] == told[1]


def test_the_float_model_answers_once_for_all_candidates() -> None:
    model, data, engine = taught(), opened(taught(), 90), Here()
    for candidate in (integer(model), model):
        evaluate_all([candidate], data, against=model, engine=engine)
    assert engine.calls["answers"] == -(-90 // 16)
    assert engine.calls["score_portion"] == 2 * engine.calls["answers"]
    assert len([key for key in engine.shipped if key.startswith("model ")]) == 2


# Data.


def same(a: Data, b: Data) -> bool:
    pairs = list(zip(a, b, strict=True))
    return all(
        x.name == y.name
        and all(
            np.array_equal(p, q) and p.dtype == q.dtype
            for p, q in zip(x.inputs, y.inputs, strict=True)
        )
        and ((x.label is None) == (y.label is None))
        and (x.label is None or np.array_equal(x.label, y.label))
        for x, y in pairs
    )


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pictures")
    random = np.random.default_rng(3)
    for number in range(20):
        folder = place / f"class{number % 5}"
        folder.mkdir(exist_ok=True)
        pixels = random.integers(0, 256, (9 + number, 12, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return place


def kinds(pictures: Path) -> dict[str, Data]:
    random = np.random.default_rng(1)
    x = random.integers(0, 256, (20, 8, 8, 3)).astype(np.uint8)
    model = convnet()
    return {
        "files": open_data(pictures, model),
        "classes": open_data({"x": x, "y": np.arange(20) % 5}, model),
        "no labels": open_data(x.astype(np.float32), model),
        "other labels": open_data({"x": x, "y": random.normal(0, 1, (20, 2))}, model),
        "generator": open_data(lambda: ((one, 1) for one in x), model),
    }


@pytest.mark.parametrize("kind", ["files", "classes", "no labels", "other labels", "generator"])
@pytest.mark.parametrize("width", [1, 4])
def test_samples_arrive_as_they_were_sent(pictures: Path, kind: str, width: int) -> None:
    data = kinds(pictures)[kind]
    engine = Here(width)
    pieces = [lying.held.value for lying in portions(engine, data, digests=True)]
    assert same(data, [sample for one in pieces for sample in one.one_by_one()])
    whole = join_pieces(pieces)
    assert same(data, whole)
    assert whole.digest == data.digest
    again = [lying.held for lying in portions(engine, data, digests=True)]
    assert [one.value.names for one in again] == [one.names for one in pieces]
    assert len(engine.shipped) == len(pieces)  # shipped once


def test_files_travel_as_they_lie_on_the_disk(pictures: Path) -> None:
    data = kinds(pictures)["files"]
    assert isinstance(data, OpenedSamples)
    held = piece(data, range(len(data)))
    files = sum(path.stat().st_size for path in pictures.rglob("*.png"))
    assert held.nbytes == files


# Facts.


@given(
    st.lists(st.lists(st.floats(width=32, allow_nan=True), min_size=3, max_size=3), max_size=12),
    st.lists(st.integers(0, 12), max_size=4),
)
def test_what_parts_have_seen_is_what_the_whole_has(
    rows: list[list[float]], cuts: list[int]
) -> None:
    samples = [np.array(row, np.float32) for row in rows]
    whole = Seen(WHAT)
    for sample in samples:
        whole.add(sample)
    ends = [0, *sorted(min(cut, len(samples)) for cut in cuts), len(samples)]
    states: list[dict[str, np.ndarray]] = []
    for start, end in pairwise(ends):
        part = Seen(WHAT)
        for sample in samples[start:end]:
            part.add(sample)
        states.append(part.state())
    found = Seen.merged(WHAT, states)
    merged, wanted = found.state(), whole.state()
    assert merged.keys() == wanted.keys()
    assert found.is_mergeable == whole.is_mergeable
    for name, array in wanted.items():
        if name != "total" or found.is_mergeable:
            assert array.tobytes() == merged[name].tobytes(), name


@pytest.mark.parametrize("scale", [1.0, 1e9])
def test_facts_by_pieces_are_the_facts(monkeypatch: pytest.MonkeyPatch, scale: float) -> None:
    """Also where sums are so large that their order matters."""
    monkeypatch.setenv(cache.VARIABLE, "")
    model, engine = taught(), Here()
    x = scale * np.random.default_rng(4).normal(0, 1, (64, 16)).astype(np.float32)
    data = open_data(x, model)
    pieces = tuple(lying.held for lying in portions(engine, data, digests=True))
    tensors = [t for t in model.main.tensors if not t.is_const]
    here = observe(model, tensors, WHAT, data=data)
    there = observe(model, tensors, WHAT, data=data, spread=Spread(engine, pieces))
    assert len(pieces) > 1
    assert engine.calls["observed_piece"] == len(pieces)
    for tensor in tensors:
        own, other = here[tensor].state(), there[tensor].state()
        assert {k: v.tobytes() for k, v in own.items()} == {
            k: v.tobytes() for k, v in other.items()
        }


def test_a_model_in_bytes_travels_like_its_file(tmp_path: Path) -> None:
    model, data = taught(), opened(taught(), 40)
    save(model, tmp_path / "model.tflite")
    engine = Here()
    found = [
        evaluate_all([source], data, engine=engine, on=Target.parse("cpu:1"))[0]
        for source in (model, tmp_path / "model.tflite")
    ]
    assert bare(found[0]) == bare(found[1])
    assert len([key for key in engine.shipped if key.startswith("model ")]) == 1
