"""Compiled functions: compiled on first use, kept on disk for the next process."""

# pyright: reportIncompatibleMethodOverride=false, reportPrivateUsage=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# numba leaves parts of its types open.

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from litesmith.errors import BadInput, CannotRun
from litesmith.installing import install_command
from litesmith.native.cpu import Cpu
from litesmith.native.sealed_file import read_sealed, write_sealed
from litesmith.native.user_cache import code_folder, forget_others, sources_digest
from litesmith.phrases import phrase


class Function(NamedTuple):
    """A function that becomes machine code.

    module  the module in this package, by its path: "native.loops_between"
    count   the number of integer arguments
    tells   True where it returns 32 bits, which are 0 on success
    """

    module: str
    name: str
    count: int
    tells: bool = False

    @property
    def room(self) -> str:
        return self.module.partition(".")[0]


# The function between the runtime and a kernel, and the places of the 64-bit words in the record
# that it receives: two functions of the runtime; the kernel and its two arguments; the address that
# holds the number of the failed kernel, and this kernel's number, from 1.
BETWEEN = Function("native.loops_between", "run_between", 5, tells=True)
LOCK, UNLOCK, FUNCTION, USER, ROOM, FAILED, NUMBER = range(7)

_lock = threading.Lock()
_made: dict[Function, object] = {}  # compiled functions must live as long as their addresses


def why_not() -> str:
    """Why kernels cannot be compiled here; "" where they can."""
    if find_spec("numba") is None:
        return phrase("kernels of our own are compiled by numba; {install}", install_command("jit"))
    return ""


def is_cold(room: str) -> bool:
    """True where a room's functions must still be compiled, which takes some seconds once per
    machine.
    """
    place = code_folder(room)
    kept = [] if place is None else place.glob("*loop*.nbc")
    return not why_not() and not any(sources_digest(room) in path.name for path in kept)


def address_of(function: Function) -> int:
    """The address of a compiled function. The first call in a process loads or compiles it."""
    with _lock:
        if function not in _made:
            _made[function] = _compile(function)
        return _made[function].address  # type: ignore[attr-defined]


@cache
def machine() -> Cpu:
    """The processor for which kernels are prepared."""
    return _module("native.tiles").CPU


def _module(name: str) -> ModuleType:
    """A module that imports numba."""
    why = why_not()
    if why:
        raise CannotRun(why)
    try:
        return import_module(f"litesmith.{name}")
    except ImportError as error:
        raise CannotRun("numba is installed but cannot be used: {error}", error) from error


def _compile(function: Function) -> object:
    module = _module(function.module)
    from numba import int32, int64, void  # pyright: ignore[reportMissingImports]
    from numba.core.ccallback import CFunc  # pyright: ignore[reportMissingImports]
    from numba.core.sigutils import normalize_signature  # pyright: ignore[reportMissingImports]

    python = getattr(module, function.name)
    signature = normalize_signature((int32 if function.tells else void)(*[int64] * function.count))
    options = {"nopython": True, "error_model": "numpy"}
    made = CFunc(python, signature, locals={}, options=options)
    place = code_folder(function.room)
    if place is not None:
        made._cache = _SealedCache(  # pyright: ignore[reportAttributeAccessIssue]
            python, place, function.room
        )
    made.compile()
    return made


class _SealedCache:
    """Numba's cache of one compiled function: a sealed file in our folder, named by a digest of all
    the room's sources and of everything else that the code depends on.

    Numba's own cache checks only the file that a function is in, writes beside it, and trusts what
    it finds there: a pickle, which is code that runs when it is read.
    """

    def __init__(self, python: Callable[..., object], place: Path, room: str) -> None:
        self._python, self._place, self._room = python, place, room

    def load_overload(self, signature: object, context: Any) -> object | None:
        from numba.core.compiler import CompileResult  # pyright: ignore[reportMissingImports]

        context.refresh()
        content = read_sealed(self._file(signature, context.codegen()))
        if content is None:
            return None
        return CompileResult._rebuild(context, *pickle.loads(content))

    def save_overload(self, signature: object, made: Any) -> None:
        from numba.core.serialize import dumps  # pyright: ignore[reportMissingImports]

        # on a full or write-protected disk, the next process compiles again
        with suppress(OSError, BadInput):
            write_sealed(self._file(signature, made.codegen), dumps(made._reduce()))
            forget_others(self._place, self._room)

    def _file(self, signature: object, codegen: Any) -> Path:
        from numba import __version__  # pyright: ignore[reportMissingImports]

        known = (signature, codegen.magic_tuple(), sys.version, __version__)
        key = sha256(repr(known).encode() + self._python.__code__.co_code).hexdigest()[:16]
        own = f"{self._python.__module__.removeprefix('litesmith.')}.{self._python.__name__}"
        return self._place / f"{own}-{sources_digest(self._room)}-{key}.nbc"
