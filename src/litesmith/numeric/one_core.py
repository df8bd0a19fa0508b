"""Products of small matrices on one core: threads that wait for each other cost more than they
save, especially beside other programs.
"""

import ctypes
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

# The parts of the names of OpenBLAS functions, which depend on the build and the index type.
_BEFORE, _AFTER = ("scipy_", ""), ("64_", "_64", "")


@dataclass(frozen=True)
class Threads:
    """The functions of a library that read and set its number of threads."""

    library: ctypes.CDLL
    get: str
    set: str

    @property
    def count(self) -> int:
        return int(getattr(self.library, self.get)())

    def take(self, count: int) -> None:
        getattr(self.library, self.set)(count)


@contextmanager
def on_one_core() -> Generator[None]:
    """Inside the block, numpy multiplies matrices on one core, if its library has a setting for
    that.
    """
    threads = blas_threads()
    if threads is None:
        yield
        return
    before = threads.count
    threads.take(1)
    try:
        yield
    finally:
        threads.take(before)


@cache
def blas_threads() -> Threads | None:
    """The thread functions of numpy's OpenBLAS; None where numpy has another library."""
    package = Path(np.__file__).parent
    folders = (package.parent / "numpy.libs", package / ".dylibs")
    for path in (path for folder in folders for path in sorted(folder.glob("*openblas*"))):
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for before, after in product(_BEFORE, _AFTER):
            names = [f"{before}openblas_{verb}_num_threads{after}" for verb in ("get", "set")]
            if all(hasattr(library, name) for name in names):
                return Threads(library, *names)
    return None
