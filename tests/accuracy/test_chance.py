"""A model that guesses is seen; one that knows a little is left alone."""

import numpy as np
import pytest

from litesmith import Builder, Model
from litesmith.accuracy.chance import Answers, at_chance, is_guessing
from litesmith.data.preparation import Preparation
from litesmith.data.sources import open_data
from tests.data.test_lint import Plain


def drawn(right: float, classes: int, count: int, seed: int) -> Answers:
    """Answers of which so many know the label; the others are wrong."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, count)
    wrong = (labels + rng.integers(1, classes, count)) % classes
    return Answers(np.where(rng.random(count) < right, labels, wrong), labels)


def flagged(right: float, classes: int, count: int, times: int = 30) -> float:
    return float(np.mean([is_guessing(drawn(right, classes, count, s)) for s in range(times)]))


@pytest.mark.parametrize("classes", [2, 3, 10, 100, 1000])
def test_guesses_are_seen(classes: int) -> None:
    assert flagged(1 / classes, classes, 512) >= 0.9


@pytest.mark.parametrize(
    ("right", "classes"), [(0.6, 2), (0.16, 10), (0.05, 100), (0.03, 1000), (0.51, 1000)]
)
@pytest.mark.parametrize("count", [10, 30, 100, 512])
def test_a_model_that_knows_a_little_is_left_alone(right: float, classes: int, count: int) -> None:
    assert flagged(right, classes, count) <= 0.1


def test_sixty_of_a_hundred_is_more_than_chance_can_be_blamed_for() -> None:
    labels = np.arange(100) % 2
    chosen = np.where(np.arange(100) < 60, labels, 1 - labels)
    assert not is_guessing(Answers(chosen, labels))


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_few_samples_prove_nothing(count: int) -> None:
    assert not any(is_guessing(drawn(0.1, 10, count, seed)) for seed in range(20))


def test_always_answering_the_most_frequent_class_is_guessing() -> None:
    labels = (np.arange(500) % 10 == 0).astype(np.int64)
    assert is_guessing(Answers(np.zeros(500, np.int64), labels))


def test_finding_some_of_the_rare_ones_is_not() -> None:
    labels = (np.arange(500) % 10 == 0).astype(np.int64)
    chosen = np.where(np.arange(500) < 150, labels, 0)
    assert not is_guessing(Answers(chosen, labels))


def test_labels_of_one_class_say_nothing_against_a_model_that_finds_it() -> None:
    labels = np.full(500, 3)
    assert not is_guessing(Answers(labels, labels))
    assert is_guessing(Answers(labels + 1, labels))


WEIGHTS = np.random.default_rng(5).normal(size=(12, 192)).astype(np.float32)
WEIGHTS -= WEIGHTS.mean(axis=1, keepdims=True)


def reader(bias: float = 0.0) -> Model:
    """A model whose scores depend on the sum of each image with twelve patterns."""
    b = Builder()
    flat = b.op("RESHAPE", b.input("image", (1, 8, 8, 3)), [1, 192])
    shift = np.where(np.arange(12) == 4, bias, 0).astype(np.float32)
    return b.model(b.op("SOFTMAX", b.op("FULLY_CONNECTED", flat, WEIGHTS, shift)))


def pixels(count: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Images and the pattern that each is most like, after (x − 127.5) / 127.5."""
    x = np.random.default_rng(1).integers(0, 256, (count, 8, 8, 3)).astype(np.uint8)
    real = (x.reshape(count, -1) - 127.5) / 127.5
    return x, (real @ WEIGHTS.T).argmax(axis=1)


def said(x: np.ndarray, y: np.ndarray, model: Model, **settings: object) -> str | None:
    preparation = Preparation(**{"norm": "tf", "label_offset": 0, **settings})  # type: ignore[arg-type]
    return at_chance(model, open_data({"x": x, "y": y}, model, preparation=preparation))


def test_a_model_that_is_right_is_passed() -> None:
    assert said(*pixels(), reader()) is None


def test_labels_that_mean_nothing_are_said_to_in_one_line() -> None:
    x, y = pixels()
    told = said(x, np.random.default_rng(2).permutation(y), reader())
    assert told is not None and "no better than guessing" in told and "none of these" in told
    assert "--norm unit" in told and "of 512 labelled samples" in told and "\n" not in told


def test_another_normalisation_is_named() -> None:
    x, y = pixels()
    model = reader(bias=40.0)  # which drowns all but pixels of 0 to 255
    raw = (x.reshape(len(x), -1).astype(np.float32) @ WEIGHTS.T + np.eye(12)[4] * 40).argmax(axis=1)
    told = said(x, raw, model, norm="unit")
    assert told is not None and "with --norm raw it would be 100.0 %" in told
    scaled = Preparation(label_offset=0)
    data = open_data({"x": (x / 255).astype(np.float32), "y": raw}, model, preparation=scaled)
    assert "with pixels of 0 to 255 and --norm raw" in (at_chance(model, data) or "")
    assert y.shape == raw.shape


@pytest.mark.parametrize("offset", [-1, 1])
def test_labels_that_are_off_by_one_are_named(offset: int) -> None:
    x, y = pixels()
    told = said(x, y - offset, reader())
    assert told is not None and f"with --label-offset {offset} it would be 100.0 %" in told


def test_numbers_in_the_order_of_text_are_named() -> None:
    x, y = pixels()
    as_text = np.array([int(name) for name in sorted(map(str, range(12)))])
    told = said(x, as_text[y], reader())
    assert told is not None and "order of their numbers as text" in told


def test_classes_in_another_order_are_named() -> None:
    x, y = pixels()
    told = said(x, np.random.default_rng(3).permutation(12)[y], reader())
    assert told is not None and "with the classes in another order it would be" in told


def test_data_of_another_make_is_judged() -> None:
    x, y = pixels()
    opened = open_data({"x": x, "y": y}, reader(), preparation=Preparation(norm="tf"))
    assert at_chance(reader(), Plain(list(opened))) is None
    mixed = open_data({"x": x, "y": y[::-1]}, reader(), preparation=Preparation(norm="tf"))
    assert "no better" in (at_chance(reader(), Plain(list(mixed))) or "")


def test_what_has_no_classes_is_not_judged() -> None:
    x, _ = pixels(70)
    assert said(x, np.random.default_rng(0).normal(size=(70, 2)), reader()) is None
    model = reader()
    assert at_chance(model, open_data(x, model, preparation=Preparation(norm="tf"))) is None


def test_nothing_but_nan_is_guessing() -> None:
    x, y = pixels()
    told = said(x, y, reader(bias=float("nan")))
    assert told is not None and "0.0 % of 512" in told
