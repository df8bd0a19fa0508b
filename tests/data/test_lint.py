"""Each rule fires on bad data and is silent on good data."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from litesmith import Builder, Model, Quant
from litesmith.data.lint import RULES, Problem, lint
from litesmith.data.preparation import Preparation
from litesmith.data.samples import Items, Sample
from litesmith.data.sources import open_data
from tests.data.test_sources import scorer
from tests.tflite.test_read_metadata import described

GIVEN = Preparation(label_offset=0)


def good(count: int = 128, seed: int = 0, high: float = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, high, (count, 8, 8, 3)).astype(np.float32)


def found(x: np.ndarray, model: Model | None = None, **arrays: np.ndarray) -> list[Problem]:
    chosen = model or scorer()
    return lint(open_data({"x": x, **arrays}, chosen, preparation=GIVEN), chosen)


def normalizing(kind: str, number: float) -> Model:
    """A model that scales pixels itself before a convolution."""
    b = Builder()
    x = b.op("SUB", b.input("image", (1, 8, 8, 3)), np.float32(1))
    x = b.op(kind, x, np.float32(number))
    return b.model(b.op("CONV_2D", x, np.ones((4, 1, 1, 3), np.float32), np.zeros(4, np.float32)))


def test_good_data_is_passed_in_silence() -> None:
    model = described(scorer(), [0], [255], None)
    y = np.arange(128) % 4
    data = open_data({"x": good(), "y": y}, model, preparation=GIVEN)
    other = open_data({"x": good(seed=1), "y": y}, model, preparation=GIVEN)
    assert lint(data, model, evaluation=other) == []


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite(value: float) -> None:
    x = good()
    x[17, 3, 3, 1] = value
    [problem] = found(x)
    assert problem.serious and "1 of 128 samples hold NaN or infinity" in problem.what
    assert "row 17" in problem.what


def test_nothing_but_not_a_number() -> None:
    assert any("NaN" in p.what for p in found(np.full((128, 8, 8, 3), np.nan, np.float32)))


def test_constant_inputs() -> None:
    x = good()
    x[5] = 0
    [problem] = found(x)
    assert not problem.serious and "row 5" in problem.what and "one value" in problem.what
    x[:100] = np.arange(100)[:, None, None, None]
    assert any(p.serious and "100 of 128" in p.what for p in found(x))


@pytest.mark.parametrize(("mean", "std"), [(0, 1), (127.5, 1)])
def test_normalised_although_the_metadata_wants_pixels(mean: float, std: float) -> None:
    [problem] = found(good(), described(scorer(), [mean], [std]))
    assert problem.serious and "metadata wants" in problem.what and "twice" in problem.why


def test_pixels_although_the_metadata_wants_small_numbers() -> None:
    [problem] = found(good(high=255), described(scorer(), [127.5], [127.5]))
    assert problem.serious and "not normalised" in problem.why


def test_half_of_the_range() -> None:
    [problem] = found(good(), described(scorer(), [127.5], [127.5]))
    assert not problem.serious and "only" in problem.what


@pytest.mark.parametrize(("kind", "number"), [("DIV", 127.5), ("MUL", 1 / 255)])
def test_normalised_although_the_model_does_it_itself(kind: str, number: float) -> None:
    model = normalizing(kind, number)
    [problem] = found(good(), model)
    assert problem.serious and "first ops" in problem.what
    assert found(good(high=255), model) == []


def test_a_model_that_scales_a_little_wants_no_pixels() -> None:
    assert found(good(), normalizing("MUL", 0.5)) == []


def test_values_that_an_integer_input_cannot_hold() -> None:
    model = scorer(1, 8, 8, 3, dtype="int8", quant=Quant.of(1 / 128, 0))
    [problem] = found(good(high=255), model)
    assert problem.serious and "its scale holds -1 to 0.992188" in problem.what
    assert found(good() * 2 - 1, model) == []


def test_a_scale_of_nothing_says_nothing() -> None:
    assert found(good(), scorer(1, 8, 8, 3, dtype="int8", quant=Quant.of(0.0, 0))) == []


@pytest.mark.parametrize(("count", "serious"), [(1, True), (7, True), (8, False), (127, False)])
def test_too_few(count: int, serious: bool) -> None:
    [problem] = found(good(count))
    assert problem.what == f"{count} samples" and problem.serious == serious


def test_a_single_outlier_is_named() -> None:
    x = good()
    x[77, 0, 0, 0] = -50
    [problem] = found(x)
    assert problem.what.startswith("row 77 reaches 50") and not problem.serious


def test_a_wide_spread_is_no_outlier() -> None:
    x = good() * np.linspace(0.1, 10, 128, dtype=np.float32)[:, None, None, None]
    assert found(x) == []


def test_samples_in_both_sets() -> None:
    model = scorer()
    data = open_data(good(), model)
    mixed = np.concatenate([good(100, seed=2), good()[40:42]])
    [problem] = lint(data, model, evaluation=open_data(mixed, model))
    assert problem.serious and "2 of 128 samples are also" in problem.what
    assert "first row 40" in problem.what


def test_the_same_samples_prepared_differently_are_still_the_same() -> None:
    model = scorer()
    other = open_data(good(), model, preparation=Preparation(norm="unit"))
    problems = lint(open_data(good(), model), model, evaluation=other)
    assert any("128 of 128 samples are also" in p.what for p in problems)


@pytest.mark.parametrize("label", [4, -1])
def test_labels_outside_the_classes(label: int) -> None:
    y = np.arange(128) % 4
    y[9] = label
    [problem] = found(good(), y=y)
    assert problem.serious and f"first {label} of row 9" in problem.what


def test_copies() -> None:
    x = good()
    x[1] = x[0]
    [problem] = found(x)
    assert problem.what.startswith("1 of 128 samples are copies") and not problem.serious
    assert any(p.serious and "copies" in p.what for p in found(np.repeat(good(2), 64, axis=0)))


@dataclass
class Plain:
    """Data of another make."""

    samples: list[Sample]
    source: str = "plain"
    digest: str = ""
    notes: tuple[str, ...] = ()
    items: Items = field(default_factory=Items)

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self.samples)


def test_any_data_is_judged_alike() -> None:
    x = good()
    x[3] = np.nan
    x[4] = x[5]
    y = np.arange(128) % 4
    y[6] = 9
    own = open_data({"x": x, "y": y}, scorer(), preparation=GIVEN)
    other = Plain(list(own))
    assert lint(other, scorer()) == lint(own, scorer())
    assert len(lint(other, scorer(), evaluation=other)) == len(lint(own, scorer())) + 1


def test_tokens_are_not_judged_as_numbers() -> None:
    b = Builder()
    model = b.model(b.op("ADD", b.input("ids", (1, 4), "int32"), np.ones((1, 4), np.int32)))
    ids = np.arange(512, dtype=np.int32).reshape(128, 4)
    assert lint(open_data(ids, model), model) == []


def test_every_rule_is_fired_here() -> None:
    """A new rule needs a test; this counts what the bad cases of this file say."""
    x = good(7)
    x[0] = np.nan
    x[1] = 0
    x[3] = x[2]
    model = described(scorer(), [0], [1])
    data = open_data({"x": x, "y": np.full(7, 9)}, model, preparation=GIVEN)
    said = {p.what for p in lint(data, model, evaluation=data)}
    outlier = good(8)
    outlier[0, 0, 0, 0] = 100
    said |= {p.what for p in found(outlier) if "reaches" in p.what}
    assert len(said) == len(RULES)


def test_large_data_is_not_read_whole() -> None:
    read: list[int] = []
    data = open_data(good(2000), scorer())
    rows = data.rows  # type: ignore[attr-defined]

    def noted(index: int) -> object:
        read.append(index)
        return rows.read(index)

    watched = replace(data, rows=replace(rows, read=noted))  # type: ignore[type-var]
    assert lint(watched, scorer()) == []
    assert len(read) <= 300 and max(read) > 1900
