"""Data in three parts: nothing in two of them, nothing lost, the same in any order."""

from collections import Counter
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith import Builder, Model
from litesmith.data.sample_splits import split_data
from litesmith.data.samples import Data
from litesmith.data.sources import open_data
from litesmith.errors import BadInput
from litesmith.search.trial.data_split import Split, least_samples, split
from tests.draws import draws
from tests.zoo_float import Few

SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=4)


def reading(batch: int = 1) -> Model:
    b = Builder()
    return b.model(b.op("SOFTMAX", b.input("x", (batch, 8))))


def rows(numbers: list[int]) -> np.ndarray:
    """A row for each number; equal ones for equal numbers."""
    return np.array([[number, *range(7)] for number in numbers], np.float32)


def opened(numbers: list[int], batch: int = 1) -> Data:
    return open_data({"x": rows(numbers), "y": np.arange(len(numbers)) % 8}, reading(batch))


def plain(numbers: list[int]) -> Data:
    """The same as data that is no file of rows."""
    return Few(tuple((row[None],) for row in rows(numbers)))


def contents(data: Data) -> Counter[bytes]:
    return Counter(sample.inputs[0].tobytes() for sample in data)


NUMBERS = st.lists(st.integers(0, 30), min_size=3, max_size=40)


@draws(30)
@given(NUMBERS, st.randoms(use_true_random=False), st.booleans())
def test_parts_share_nothing_lose_nothing_and_know_no_order(
    numbers: list[int], random: Random, is_file: bool
) -> None:
    opening = opened if is_file else plain
    found = split(opening(numbers))
    parts = [contents(part) for part in found]
    assert sum(parts, Counter()) == contents(opening(numbers))
    assert all(not a & b for a, b in combinations(parts, 2))  # the same sample twice is in one
    shuffled = list(numbers)
    random.shuffle(shuffled)
    assert [contents(part) for part in split(opening(shuffled))] == parts


@draws(30)
@given(NUMBERS, SHARES)
def test_any_shares_cover_everything(numbers: list[int], shares: list[float]) -> None:
    data = opened(numbers)
    parts = split_data(data, shares)
    assert len(parts) == len(shares)
    assert sum(map(contents, parts), Counter()) == contents(data)


def test_a_part_says_how_many_it_has() -> None:
    for data in (opened(list(range(40))), plain(list(range(40)))):
        found = split(data)
        assert [len(part) for part in found] == [len(list(part)) for part in found] == [8, 11, 21]


def test_labels_stay_with_their_samples() -> None:
    numbers = list(range(40))
    for part in split(opened(numbers)):
        for sample in part:
            assert sample.label is not None
            assert int(sample.inputs[0][0, 0]) % 8 == int(sample.label[0])


def test_parts_are_told_apart_by_their_digests() -> None:
    for data in (opened(list(range(40))), plain(list(range(40)))):
        assert len({part.digest for part in split(data)} | {data.digest}) == 4


def test_other_data_to_calibrate_on_is_taken_whole() -> None:
    other, data = opened(list(range(100, 120))), opened(list(range(30)))
    found = split(data, other)
    assert contents(found.calibration) == contents(other)
    assert contents(found.search) + contents(found.held_out) == contents(data)


def test_batches_stay_whole() -> None:
    found = split(opened(list(range(40)), batch=4))
    assert [len(part) for part in found] == [2, 3, 5]
    assert all(sample.inputs[0].shape == (4, 8) for part in found for sample in part)


@draws(60)
@given(st.integers(1, 3000), st.booleans())
def test_the_least_samples_are_enough_and_hardly_more(wanted: int, calibrates: bool) -> None:
    def held_out(count: int) -> int:
        everything = Split(*_lengths(count, calibrates))
        return len(everything.held_out)

    least = least_samples(wanted, calibrates=calibrates)
    assert held_out(least) >= wanted
    assert held_out(least - 4) < wanted


def _lengths(count: int, calibrates: bool) -> tuple[Data, Data, Data]:
    data = Few(tuple((np.full((1, 1), n, np.float32),) for n in range(count)))
    other = Few(((np.full((1, 1), -1, np.float32),),))
    return split(data, None if calibrates else other)


def test_two_samples_are_split_too() -> None:
    found = split(opened([1, 2]))
    assert sum(map(len, found)) == 2


@pytest.mark.parametrize("count", [1, 2, 5])
def test_copies_of_one_sample_stay_together(count: int) -> None:
    assert sorted(len(part) for part in split(opened([7] * count))) == [0, 0, count]


def test_what_is_calibrated_on_must_not_prove() -> None:
    data, other = opened(list(range(30))), opened(list(range(25, 60)))
    with pytest.raises(BadInput, match=r"5 of its samples are in .* too") as caught:
        split(data, other)
    assert "\n" not in str(caught.value)
