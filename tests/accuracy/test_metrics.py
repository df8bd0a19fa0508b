"""Every metric against a slow and simple account of the same thing."""

import math
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.accuracy.metrics import (
    METRICS,
    difference_of,
    users_metric,
    value_of,
)
from litesmith.accuracy.scoring import MOST_DB, ScoredSample
from litesmith.errors import BadInput
from tests.draws import draws

Scores = list[list[int]]
NAN = float("nan")

# Those of tasks are tested with their tasks.
LABELLED = [name for name, metric in METRICS.items() if metric.needs != "task"]


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def one_hot(labels: np.ndarray, classes: int) -> np.ndarray:
    return np.eye(classes, dtype=np.float32)[labels]


def perfect(name: str) -> ScoredSample:
    """A sample of four rows that is answered as well as can be."""
    labels = np.array([0, 1, 1, 0])
    if name in ("mae", "rmse", "cosine", "snr"):
        values = random().normal(size=(4, 3)).astype(np.float32)
        return ScoredSample((values,), values, (values,))
    if name == "miou":
        labels = random().integers(0, 6, (4, 5, 7))
    if name == "labels_f1":
        return ScoredSample((one_hot(labels, 6),), one_hot(labels, 6))
    if name == "anomaly_auc":
        given = random().normal(size=(4, 3)).astype(np.float32)
        return ScoredSample((given + labels[:, None].astype(np.float32),), labels, inputs=(given,))
    scores = one_hot(labels, 2 if name == "auc" else 6)
    return ScoredSample((scores,), labels, (scores,))


def broken(name: str) -> ScoredSample:
    """The same with every output NaN."""
    case = perfect(name)
    return case._replace(outputs=(np.full_like(case.outputs[0], NAN),))


@pytest.mark.parametrize("name", LABELLED)
def test_perfect_answers_have_the_best_value(name: str) -> None:
    metric = METRICS[name]
    best = {"mae": 0, "rmse": 0, "snr": MOST_DB}.get(name, 1)
    rows = metric.statistics(perfect(name))
    found = value_of(metric, rows)
    assert rows.shape[0] == 4
    assert found.value == pytest.approx(best)
    assert found.low <= found.value <= found.high
    assert metric.finish(rows).shape == (4,)
    assert difference_of(metric, rows, rows).value == 0


@pytest.mark.parametrize("name", LABELLED)
def test_nan_is_never_right(name: str) -> None:
    metric = METRICS[name]
    worst = {"mae": math.inf, "rmse": math.inf, "snr": -MOST_DB}.get(name, 0)
    assert value_of(metric, metric.statistics(broken(name))).value == worst


@pytest.mark.parametrize("name", LABELLED)
def test_the_order_of_rows_changes_nothing(name: str) -> None:
    metric, order = METRICS[name], random(1).permutation(40)
    worse = perfect(name).outputs[0] + random(2).normal(0, 0.6, perfect(name).outputs[0].shape)
    case = perfect(name)._replace(outputs=(worse.astype(np.float32),))
    rows = np.concatenate([metric.statistics(case), *[metric.statistics(perfect(name))] * 9])
    assert value_of(metric, rows) == pytest.approx(value_of(metric, rows[order]))


@given(
    st.integers(2, 8).flatmap(
        lambda c: st.tuples(
            st.lists(st.integers(0, 3), min_size=c, max_size=c), st.integers(0, c - 1)
        )
    )
)
def test_classes_of_equal_scores_share_what_one_of_them_gets(drawn: tuple[list[int], int]) -> None:
    scores, label = drawn
    array = np.array([scores], np.float32)
    for name, most in (("top1", 1), ("top5", 5)):
        every = [
            METRICS[name].statistics(ScoredSample((array,), np.array([c]))).item()
            for c in range(len(scores))
        ]
        assert sum(every) == pytest.approx(min(most, len(scores)))
        assert every[label] == pytest.approx(np.mean(np.array(every)[array[0] == scores[label]]))
        if scores.count(scores[label]) == 1:
            before = sum(score > scores[label] for score in scores)
            assert every[label] == (before < most)
    other = np.array([[score + (c == label) for c, score in enumerate(scores)]], np.float32)
    for reference, share in ((array, 1.0), (other, None)):
        both = ScoredSample((array,), None, (reference,))
        tops = [{*np.flatnonzero(a[0] == a.max())} for a in (array, reference)]
        wanted = len(tops[0] & tops[1]) / max(map(len, tops))
        assert METRICS["agreement"].statistics(both).item() == (share or wanted)


