"""A command whose native code crashes, hangs or is killed takes nothing with it."""

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from litesmith import Builder
from litesmith.cli.guard import can_guard
from litesmith.operating_system import is_running
from litesmith.run.core.child_process import CALL_SECONDS
from litesmith.tflite.file import save
from litesmith.unfinished import open_part
from tests.interruptible import started, wait_for_file
from tests.slowness import patient

pytestmark = pytest.mark.skipif(not can_guard(), reason="no process can be doubled here")

# What a file of custom ops does when it is imported; the command's model is written after that.
NATIVE = {
    "crash": "import ctypes; ctypes.string_at(0)",
    "abort": "import os; os.abort()",
}
HANG = """\
import ctypes
m = ctypes.create_string_buffer(64)
lock = ctypes.CDLL(None).pthread_mutex_lock
lock(m)
open('ready', 'w').close()
lock(m)  # for good
"""
LEFT = """\
import os, pathlib, tempfile
from litesmith.unfinished import open_part
handle, name = open_part(pathlib.Path('.'))
os.write(handle, b'half')
pathlib.Path(tempfile.mkdtemp(), 'file').write_text('left')
"""

SLOW_TO_END = """\
import time
try:
    open('ready', 'w').close()
    time.sleep(100)
finally:
    time.sleep(0.5)
    open('clean', 'w').close()
"""


# Python drops what is raised in a destructor, and Ctrl-C was gone with it.
DROPPED = """\
import time

class Slow:
    def __del__(self):
        open('ready', 'w').close()
        time.sleep(100)

Slow()
time.sleep(100)
"""


# Python before 3.12 made a RuntimeError of it, and the command called that a bug of its own.
WRAPPED = """\
import time

class Slow:
    def __set_name__(self, owner, name):
        open('ready', 'w').close()
        time.sleep(100)

class Owner:
    field = Slow()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    b = Builder()
    save(b.model(b.op("ABS", b.input("x", (1, 4)))), tmp_path / "m.tflite")
    (tmp_path / "temporary").mkdir()
    return tmp_path


def start(
    place: Path, code: str, env: Mapping[str, str] | None = None, *, own_group: bool = False
) -> "subprocess.Popen[str]":
    """`targets` with a file of custom ops that runs some code."""
    (place / "ops.py").write_text(LEFT + code)
    words = ("-m", "litesmith", "targets", "m.tflite", "--ops", "ops.py")
    variables = {**os.environ, "TMPDIR": str(place / "temporary"), **(env or {})}
    return started(*words, cwd=place, env=variables, own_group=own_group)


def nothing_is_left(place: Path) -> bool:
    return not [*place.glob(".litesmith-*")] and not [*(place / "temporary").iterdir()]


# What qemu-user itself writes as an emulated process crashes: no program can keep it back.
EMULATOR = re.compile("qemu: uncaught target signal")


@pytest.mark.parametrize("how", ["crash", "abort"])
def test_a_crash_is_one_line_and_leaves_nothing(place: Path, how: str) -> None:
    command = start(place, NATIVE[how])
    _, told = command.communicate(timeout=patient(60))
    assert command.returncode == 2
    (line,) = [line for line in told.splitlines() if not EMULATOR.match(line)]
    assert line.startswith("litesmith: the runtime crashed (SIG")
    assert nothing_is_left(place)


# A child and one of its own, which go on for long, and a daemon, which is to; none of them speaks.
CHILDREN = """\
import os, pathlib, subprocess, sys, time

