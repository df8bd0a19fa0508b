"""One file knows the operating system; what it says of each is tested on all."""

import ast
import ctypes
import errno
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import litesmith
from litesmith import operating_system
from litesmith.operating_system import (
    SYSTEMS,
    arm_products,
    bind_c,
    cache_folder,
    core_kinds,
    cpu_name,
    crash_name,
    divert,
    find_files,
    free_memory_bytes,
    is_reader_gone,
    is_running,
    libc,
    native_crash,
    pin,
    quote_all,
    read_heat,
    settings_folder,
    take_lock,
)
from tests.platforms import linux, posix

ROOT = Path(litesmith.__file__).parent
# A program that is sent to other machines alone, and tells what they are.
ALONE = ROOT / "run/devices/agent.py"
QUESTIONS = {
    *(("sys", "platform"), ("os", "name"), ("platform", "system"), ("platform", "machine")),
    *(("platform", "processor"), ("platform", "release"), ("platform", "uname")),
}


def questions(path: Path) -> set[tuple[str, str]]:
    """What a file asks about the platform."""
    found: set[tuple[str, str]] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.add((node.value.id, node.attr))
        elif isinstance(node, ast.ImportFrom):
            found |= {(str(node.module), alias.name) for alias in node.names}
    return found & QUESTIONS


def test_no_other_file_asks_for_the_platform() -> None:
    files = {path for path in ROOT.rglob("*.py") if path != ALONE}
    assert {path for path in files if questions(path)} == {Path(operating_system.__file__)}