def test_a_model_may_choose_the_class_itself() -> None:
    case = ScoredSample((np.array([3, 1], np.int64),), np.array([3, 2]))
    assert METRICS["top1"].statistics(case)[:, 0].tolist() == [1, 0]
    with pytest.raises(BadInput, match="use the metric top1"):
        METRICS["top5"].statistics(case)


def test_scores_may_have_idle_dimensions() -> None:
    case = ScoredSample((one_hot(np.array([2]), 4).reshape(1, 1, 1, 4),), np.array([[2]]))
    assert METRICS["top1"].statistics(case).tolist() == [[1]]


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=40))
def test_auc_is_the_share_of_pairs_in_order(drawn: list[tuple[int, bool]]) -> None:
    scores, labels = np.array(drawn, np.float64).T
    pairs = [(p, n) for p in scores[labels == 1] for n in scores[labels == 0]]
    metric = METRICS["auc"]
    rows = metric.statistics(ScoredSample((scores[:, None],), labels.astype(np.int32)))
    if not pairs:
        with pytest.raises(BadInput, match="both classes"):
            value_of(metric, rows)
        return
    want = sum((p > n) + (p == n) / 2 for p, n in pairs) / len(pairs)
    assert value_of(metric, rows).value == pytest.approx(want)


def test_auc_of_two_columns_is_that_of_their_difference() -> None:
    logits, labels = random().normal(size=(30, 2)), random(1).integers(0, 2, 30)
    two = METRICS["auc"].statistics(ScoredSample((logits,), labels))
    one = METRICS["auc"].statistics(ScoredSample((logits[:, 1:] - logits[:, :1],), labels))
    assert (two == one).all()


def test_mean_iou_of_all_images_together() -> None:
    labels = random().integers(0, 4, (6, 8, 9))
    labels[0, :2] = 255
    scores = (one_hot(labels % 4, 5) + random(1).normal(0, 0.6, (6, 8, 9, 5))).astype(np.float32)
    chosen, counts = scores.argmax(-1), labels != 255
    shares = []
    for c in range(5):
        mine, true = (chosen == c) & counts, (labels == c) & counts
        if true.any():
            shares.append((mine & true).sum() / (mine | true).sum())
    rows = np.concatenate(
        [
            METRICS["miou"].statistics(ScoredSample((s[None],), t[None]))
            for s, t in zip(scores, labels, strict=True)
        ]
    )
    assert rows.shape == (6, 15)
    assert value_of(METRICS["miou"], rows).value == pytest.approx(np.mean(shares))
    maps = METRICS["miou"].statistics(ScoredSample((chosen,), labels))
    assert value_of(METRICS["miou"], maps).value == pytest.approx(np.mean(shares))


def test_mean_iou_of_a_mask() -> None:
    mask = np.array([[[[0.9], [0.2]], [[0.6], [0.4]]]], np.float32)
    rows = METRICS["miou"].statistics(ScoredSample((mask,), np.array([[[1, 0], [0, 0]]])))
    assert value_of(METRICS["miou"], rows).value == pytest.approx((2 / 3 + 1 / 2) / 2)


@pytest.mark.parametrize("name", ["snr", "cosine"])
def test_drift_of_outputs_with_other_numbers_of_rows(name: str) -> None:
    """A constant among the outputs has rows of its own; `eval` ended as a bug of ours."""
    answer, constant = random().normal(size=(1, 5)), random(1).normal(size=(16, 3))
    case = ScoredSample((answer, constant + 0.1), None, (answer, constant))
    alone = ScoredSample((constant.reshape(1, -1) + 0.1,), None, (constant.reshape(1, -1),))
    found, expected = (
        value_of(METRICS[name], METRICS[name].statistics(one)).value for one in (case, alone)
    )
    assert found == pytest.approx(expected)


