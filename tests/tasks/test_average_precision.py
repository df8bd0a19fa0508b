"""AP is that of COCO's own tool, and its interval covers it."""

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.accuracy.average_precision import at_half, average_precision, of_each
from litesmith.accuracy.metrics import METRICS, difference_of, value_of
from litesmith.tasks.boxes import Detections, areas, overlaps
from litesmith.tasks.matching import image_row, match_answers
from litesmith.tasks.task import pad_rows

SIDE = 100.0


def things(random: np.random.Generator, count: int, classes: int) -> np.ndarray:
    """Rows: class, box, crowd."""
    corners = random.uniform(0, SIDE, (count, 2, 2))
    boxes = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
    kinds = random.integers(0, classes, (count, 1))
    return np.concatenate([kinds, boxes, random.random((count, 1)) < 0.15], axis=1)


def answers(random: np.random.Generator, wanted: np.ndarray, classes: int) -> np.ndarray:
    """Rows: class, box, score; some near what is wanted, some anywhere, some as sure as others."""
    near = wanted[random.random(len(wanted)) < 0.8][:, :5].copy()
    near = np.repeat(near, random.integers(1, 3), axis=0)
    near[:, 1:] += random.normal(0, 4, near[:, 1:].shape)
    near[:, 3:] = np.maximum(near[:, 3:], near[:, 1:3] + 1)
    far = things(random, int(random.integers(0, 5)), classes)[:, :5]
    found = np.concatenate([near, far])
    scores = np.round(random.random((len(found), 1)), int(random.integers(1, 4)))
    return np.concatenate([found, scores], axis=1)


def drawn(seed: int) -> tuple[list[np.ndarray], list[np.ndarray], int]:
    random = np.random.default_rng(seed)
    classes = int(random.integers(1, 4))
    sets = [things(random, int(random.integers(0, 6)), classes) for _ in range(12)]
    sets.append(np.array([[0, 10, 10, 40, 40, 0.0]]))  # something counts
    return sets, [answers(random, one, classes) for one in sets], classes


def our_rows(sets: list[np.ndarray], found: list[np.ndarray], classes: int) -> np.ndarray:
    rows = []
    for wanted, told in zip(sets, found, strict=True):
        order = np.argsort(-told[:, 5], kind="stable")
        seen = Detections(told[order, 1:5], told[order, 5], told[order, 0].astype(int))

        def match(own, others, seen=seen, wanted=wanted):
            crowds = wanted[others, 5] == 1
            likeness = overlaps(seen.boxes[own], wanted[others, 1:5], crowds)
            return match_answers(likeness, crowds, crowds)

        kinds, counts = wanted[:, 0].astype(int), wanted[:, 5] == 0
        rows.append(image_row(classes, kinds, counts, seen.classes, seen.scores, match))
    return pad_rows(rows)


def coco_says(
    sets: list[np.ndarray], found: list[np.ndarray], classes: int, folder: Path
) -> tuple[float, float]:
    coco = pytest.importorskip("pycocotools.coco")
    evaluator = pytest.importorskip("pycocotools.cocoeval")
    images = [{"id": n + 1, "width": SIDE, "height": SIDE} for n in range(len(sets))]
    told = [
        {
            "image_id": n + 1,
            "category_id": int(row[0]) + 1,
            "bbox": [row[1], row[2], row[3] - row[1], row[4] - row[2]],
            "area": (row[3] - row[1]) * (row[4] - row[2]),
            "iscrowd": int(row[5]),
        }
        for n, rows in enumerate(sets)
        for row in rows
    ]
    told = [{"id": n + 1, **one} for n, one in enumerate(told)]
    results = [
        {
            "image_id": n + 1,
            "category_id": int(row[0]) + 1,
            "bbox": [row[1], row[2], row[3] - row[1], row[4] - row[2]],
            "score": row[5],
        }
        for n, rows in enumerate(found)
        for row in rows
    ]
    categories = [{"id": n + 1, "name": str(n)} for n in range(classes)]
    place = folder / "told.json"
    place.write_text(json.dumps({"images": images, "annotations": told, "categories": categories}))
    with redirect_stdout(StringIO()):
        judge = coco.COCO(str(place))
        asked = evaluator.COCOeval(judge, judge.loadRes(results), "bbox")
        asked.evaluate()
        asked.accumulate()
        asked.summarize()
    return float(asked.stats[0]), float(asked.stats[1])


