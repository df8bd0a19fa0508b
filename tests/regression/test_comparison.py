"""Two models side by side: what is said of them follows from what they are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import litesmith
from litesmith import Builder, Model, Quant
from litesmith.accuracy.evaluate import SAME
from litesmith.accuracy.scoring import MOST_DB
from litesmith.data.sources import open_data
from litesmith.errors import BadInput
from litesmith.regression.comparison import (
    Compared,
    CompareSettings,
    Drifts,
    Size,
    compare_models,
    drift,
    measure_size,
    misfit,
)
from litesmith.tflite.file import save
from litesmith.tflite.write import to_bytes
from litesmith.timing.statistics import Ratio
from tests.draws import draws


def scorer(scale: float = 0.0, classes: int = 4) -> Model:
    """A model whose scores are its inputs, rounded to a scale if one is given."""
    b = Builder()
    x = b.input("x", (1, classes))
    if not scale:
        return b.model(b.op("ADD", x, np.zeros(classes, np.float32)))
    y = b.op("QUANTIZE", x, dtype="int8", quant=Quant.of(scale, 0))
    return b.model(b.op("DEQUANTIZE", y, dtype="float32"))


def halves(*, coarse: bool) -> Model:
    """A model with two outputs, of which the second may be rounded."""
    b = Builder()
    x = b.input("x", (1, 4))
    exact = b.op("ADD", x, np.ones(4, np.float32))
    y = b.op("MUL", x, np.full(4, 3, np.float32))
    if coarse:
        stored = b.op("QUANTIZE", y, dtype="int8", quant=Quant.of(0.5, 0))
        y = b.op("DEQUANTIZE", stored, dtype="float32")
    return b.model(exact, y)


def labelled(count: int = 400) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    labels = random.integers(0, 4, count)
    x = random.normal(0, 1, (count, 4)) + np.eye(4)[labels]
    return {"x": x.astype(np.float32), "y": labels}


@pytest.fixture(scope="module")
def found() -> Compared:
    """A model and a coarse copy of it, timed for the shortest while."""
    data = open_data(labelled(), scorer())
    return compare_models(scorer(), to_bytes(scorer(2.0)), data, CompareSettings(seconds=0.05))


def test_accuracy_is_b_held_against_a(found: Compared) -> None:
    given_data = labelled()
    hits: list[float] = []
    for x in (given_data["x"], np.rint(given_data["x"] / 2)):
        is_top = x == x.max(1, keepdims=True)  # several where scores are tied
        hits.append((is_top[np.arange(len(x)), given_data["y"]] / is_top.sum(1)).mean())
    assert found.accuracy is not None and found.accuracy.against is not None
    assert found.accuracy.value == pytest.approx(hits[1])
    assert found.accuracy.against.value == pytest.approx(hits[0])
    assert found.accuracy.against.difference == pytest.approx(hits[1] - hits[0])
    assert not found.why


def test_the_verdict_says_all_three(found: Compared) -> None:
    assert found.names == ("model 1", "model 2")
    assert "model 2 is " in found.verdict
    assert " than model 1" in found.verdict
    assert "; top-1: worse (−" in found.verdict
    assert found.verdict.endswith(", 400 samples)")
    assert "\n" not in found.verdict


def test_sizes_are_those_of_the_files(tmp_path: Path) -> None:
    model, path = scorer(), tmp_path / "model.tflite"
    save(model, path)
    assert measure_size(model) == measure_size(path) == measure_size(to_bytes(model))
    assert measure_size(path).bytes == path.stat().st_size
    assert measure_size(str(path)).gzip_bytes < path.stat().st_size


def test_each_output_has_its_drift() -> None:
    data = open_data(labelled()["x"], halves(coarse=False))
    drifts = drift(halves(coarse=False), halves(coarse=True), data)
    first, second = drifts.outputs
    assert first.is_equal and first.cosine == 1
    assert not second.is_equal
    assert second.snr_db is not None and 10 < second.snr_db < 40
    assert second.cosine is not None and 0.9 < second.cosine < 1
    assert (drifts.samples, drifts.is_random) == (64, False)


def test_drift_on_random_inputs_is_said_to_be() -> None:
    drifts = drift(scorer(), scorer(), None)
    assert drifts.is_random and drifts.samples > 0
    assert [one.snr_db for one in drifts.outputs] == [MOST_DB]


def test_no_number_of_a_is_no_drift_of_b() -> None:
    b = Builder()
    lost = b.model(b.op("SQRT", b.input("x", (1, 4))))
    drifts = drift(lost, lost, None)
    assert [(one.cosine, one.snr_db) for one in drifts.outputs] == [(None, None)]
    broken = drift(scorer(), lost, None).outputs[0]
    assert broken.snr_db == -MOST_DB


def test_texts_cannot_be_made_at_random() -> None:
    b = Builder()
    x = b.input("words", (1,), "string")
    texts = b.model(b.op("RESHAPE", x, np.array([1, 1], np.int32), dtype="string"))
    assert "takes texts" in drift(texts, texts, None).why


def _shaped(*shape: int, dtype: str = "float32", quant: Quant | None = None) -> Model:
    b = Builder()
    x = b.input("x", shape, dtype, quant=quant)
    return b.model(b.op("RESHAPE", x, np.array(shape, np.int32), dtype=dtype, quant=quant))


PIXELS = Quant.of(1 / 255, 0)


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (_shaped(1, 4), _shaped(1, 4), ""),
        (_shaped(1, 4), _shaped(1, 5), "input 'x' of A is float32 1×4, B's is float32 1×5"),
        (_shaped(1, 4), _shaped(4), "input 'x' of A is float32 1×4, B's is float32 4"),
        (_shaped(1, 4), _shaped(1, 4, dtype="uint8", quant=PIXELS), ""),
        (_shaped(1, 4), _shaped(1, 4, dtype="uint8"), "B's is uint8 1×4"),
        (_shaped(1, 4, dtype="int32"), _shaped(1, 4, dtype="int64"), "B's is int64 1×4"),
        (scorer(), halves(coarse=False), "A has 1 output, B has 2 outputs"),
    ],
)
def test_what_takes_and_gives_something_else_is_not_scored(a: Model, b: Model, told: str) -> None:
    why = misfit(a, b)
    assert told in why and bool(told) == bool(why)
    assert bool(misfit(b, a)) == bool(why)


@pytest.mark.parametrize(("shape", "fits"), [((-1, 4), True), ((-1, -1), True), ((-1, 5), False)])
def test_a_free_dimension_fits_any_size(shape: tuple[int, ...], fits: bool) -> None:
    b = Builder()
    free = b.model(b.op("ABS", b.input("x", shape)))
    assert (not misfit(_shaped(1, 4), free)) == fits


def test_models_that_do_not_fit_have_the_reason_in_place_of_drift(found: Compared) -> None:
    why = misfit(scorer(), scorer(classes=5))
    assert drift(scorer(), scorer(classes=5), None) == Drifts(why=why)
    told = replace(found, accuracy=None, why=why).verdict
    assert told.endswith(f"; accuracy is not compared: {why}")


FACTORS = st.floats(0.01, 100)


@draws(50)
@given(FACTORS, st.integers(1, 10**9), st.integers(1, 10**9))
def test_the_sentence_follows_the_numbers(
    found: Compared, factor: float, first: int, second: int
) -> None:
    comparison = replace(found.bench.comparisons[0], ratio=Ratio((factor,) * 8))
    bench = replace(found.bench, comparisons=(comparison,))
    told = replace(found, bench=bench, sizes=(Size(first, 1), Size(second, 1))).verdict
    assert ("× faster" in told) == (factor < 0.99)
    assert ("× slower" in told) == (factor > 1.01)
    assert ("× smaller" in told) <= (second < first)
    assert ("× larger" in told) <= (second > first)
    claims = ("× faster", "× slower", "× smaller", "× larger")
    assert told.count("×") == sum(claim in told for claim in claims)


def test_too_few_blocks_claim_no_speed(found: Compared) -> None:
    comparison = replace(found.bench.comparisons[0], ratio=Ratio((0.1,) * 3))
    few = replace(found, bench=replace(found.bench, comparisons=(comparison,)))
    assert few.verdict.startswith("speed: too few runs to tell; ")
    assert "faster" not in few.verdict


def test_a_busy_machine_comes_first_and_claims_no_speed(found: Compared) -> None:
    unclear = Ratio((0.1,) * 8, (10.0, 1.0), is_busy=True)
    comparison = replace(found.bench.comparisons[0], ratio=unclear)
    told = replace(found, bench=replace(found.bench, comparisons=(comparison,)))
    assert told.verdict.startswith("unclear: the machine was busy; model 2 is ")
    assert "faster" not in told.verdict
    assert told.to_json()["latency"]["verdict"] == "unclear: the machine was busy"


def test_the_ratio_is_that_of_the_times_beside_it(found: Compared) -> None:
    latency = found.to_json()["latency"]
    assert latency["b_us"] / latency["a_us"] == pytest.approx(latency["ratio"])
    assert found.ratio.us == (latency["a_us"], latency["b_us"])


def test_names_are_as_long_as_tells_them_apart(found: Compared) -> None:
    def named(*names: str) -> Compared:
        results = tuple(
            replace(result, contender=replace(result.contender, name=name))
            for result, name in zip(found.bench.results, names, strict=True)
        )
        return replace(found, bench=replace(found.bench, results=results))

    assert named("x/a.tflite", "y/b.tflite").names == ("a.tflite", "b.tflite")
    assert named("x/a.tflite", "y/a.tflite").names == (
        str(Path("x/a.tflite")),
        str(Path("y/a.tflite")),
    )
    assert named("x/a.tflite", "x/a.tflite").names == ("a.tflite", "a.tflite")
    assert " than itself" in named("x/a.tflite", "x/a.tflite").verdict


def test_equal_models_are_called_equal() -> None:
    data = open_data(labelled(60), scorer())
    found = compare_models(scorer(), scorer(), data, CompareSettings(seconds=0.05))
    assert found.verdict.endswith("; the outputs are equal on all 60 samples")
    assert found.accuracy is not None and found.accuracy.against is not None
    assert found.accuracy.against.verdict == SAME


def test_what_is_asked_for_is_looked_at_before_the_work() -> None:
    with pytest.raises(BadInput, match="no metric 'f2'"):
        litesmith.compare(scorer(), scorer(), labelled(20), metric="f2")
    with pytest.raises(BadInput, match="no target 'tpu'"):
        litesmith.compare(scorer(), scorer(), on="tpu")
