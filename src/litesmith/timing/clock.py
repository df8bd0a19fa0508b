"""The clock of every measurement: how long a call takes, with nothing of Python's in between."""

import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import perf_counter_ns


def time_call(call: Callable[[], object]) -> float:
    """Microseconds of one call; what it returns is dropped outside of them."""
    start = perf_counter_ns()
    result = call()
    spent = perf_counter_ns() - start
    del result
    return spent / 1e3


@contextmanager
def pause_collection() -> Generator[None]:
    """Python's garbage collector does not run meanwhile."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
