"""The samples of a training: which ones judge, whatever their order, and which are refused."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.draws import draws

pytest.importorskip("torch", reason="torch is not installed: the extra `train`")

from litesmith.data.sample_splits import part_of
from litesmith.data.samples import Items, Sample
from litesmith.errors import BadInput
from litesmith.training.sample_arrays import FEWEST, TrainingSamples, gather_samples
from litesmith.training.settings import HELD_OUT


@dataclass(frozen=True, eq=False)
class Listed:
    """Samples of a list."""

    samples: Sequence[Sample]
    source: str = "a list"
    digest: str = ""
    notes: tuple[str, ...] = ()
    items: Items = field(default_factory=Items)

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)


def samples(count: int, seed: int = 0) -> list[Sample]:
    random = np.random.default_rng(seed)
    return [
        Sample(
            (random.normal(size=(1, 3)).astype(np.float32), np.array([[place]], np.int32)),
            np.array([place % 4]),
            f"item {place}",
        )
        for place in range(count)
    ]


def contents(found: TrainingSamples, places: np.ndarray) -> set[bytes]:
    assert found.labels is not None
    return {
        b"".join(store[place].tobytes() for store in (*found.inputs, found.labels))
        for place in places
    }


@draws(20)
@given(st.integers(FEWEST, 60), st.randoms())
def test_the_same_samples_judge_in_any_order(count: int, random) -> None:
    listed = samples(count)
    found = gather_samples(Listed(listed), labelled=True)
    shuffled = random.sample(listed, count)
    again = gather_samples(Listed(shuffled), labelled=True)
    assert contents(found, found.held) == contents(again, again.held)
    assert contents(found, found.learned) == contents(again, again.learned)
    assert len(found.held) == count // HELD_OUT
    assert sorted([*found.held, *found.learned]) == list(range(count))


def test_everything_is_kept_as_it_is() -> None:
    listed = samples(20)
    found = gather_samples(Listed(listed), labelled=True)
    for place, sample in enumerate(listed):
        assert [store[place].tolist() for store in found.inputs] == [
            a.tolist() for a in sample.inputs
        ]
    assert [store.dtype for store in found.inputs] == [np.float32, np.int32]
    assert found.labels is not None and found.labels.reshape(-1).tolist() == [
        n % 4 for n in range(20)
    ]
    assert gather_samples(Listed(listed), labelled=False).labels is None


def test_nothing_else_looks_at_what_judges() -> None:
    """Steps that are not trainings see only what is learned from."""
    listed = samples(50)
    found = gather_samples(Listed(listed), labelled=True)
    seen = part_of(Listed(listed), HELD_OUT, held_out=False)
    names = {sample.name for sample in seen}
    assert names.isdisjoint(listed[place].name for place in found.held)


def test_what_is_large_lies_in_a_file() -> None:
    listed = samples(30)
    known = gather_samples(Listed(listed), labelled=True)
    found = gather_samples(Listed(listed), labelled=True, in_memory=8)
    assert all(isinstance(store, np.memmap) for store in found.inputs)
    for store, other in zip(found.inputs, known.inputs, strict=True):
        np.testing.assert_array_equal(store, other)


def spoiled(value: float) -> list[Sample]:
    listed = samples(20)
    listed[7].inputs[0][0, 1] = value
    return listed


def other_shape() -> list[Sample]:
    listed = samples(20)
    listed[7] = Sample((np.zeros((1, 4), np.float32), listed[7].inputs[1]), name="item 7")
    return listed


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        (samples(FEWEST - 1), "15 samples are too few"),
        ([], "0 samples are too few"),
        (spoiled(np.nan), "item 7 holds numbers that are infinite"),
        (spoiled(np.inf), "item 7 holds numbers that are infinite"),
        (other_shape(), "item 7: has the shape"),
    ],
)
def test_bad_samples_are_one_line(listed: list[Sample], words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        gather_samples(Listed(listed), labelled=False)
    assert "\n" not in str(caught.value)
