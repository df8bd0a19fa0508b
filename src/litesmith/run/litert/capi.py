"""LiteRT's C API by ctypes: the functions and structs that sessions need, and nothing else.

The wheel's own Python hides what matters here: memory that is shared instead of copied, events for
every operator, all element types. The structs below are those of the wheel versions in `KNOWN`;
with another version the wheel's classic interpreter serves instead.
"""

import ctypes
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from ctypes import POINTER, c_bool, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64
from ctypes import c_void_p as Handle
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from litesmith.errors import CannotRun
from litesmith.operating_system import THIS, divert, is_windows, libc
from litesmith.phrases import phrase

WHEEL = "ai-edge-litert"
KNOWN = ("2.3.",)

# Hardware accelerators, a bit mask.
CPU, GPU = 1, 2

# LiteRT's element types by our names; their numbers are TensorFlow Lite's TfLiteType.
ELEMENT_TYPES = {
    "bool": 6,
    "float16": 10,
    "float32": 1,
    "float64": 11,
    "int16": 7,
    "int32": 2,
    "int64": 4,
    "int8": 9,
    "uint16": 17,
    "uint32": 16,
    "uint64": 13,
    "uint8": 3,
}

STATUSES = {
    1: phrase("an argument is not valid"),
    2: phrase("memory could not be had"),
    3: phrase("the runtime failed"),
    4: phrase("an input is missing"),
    5: phrase("it is not supported"),
    6: phrase("something was not found"),
    500: phrase("a file could not be read"),
    501: phrase("the flatbuffer is not valid"),
    502: phrase("a library could not be loaded"),
    504: "compilation failed",
}

_HandleOut = POINTER(Handle)
_RUNTIME_FOLDER, _LEAST_LOG = 22, 25  # tags of environment options
_INTEGER, _TEXT = 2, 8  # types of their values
_NOTHING = 4  # not even errors: they are asked for, not overheard


class Layout(ctypes.Structure):
    _fields_ = [
        ("rank", c_uint32, 7),
        ("has_strides", c_uint32, 1),
        ("dimensions", c_int32 * 8),
        ("strides", c_uint32 * 8),
    ]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.dimensions[: self.rank])


class TensorType(ctypes.Structure):
    _fields_ = [("element_type", c_int), ("layout", Layout)]


class _AnyValue(ctypes.Union):
    _fields_ = [("integer", c_int64), ("text", c_char_p)]


class _Any(ctypes.Structure):
    _fields_ = [("type", c_int), ("value", _AnyValue)]


class _EnvironmentOption(ctypes.Structure):
    _fields_ = [("tag", c_int), ("value", _Any)]


class _MemoryUse(ctypes.Structure):
    _fields_ = [("total", c_size_t), ("in_use", c_size_t), ("private", c_size_t)]


class Event(ctypes.Structure):
    """One profiled event. Type 8 is an op inside XNNPACK, 2 a builtin kernel."""

    _fields_ = [
        ("tag", c_char_p),
        ("type", c_int),
        ("start_us", c_uint64),
        ("elapsed_us", c_uint64),
        ("memory_before", _MemoryUse),
        ("memory_after", _MemoryUse),
        ("index", c_uint64),
        ("graph", c_uint64),
        ("source", c_int),
    ]


_SIZES = {Layout: 68, TensorType: 72, _EnvironmentOption: 24, Event: 104}