@posix
@pytest.mark.parametrize(
    ("system", "cache", "settings"),
    [
        ("linux", "/c/litesmith", "/s/litesmith"),
        ("darwin", "Library/Caches/litesmith", "Library/Application Support/litesmith"),
        ("win32", "/l/litesmith/Cache", "/r/litesmith"),
    ],
)
def test_folders(
    system: str, cache: str, settings: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"XDG_CACHE_HOME": "/c", "XDG_CONFIG_HOME": "/s", "LOCALAPPDATA": "/l", "APPDATA": "/r"}
    for name, place in {**names, "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, place)
    row = SYSTEMS[system]
    assert (cache_folder(row), settings_folder(row)) == (tmp_path / cache, tmp_path / settings)
    for name in names:
        monkeypatch.setenv(name, "not/absolute")
    assert str(cache_folder(row)).startswith(str(tmp_path))


class Ucrt:
    """Windows' C library: other names, and nothing of glibc's own."""

    def __init__(self) -> None:
        process = ctypes.CDLL(None)
        self._strdup, self.free, self.fflush = process.strdup, process.free, process.fflush


@linux
def test_the_c_library_by_the_names_of_windows() -> None:
    bound = bind_c(Ucrt(), SYSTEMS["win32"])
    assert ctypes.string_at(bound.strdup(b"options")) == b"options"
    assert (bound.mallopt, bound.malloc_trim) == (None, None)
    with pytest.raises(AttributeError):
        bind_c(Ucrt(), SYSTEMS["linux"])


@pytest.mark.parametrize(
    ("status", "by_shell", "name"),
    [
        (0, False, ""),
        (1, False, ""),
        (139, False, ""),
        (139, True, "SIGSEGV"),
        (-11, False, "SIGSEGV"),
        (-61, False, "signal 61"),
        (0xC0000005, False, "access violation, 0xC0000005"),
        (0xC0000005 - (1 << 32), False, "access violation, 0xC0000005"),
        (0xC000FFFF, False, "exception, 0xC000FFFF"),
        (0x7FFFFFFF, False, ""),
    ],
)
def test_what_a_process_died_of(status: int, by_shell: bool, name: str) -> None:
    assert crash_name(status, by_shell=by_shell) == name


def test_a_lock_is_one_process_s(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as first, (tmp_path / "lock").open("w") as second:
        assert take_lock(first.fileno())
        assert not take_lock(second.fileno())
    with (tmp_path / "lock").open("w") as third:
        assert take_lock(third.fileno(), wait=True)


def test_which_processes_run() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert is_running(child.pid) and is_running(os.getpid())
    child.communicate(b"\n")
    assert not is_running(child.pid)


def test_an_error_before_anything_is_diverted_leaves_the_streams(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def hidden(name: str | None) -> object:
        return object()

    libc.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", hidden)
    open_before = len(os.listdir("/dev/fd"))
    with pytest.raises(AttributeError), divert((1, 2), os.open(os.devnull, os.O_WRONLY)):
        raise AssertionError("nothing was diverted")
    os.write(2, b"heard\n")
    assert capfd.readouterr().err == "heard\n"
    assert len(os.listdir("/dev/fd")) == open_before


ARM = "processor\t: {core}\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n"


def test_the_name_of_a_processor(tmp_path: Path) -> None:
    place = tmp_path / "cpuinfo"
    place.write_text(
        "processor\t: 0\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel name\t: AMD\n"
    )
    assert cpu_name(place) == "AMD EPYC"
    cores = [*["0xd05"] * 4, *["0xd0b"] * 4]
    place.write_text("".join(ARM.format(core=i, part=part) for i, part in enumerate(cores)))
    assert cpu_name(place).endswith("Cortex-A55 + Cortex-A76")
    place.write_text(ARM.format(core=0, part="0xfff"))
    assert cpu_name(place).endswith("ARM 0x41:0xfff")
    assert cpu_name(tmp_path / "none") != ""


@pytest.mark.parametrize(
    ("cores", "found"),
    [
        (["fp asimd asimddp", "fp asimd asimddp"], ("dotprod",)),
        (["fp asimd asimddp i8mm"], ("dotprod", "i8mm")),
        (["fp asimd asimddp", "fp asimd"], ()),  # a process is moved from core to core
        ([], ()),
    ],
)
def test_products_of_bytes_are_those_of_every_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: list[str], found: tuple[str, ...]
) -> None:
    place = tmp_path / "cpuinfo"
    place.write_text("".join(f"processor\t: 0\nFeatures\t: {core}\n\n" for core in cores))
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert arm_products(place) == found
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert arm_products(place) == ()


@linux
def test_macos_tells_its_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "sysctl"
    program.write_text("#!/bin/sh\n[ $2 = machdep.cpu.brand_string ] && echo Apple M3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cpu_name(tmp_path / "none") == "Apple M3"


@pytest.mark.parametrize(
    ("fact", "speeds", "kinds"),
    [
        ("cpu_capacity", [400] * 4 + [1024] * 2, ((4, 5), (0, 1, 2, 3))),
        ("cpu_capacity", [250, 250, 870, 870, 1024, 880], ((4,), (2, 3, 5), (0, 1))),
        ("cpufreq/cpuinfo_max_freq", [5_300_000, 5_200_000, 3_900_000], ((0, 1), (2,))),
        ("cpufreq/cpuinfo_max_freq", [3_000_000] * 3, ((0, 1, 2),)),
        ("", [0, 0], ((0, 1),)),
        ("", [], ()),
    ],
)
def test_kinds_of_cores(
    fact: str, speeds: list[int], kinds: tuple[tuple[int, ...], ...], tmp_path: Path
) -> None:
    for core, speed in enumerate(speeds):
        place = tmp_path / f"cpu{core}" / (fact or "topology")
        place.parent.mkdir(parents=True)
        place.write_text(f"{speed}\n")
    (tmp_path / "cpuidle").mkdir()
    assert core_kinds(tmp_path).kinds == kinds


@pytest.mark.parametrize(
    ("temperatures", "clocks", "heat"),
    [
        ([31000, 87500, -274000], [(2_000, 2_000), (1_200, 2_400)], (87.5, 0.5)),
        ([45], [(2_000, 2_000)], (45.0, 1.0)),
        ([0, 255_000], [], (0.0, 1.0)),
        ([], [(0, 0)], (0.0, 1.0)),
    ],
)
def test_heat_is_read_from_the_files_that_android_has(
    temperatures: list[int],
    clocks: list[tuple[int, int]],
    heat: tuple[float, float],
    tmp_path: Path,
) -> None:
    for number, value in enumerate(temperatures):
        write(tmp_path / f"thermal_zone{number}/temp", value)
    for core, (now, most) in enumerate(clocks):
        write(tmp_path / f"cpu{core}/cpufreq/scaling_max_freq", now)
        write(tmp_path / f"cpu{core}/cpufreq/cpuinfo_max_freq", most)
    assert tuple(read_heat(tmp_path, tmp_path)) == heat


def write(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{value}\n")


@linux
def test_pinned_cores_are_given_back() -> None:
    before = os.sched_getaffinity(0)
    one = frozenset({min(before)})
    with pin(one):
        assert os.sched_getaffinity(0) == one
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_a_command_is_quoted_for_the_shell_that_it_is_typed_into(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    words = ["litesmith", "inspect", r"C:\my models\it's.tflite", "-o=/a,b"]
    assert shlex.split(quote_all(words)) == words
    if platform == "win32":  # where single quotes are letters
        assert quote_all(words) == r"""litesmith inspect "C:\my models\it's.tflite" -o=/a,b"""


@given(st.lists(st.text('a "\\(|', min_size=1), min_size=1))
def test_a_program_of_windows_takes_quoted_words_apart_again(words: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        assert windows_words(quote_all(words)) == words


def windows_words(line: str) -> list[str]:
    """The words of a command line, by the rules of Microsoft's C library."""
    found = [""]
    is_inside = False
    for slashes, mark in re.findall(r"(\\*)([^\\]|$)", line):
        is_escaped = mark == '"' and len(slashes) % 2 == 1
        found[-1] += "\\" * (len(slashes) // 2 if mark == '"' else len(slashes))
        if is_escaped or mark not in ('"', " ") or (mark == " " and is_inside):
            found[-1] += mark
        elif mark == '"':
            is_inside = not is_inside
        else:
            found.append("")
    return found


def test_a_folder_with_a_name_that_none_can_have_holds_nothing() -> None:
    assert find_files(Path("no\0name"), "*.json") == []


def test_free_memory_is_told_everywhere(tmp_path: Path) -> None:
    told = tmp_path / "meminfo"
    told.write_text("MemTotal:  9000 kB\nMemAvailable:    7000 kB\n")
    assert free_memory_bytes(told) == 7_168_000
    for free in (free_memory_bytes(), free_memory_bytes(tmp_path / "none")):
        assert (free or 0) > 1_000_000


def test_a_crash_that_ctypes_tells_as_an_error_is_one() -> None:
    assert native_crash(OSError("exception: access violation reading 0x20")) == (
        "access violation reading 0x20"
    )
    assert native_crash(OSError(2, "No such file", "exception: x")) == ""
    crash = "raise OSError('exception: stack overflow')"
    for program, has_crashed in ((crash, True), ("raise OSError(2, 'gone')", False)):
        lines = f"with end_by_crash():\n    {program}"
        code = f"from litesmith.operating_system import end_by_crash\n{lines}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True)
        assert done.returncode == ((0xC0000005 if os.name == "nt" else 5) if has_crashed else 1)
        assert (b"Traceback" in done.stderr) is not has_crashed


def test_a_pipe_without_a_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    invalid = OSError(errno.EINVAL, "Invalid argument")
    for platform, is_gone in (("linux", False), ("win32", True)):
        monkeypatch.setattr(sys, "platform", platform)
        assert is_reader_gone(invalid, writer) is is_gone
        assert is_reader_gone(BrokenPipeError(), writer)
        with open(os.devnull, "wb") as file:
            assert not is_reader_gone(invalid, file.fileno())
    os.close(writer)
