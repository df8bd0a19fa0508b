"""Parts of data: nothing in both, nothing lost, the same samples in any order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from litesmith import Builder, Model
from litesmith.data.sample_splits import part_of
from litesmith.data.samples import Data
from litesmith.data.sources import open_data
from tests.draws import draws


def reading(batch: int) -> Model:
    b = Builder()
    return b.model(b.op("SOFTMAX", b.input("x", (batch, 50))))


def rows(count: int) -> np.ndarray:
    """Row n has its largest number at place n, so that its class can be read off it."""
    return np.eye(count, 50, dtype=np.float32)


def contents(data: Data) -> list[bytes]:
    return sorted(sample.inputs[0].tobytes() for sample in data)


def opened(x: np.ndarray, y: np.ndarray, batch: int = 1) -> Data:
    return open_data({"x": x, "y": y}, reading(batch))


@draws(20)
@given(st.integers(3, 40), st.integers(1, 6), st.integers(0, 99))
def test_the_two_parts_are_the_whole(count: int, share: int, seed: int) -> None:
    x, y = rows(count), np.arange(count)
    data = opened(x, y)
    parts = {held_out: part_of(data, share, held_out=held_out) for held_out in (True, False)}
    assert len(parts[True]) == count // share
    assert sorted(contents(parts[True]) + contents(parts[False])) == contents(data)
    order = np.random.default_rng(seed).permutation(count)
    for held_out, part in parts.items():
        shuffled = part_of(opened(x[order], y[order]), share, held_out=held_out)
        assert contents(shuffled) == contents(part)
        assert shuffled.digest == part.digest


@draws(20)
@given(st.integers(6, 40), st.integers(1, 3), st.booleans())
def test_classes_are_those_of_the_part(count: int, batch: int, held_out: bool) -> None:
    part = part_of(opened(rows(count), np.arange(count), batch), 2, held_out=held_out)
    labels = [label for sample in part for label in sample.inputs[0].argmax(axis=1)]
    assert part.items.classes is not None
    assert part.items.classes.tolist() == labels


def test_a_limit_takes_some_of_the_same() -> None:
    data = opened(rows(40), np.arange(40))
    few, all_of_them = part_of(data, 4, held_out=False, most=7), part_of(data, 4, held_out=False)
    assert len(few) == len(list(few)) == 7
    assert set(contents(few)) < set(contents(all_of_them))
    assert few.digest != all_of_them.digest != part_of(data, 4, held_out=True).digest
    assert len(part_of(data, 4, held_out=False, most=99)) == 30


def test_data_without_classes_has_none() -> None:
    part = part_of(open_data(rows(8), reading(1)), 4, held_out=True)
    assert part.items.classes is None
    assert part.source and part.notes is part.data.notes