# name -> argument types; each returns a status, but those in _SILENT
_FUNCTIONS: dict[str, tuple[object, ...]] = {
    "AddOpaqueOptions": (Handle, Handle),
    "CompiledModelGetErrorMessages": (Handle, POINTER(Handle)),
    "CompiledModelGetProfiler": (Handle, _HandleOut),
    "CompiledModelIsNonCpuFullyAccelerated": (Handle, POINTER(c_bool)),
    "CompiledModelResizeInputTensorNonStrict": (
        Handle,
        c_size_t,
        c_size_t,
        POINTER(c_int),
        c_size_t,
    ),
    "CreateCompiledModel": (Handle, Handle, Handle, _HandleOut),
    "CreateEnvironment": (c_int, Handle, _HandleOut),
    "CreateModelFromBuffer": (Handle, Handle, c_size_t, _HandleOut),
    "CreateOpaqueOptions": (c_char_p, Handle, Handle, _HandleOut),
    "CreateOptions": (_HandleOut,),
    "CreateTensorBufferFromHostMemory": (POINTER(TensorType), Handle, c_size_t, Handle, _HandleOut),
    "DestroyCompiledModel": (Handle,),
    "DestroyModel": (Handle,),
    "DestroyOptions": (Handle,),
    "DestroyTensorBuffer": (Handle,),
    "GetCompiledModelInputTensorLayout": (Handle, c_size_t, c_size_t, POINTER(Layout)),
    "GetCompiledModelOutputTensorLayouts": (Handle, c_size_t, c_size_t, POINTER(Layout), c_bool),
    "GetModelSignature": (Handle, c_size_t, _HandleOut),
    "GetNumProfilerEvents": (Handle, POINTER(c_int)),
    "GetNumSignatureInputs": (Handle, POINTER(c_size_t)),
    "GetNumSignatureOutputs": (Handle, POINTER(c_size_t)),
    "GetProfilerEvents": (Handle, c_int, POINTER(Event)),
    "GetRankedTensorType": (Handle, POINTER(TensorType)),
    "GetSignatureInputName": (Handle, c_size_t, POINTER(c_char_p)),
    "GetSignatureInputTensorByIndex": (Handle, c_size_t, _HandleOut),
    "GetSignatureOutputName": (Handle, c_size_t, POINTER(c_char_p)),
    "GetSignatureOutputTensorByIndex": (Handle, c_size_t, _HandleOut),
    "ResetProfiler": (Handle,),
    "RunCompiledModel": (Handle, c_size_t, c_size_t, _HandleOut, c_size_t, _HandleOut),
    "SetOptionsHardwareAccelerators": (Handle, c_int),
    "StartProfiler": (Handle,),
    "StopProfiler": (Handle,),
}
_SILENT = frozenset(name for name in _FUNCTIONS if name.startswith("Destroy"))


class Failed(Exception):
    """A call of the C API that returned a status; `status` is its number."""

    def __init__(self, function: str, status: int) -> None:
        super().__init__(
            STATUSES.get(status, phrase("status {status} from {function}", status, function))
        )
        self.status = status


def why_not(installed: str) -> str:
    """Why this binding does not serve a wheel of that version; "" where it does."""
    if installed.startswith(KNOWN):
        return ""
    return phrase(
        "{wheel} {installed} is not among the versions this binding knows ({known}x)",
        WHEEL,
        installed,
        KNOWN[0],
    )


@cache
def installed_version() -> str:
    """The version of the runtime's wheel."""
    try:
        return version(WHEEL)
    except PackageNotFoundError:
        raise CannotRun("the runtime is not installed; pip install {wheel}", WHEEL) from None


class Api:
    """The loaded library: one attribute a function, which raises `Failed` on a bad status."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., int]: ...

    def __init__(self, path: Path) -> None:
        for struct, size in _SIZES.items():
            if ctypes.sizeof(struct) != size:
                raise CannotRun(
                    "{name} has another size on this platform; use cpu:…:reference", struct.__name__
                )
        self.folder = path.parent
        self.library = library = _open_library(path)
        for name, arguments in _FUNCTIONS.items():
            try:
                function = getattr(library, f"LiteRt{name}")
            except AttributeError:
                raise CannotRun(
                    "{name} has no function LiteRt{name2}; install {wheel} {known}*",
                    path.name,
                    name,
                    WHEEL,
                    KNOWN[0],
                ) from None
            function.argtypes = arguments
            function.restype = None if name in _SILENT else c_int
            if name not in _SILENT and name != "RunCompiledModel":
                function.errcheck = _raise_failed
            setattr(self, name, function)

    def make(self, name: str, *arguments: object) -> Handle:
        """Calls a function whose last argument receives a handle."""
        handle = Handle()
        getattr(self, name)(*arguments, ctypes.byref(handle))
        return handle

    def count(self, name: str, *arguments: object) -> int:
        number = c_size_t()
        getattr(self, name)(*arguments, ctypes.byref(number))
        return number.value

    def text(self, name: str, *arguments: object) -> str:
        found = c_char_p()
        getattr(self, name)(*arguments, ctypes.byref(found))
        return (found.value or b"").decode("utf-8", "surrogateescape")


def _open_library(path: Path) -> ctypes.CDLL:
    """A library whose calls run without the interpreter lock."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        if is_windows():
            raise CannotRun(
                "{name} does not load, or a library that it needs; install the newest Visual C++ "
                "Redistributable of Microsoft",
                path.name,
            ) from None
        raise CannotRun(
            "{name} does not load ({error}); install {wheel} again", path.name, error, WHEEL
        ) from None


