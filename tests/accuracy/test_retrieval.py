"""Retrieval: how often the nearest other embedding is of the same class."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.accuracy.retrieval import retrieval
from litesmith.errors import BadInput


def rows_of(classes: np.ndarray, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).normal(0, 1, (len(classes), 4))
    return np.c_[classes, values / np.linalg.norm(values, axis=1, keepdims=True)]


@given(st.lists(st.integers(0, 4), min_size=2, max_size=20), st.integers(0, 99))
def test_it_is_the_share_of_samples_that_find_their_like(told: list[int], seed: int) -> None:
    rows = rows_of(np.array(told), seed)
    right = []
    for place, row in enumerate(rows):
        others = np.delete(rows, place, axis=0)
        if row[0] in others[:, 0]:
            right.append(others[np.argmax(others[:, 1:] @ row[1:]), 0] == row[0])
    if not right:
        with pytest.raises(BadInput, match="each class has one alone"):
            retrieval(rows)
        return
    found = retrieval(rows)
    assert found.value == pytest.approx(np.mean(right))
    assert found.pulls.mean() == pytest.approx(0, abs=1e-12)


def test_an_embedding_of_nothing_finds_nothing() -> None:
    rows = rows_of(np.zeros(4), 0)
    rows[0, 1:] = 0
    assert retrieval(rows).value == pytest.approx(0.75)
