"""The metric that is chosen fits the labels and the model, or it is said why not."""

import math
from dataclasses import replace

import numpy as np
import pytest

from litesmith import BadInput, Builder, Model
from litesmith.accuracy.evaluate import Evaluation, evaluate_all, refuse_misfit
from litesmith.data.sources import open_data
from tests.accuracy.test_evaluate import Given, scorer


def told(model: Model, y: np.ndarray, against: Model | None = None) -> Evaluation:
    x = np.random.default_rng(0).normal(size=(len(y), *model.main.inputs[0].shape[1:]))
    data = open_data({"x": x.astype(np.float32), "y": y}, model)
    return evaluate_all([model], data, against=against)[0]


def test_whole_numbers_for_one_score() -> None:
    one = scorer(classes=1)
    assert told(one, np.arange(12) % 2).metric == "auc"
    assert told(one, np.arange(12)).metric == "rmse"
    assert told(one, np.arange(12.0)).metric == "rmse"
    with pytest.raises(BadInput, match="both classes; all labels are 1"):
        told(one, np.ones(12, np.int64))


def test_labels_that_are_no_classes_of_the_model() -> None:
    with pytest.raises(BadInput, match="2 of 6 labels are outside the model's classes 0 to 3"):
        told(scorer(), np.arange(6))
    found = told(scorer(), np.arange(6), scorer())
    assert found.metric == "snr"
    assert any("outside" in n and "SNR is reported in place of accuracy" in n for n in found.notes)
    found = told(scorer("SOFTMAX"), np.arange(6), scorer("SOFTMAX"))
    assert found.metric == "agreement"


def test_a_model_without_a_list_of_scores() -> None:
    b = Builder()
    model = b.model(b.op("RELU", b.input("x", (1, 3, 3, 4))))
    with pytest.raises(BadInput, match="no list of scores; give labels that fit"):
        told(model, np.arange(6))
    assert told(model, np.arange(6), model).metric == "snr"


def test_scores_that_are_not_the_first_output() -> None:
    b = Builder()
    x = b.input("x", (1, 4))
    total = b.op("SUM", x, np.array([0, 1], np.int32), keep_dims=False)
    assert total.shape == ()
    model = b.model(total, b.op("RELU", x))
    assert told(model, np.arange(8) % 4).metric == "top1"


def test_a_misfit_is_found_before_the_work() -> None:
    x = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    refuse_misfit(scorer(), open_data({"x": x, "y": np.arange(6) % 4}, scorer()))
    refuse_misfit(scorer(), open_data(x, scorer()))
    with pytest.raises(BadInput, match="has a label of shape"):
        refuse_misfit(scorer(), open_data({"x": x, "y": x[:, :3]}, scorer()))


def test_infinite_errors_decide_by_their_sign() -> None:
    x = np.abs(np.random.default_rng(0).normal(size=(20, 4)))
    lost, fine = scorer("SQRT"), scorer()
    given = Given(-x, x)  # the root of a negative number is none
    for one, other, verdict in ((lost, fine, "worse"), (fine, lost, "better"), (lost, lost, "")):
        for metric in ("rmse", "mae"):
            found = evaluate_all([one], given, against=other, metric=metric)[0].against
            assert found is not None and found.verdict == verdict
            assert found.difference is not None and not math.isfinite(found.difference)


def test_the_main_graph_runs_whatever_signature_is_first() -> None:
    model = two_graphs()
    x = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    for keys in (model.signatures, model.signatures[::-1], model.signatures[1:], ()):
        one = replace(model, signatures=keys)
        data = open_data({"x": x, "y": x.argmax(1)}, one)
        assert evaluate_all([one], data)[0].value == 1, keys


def two_graphs() -> Model:
    """The main graph passes scores on; another one, which has a signature too, turns them round."""
    b, c = Builder(), Builder()
    first = b.model(b.op("ADD", b.input("x", (1, 4)), np.zeros(4, np.float32)), signature="main")
    second = c.model(c.op("NEG", c.input("z", (1, 4))), signature="other")
    (turned,) = second.signatures
    return replace(
        first,
        graphs=(first.main, second.main),
        signatures=(*first.signatures, replace(turned, graph=1)),
    )
