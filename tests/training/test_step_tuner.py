"""Training a model on data: what it gains, what it may never lose, what it refuses."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.draws import draws

torch = pytest.importorskip("torch", reason="torch is not installed: the extra `train`")

from litesmith.calibration.observe import tools  # noqa: E402
from litesmith.data.samples import Data  # noqa: E402
from litesmith.data.sources import open_data  # noqa: E402
from litesmith.errors import BadInput, CannotApply  # noqa: E402
from litesmith.ir.build import Builder  # noqa: E402
from litesmith.ir.types import Array, Model  # noqa: E402
from litesmith.passes.core.step import Context  # noqa: E402
from litesmith.passes.quantizing.quantize import Quantize  # noqa: E402
from litesmith.passes.shrinking.prune import Prune  # noqa: E402
from litesmith.tflite.write import to_bytes  # noqa: E402
from litesmith.training.sample_arrays import gather_samples  # noqa: E402
from litesmith.training.settings import Look, Training  # noqa: E402
from litesmith.training.step_tuner import Tuner, share_minutes  # noqa: E402
from litesmith.training.student import Student  # noqa: E402
from tests.quantized import broken_laws, results  # noqa: E402
from tests.training.small import (  # noqa: E402
    classifier,
    damaged,
    data_of,
    inputs,
    interface,
    labelled,
    pictures,
    regression,
    several,
    words,
    zeros,
)
from tests.zoo_float import dense  # noqa: E402

SHORT = Training(epochs=2)


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> None:
    torch.set_num_threads(1)


def quantized(model: Model, data: Data, to: str = "int8", **settings) -> Model:
    return Quantize(to, **settings).apply(model, Context(tools(data, threads=1))).model


def error(original: Model, model: Model, data: Data) -> float:
    """The squared error on held-out samples, as the runtime computes it, for numbers alone."""
    held = gather_samples(data, labelled=False).held
    wanted, got = (results(m, data)[0][held] for m in (original, model))
    return float(((wanted - got) ** 2).mean())


# What it gains.


@pytest.mark.parametrize("make", [regression, classifier, several, words, pictures])
def test_a_damaged_model_comes_nearer_to_the_original(make: Callable[[], Model]) -> None:
    """Without labels: numbers, classes, several outputs, words, a class for every place."""
    original, hurt = make(), damaged(make(), 0.5)
    data = data_of(original, 64)
    tuned = Tuner(original, data, Training(epochs=6, rate=1e-2))(hurt).model
    assert interface(tuned) == interface(original)
    outputs = [results(model, data) for model in (original, hurt, tuned)]
    before, after = (
        sum(((a - b) ** 2).mean() / a.var() for a, b in zip(outputs[0], other, strict=True))
        for other in outputs[1:]
    )
    assert after < 0.5 * before


def accuracy(model: Model, items: Array, labels: Array) -> float:
    answers = results(model, open_data(items, model))[0]
    return float((answers.reshape(len(labels), -1).argmax(axis=1) == labels).mean())


def test_labels_teach_what_the_original_does_not_know() -> None:
    original = classifier()
    items, labels = labelled()
    others, theirs = labelled(seed=1)
    data = open_data({"x": items, "y": labels}, original)
    tuned = Tuner(original, data, Training(epochs=8, labels=1.0, rate=1e-2))(original).model
    assert accuracy(original, others, theirs) < 0.6
    assert accuracy(tuned, others, theirs) > 0.9


def test_a_share_of_nothing_leaves_labels_out() -> None:
    original, (items, labels) = classifier(), labelled()
    hurt = damaged(original)
    training = Training(epochs=1, rate=1e-3, labels=0.0)
    with_labels, without = (
        Tuner(original, open_data(given, original), training)(hurt).model
        for given in ({"x": items, "y": labels}, {"x": items})
    )
    assert to_bytes(with_labels) == to_bytes(without)


@pytest.mark.parametrize("to", ["int8", "int16x8", "w4a8"])
@pytest.mark.parametrize("make", [several, words, pictures])
def test_quantized_models_of_every_sort_train(make: Callable[[], Model], to: str) -> None:
    original = make()
    data = data_of(original, 24)
    begun = quantized(original, data, to)
    tuned = Tuner(original, data, Training(epochs=1, rate=1e-3))(begun, origin=original).model
    assert not broken_laws(tuned)
    assert interface(tuned) == interface(begun)
    results(tuned, data)


def logarithm() -> Model:
    """LOG of what is never zero, until it is rounded."""
    b = Builder()
    x = b.op("RELU", dense(b, b.input("x", (1, 16)), 24))
    x = b.op("LOG", b.op("ADD", x, np.float32(1e-4)))
    return b.model(dense(b, x, 6, 3))


def test_a_gradient_that_is_no_number_teaches_nothing() -> None:
    original = logarithm()
    data = data_of(original)
    begun = quantized(original, data, only=(0, 1, 2, 4))
    student = Student(begun, origin=original)
    rows = torch.from_numpy(inputs(original)[0])
    student([rows])[0].square().sum().backward()
    gradients = [p.grad for p in student.parameters if p.grad is not None]
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)
    assert any(bool(gradient.any()) for gradient in gradients)
    tuned = Tuner(original, data, SHORT)(begun, origin=original).model
    assert all(np.isfinite(values).all() for values in results(tuned, data))


# What it may never lose.


@draws(12)
@given(
    st.integers(0, 50),
    st.sampled_from([1e-5, 1e-3, 3e-2, 10.0]),
    st.sampled_from(["float", "int8", "w4a8"]),
)
def test_the_result_is_never_worse_in_the_runtime(seed: int, rate: float, to: str) -> None:
    original = regression(seed)
    data = data_of(original, 32, seed)
    begun, origin = damaged(original, 0.2, seed), None
    if to != "float":
        begun, origin = quantized(original, data, to), original
    tuned = Tuner(original, data, Training(epochs=1, rate=rate))(begun, origin=origin)
    before, after = (error(original, model, data) for model in (begun, tuned.model))
    assert after <= before * (1 + 1e-5)
    assert all(np.isfinite(results(tuned.model, data)[0]).reshape(-1))


def wide(seed: int) -> Model:
    """Layers large enough to be stored as int8 while the data stays float."""
    b = Builder()
    x = dense(b, b.input("x", (1, 24)), 48, seed, fused_activation_function="RELU")
    return b.model(dense(b, x, 24, seed + 2))


def test_the_runtime_has_the_last_word() -> None:
    """Kernels that round data as they run, which training does not see, undo some of it."""
    undone = 0
    for seed in range(6):
        original = wide(seed)
        data = data_of(original, 24, seed)
        begun = quantized(original, data, "dynamic")
        tuned = Tuner(original, data, replace(SHORT, rate=1e-4))(begun, origin=original)
        assert error(original, tuned.model, data) <= error(original, begun, data) * (1 + 1e-5)
        undone += "stays as it was" in tuned.notes[-1]
    assert undone


def test_what_gained_nothing_is_as_it_was() -> None:
    """An original that follows itself cannot gain: float up to rounding, codes to the last."""
    original = regression()
    data = data_of(original)
    tuned = Tuner(original, data, Training(epochs=1, rate=10.0))(original).model
    np.testing.assert_allclose(results(tuned, data)[0], results(original, data)[0], atol=1e-5)
    begun = quantized(original, data)
    told = Tuner(original, data, Training(epochs=1, rate=1e4))(begun, origin=original)
    assert "kept" in told.notes[-1] or "stays as it was" in told.notes[-1]
    assert np.array_equal(results(told.model, data)[0], results(begun, data)[0])


def test_the_same_seed_is_the_same_file() -> None:
    original = pictures()
    data = data_of(original, 24)
    begun = quantized(original, data)
    one, same, other = (
        to_bytes(Tuner(original, data, replace(SHORT, seed=seed))(begun, origin=original).model)
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


# Settings.


def test_a_tiny_budget_gives_a_valid_result() -> None:
    original = regression()
    data = data_of(original)
    begun = quantized(original, data)
    for minutes in (1e-9, 1e-3):
        training = Training(epochs=1e5, minutes=minutes)
        tuned = Tuner(original, data, training)(begun, origin=original)
        assert not broken_laws(tuned.model)
        assert error(original, tuned.model, data) <= error(original, begun, data)


@given(st.floats(0.01, 1e3), st.integers(1, 8))
def test_stages_that_take_their_share_have_equal_shares_of_the_minutes(
    minutes: float, stages: int
) -> None:
    shares: list[float] = []
    for stage in range(stages):
        shares.append(share_minutes(minutes, spent=sum(shares), trainings=stages - stage))
    assert shares == pytest.approx([minutes / stages] * stages)


@given(st.floats(0.01, 1e3), st.floats(0, 1e4), st.integers(-1, 8))
def test_a_stage_after_slow_ones_has_some_minutes_left(
    minutes: float, spent: float, trainings: int
) -> None:
    own = share_minutes(minutes, spent=spent, trainings=trainings)
    assert 0.1 * minutes / max(1, trainings) <= own <= minutes


def test_every_stage_trains_within_the_minutes() -> None:
    original = regression()
    data = data_of(original)
    looks: list[Look] = []
    training = Training(epochs=1e6, minutes=0.02)
    tuner = Tuner(original, data, training, stages=3, watch=looks.append)
    for _ in range(3):
        seen = len(looks)
        tuner(damaged(original))
        assert looks[-1].step >= 1 and len(looks) > seen


@pytest.mark.parametrize(
    ("changes", "words_of_it"),
    [
        ({"device": "abacus"}, "device abacus"),
        ({"augment": "spin"}, "augment='spin'"),
        ({"labels": 1.5}, r"labels=1\.5"),
        ({"labels": float("nan")}, "labels=nan"),
    ],
)
def test_settings_that_mean_nothing_are_one_line(changes: dict, words_of_it: str) -> None:
    original = regression()
    with pytest.raises(BadInput, match=words_of_it) as caught:
        Tuner(original, data_of(original), Training(**changes))(original)
    assert "\n" not in str(caught.value)


NAN, INF = float("nan"), float("inf")
MEANINGLESS = {
    "rate": (0.0, -1.0, NAN, INF),
    "epochs": (0.0, -1.0, NAN, INF),
    "minutes": (0.0, -1.0, NAN),
    "batch": (-1,),
    "seed": (-1,),
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in MEANINGLESS.items() for value in values]
)
def test_numbers_that_mean_nothing_are_one_line(name: str, value: float) -> None:
    original = regression()
    with pytest.raises(BadInput, match=f"{name}=") as caught:
        Tuner(original, data_of(original), replace(SHORT, **{name: value}))(original)
    assert "\n" not in str(caught.value)


def test_labels_outside_are_one_line() -> None:
    original, (items, labels) = classifier(), labelled()
    for wrong in (labels + 1, labels - 1):
        with pytest.raises(BadInput, match="outside the model's classes") as caught:
            Tuner(original, open_data({"x": items, "y": wrong}, original))(original)
        assert "\n" not in str(caught.value)


def test_labels_that_are_no_classes_are_left_out_aloud() -> None:
    original = regression()
    (items,) = inputs(original)
    targets = np.random.default_rng(0).normal(size=(len(items), 20)).astype(np.float32)
    data = open_data({"x": items, "y": targets}, original)
    tuned = Tuner(original, data, replace(SHORT, rate=1e-3))(damaged(original))
    assert any("labels" in note for note in tuned.notes)


def test_bad_samples_are_one_line() -> None:
    original = regression()
    (items,) = inputs(original)
    spoiled = items.copy()
    spoiled[3, 4] = np.nan
    for wrong, why in ((items[:15], "too few"), (spoiled, "infinite|not a number|not numbers")):
        with pytest.raises(BadInput, match=why) as caught:
            Tuner(original, open_data(wrong, original))(original)
        assert "\n" not in str(caught.value)


def test_zeros_of_a_gradual_schedule_are_exactly_those_asked_for() -> None:
    original = regression()
    data = data_of(original)
    for block, sparsity in (("1x1", 0.6), ("1x4", 0.5)):
        tuner = Tuner(original, data, replace(SHORT, rate=1e-2))
        step = Prune(sparsity, block=block, schedule="gradual")
        change = step.apply(original, Context(tools(data, threads=1), tune=tuner))
        total = 16 * 24 + 20 * 16
        unit = 4 if block == "1x4" else 1
        assert sum(zeros(change.model)) == round(sparsity * total / unit) * unit


def test_an_output_of_integers_is_named() -> None:
    b = Builder()
    x = dense(b, b.input("x", (1, 16)), 4)
    model = b.model(x, b.op("ARG_MAX", x, np.int32(1), output_type="INT64", dtype="int64"))
    try:
        tuned = Tuner(model, data_of(model), SHORT)(damaged(model))
    except CannotApply as problem:
        assert "arg_max" in str(problem) and "\n" not in str(problem)
    else:
        assert interface(tuned.model) == interface(model)
