"""What differs between operating systems; no other file asks which one this is.

A row of `SYSTEMS` has the names that differ, functions have the ways that differ. A way that a
system does not have is told as None, 0 or "", never as an exception.
"""

import ctypes
import errno
import os
import platform
import re
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from ctypes import byref, c_char_p, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

_PROGRAM_SECONDS = 5.0


class System(NamedTuple):
    """The names that one system has for what all have."""

    c_library: str | None  # None for what the process has loaded
    strdup: str  # as the C library calls it
    sleep: str  # a function of microseconds that compiled loops call; "" where they spin instead
    litert: str  # LiteRT's library in its wheel
    vulkan: str  # the loader
    cache: tuple[str, str]  # the variable that names the folder, and where it is without, at home
    settings: tuple[str, str]
    name_of_cache: str  # a folder of ours in it
    peak_unit: int  # bytes in a unit of ru_maxrss
    keeps_mapped: bool  # a file that is mapped can be neither replaced nor removed
    lists_programs: str  # what shows a user which programs are busy


_LINUX = System(
    None,
    "strdup",
    "usleep",
    "libLiteRt.so",
    "libvulkan.so.1",
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    "litesmith",
    1024,
    False,
    "`top`",
)
SYSTEMS = {
    "linux": _LINUX,
    "darwin": _LINUX._replace(
        litert="libLiteRt.dylib",
        cache=("", "Library/Caches"),
        settings=("", "Library/Application Support"),
        peak_unit=1,
    ),
    "win32": System(
        "ucrtbase",
        "_strdup",
        "",
        "libLiteRt.dll",
        "vulkan-1.dll",
        ("LOCALAPPDATA", "AppData/Local"),
        ("APPDATA", "AppData/Roaming"),
        "litesmith/Cache",
        1,
        True,
        "Task Manager",
    ),
}
THIS = SYSTEMS.get(sys.platform, _LINUX)


def is_linux() -> bool:
    """True on Linux."""
    return sys.platform == "linux"


def is_mac() -> bool:
    """True on macOS."""
    return sys.platform == "darwin"


def is_windows() -> bool:
    """True on Windows."""
    return sys.platform == "win32"


def describe_system() -> str:
    """Name, release and processor, as in "Linux 6.1.0 aarch64"."""
    return f"{platform.system()} {platform.release()} {platform.machine()}"


def is_x86() -> bool:
    """True on processors of that kind, whatever they can do."""
    return platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")


def has_float_codes() -> bool:
    """True on processors where XNNPACK makes int8 codes of sums in float32, rounded to even: its
    kernels for 32-bit ARM cannot round so."""
    return is_x86() or platform.machine().lower() in ("aarch64", "arm64")


def is_linux_x86_64() -> bool:
    """True on the one platform that some makers build for."""
    return is_linux() and platform.machine() == "x86_64"


_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_BEFORE_QUOTE = re.compile(r'\\+(?="|$)')  # where a program of Windows takes two for one


def quote(word: str) -> str:
    """A word as this system's shell takes it: single quotes mean nothing to that of Windows."""
    if not is_windows():
        return shlex.quote(word)
    if _PLAIN.fullmatch(word):
        return word
    inside = _BEFORE_QUOTE.sub(lambda slashes: 2 * slashes[0], word).replace('"', '\\"')
    return f'"{inside}"'


def quote_all(words: Iterable[str]) -> str:
    """A line of words for this system's shell, which `shlex.split` takes apart again."""
    return " ".join(map(quote, words))


# Folders


def cache_folder(system: System = THIS) -> Path | None:
    """Where what can be made again is kept; None for a user without a home."""
    place = _folder(system.cache)
    return None if place is None else place / system.name_of_cache


def settings_folder(system: System = THIS) -> Path | None:
    """Where what a user sets is kept; None for a user without a home."""
    place = _folder(system.settings)
    return None if place is None else place / "litesmith"


def _folder(named: tuple[str, str]) -> Path | None:
    variable, usual = named
    given = os.environ.get(variable, "") if variable else ""
    if os.path.isabs(given):
        return Path(given)
    try:
        return Path.home() / usual
    except RuntimeError:
        return None


# The C library


class BoundC(NamedTuple):
    """Functions of the C library under the names that the standard has for them."""

    strdup: Callable[[bytes], int]
    free: c_void_p  # where it begins: others call it
    fflush: Callable[[object], int]
    mallopt: Callable[[int, int], int] | None
    malloc_trim: Callable[[int], int] | None


