"""A platform that refuses what Linux grants, in a process of its own that it takes hold of.

    python -m tests.hostile_platform '[["inspect", "model.tflite"], ["targets"]]'

has every command run where the C library, the system's files, processes, locks and clocks are as
Windows has them, as far as a program on Linux can be made to see that. It prints a JSON object per
command on its original output: status, and what the command printed. The command "-c" is a program
of Python's.
"""

import builtins
import contextlib
import ctypes
import errno
import io
import json
import os
import signal
import socket
import sys
import tempfile
import time
import types
from collections.abc import Callable
from importlib import import_module
from typing import Any

# What comes from others has looked at the platform before it changes.
_IMPORTED_BEFORE = (
    *("asyncio", "multiprocessing", "platform", "shutil", "subprocess", "zipfile", "mmap"),
    *("ctypes.util", "numpy", "PIL.Image", "click", "rich.console", "rich.progress", "rich.table"),
    *("rich.live", "zstandard", "ai_edge_litert.interpreter", "importlib.metadata"),
)
_HIDDEN_MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty")
_HIDDEN_NAMES: dict[types.ModuleType, tuple[str, ...]] = {
    os: (
        *("fork", "forkpty", "geteuid", "getuid", "getloadavg", "sysconf", "fchmod", "wait"),
        *("memfd_create", "posix_fallocate", "sched_getaffinity", "sched_setaffinity", "mkfifo"),
        *("O_NOFOLLOW", "WNOHANG", "WIFEXITED", "WTERMSIG", "link"),
    ),
    signal: ("SIGCHLD", "SIGHUP", "SIGKILL", "SIGURG", "pthread_sigmask"),
    socket: ("AF_UNIX", "recv_fds", "send_fds", "socketpair"),
}
_SYSTEM_FOLDERS = ("/proc", "/sys")
_MEMORY = 8 << 30
_JUMP_SECONDS = 3600.0
_TICK_NS = 15_625_000  # of the clocks that count a processor's time
_NOT_IN_NAMES = frozenset('<>:"|?*')


def become_hostile() -> None:
    """Takes from this process what Windows does not have, for good."""
    for name in _IMPORTED_BEFORE:
        import_module(name)
    import subprocess  # which keeps its own way to wait and to kill

    vars(subprocess)["signal"] = types.SimpleNamespace(**vars(signal))
    vars(subprocess)["os"] = types.SimpleNamespace(**vars(os))
    sys.platform = "win32"
    is_held = _held_files()
    for module, names in _HIDDEN_NAMES.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    if hasattr(os, "process_cpu_count"):  # of Python 3.13, which asks for what is hidden now
        os.process_cpu_count = os.cpu_count
    # shutil.which looks for programs as Windows does, from Python 3.12 on.
    has_folder_first = types.SimpleNamespace(NeedCurrentDirectoryForExePath=lambda name: True)
    vars(import_module("shutil"))["_winapi"] = has_folder_first
    sys.modules.update(dict.fromkeys(_HIDDEN_MODULES))  # type: ignore[arg-type]
    sys.modules["msvcrt"] = _msvcrt()
    ctypes.CDLL = _load_library(ctypes.CDLL)  # type: ignore[assignment,misc]
    builtins.open = io.open = _open(io.open)  # type: ignore[assignment]
    os.stat = _refuse_system_files(os.stat)
    os.open = _refuse_names(os.open)
    os.mkdir = _refuse_names(os.mkdir)
    os.replace = _refuse_held(os.replace, is_held)
    os.unlink = os.remove = _refuse_held(os.unlink, is_held)
    vars(import_module("shutil"))["_use_fd_functions"] = False  # a folder is removed by its names
    os.kill = _press_keys(os.kill)
    time.time = _jump(time.time)
    for name in ("process_time", "thread_time"):
        clock = _tick(getattr(time, f"{name}_ns"))
        vars(time).update({f"{name}_ns": clock, name: _in_seconds(clock)})


def _msvcrt() -> types.ModuleType:
    module = types.ModuleType("msvcrt")
    held: set[tuple[int, int]] = set()

    def locking(handle: int, mode: int, count: int) -> None:
        place = os.fstat(handle)
        if (place.st_dev, place.st_ino) in held:
            raise PermissionError(errno.EACCES, "Permission denied")
        held.add((place.st_dev, place.st_ino))

    vars(module).update(locking=locking, LK_NBLCK=2, LK_LOCK=1)
    return module


