"""Products on one core are the same, and the number of threads is what it was afterwards."""

import numpy as np
import pytest

from litesmith.numeric.one_core import blas_threads, on_one_core


def counted() -> int:
    threads = blas_threads()
    return 0 if threads is None else threads.count


def test_inside_there_is_one_thread_and_outside_as_many_as_before() -> None:
    before = counted()
    with on_one_core():
        assert counted() in (0, 1)
        with on_one_core():
            assert counted() in (0, 1)
        assert counted() in (0, 1)
    assert counted() == before


def test_a_failure_leaves_the_threads_as_they_were() -> None:
    before = counted()
    with pytest.raises(ZeroDivisionError), on_one_core():
        raise ZeroDivisionError
    assert counted() == before


def test_products_are_the_same() -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(300, 200)), random.normal(size=(200, 100))
    with on_one_core():
        inside = a @ b
    assert np.allclose(inside, a @ b, rtol=1e-12)
