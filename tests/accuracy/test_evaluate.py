"""Evaluations of models whose answers are known beforehand."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith import Builder, Model, Quant
from litesmith.accuracy.evaluate import SAME, Evaluation, evaluate_all
from litesmith.accuracy.metrics import metric_name
from litesmith.accuracy.paired import share, share_difference
from litesmith.data.samples import Items, Sample
from litesmith.errors import BadInput
from litesmith.progress import Status
from litesmith.tflite.write import to_bytes
from tests import zoo


@dataclass
class Given:
    """Rows of an array, one a sample."""

    x: np.ndarray
    y: np.ndarray | None = None
    source: str = "rows"
    digest: str = ""
    notes: tuple[str, ...] = ("from the data",)
    items: Items = field(default_factory=Items)
    passes: int = 0

    def __len__(self) -> int:
        return len(self.x)

    def __iter__(self) -> Iterator[Sample]:
        self.passes += 1
        for i in range(len(self.x)):
            label = None if self.y is None else self.y[i : i + 1]
            yield Sample((self.x[i : i + 1].astype(np.float32),), label, f"row {i}")


def scorer(kind: str = "", classes: int = 4) -> Model:
    """A model whose scores are its inputs, through one op if one is named."""
    b = Builder()
    x = b.input("x", (1, classes))
    return b.model(b.op(kind, x) if kind else b.op("ADD", x, np.zeros(classes, np.float32)))


def coarse(scale: float) -> Model:
    """The same with scores rounded to a scale."""
    b = Builder()
    x = b.op("QUANTIZE", b.input("x", (1, 4)), dtype="int8", quant=Quant.of(scale, 0))
    return b.model(b.op("DEQUANTIZE", x, dtype="float32"))


def scores(count: int = 300) -> Given:
    random = np.random.default_rng(0)
    labels = random.integers(0, 4, count)
    return Given(random.normal(0, 1, (count, 4)) + np.eye(4)[labels], labels)


def test_top1_and_its_interval() -> None:
    given = scores()
    hits = (given.x.argmax(1) == given.y).astype(np.float64)
    found = evaluate_all([scorer()], given)[0]
    assert (found.metric, found.unit, found.n) == ("top1", "share", 300)
    assert (found.value, found.low, found.high) == share(hits)
    assert found.measurement.samples == tuple(hits)
    assert found.against is None
    assert (found.source, found.target, found.notes) == ("rows", "cpu:1", ("from the data",))


def test_against_a_reference_is_paired_and_in_one_pass() -> None:
    given = scores()
    found = evaluate_all([coarse(1.0)], given, against=scorer())[0]
    assert given.y is not None
    rounded = np.rint(given.x)
    is_top = rounded == rounded.max(1, keepdims=True)  # several where scores are tied
    rows, best = np.arange(len(given.y)), given.x.argmax(1)
    mine = is_top[rows, given.y] / is_top.sum(1)
    other = (best == given.y).astype(np.float64)
    against = found.against
    assert against is not None
    assert given.passes == 1
    assert found.value == pytest.approx(mine.mean())
    assert against.value == other.mean()
    told = against.difference, against.difference_low, against.difference_high
    assert told == share_difference(mine, other)
    assert against.agreement == pytest.approx((is_top[rows, best] / is_top.sum(1)).mean())
    assert any("several classes that share the highest score" in note for note in found.notes)
    error = np.square(np.rint(given.x) - given.x).sum()
    assert against.snr_db == pytest.approx(10 * math.log10(np.square(given.x).sum() / error), 1e-4)
    assert 0.5 < (against.cosine or 0) < 1


def test_verdicts() -> None:
    given = scores(2000)
    same, worse = evaluate_all([coarse(0.02), coarse(4.0)], given, against=scorer())
    better = evaluate_all([scorer()], given, against=coarse(4.0))[0]
    verdicts = [e.against.verdict if e.against else "" for e in (same, worse, better)]
    assert verdicts == [SAME, "worse", "better"]


def test_several_models_as_one_by_one() -> None:
    given, models = scores(), [scorer(), coarse(0.5), coarse(1.0)]
    together = evaluate_all(models, given)
    assert given.passes == 1
    for model, one in zip(models, together, strict=True):
        assert evaluate_all([model], given)[0] == one


def automatic(model: Model, y: np.ndarray | None, against: Model | None = None) -> Evaluation:
    shape = model.main.inputs[0].shape
    x = np.random.default_rng(0).normal(size=(12, *shape[1:]))
    return evaluate_all([model], Given(x, y), against=against)[0]


def test_the_metric_suits_labels_and_outputs() -> None:
    b = Builder()
    picture = b.model(b.op("RELU", b.input("x", (1, 3, 3, 4))))
    twelve = np.arange(12)
    assert automatic(scorer(), twelve % 4).metric == "top1"
    assert automatic(scorer(classes=1), twelve % 2).metric == "auc"
    assert automatic(picture, np.zeros((12, 3, 3), np.uint8)).metric == "miou"
    assert automatic(scorer(), np.zeros((12, 4))).metric == "rmse"
    assert automatic(scorer(), None, scorer()).metric == "snr"
    assert automatic(scorer("SOFTMAX"), None, scorer("SOFTMAX")).metric == "agreement"
    with pytest.raises(BadInput, match="no labels; give labels, or a reference"):
        automatic(scorer(), None)
    with pytest.raises(BadInput, match="suit no metric"):
        automatic(scorer(), np.zeros((12, 3), int))


def test_a_softmax_is_seen_through_shapes_and_types() -> None:
    found = automatic(zoo.legacy_uint8(), None, zoo.legacy_uint8())
    assert (found.metric, found.value) == ("agreement", 1)
    assert found.against is not None
    assert found.against.difference is None
    assert found.against.verdict == ""
    b = Builder()
    x = b.op("SOFTMAX", b.input("x", (1, 4)))
    assert automatic(b.model(b.op("RESHAPE", x, [1, 4])), None, scorer()).metric == "agreement"


def test_nan_outputs_are_told_and_wrong() -> None:
    given = scores(20)
    x = np.abs(given.x)
    x[3] = -1 - np.eye(4)[0]
    found = evaluate_all([scorer("SQRT")], Given(x, given.y), against=scorer())[0]
    assert any("NaN for 1 of 20 samples, counted as wrong" in note for note in found.notes)
    assert found.measurement.samples[3] == 0
    back = evaluate_all([scorer()], Given(x, given.y), against=scorer("SQRT"))[0]
    assert any("of the reference are NaN for 1" in note for note in back.notes)
    lost = evaluate_all([scorer("SQRT")], Given(x, np.sqrt(np.abs(x))))[0]
    assert (lost.metric, lost.value) == ("rmse", math.inf)


def test_models_that_answer_with_other_shapes_are_compared_by_the_metric_alone() -> None:
    b = Builder()
    x = b.input("x", (1, 4))
    two = b.model(b.op("RELU", x), b.op("NEG", x))
    found = evaluate_all([two], scores(), against=scorer())[0]
    assert found.against is not None
    assert found.against.difference is not None
    assert found.against.cosine is None
    assert any("drift was not measured" in note for note in found.notes)
    with pytest.raises(BadInput, match="do not answer alike"):
        evaluate_all([two], scores(), against=scorer(), metric="snr")


def test_the_target_is_the_one_asked_for() -> None:
    given = scores(30)
    for on in ("cpu:1:builtin", "cpu:2", "numpy"):
        found = evaluate_all([scorer()], given, on=on)[0]
        assert (found.target, found.value) == (on, evaluate_all([scorer()], given)[0].value)


def test_bad_input() -> None:
    with pytest.raises(BadInput, match="no metric 'f2'; there are auto, agreement"):
        evaluate_all([scorer()], scores(), metric="f2")
    with pytest.raises(BadInput, match="compares with a reference"):
        evaluate_all([scorer()], scores(), metric="snr")
    with pytest.raises(BadInput, match="data rows: there is no sample"):
        evaluate_all([scorer()], Given(np.zeros((0, 4))))


def test_a_function_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "seen = []\ndef margin(outputs, label):\n"
    text += "    seen.append(float(outputs[0][0, 0]))\n    return outputs[0].max() - label[0]\n"
    (tmp_path / "my_metric.py").write_text(text)
    given = scores(50)
    found = evaluate_all(
        [scorer()], given, metric=metric_name("my_metric:margin"), against=scorer()
    )[0]
    assert found.value == pytest.approx((given.x.max(1) - given.y).mean(), rel=1e-5)
    assert found.against is not None
    assert (found.against.difference, found.against.verdict) == (0, SAME)
    import my_metric  # pyright: ignore[reportMissingImports]

    assert my_metric.seen[::2] == pytest.approx(given.x[:, 0])
    for name, told in (("my_metric:none", "no function 'none'"), ("none:f", "no module 'none'")):
        with pytest.raises(BadInput, match=told):
            evaluate_all([scorer()], given, metric=metric_name(name))


def test_the_public_function_takes_models_and_data_of_every_sort(tmp_path: Path) -> None:
    given = scores(40)
    path = tmp_path / "m.tflite"
    litesmith.save(scorer(), path)
    np.savez(tmp_path / "d.npz", x=given.x.astype(np.float32), y=given.y)
    want = evaluate_all([scorer()], given)[0]
    arrays = {"x": given.x.astype(np.float32), "y": given.y}
    for model in (path, to_bytes(scorer()), scorer()):
        for data in (given, tmp_path / "d.npz", arrays):
            found = litesmith.evaluate(model, data)
            assert (found.value, found.n) == (want.value, want.n)
            assert found.measurement.model_digest == want.measurement.model_digest


def test_a_function_is_a_metric_as_it_is() -> None:
    def margin(outputs: list[np.ndarray], label: np.ndarray) -> float:
        return float(outputs[0].max() - outputs[0].min())

    found = litesmith.evaluate(scorer(), scores(20), metric=margin)
    assert found.metric.endswith(":test_a_function_is_a_metric_as_it_is.<locals>.margin")
    assert found.value > 0
    with pytest.raises(BadInput, match="metric=3: give a name"):
        litesmith.evaluate(scorer(), scores(20), metric=3)  # type: ignore[arg-type]


def test_progress_counts_the_samples() -> None:
    seen: list[object] = []
    litesmith.evaluate(scorer(), scores(20), progress=seen.append)
    counted = [one for one in seen if isinstance(one, Status)]
    assert counted == [Status("scoring", done, 20) for done in range(21)]


def constant(classes: int = 4) -> Model:
    """A model that answers everything with equal scores."""
    b = Builder()
    return b.model(b.op("MUL", b.input("x", (1, classes)), np.zeros(classes, np.float32)))


def test_a_constant_model_is_no_better_than_guessing_whatever_class_comes_first() -> None:
    given = scores()
    given.y = np.zeros(300, np.int64)
    found = evaluate_all([constant()], given, against=scorer())[0]
    assert found.value == 0.25
    assert any("300 of 300 samples have several classes" in note for note in found.notes)
    assert found.against is not None and (found.against.agreement or 1) <= 0.25


def test_copies_count_once() -> None:
    few = scores(40)
    assert few.y is not None
    many = Given(np.tile(few.x, (15, 1)), np.tile(few.y, 15))
    alone, copied = evaluate_all([scorer()], few)[0], evaluate_all([scorer()], many)[0]
    assert (alone.n, alone.independent) == (40, 40)
    assert (copied.n, copied.independent) == (600, 40)
    assert copied.value == pytest.approx(alone.value)
    assert copied.high - copied.low >= alone.high - alone.low
    assert any("600 samples, 40 independent: copies were found" in n for n in copied.notes)
    assert copied.to_json()["independent"] == 40