class _Ucrt:
    """The names of Windows' C library, and no others."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._strdup, self.free, self.fflush = library.strdup, library.free, library.fflush


class _Kernel:
    """Functions of Windows that answer as if all were well."""

    def __init__(self) -> None:
        self.OpenProcess: Any = lambda access, inherit, process: process.value
        self.CloseHandle: Any = lambda handle: 1
        self.GetExitCodeProcess: Any = _tell(259)
        self.GetCurrentProcess: Any = lambda: 1
        self.GetSystemTimes: Any = _tell_times
        self.GlobalMemoryStatusEx: Any = _tell(total=_MEMORY, free=_MEMORY)
        self.K32GetProcessMemoryInfo: Any = _tell(peak=_MEMORY)


def _tell(value: int = 0, **fields: int) -> Callable[..., int]:
    """A function that writes to the struct behind its last pointer."""

    def told(*given: Any) -> int:
        (into,) = (one._obj for one in given if hasattr(one, "_obj"))
        if isinstance(into, ctypes.Structure):
            assert into.size == ctypes.sizeof(into)
        else:
            into.value = value
        for name, number in fields.items():
            setattr(into, name, number)
        return 1

    return told


def _tell_times(*into: Any) -> int:
    """A machine of which half is idle."""
    for one, share in zip(into, (1, 1, 1), strict=True):
        one._obj.value = share * time.monotonic_ns() // 100
    return 1


def _load_library(load: Callable[..., Any]) -> Callable[..., Any]:
    def loaded(name: str | None, *given: Any, **named: Any) -> Any:
        if name is None:
            raise TypeError("there is no library of the whole process")
        if name == "ucrtbase":
            return _Ucrt(load(None))
        if name == "kernel32":
            return _Kernel()
        return load(name.replace("libLiteRt.dll", "libLiteRt.so"), *given, **named)

    return loaded


def _is_system_file(path: object) -> bool:
    return isinstance(path, str | os.PathLike) and os.fspath(path).startswith(_SYSTEM_FOLDERS)


def _open(usual: Callable[..., Any]) -> Callable[..., Any]:
    named_well = _refuse_names(usual)

    def opened(path: Any, *given: Any, **named: Any) -> Any:
        if _is_system_file(path):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        try:
            return named_well(path, *given, **named)
        except IsADirectoryError as error:
            raise PermissionError(errno.EACCES, "Permission denied", error.filename) from None

    return opened


def _refuse_system_files(usual: Callable[..., Any]) -> Callable[..., Any]:
    def found(path: Any, *given: Any, **named: Any) -> Any:
        if _is_system_file(path):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return usual(path, *given, **named)

    return found


def _held_files() -> Callable[[Any], bool]:
    """Whether a file is open or mapped in this process, or in one that it has started."""
    listed, linked, opened = os.listdir, os.readlink, open

    def is_held(path: Any) -> bool:
        place = os.path.realpath(path)
        for process in filter(str.isdecimal, listed("/proc")):
            with contextlib.suppress(OSError):
                if process != str(os.getpid()):
                    with opened(f"/proc/{process}/stat") as file:
                        if int(file.read().rpartition(")")[2].split()[1]) != os.getpid():
                            continue
                folder = f"/proc/{process}/fd"
                for number in listed(folder):
                    with contextlib.suppress(OSError):
                        if linked(f"{folder}/{number}") == place:
                            return True
                with opened(f"/proc/{process}/maps") as file:
                    if any(line.rstrip().endswith(f" {place}") for line in file):
                        return True
        return False

    return is_held


def _refuse_held(usual: Callable[..., Any], is_held: Callable[[Any], bool]) -> Callable[..., Any]:
    """A file that is in use can be neither removed nor replaced, nor have another name."""

    def changed(*paths: Any, **named: Any) -> None:
        if any(map(is_held, paths)):
            source, *target = paths
            raise PermissionError(errno.EACCES, "Access is denied", source, None, *target)
        usual(*paths, **named)

    return changed


def _refuse_names(usual: Callable[..., Any]) -> Callable[..., Any]:
    """Names that a file cannot have."""

    def made(path: Any, *given: Any, **named: Any) -> Any:
        if isinstance(path, str | os.PathLike) and _NOT_IN_NAMES & set(os.fspath(path)):
            raise OSError(errno.EINVAL, "Invalid argument", os.fspath(path))
        return usual(path, *given, **named)

    return made


def _press_keys(usual: Callable[[int, int], None]) -> Callable[[int, int], None]:
    def kill(process: int, number: int) -> None:
        assert number not in (0, 1), "Windows would send Ctrl-C to a process that was looked for"
        usual(process, number)

    return kill


def _jump(usual: Callable[[], float]) -> Callable[[], float]:
    """The time of day, which somebody sets forth and back."""
    calls = [0]

    def told() -> float:
        calls[0] += 1
        return usual() + _JUMP_SECONDS * (-1) ** calls[0]

    return told


def _tick(usual: Callable[[], int]) -> Callable[[], int]:
    return lambda: usual() // _TICK_NS * _TICK_NS


def _in_seconds(clock: Callable[[], int]) -> Callable[[], float]:
    return lambda: clock() / 1e9


def run_command(words: list[str]) -> dict[str, object]:
    """Status and output of one command of ours."""
    from litesmith.cli.main import main

    with tempfile.TemporaryFile() as kept:
        original = os.dup(1), os.dup(2)
        for number in (1, 2):
            os.dup2(kept.fileno(), number)
        sys.argv = ["litesmith", *words]
        try:
            status: object = exec(words[1]) if words[0] == "-c" else main()
        except SystemExit as end:
            status = end.code
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number, handle in enumerate(original, start=1):
            os.dup2(handle, number)
            os.close(handle)
        kept.seek(0)
        return {"status": status or 0, "text": kept.read().decode(sys.stdout.encoding)}


if __name__ == "__main__":
    become_hostile()
    for one in json.loads(sys.argv[1]):
        print(json.dumps(run_command(one)), flush=True)
