"""Compiled functions: made when first asked for, kept on disk for the next process."""

# pyright: reportIncompatibleMethodOverride=false
# numba has no types of its own.

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from time import thread_time_ns
from types import ModuleType

from litesmith.errors import CannotRun
from litesmith.native.cpu import Cpu
from litesmith.native.user_cache import folder, forget_others, sources_digest

Run = Callable[[int, int, int, int, int], None]

# Where each function is, and how many integers it takes.
FUNCTIONS = {
    "average": ("kernels.loops.loops_values", "average_unit", 4),
    "between": ("native.loops_between", "run_between", 5),
    "copy": ("kernels.loops.loops_values", "copy_unit", 4),
    "depthwise": ("kernels.loops.loops_depthwise", "depthwise_unit", 4),
    "dequantize": ("kernels.loops.loops_values", "dequantize_unit", 4),
    "largest": ("kernels.loops.loops_values", "largest_unit", 4),
    "many_rows": ("kernels.loops.loops_product", "many_rows", 7),
    "mean": ("kernels.loops.loops_values", "mean_unit", 4),
    "one_row": ("kernels.loops.loops_product", "one_row", 7),
    "pad": ("kernels.loops.loops_values", "pad_unit", 4),
    "part": ("kernels.loops.program_loop", "run_part", 2),
    "peak": ("kernels.loops.loops_product", "peak", 2),
    "peak_int8": ("kernels.loops.loops_sparse_int8", "peak_int8", 2),
    "product": ("kernels.loops.loops_product", "product_unit", 4),
    "quantize": ("kernels.loops.loops_values", "quantize_unit", 4),
    "repeat": ("kernels.loops.loops_values", "repeat_unit", 4),
    "run": ("kernels.loops.program_loop", "run_program", 5),
    "softmax": ("kernels.loops.loops_values", "softmax_unit", 4),
    "sparse": ("kernels.loops.loops_sparse", "sparse_unit", 4),
    "sparse_int8": ("kernels.loops.loops_sparse_int8", "sparse_int8_unit", 4),
    "sparse_int8_row": ("kernels.loops.loops_sparse_int8", "sparse_int8_row_unit", 4),
    "sparse_row": ("kernels.loops.loops_sparse", "sparse_row_unit", 4),
    "table": ("kernels.loops.loops_values", "table_unit", 4),
    "two": ("kernels.loops.loops_values", "two_unit", 4),
}
_TELLING = ("between", "part")  # those that return 32 bits, 0 where nothing failed

_lock = threading.Lock()
_made: dict[str, object] = {}  # compiled functions must live as long as their addresses


def why_not() -> str:
    """Why kernels cannot be compiled here; "" where they can."""
    if find_spec("numba") is None:
        return "kernels of our own are compiled by numba; pip install litesmith[jit]"
    return ""


def is_cold() -> bool:
    """True where kernels must be compiled first, which takes some seconds once a machine."""
    place = folder()
    kept = [] if place is None else (place / "jit").glob("*loop*.nbc")
    return not why_not() and not any(sources_digest() in path.name for path in kept)


def address_of(name: str) -> int:
    """Where a compiled function lies. The first call in a process loads or compiles it."""
    with _lock:
        if name not in _made:
            module, function, count = FUNCTIONS[name]
            told = name in _TELLING
            _made[name] = _compiled(getattr(_module(module), function), count, told)
        return _made[name].address  # type: ignore[attr-defined]


@cache
def run_native() -> Run:
    """(code, ops, buffers, scratch, counters): see `loops.run_program`; without the interpreter."""
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 5)(address_of("run"))


# Products of a lane, and what makes as many as the machine can.
_PEAKS = {"int16": (2, "peak"), "int8": (4, "peak_int8")}


def peak_gmacs(dtype: str = "int16", rounds: int = 200_000) -> float | None:
    """Products a nanosecond, one thread, at most; None where it cannot be measured."""
    cpu = machine()
    if cpu.pairs != "avx512bw":
        return None
    products, name = _PEAKS[dtype]
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(address_of(name))
    out = ctypes.create_string_buffer(64)
    began = thread_time_ns()
    run(rounds, ctypes.addressof(out))
    return rounds * cpu.rows * cpu.vectors * 16 * products / (thread_time_ns() - began)


@cache
def machine() -> Cpu:
    """The processor that kernels are prepared for."""
    return _module("native.tiles").CPU


def _module(name: str) -> ModuleType:
    """A module that imports numba."""
    why = why_not()
    if why:
        raise CannotRun(why)
    try:
        return import_module(f"litesmith.{name}")
    except ImportError as error:
        raise CannotRun(f"numba is installed but cannot be used: {error}") from error


def _compiled(function: Callable[..., object], count: int, told: bool) -> object:
    from numba import int32, int64, void  # pyright: ignore[reportMissingImports]
    from numba.core.ccallback import CFunc  # pyright: ignore[reportMissingImports]
    from numba.core.sigutils import normalize_signature  # pyright: ignore[reportMissingImports]

    signature = normalize_signature((int32 if told else void)(*[int64] * count))
    options = {"nopython": True, "error_model": "numpy"}
    made = CFunc(function, signature, locals={}, options=options)
    _keep(made, function)
    made.compile()
    return made


def _keep(made: object, function: Callable[..., object]) -> None:
    """Has numba keep the code in our folder, under a name that is made of all our sources.

    Numba by itself looks at the one file a function is in, and writes beside it.
    """
    from numba.core import caching  # pyright: ignore[reportMissingImports]

    place = folder()
    if place is None:
        return

    class Locator(caching._CacheLocator):
        def get_cache_path(self) -> str:
            return str(place / "jit")

        def get_source_stamp(self) -> str:
            return sources_digest()

        def get_disambiguator(self) -> str:
            return sources_digest()

        @classmethod
        def from_function(cls, *_: object) -> Locator | None:
            locator = cls()
            try:
                locator.ensure_cache_path()
            except OSError:
                return None
            forget_others(place / "jit")
            return locator

    class Entry(caching.CompileResultCacheImpl):
        _locator_classes = (Locator,)

    class Cache(caching.FunctionCache):
        _impl_class = Entry

    try:
        made._cache = Cache(function)  # type: ignore[attr-defined]
    except RuntimeError:  # no folder that can be written
        return
