"""The clock of every measurement: the time of a call, without Python's own work in between."""

import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import perf_counter_ns


def time_call(call: Callable[[], object]) -> float:
    """Microseconds of one call; its result is dropped after the clock has stopped."""
    start = perf_counter_ns()
    result = call()
    spent = perf_counter_ns() - start
    del result
    return spent / 1e3


@contextmanager
def pause_collection() -> Generator[None]:
    """Pauses Python's garbage collector inside the block."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