def bind_c(library: object, system: System = THIS) -> BoundC:
    """The functions of a C library that was loaded, whatever the system calls them."""
    strdup, fflush = getattr(library, system.strdup), getattr(library, "fflush")  # noqa: B009
    strdup.restype, strdup.argtypes = c_void_p, [c_char_p]
    fflush.argtypes = [c_void_p]
    return BoundC(
        strdup,
        ctypes.cast(getattr(library, "free"), c_void_p),  # noqa: B009
        fflush,
        getattr(library, "mallopt", None),
        getattr(library, "malloc_trim", None),
    )


@cache
def libc() -> BoundC:
    """The C library of this process."""
    return bind_c(ctypes.CDLL(THIS.c_library))


# Child processes

# What Windows says of a process that died, by the number that it ends with.
_WINDOWS_CRASHES = {
    0xC0000005: "access violation",
    0xC000001D: "illegal instruction",
    0xC0000094: "integer division by zero",
    0xC00000FD: "stack overflow",
    0xC0000135: "a library is missing",
    0xC0000374: "heap corruption",
    0xC0000409: "abort",
}
_SHELL_CRASH = 128  # a shell says this much more than the number of the signal


def crash_name(status: int, *, by_shell: bool = False) -> str:
    """What a process died of, by its exit status; "" where it ended by itself.

    Python tells a signal as a negative number, Windows an exception as 0xC0000000 and more (or the
    same below zero), a shell a signal as 129 and more.
    """
    if status & 0xF0000000 == 0xC0000000 and (status > 0 or -status > _SHELL_CRASH):
        number = status & 0xFFFFFFFF
        return f"{_WINDOWS_CRASHES.get(number, 'exception')}, 0x{number:08X}"
    number = -status if status < 0 else status - _SHELL_CRASH if by_shell else 0
    if number <= 0:
        return ""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# How ctypes tells an exception of native code on Windows, where it does not end the process.
_NATIVE_CRASH = "exception: "
_ACCESS_VIOLATION = 0xC0000005 - (1 << 32)


def native_crash(error: OSError) -> str:
    """What native code died of that this process has survived, as it may on Windows; "" for any
    other error."""
    text = str(error)
    return text.removeprefix(_NATIVE_CRASH) if text.startswith(_NATIVE_CRASH) else ""


@contextmanager
def end_by_crash() -> Generator[None]:
    """Lets this process die of a crash of native code that it would survive."""
    try:
        yield
    except OSError as error:
        if not native_crash(error):
            raise
        os._exit(_ACCESS_VIOLATION)


def limit_child() -> None:
    """Makes this process one that leaves no dump, and that Linux kills where its parent dies."""
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if is_linux():
        of_parent_death = 1
        ctypes.CDLL(None).prctl(of_parent_death, signal.SIGKILL)


def adopt_orphans() -> None:
    """Makes this process, on Linux, the parent of what its children leave running."""
    if is_linux():
        child_subreaper = 36
        ctypes.CDLL(None).prctl(child_subreaper, 1)


def end_orphans(seconds: float = 1.0) -> None:
    """Ends all children of this process, and theirs, that are in its session: a daemon is not."""
    own, ends = os.getsid(0), monotonic() + seconds
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while monotonic() < ends:
        mine = [child for child in map(int, read_text(children).split()) if _session(child) == own]
        if not mine:
            return
        for child in mine:
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, os.WNOHANG)
        sleep(0.002)


def _session(process: int) -> int:
    try:
        return os.getsid(process)
    except OSError:  # it has ended
        return 0


_STILL_ACTIVE, _QUERY_LIMITED = 259, 0x1000


def is_running(process: int) -> bool:
    """True where there is such a process on this machine, and it is not dead and unburied."""
    if is_windows():  # where os.kill(…, 0) presses its Ctrl-C
        return _is_running_on_windows(process)
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # of somebody else, or where states are not told
        return True
    return state not in "ZX"


def _is_running_on_windows(process: int) -> bool:
    kernel = ctypes.CDLL("kernel32")
    kernel.OpenProcess.restype = c_void_p
    handle = kernel.OpenProcess(_QUERY_LIMITED, 0, c_uint32(process))
    if not handle:
        return False
    status = c_uint32()
    told = kernel.GetExitCodeProcess(c_void_p(handle), byref(status))
    kernel.CloseHandle(c_void_p(handle))
    return not told or status.value == _STILL_ACTIVE