def test_drift_is_that_of_the_worst_output() -> None:
    good, bad = random().normal(size=(2, 3)), random(1).normal(size=(2, 50))
    case = ScoredSample((good, bad + 0.1), None, (good, bad))
    snr = value_of(METRICS["snr"], METRICS["snr"].statistics(case)).value
    assert snr == pytest.approx(10 * math.log10(np.square(bad).sum() / (100 * 0.1**2)))
    found = METRICS["cosine"].statistics(case)[:, 0]
    for row, cosine in enumerate(found):
        a, b = bad[row] + 0.1, bad[row]
        assert cosine == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    zero = ScoredSample((np.zeros((1, 3)),), None, (np.zeros((1, 3)),))
    assert METRICS["cosine"].statistics(zero).item() == 1
    assert METRICS["cosine"].statistics(zero._replace(reference=(good[:1],))).item() == 0


@pytest.mark.parametrize(
    ("name", "case", "told"),
    [
        (
            "top1",
            ScoredSample((np.zeros((1, 4), np.float32),), np.array([4]), None, "a.jpg"),
            "'a.jpg' has the label 4; the model has the classes 0 to 3",
        ),
        ("top1", ScoredSample((np.zeros((1, 4), np.float32),), np.array([-1])), "the label -1"),
        ("top1", ScoredSample((np.zeros((1, 4), np.float32),), None), "has no label"),
        (
            "top1",
            ScoredSample((np.zeros((1, 4), np.float32),), np.array([0.5])),
            "one integer a row",
        ),
        (
            "top1",
            ScoredSample((np.zeros((1, 1), np.float32),), np.array([0])),
            "no output has scores",
        ),
        ("auc", ScoredSample((np.zeros((1, 1), np.float32),), np.array([2])), "labels 0 and 1"),
        ("auc", ScoredSample((np.zeros((1, 3), np.float32),), np.array([1])), "one or two scores"),
        (
            "miou",
            ScoredSample((np.zeros((1, 4, 4, 3)),), np.zeros((1, 5, 5), int)),
            "(1, 5, 5); the model answers with (1, 4, 4)",
        ),
        ("miou", ScoredSample((np.zeros((1, 4, 4, 3)),), np.full((1, 4, 4), 7)), "the label 7"),
        (
            "miou",
            ScoredSample((np.zeros((1, 4)),), np.zeros((1, 4, 4), int)),
            "miou needs an output",
        ),
        (
            "miou",
            ScoredSample((np.zeros((1, 4, 4, 3)),), np.zeros((1, 4, 4))),
            "integer class maps",
        ),
        ("rmse", ScoredSample((np.zeros((1, 4)),), np.zeros((1, 3))), "label of shape (1, 3)"),
        (
            "snr",
            ScoredSample((np.zeros((1, 4)),), None, (np.zeros((1, 3)),)),
            "do not answer alike",
        ),
        (
            "agreement",
            ScoredSample((np.zeros((1, 1)),), None, (np.zeros((1, 1)),)),
            "scores of classes",
        ),
    ],
)
def test_what_does_not_fit_is_said(name: str, case: ScoredSample, told: str) -> None:
    with pytest.raises(BadInput) as raised:
        METRICS[name].statistics(case)
    assert told in str(raised.value)


@given(
    st.sampled_from(LABELLED),
    st.lists(st.integers(0, 3), max_size=4),
    st.sampled_from([np.float32, np.int64, np.bool_]),
    st.sampled_from([(), (0,), (1,), (2, 0), (1, 3), (1, 2, 2)]),
)
@draws(200)
def test_answers_of_any_shape_are_scored_or_refused(
    name: str, shape: list[int], dtype: type, labelled: tuple[int, ...]
) -> None:
    output, metric = np.ones(shape, dtype), METRICS[name]
    label = np.zeros(labelled, np.int64) if metric.needs == "label" else None
    case = ScoredSample((output,), label, (output,))
    with suppress(BadInput):
        assert metric.statistics(case).ndim == 2


def test_a_metric_of_the_users() -> None:
    metric = users_metric("m:f", lambda outputs, label: outputs[0].sum() - label)
    rows = np.concatenate(
        [metric.statistics(ScoredSample((np.ones(3),), np.array(n))) for n in (1, 2, 3)]
    )
    assert value_of(metric, rows).value == pytest.approx(1)
    lost = users_metric("m:f", lambda outputs, label: NAN)
    with pytest.raises(BadInput, match="m:f gave nan for sample 'x'"):
        lost.statistics(ScoredSample((np.ones(3),), None, None, "x"))
    odd = users_metric("m:f", lambda outputs, label: label["none"])
    with pytest.raises(BadInput, match="m:f fails for sample 'x'"):
        odd.statistics(ScoredSample((np.ones(3),), None, None, "x"))
