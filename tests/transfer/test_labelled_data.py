"""Labelled data: what is learned from and what judges have nothing in common."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith import BadInput, Builder
from litesmith.data.preparation import UNTOUCHED
from litesmith.transfer.labelled_data import Labelled, open_labelled, split_by_class
from tests.zoo import noise


def labelled(items: list[int], classes: list[int]) -> Labelled:
    """Items that hold a number each, of these classes."""
    b = Builder()
    model = b.model(b.op("FULLY_CONNECTED", b.input("x", (1, 2)), noise(4, 2), noise(4)))
    x = np.array([(item, 1) for item in items], np.float32)
    return open_labelled({"x": x, "y": np.array(classes)}, model, UNTOUCHED)


def contents(found: Labelled) -> set[tuple[str, int]]:
    return {*zip(found.data.digests, found.labels.tolist(), strict=True)}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), max_size=40), st.randoms())
def test_the_parts_are_all_and_share_nothing(
    more: list[tuple[int, int]], random: "np.random.Generator"
) -> None:
    pairs = [(100 * label + item, label) for item, label in more]
    pairs += [(100 * label + 50 + item, label) for label in range(3) for item in range(2)]
    found = labelled(*map(list, zip(*pairs, strict=True)))
    learned, held = split_by_class(found, 1 / 5)
    assert not {*learned.data.digests} & {*held.data.digests}
    assert len(learned.labels) + len(held.labels) == len(found.labels)
    assert min(*learned.counts, *held.counts) > 0
    random.shuffle(pairs)  # type: ignore[arg-type]
    other, kept = split_by_class(labelled(*map(list, zip(*pairs, strict=True))), 1 / 5)
    assert contents(other) == contents(learned) and contents(kept) == contents(held)


def test_an_item_of_two_classes_is_on_one_side() -> None:
    found = labelled([1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6, 7], [0] * 5 + [1] * 7)
    learned, held = split_by_class(found, 1 / 5)
    assert not {*learned.data.digests} & {*held.data.digests}
    assert min(learned.counts) > 0


def test_a_class_of_equal_items_is_named() -> None:
    with pytest.raises(BadInput, match="class '1': all of its items are copies of one"):
        split_by_class(labelled([1, 2, 7, 7], [0, 0, 1, 1]), 1 / 5)


def test_a_class_that_has_nothing_of_its_own_is_named() -> None:
    with pytest.raises(BadInput, match="too few items that no other class has"):
        split_by_class(labelled([1, 2, 2, 3, 1, 3], [0, 0, 1, 1, 2, 2]), 0.5)