# Files


def take_lock(handle: int, *, wait: bool = False) -> bool:
    """Takes the lock of an open file, which ends with the process, however that ends; False where
    another has it and nobody waits."""
    try:
        import fcntl
    except ImportError:
        return _take_lock_on_windows(handle, wait)
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    return False


def _take_lock_on_windows(handle: int, wait: bool) -> bool:
    import msvcrt

    # LK_LOCK gives up after ten seconds, with the error of a deadlock.
    while True:
        try:
            msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError as error:
            if wait and error.errno == errno.EDEADLOCK:
                continue
            return False
        return True


def is_folder_error(error: OSError, path: str | os.PathLike[str]) -> bool:
    """True where a file cannot be opened since it is a folder: Windows says that it may not."""
    return isinstance(error, IsADirectoryError) or (
        isinstance(error, PermissionError) and os.path.isdir(path)
    )


def is_reader_gone(error: OSError, handle: int) -> bool:
    """True where nothing can be written to a pipe since nobody reads it: Windows calls that an
    invalid argument."""
    return isinstance(error, BrokenPipeError) or (
        is_windows() and error.errno == errno.EINVAL and stat.S_ISFIFO(os.fstat(handle).st_mode)
    )


def is_there(path: Path) -> bool:
    """True of a file; False also for a name that no file can have."""
    try:
        return path.is_file()
    except OSError:
        return False


def find_files(folder: Path, pattern: str) -> list[Path]:
    """The files of a folder with such names, in order; no pipes and devices, which need not end."""
    if not folder.is_dir():  # since 3.13, `glob` raises ValueError for a name with a zero byte
        return []
    try:
        return sorted(path for path in folder.glob(pattern) if is_there(path))
    except ValueError:  # what Python 3.14 says of a name that no folder can have
        return []


def is_endless(path: Path) -> bool:
    """True of what need not end when it is read: a pipe or a device; raises OSError where there is
    nothing."""
    mode = path.stat().st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def divert(numbers: tuple[int, ...], elsewhere: int) -> Generator[None]:
    """What is written to these descriptors meanwhile goes elsewhere, which is closed in the end.

    All that can fail comes before the first descriptor is changed, so that an error is told where
    its reader looks.
    """
    changed: list[tuple[int, int]] = []
    flush: Callable[[object], int] | None = None
    try:
        flush = libc().fflush
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
        originals = [(os.dup(number), number) for number in numbers if _is_open(number)]
        changed += originals
        for _, number in originals:
            os.dup2(elsewhere, number)
        yield
    finally:
        if flush is not None:
            flush(None)
        for original, number in changed:
            os.dup2(original, number)
            os.close(original)
        os.close(elsewhere)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:  # there is nothing to protect
        return False
    return True


# Memory


class _WindowsMemory(ctypes.Structure):
    _fields_ = (
        ("size", c_uint32),
        ("load", c_uint32),
        *((name, c_uint64) for name in ("total", "free", "pages", "free_pages")),
        *((name, c_uint64) for name in ("virtual", "free_virtual", "extended")),
    )


class _WindowsProcess(ctypes.Structure):
    _fields_ = (
        ("size", c_uint32),
        ("faults", c_uint32),
        *((name, c_size_t) for name in ("peak", "resident", "pool_peak", "pool")),
        *((name, c_size_t) for name in ("other_peak", "other", "paged", "paged_peak")),
    )


def memory_bytes() -> int:
    """The machine's memory; 0 where the system does not tell."""
    if is_windows():
        return int(_windows_memory().total)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0


def free_memory_bytes(table: Path = Path("/proc/meminfo")) -> int | None:
    """Memory that is still free for programs, all of it where only that is told; None where the
    system does not say."""
    found = re.search(r"^MemAvailable:\s*(\d+)", read_text(table), re.MULTILINE)
    if found:
        return 1024 * int(found[1])
    if is_windows():
        return int(_windows_memory().free) or None
    return memory_bytes() or None


def _windows_memory() -> _WindowsMemory:
    """Zeros where Windows does not tell."""
    told = _WindowsMemory(size=ctypes.sizeof(_WindowsMemory))
    ctypes.CDLL("kernel32").GlobalMemoryStatusEx(byref(told))
    return told


