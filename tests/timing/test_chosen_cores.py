"""Cores by kind and by number."""

import os
import sys

import pytest

import litesmith
from litesmith.errors import BadInput, CannotRun
from litesmith.operating_system import CoreKinds
from litesmith.timing.chosen_cores import choose_cores, describe_cores, list_cores, on_cores
from tests import zoo

PHONE = CoreKinds(((7,), (4, 5, 6), (0, 1, 2, 3)))
ALL = frozenset(range(8))


@pytest.mark.parametrize(
    ("text", "usable", "cores"),
    [
        ("big", ALL, {7}),
        ("big", ALL - {7}, {4, 5, 6}),
        ("little", ALL, {0, 1, 2, 3}),
        ("0-2,6", ALL, {0, 1, 2, 6}),
        ("5", ALL, {5}),
    ],
)
def test_chosen(text: str, usable: frozenset[int], cores: set[int]) -> None:
    assert choose_cores(text, PHONE, usable) == cores


@pytest.mark.parametrize(
    ("text", "usable", "why"),
    [
        ("big", frozenset({0, 1}), "all 2 cores that this process may use are alike"),
        ("fast", ALL, "give big, little, or numbers such as 0-3,6"),
        ("0-99999999999", ALL, "give big, little, or numbers such as 0-3,6"),
        ("9" * 5000, ALL, "give big, little, or numbers such as 0-3,6"),
        ("3-1", ALL, "may use the cores 0-7"),
        ("0,9", ALL - {3}, "may use the cores 0-2,4-7"),
        ("", ALL, "give big"),
    ],
)
def test_refused(text: str, usable: frozenset[int], why: str) -> None:
    with pytest.raises((BadInput, CannotRun), match=why):
        choose_cores(text, PHONE, usable)


def test_described() -> None:
    assert describe_cores(PHONE, ALL) == "1 (7) + 3 (4-6) + 4 (0-3)"
    assert describe_cores(PHONE, frozenset({0, 1})) == ""
    assert list_cores(()) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux lets a program choose")
def test_a_model_is_timed_on_the_core_that_was_chosen() -> None:
    before = os.sched_getaffinity(0)
    first = str(min(before))
    with on_cores(first):
        assert os.sched_getaffinity(0) == {int(first)}
    found = litesmith.bench(zoo.convnet(), seconds=0.01, cores=first)
    assert found.host.cores == 1  # type: ignore[union-attr]
    assert os.sched_getaffinity(0) == before
    with pytest.raises((BadInput, CannotRun)):
        litesmith.profile(zoo.convnet(), cores="4096")