@pytest.mark.parametrize("seed", range(50))
def test_it_is_what_coco_says(seed: int, tmp_path: Path) -> None:
    sets, found, classes = drawn(seed)
    rows = our_rows(sets, found, classes)
    wanted = coco_says(sets, found, classes, tmp_path)
    assert (average_precision(rows).value, at_half(rows).value) == pytest.approx(wanted, abs=1e-6)


@given(st.integers(0, 1000))
def test_the_order_of_images_and_padding_change_nothing(seed: int) -> None:
    sets, found, classes = drawn(seed)
    found = [one[np.argsort(one[:, 5])] for one in found]
    for one in found:  # no two are as sure: only then the order is free
        one[:, 5] += np.random.default_rng(seed).permutation(len(one)) * 1e-7
    rows = our_rows(sets, found, classes)
    wide = np.concatenate([rows, np.full((len(rows), 6), np.nan)], axis=1)
    assert average_precision(wide).value == pytest.approx(average_precision(rows).value)


def test_the_error_is_that_of_data_drawn_anew() -> None:
    sets, found, classes = [], [], 2
    for seed in range(20):
        more, told, _ = drawn(seed)
        sets += [one[one[:, 0] < classes] for one in more]
        found += [one[one[:, 0] < classes] for one in told]
    random = np.random.default_rng(1)
    for one in found:  # as right by chance, without two that are as sure
        one[:, 5] = random.random(len(one))
    rows = our_rows(sets, found, classes)
    again = [at_half(rows[random.integers(0, len(rows), len(rows))]).value for _ in range(200)]
    assert at_half(rows).error == pytest.approx(np.std(again), rel=0.2)


def test_equal_models_do_not_differ_and_a_worse_one_does() -> None:
    sets, found, classes = [], [], 1
    for seed in range(40):
        more, told, _ = drawn(seed)
        sets += [one[one[:, 0] < classes] for one in more]
        found += [one[one[:, 0] < classes] for one in told]
    rows = our_rows(sets, found, classes)
    metric = METRICS["ap50"]
    same = difference_of(metric, rows, rows)
    assert same.value == 0
    assert same.low == -same.high < 0  # what was not seen may differ
    assert same.high < 3 / np.sqrt(len(rows))
    worse = our_rows(sets, [one[::2] for one in found], classes)
    lost = difference_of(metric, worse, rows)
    assert lost.high < 0
    own = value_of(metric, rows)
    assert 0 <= own.low < own.value < own.high <= 1


def test_an_image_alone_has_its_own() -> None:
    wanted = np.array([[0, 10, 10, 40, 40, 0.0]])
    right = np.array([[0, 10, 10, 40, 40, 0.9]])
    nothing = np.zeros((0, 6))
    rows = our_rows([wanted, wanted, nothing, nothing], [right, nothing, nothing, right], 1)
    assert of_each(rows).tolist() == pytest.approx([1, 0, 1, 0])


def test_overlaps_of_boxes() -> None:
    boxes = np.array([[0, 0, 2, 2], [1, 1, 3, 3], [5, 5, 6, 6.0]])
    assert overlaps(boxes, boxes)[0].tolist() == pytest.approx([1, 1 / 7, 0])
    assert overlaps(boxes[:1], boxes, np.array([True] * 3))[0].tolist() == pytest.approx(
        [1, 0.25, 0]
    )
    assert areas(boxes).tolist() == [4, 4, 1]