def peak_bytes() -> int | None:
    """The most memory of this process that was resident, since its start or since the last reset;
    None where the system does not tell."""
    for line in read_text(Path("/proc/self/status")).splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    if is_windows():
        told = _WindowsProcess(size=ctypes.sizeof(_WindowsProcess))
        kernel = ctypes.CDLL("kernel32")
        kernel.GetCurrentProcess.restype = c_void_p
        this = c_void_p(kernel.GetCurrentProcess())
        is_told = kernel.K32GetProcessMemoryInfo(this, byref(told), told.size)
        return int(told.peak) if is_told else None
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * THIS.peak_unit


def reset_peak() -> bool:
    """Lets `peak_bytes` begin again; False where the system cannot."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", "utf-8")
        return True
    return False


# Processors

_CPUS = Path("/sys/devices/system/cpu")
# Cores by the maker and the part that Linux tells of them.
_ARM_CORES: Mapping[tuple[int, int], str] = {
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD04): "Cortex-A35",
    (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD09): "Cortex-A73",
    (0x41, 0xD0A): "Cortex-A75",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD0D): "Cortex-A77",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD41): "Cortex-A78",
    (0x41, 0xD44): "Cortex-X1",
    (0x41, 0xD46): "Cortex-A510",
    (0x41, 0xD47): "Cortex-A710",
    (0x41, 0xD48): "Cortex-X2",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4D): "Cortex-A715",
    (0x41, 0xD4E): "Cortex-X3",
    (0x41, 0xD4F): "Neoverse-V2",
    (0x41, 0xD80): "Cortex-A520",
    (0x41, 0xD81): "Cortex-A720",
    (0x41, 0xD82): "Cortex-X4",
}


def cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor as its maker calls it; its kind where the system does not tell."""
    rows = [line.partition(":") for line in read_text(cpuinfo).splitlines()]
    told = {key.strip(): value.strip() for key, _, value in reversed(rows)}
    for key in ("model name", "Model", "Hardware"):
        if told.get(key):
            return told[key]
    if is_mac():
        name = _printed("sysctl", "-n", "machdep.cpu.brand_string")
        if name:
            return name
    cores = _arm_cores(rows)
    board = read_text(Path("/proc/device-tree/model")).strip("\0 ")
    if cores:
        return ", ".join(filter(None, (board, " + ".join(dict.fromkeys(cores)))))
    return _windows_cpu() or platform.processor() or platform.machine()


def _windows_cpu() -> str:
    """What Windows keeps of the first processor; "" on other systems."""
    try:
        import winreg as registry
    except ImportError:
        return ""
    place = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
    with suppress(OSError), registry.OpenKey(registry.HKEY_LOCAL_MACHINE, place) as key:  # type: ignore[attr-defined]
        return str(registry.QueryValueEx(key, "ProcessorNameString")[0]).strip()  # type: ignore[attr-defined]
    return ""


def _arm_cores(rows: list[tuple[str, str, str]]) -> list[str]:
    """The name of each core, by the numbers of its maker and its part."""
    found: list[str] = []
    maker = 0
    for key, _, value in rows:
        with suppress(ValueError):
            if key.strip() == "CPU implementer":
                maker = int(value, 0)
            elif key.strip() == "CPU part":
                part = int(value, 0)
                found.append(_ARM_CORES.get((maker, part), f"ARM 0x{maker:02x}:0x{part:03x}"))
    return found


# Products of bytes, as Linux calls them and as LLVM does, which by itself does not look for them.
_ARM_PRODUCTS = {"asimddp": "dotprod", "i8mm": "i8mm"}


def arm_products(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, ...]:
    """Instructions for products of bytes that every 64-bit ARM core here has, by LLVM's names."""
    if platform.machine() != "aarch64":
        return ()
    rows = [line.partition(":") for line in read_text(cpuinfo).splitlines()]
    cores = [set(value.split()) for key, _, value in rows if key.strip() == "Features"]
    every = set[str].intersection(*cores) if cores else set[str]()
    return tuple(name for word, name in _ARM_PRODUCTS.items() if word in every)