def _raise_failed(status: int, function: object, arguments: tuple[object, ...]) -> int:
    if status:
        raise Failed(getattr(function, "__name__", "LiteRT"), status)
    return status


@cache
def api() -> Api:
    """The library of the installed wheel, loaded once."""
    reason = why_not(installed_version())
    if reason:
        raise CannotRun(reason)
    spec = find_spec("ai_edge_litert")
    if spec is None or spec.origin is None:
        raise CannotRun("the runtime is not installed; pip install {wheel}", WHEEL)
    return Api(Path(spec.origin).parent / THIS.litert)


@cache
def environment() -> Handle:
    """The one environment of this process. It lives as long as the process does."""
    library = api()
    options = (_EnvironmentOption * 2)()
    options[0].tag, options[0].value.type = _RUNTIME_FOLDER, _TEXT
    options[0].value.value.text = str(library.folder).encode()
    options[1].tag, options[1].value.type = _LEAST_LOG, _INTEGER
    options[1].value.value.integer = _NOTHING
    with quiet():
        return library.make("CreateEnvironment", 2, ctypes.cast(options, Handle))


_quiet_lock = threading.RLock()


@contextmanager
def quiet() -> Generator[None]:
    """Native code's remarks on stderr go nowhere. All of the process's stderr does meanwhile, so
    this is for moments: the first compilation, and opening the classic interpreter."""
    with _quiet_lock, divert((2,), os.open(os.devnull, os.O_WRONLY)):
        yield


class Heard:
    """The messages that native code wrote while nobody else listened."""

    text = ""


@contextmanager
def overheard() -> Generator[Heard]:
    """Native code's remarks on stdout and stderr are kept, and there in the end."""
    heard = Heard()
    with TemporaryFile() as kept:
        try:
            with _quiet_lock, divert((1, 2), os.dup(kept.fileno())):
                yield heard
        finally:
            kept.seek(0)
            heard.text = kept.read().decode("utf-8", "replace")


# Parameters of glibc's mallopt, and the most that it lets memory of the heap be.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
_KEPT_BYTES, _MOST_HEAP_BYTES, _USUAL_MMAP_MAX = 128 << 20, 32 << 20, 65_536


@contextmanager
def reused_memory() -> Generator[None]:
    """What is allocated meanwhile comes from memory that was freed before, where glibc has some.

    The runtime's profiler takes 71 MB for every model, and clears them. As new pages of the system
    they took 30 ms a model, more than most models run; glibc takes all that is large from there,
    and gives it back at once.
    """
    mallopt = libc().mallopt
    if mallopt is None:
        yield
        return
    mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
    mallopt(_MMAP_THRESHOLD, _MOST_HEAP_BYTES)  # where glibc's own adjustment would end
    mallopt(_MMAP_MAX, 0)
    try:
        yield
    finally:
        mallopt(_MMAP_MAX, _USUAL_MMAP_MAX)


def trim_memory() -> None:
    """Returns memory of closed models to the system, where the C library keeps it: glibc keeps tens
    of MB."""
    trim = libc().malloc_trim
    if trim is not None:
        trim(0)
