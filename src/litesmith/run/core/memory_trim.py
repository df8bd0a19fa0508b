"""Memory that a closed model has left behind, given back to the system."""

import ctypes
from collections.abc import Callable
from functools import cache


def trim() -> None:
    """Gives freed memory back, where the C library keeps it (glibc keeps tens of megabytes)."""
    call = _malloc_trim()
    if call is not None:
        call(0)


@cache
def _malloc_trim() -> Callable[[int], object] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None  # another C library, or another system
