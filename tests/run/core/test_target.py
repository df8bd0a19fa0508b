"""Targets as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput
from litesmith.operating_system import usable_cores
from litesmith.run.core.target import FULL, KERNELS, Target


@given(st.integers(1, 1024), st.sampled_from(KERNELS))
def test_text_round_trips(threads: int, kernels: str) -> None:
    target = Target("cpu", threads, kernels)
    assert Target.parse(str(target)) == target
    assert Target.parse(target) is target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("cpu", Target("cpu", 1, "xnnpack")),
        ("cpu:2", Target("cpu", 2, "xnnpack")),
        ("cpu:1:reference", Target("cpu", 1, "reference")),
        ("gpu", Target("gpu")),
        ("gpu:full", Target("gpu", kernels=FULL)),
        (" numpy ", Target("numpy")),
    ],
)
def test_parse(text: str, target: Target) -> None:
    assert Target.parse(text) == target
    assert Target.parse(str(target)) == target


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tpu", "no target 'tpu'; there are cpu:THREADS"),
        ("", "no target ''"),
        ("cpu:0", "a number of threads"),
        ("cpu:two", "a number of threads"),
        ("cpu:-1", "a number of threads"),
        ("cpu:1:fast", "no kernels 'fast'; there are xnnpack"),
        ("cpu:1:builtin:3", "a number of threads"),
        ("gpu:2", "after gpu comes only 'full', as in gpu:full"),
        ("gpu:full:2", "after gpu comes only 'full'"),
        ("numpy:2", "after numpy comes nothing"),
    ],
)
def test_what_is_no_target(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Target.parse(text)


def test_more_threads_than_cores_is_unwise() -> None:
    assert not Target("cpu", usable_cores()).warning
    assert "more threads than" in Target("cpu", usable_cores() + 1).warning