quiet = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
inner = "import subprocess, time; print(subprocess.Popen(['sleep', '900']).pid, flush=True); "
words = [sys.executable, '-c', inner + 'time.sleep(900)']
child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
daemon = subprocess.Popen(['sleep', '900'], start_new_session=True, **quiet)
told = os.getpid(), child.pid, int(child.stdout.readline()), daemon.pid
pathlib.Path('processes').write_text(' '.join(map(str, told)))
pathlib.Path('ready').touch()
time.sleep(900)
"""


def can_adopt() -> bool:
    """Whether a process can become the parent of orphans: on Linux, but not under qemu-user."""
    get_child_subreaper, told = 37, ctypes.c_int()
    if sys.platform != "linux":
        return False
    return ctypes.CDLL(None).prctl(get_child_subreaper, ctypes.byref(told)) == 0


@pytest.mark.skipif(not can_adopt(), reason="this system gives a process no orphans")
def test_a_command_that_is_killed_takes_its_children_along(place: Path) -> None:
    """What it had started in processes of their own went on after it."""
    command = start(place, CHILDREN)
    wait_for_file(place / "ready", command)
    worker, child, inner, daemon = map(int, (place / "processes").read_text("utf-8").split())
    try:
        os.kill(worker, signal.SIGKILL)
        command.wait(timeout=patient(60))
        assert command.returncode == 2
        assert [is_running(one) for one in (worker, child, inner, daemon)] == [False] * 3 + [True]
        assert nothing_is_left(place)
    finally:
        for one in (child, inner, daemon):
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_native_code_that_hangs_can_be_stopped(
    place: Path, number: signal.Signals, status: int
) -> None:
    command = start(place, HANG)
    wait_for_file(place / "ready", command)
    began = time.monotonic()
    command.send_signal(number)
    _, told = command.communicate(timeout=patient(60))
    assert command.returncode == status
    assert told == "litesmith: stopped; no half-written file is left\n"
    assert time.monotonic() - began < patient(30)  # of a busy machine; it is under one by itself
    assert nothing_is_left(place)


def test_one_call_has_a_limit(place: Path) -> None:
    command = start(place, HANG, {CALL_SECONDS: "0.2"})
    _, told = command.communicate(timeout=patient(120))
    assert command.returncode == 2
    assert "one call of native code took over 0.2 s" in told and CALL_SECONDS in told
    assert nothing_is_left(place)


def test_a_killed_guard_takes_the_command_along_and_the_next_cleans_up(place: Path) -> None:
    command = start(place, HANG)
    wait_for_file(place / "ready", command)
    command.kill()
    command.communicate(timeout=patient(60))
    assert not nothing_is_left(place)
    again = start(place, "")
    again.communicate(timeout=patient(60))
    assert again.returncode == 0
    handle, name = open_part(place)
    os.close(handle)
    os.unlink(name)
    assert nothing_is_left(place)


def test_what_another_machine_left_is_not_ours_to_judge(place: Path) -> None:
    """Containers may share a folder for temporary files: there, 1 is a process of each."""
    theirs = place / "temporary" / "litesmith-99999999-999999999-x"
    theirs.mkdir()
    start(place, "").communicate(timeout=patient(60))
    assert theirs.exists()


def test_a_terminal_interrupts_once(place: Path) -> None:
    """Ctrl-C reaches the child and its guard; the clean-up of the child is not interrupted."""
    command = start(place, SLOW_TO_END, own_group=True)
    wait_for_file(place / "ready", command)
    os.killpg(command.pid, signal.SIGINT)
    _, told = command.communicate(timeout=patient(60))
    assert command.returncode == 130
    assert told == "litesmith: stopped; no half-written file is left\n"
    assert (place / "clean").exists() and nothing_is_left(place)


@pytest.mark.parametrize("code", [DROPPED, WRAPPED], ids=["dropped", "wrapped"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_python_drops_or_wraps_ends_the_command(
    place: Path, number: signal.Signals, code: str
) -> None:
    running = start(place, code)
    wait_for_file(place / "ready", running)
    running.send_signal(number)
    told = running.communicate(timeout=patient(30))[1]
    assert running.returncode == (130 if number == signal.SIGINT else 143), told
    assert told == "litesmith: stopped; no half-written file is left\n"
    assert nothing_is_left(place)


LATE = """\
import os, signal, sys
from litesmith.cli.guard import run_guarded

guard = os.getpid()
status = run_guarded(lambda: 7, lambda told, status: status)

class Late:  # goes when Python has forgotten its handlers
    def __del__(self, kill=os.kill, number=signal.SIGINT):
        kill(guard, number)

late = Late() if os.getpid() == guard else None
sys.exit(status)
"""


def test_a_word_that_comes_too_late_does_not_change_the_status() -> None:
    """Ctrl-C while Python ended killed the guard of a command that was done."""
    done = started("-c", LATE)
    told = done.communicate(timeout=patient(60))[1]
    assert done.returncode == 7, told


def test_a_call_in_a_child_of_the_command_has_the_same_limit(place: Path) -> None:
    """`bench` runs the model in a child first, where a loop of the model's own never ends."""
    always, counts = Builder("always"), Builder("counts")
    always.input("x", (1,))
    x = counts.input("x", (1,))
    ends = always.graph(always.const(np.array([True]), name="yes"))
    b = Builder()
    options = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    y = b.op("WHILE", b.input("x", (1,)), shape=(1,), **options)
    model = b.model(y, graphs=[ends, counts.graph(counts.op("ABS", x))])
    save(model, place / "m.tflite")
    command = subprocess.run(
        [sys.executable, "-m", "litesmith", "bench", "m.tflite", "--runs", "1"],
        cwd=place,
        env={**os.environ, "TMPDIR": str(place / "temporary"), CALL_SECONDS: "2"},
        capture_output=True,
        text=True,
        timeout=patient(100),
    )
    assert command.returncode == 2, command.stderr
    assert "took over 2 s" in command.stderr
    assert nothing_is_left(place)