def core_ticks(table: Path = Path("/proc/stat")) -> tuple[int, int] | None:
    """Idle ticks and all ticks of all cores since the start; None where the system reports none."""
    words = read_text(table).partition("\n")[0].split()
    if len(words) >= 6:
        ticks = [int(word) for word in words[1:9]]
        return ticks[3] + ticks[4], sum(ticks)
    if is_windows():
        idle, kernel, user = c_uint64(), c_uint64(), c_uint64()
        times = ctypes.CDLL("kernel32").GetSystemTimes
        if times(byref(idle), byref(kernel), byref(user)):
            return idle.value, kernel.value + user.value  # the kernel's time includes the idle one
    return None


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class CoreKinds(NamedTuple):
    """The cores of a processor, the fastest kind first; one kind where all are alike."""

    kinds: tuple[tuple[int, ...], ...]

    @property
    def big(self) -> tuple[int, ...]:
        return self.kinds[0] if self.kinds else ()

    @property
    def little(self) -> tuple[int, ...]:
        return self.kinds[-1] if self.kinds else ()


def core_kinds(cpus: Path = _CPUS) -> CoreKinds:
    """The cores that the system tells of, by capacity or else by their highest clock."""
    places = [path for path in cpus.glob("cpu*") if re.fullmatch(r"cpu\d+", path.name)]
    return sort_cores(
        *(
            {int(place.name[3:]): read_text(place / fact) for place in places}
            for fact in ("cpu_capacity", "cpufreq/cpuinfo_max_freq")
        )
    )


def sort_cores(*facts: Mapping[int, str]) -> CoreKinds:
    """Cores by the first of some facts that is told of all of them; one kind where none is."""
    for told in facts:
        if told and all(value.isdecimal() for value in told.values()):
            return CoreKinds(_kinds({core: int(value) for core, value in told.items()}))
    return CoreKinds((tuple(sorted(facts[0])),) if facts and facts[0] else ())


class Heat(NamedTuple):
    """How hot a machine is, and what its system does against it."""

    celsius: float  # of the hottest place that is told; 0 where none is
    clock: float  # what is left of the highest clock, on the core that has lost most; 1 for all


# Some sensors tell degrees, most tell thousandths; what is far off either is no temperature.
_LEAST_CELSIUS, _MOST_CELSIUS = 1.0, 150.0


def read_heat(zones: Path = Path("/sys/class/thermal"), cpus: Path = _CPUS) -> Heat:
    """The same files on Linux and on Android: sensors, and the clock that each core may reach."""
    places = [*cpus.glob("cpu*/cpufreq")]
    facts = "scaling_max_freq", "cpuinfo_max_freq"
    return judge_heat(
        (read_text(zone / "temp") for zone in zones.glob("thermal_zone*")),
        ((read_text(place / facts[0]), read_text(place / facts[1])) for place in places),
    )


def judge_heat(sensors: Iterable[str], clocks: Iterable[tuple[str, str]]) -> Heat:
    """The heat by what sensors say, and by the clock that each core may reach and its highest."""
    degrees = [int(text) for text in sensors if text.removeprefix("-").isdecimal()]
    scaled = [one if one <= _MOST_CELSIUS else one / 1000 for one in degrees]
    known = [one for one in scaled if _LEAST_CELSIUS <= one <= _MOST_CELSIUS]
    left = [1.0]
    for now, most in clocks:
        if now.isdecimal() and most.isdecimal() and int(most):
            left.append(int(now) / int(most))
    return Heat(max(known, default=0.0), min(left))


# Cores of one kind differ a little: the best of them are sold with a slightly higher clock.
_ALIKE = 0.9


def _kinds(speeds: Mapping[int, int]) -> tuple[tuple[int, ...], ...]:
    kinds: list[list[int]] = []
    fastest = 0
    for core in sorted(speeds, key=lambda core: (-speeds[core], core)):
        if not kinds or speeds[core] < _ALIKE * fastest:
            kinds.append([])
            fastest = speeds[core]
        kinds[-1].append(core)
    return tuple(tuple(sorted(kind)) for kind in kinds)


@contextmanager
def pin(cores: frozenset[int]) -> Generator[None]:
    """This thread, and all that it starts meanwhile, runs on these cores only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def can_pin() -> bool:
    """True where the system lets a program choose its cores: macOS does not."""
    return hasattr(os, "sched_setaffinity")


def _printed(*command: str) -> str:
    """What a program of the system prints; "" where there is none."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_PROGRAM_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else ""


def read_text(path: Path) -> str:
    """What a file of the system says; "" where there is none to read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
