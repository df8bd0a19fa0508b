"""Runs a command in a child process, and watches over it.

A command hands files from strangers to native code, which may crash, hang, or take all of the
memory. So the command runs in a child, and the process that the user started stays small, answers
Ctrl-C, removes the leftovers of a dead child, and reports its end in one line. Nothing is copied
between the two, and times are taken inside the child.
"""

import atexit
import gc
import os
import select
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from mmap import mmap
from pathlib import Path
from time import monotonic
from types import FrameType

from litesmith.errors import BadInput
from litesmith.operating_system import (
    adopt_orphans,
    end_orphans,
    is_running,
    limit_child,
    read_text,
)
from litesmith.phrases import phrase
from litesmith.run.core.child_process import CALL_SECONDS, call_seconds
from litesmith.temporary import no_room
from litesmith.unfinished import NOTES, machine, remove_noted
from litesmith.units import bytes_text

STOPPED = phrase("stopped; no half-written file is left")
BAD_INPUT, CTRL_C, TERMINATED = 2, 130, 143

# How long an interrupt may wait for Python, how often the child is checked, and how often it is
# asked whether Python runs; more often where calls have a shorter limit.
_ANSWER_SECONDS, _LOOK_SECONDS, _ASK_SECONDS = 0.8, 0.5, 5.0

# A child that uses most of the memory is stopped when no more than this share is free.
_LEAST_FREE = 0.03

# The signal that asks whether Python runs; a process without a handler for it, which is ending,
# ignores it.
_ASK = getattr(signal, "SIGURG", 0)

# The bytes by which the child reports that Python runs, that it is about to end, and that Python
# lost the request to end, as it loses any exception in a destructor or in a callback of native
# code.
_RUNS, _ENDS, _LOST = 0, 1, 2

# The signals that end a command; a terminal also sends them to the child, earlier than we do.
_ENDING = tuple(getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n))
_TERMINAL_SECONDS = 0.1

_FOLDER, _NOTES = "litesmith-", "unfinished"


def can_guard() -> bool:
    """True where processes can be forked."""
    return hasattr(os, "fork") and hasattr(signal, "SIGURG")


def run_guarded(work: Callable[[], int], fail: Callable[[str, int], int]) -> int:
    """Does the work in a child process; returns its status, or that of a failure that is reported
    in a line.
    """
    try:
        folder = _make_folder()
    except BadInput as error:
        return fail(error.args[0], BAD_INPUT)
    answers = mmap(-1, 3)
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)  # until both processes have their handlers
    adopt_orphans()
    # so that the child's garbage collector does not touch, and thereby copy, shared memory
    gc.freeze()
    child = os.fork()
    if child == 0:
        _settle(folder, answers)
        status: list[int] = []
        # registered before all others, so that it is called after them
        atexit.register(_leave, status)
        status.append(work())
        return status[0]
    watch = _Watch(child, answers)
    try:
        ended = watch.wait()
        # the child had no chance to end the processes that it had started
        if not os.WIFEXITED(ended):
            end_orphans()
    finally:
        remove_noted(folder / _NOTES)
        shutil.rmtree(folder, ignore_errors=True)
    if os.WIFEXITED(ended):
        return os.WEXITSTATUS(ended)
    if watch.asked:
        return fail(STOPPED, CTRL_C if watch.asked == signal.SIGINT else TERMINATED)
    return fail(watch.why or _why_dead(os.WTERMSIG(ended)), BAD_INPUT)


def _make_folder() -> Path:
    """Makes a folder for all temporary files, and removes those of killed commands."""
    parent, own = Path(tempfile.gettempdir()), f"{_FOLDER}{machine()}-"
    # containers may share the folder, but not their processes
    for left in parent.glob(f"{own}*-*"):
        owner = left.name.removeprefix(own).split("-")[0]
        with suppress(OSError):  # another command is removing it
            is_own = left.lstat().st_uid == os.getuid()
            if is_own and owner.isdecimal() and not is_running(int(owner)):
                shutil.rmtree(left, ignore_errors=True)
    try:
        return Path(tempfile.mkdtemp(prefix=f"{own}{os.getpid()}-", dir=parent))
    except OSError as error:
        raise no_room(error) from None


def _settle(folder: Path, answers: mmap) -> None:
    """Makes this process the guarded one."""
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    os.environ[NOTES] = str(folder / _NOTES)
    limit_child()

    def answer(number: int, frame: FrameType | None) -> None:
        answers[_RUNS] = 1

    def interrupt(number: int, frame: FrameType | None) -> None:
        answers[_ENDS] = 1
        signal.default_int_handler(number, frame)

    def terminate(number: int, frame: FrameType | None) -> None:
        answers[_ENDS] = 1
        sys.exit(TERMINATED)  # as Ctrl-C does, so that clean-up happens

    tell = sys.unraisablehook

    def lose(found: "sys.UnraisableHookArgs") -> None:
        if isinstance(found.exc_value, KeyboardInterrupt | SystemExit):
            answers[_ENDS], answers[_LOST] = 0, 1
        else:
            tell(found)

    sys.unraisablehook = lose
    signal.signal(_ASK, answer)
    signal.signal(signal.SIGTERM, terminate)
    # otherwise the signal is to be ignored
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)


def _leave(status: list[int]) -> None:
    """Ends the child without taking Python apart, which takes longer than many a command does."""
    if status:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # there is no reader
                stream.flush()
        os._exit(status[0])


@contextmanager
def unwrapped() -> Generator[None]:
    """Raises the request to end itself where another exception has wrapped it.

    Python before 3.12 wraps exceptions from `__set_name__` in a RuntimeError, and native modules
    turn exceptions while they are loaded into an ImportError.
    """
    try:
        yield
    except Exception as error:
        behind: BaseException | None = error
        while behind is not None and not _is_request_to_end(behind):
            behind = behind.__cause__ or behind.__context__
        if behind is None:
            raise
        for note in getattr(error, "__notes__", ()):
            behind.add_note(note)
        raise behind from None


def _is_request_to_end(error: BaseException) -> bool:
    is_term = isinstance(error, SystemExit) and error.code == TERMINATED
    return is_term or isinstance(error, KeyboardInterrupt)


class _Watch:
    """Watches a child, and stops it where it does not answer or takes too much memory.

    why    the reason for which it was stopped, if it was
    asked  the signal by which the user or the system asked it to end
    """

    def __init__(self, child: int, answers: mmap) -> None:
        self.why, self.asked = "", 0
        self._child, self._answers = child, answers
        self._asked_at, self._is_passed_on = monotonic(), False
        answers[_RUNS] = 1
        self._call_seconds = call_seconds()
        self._ask_seconds = min(_ASK_SECONDS, self._call_seconds)
        self._wake, signals = os.pipe()
        for handle in (self._wake, signals):
            os.set_blocking(handle, False)
        signal.set_wakeup_fd(signals, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _wake)
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._hear)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)

    def wait(self) -> int:
        """Waits for the child; returns how it ended."""
        while True:
            found, ended = os.waitpid(self._child, os.WNOHANG)
            if found:
                for number in _ENDING:  # the status is known, so there is nothing left to stop
                    signal.signal(number, signal.SIG_IGN)
                return ended
            self._look(monotonic())
            select.select([self._wake], [], [], 0.05 if self.asked else _LOOK_SECONDS)
            with suppress(BlockingIOError):
                os.read(self._wake, 64)

    def _hear(self, number: int, _: FrameType | None) -> None:
        """Records that the child is to end; a second request ends it without waiting."""
        if self.asked:
            self._send(signal.SIGKILL)
        self.asked, self._asked_at, self._is_passed_on = number, monotonic(), False

    def _end(self, waits: float) -> None:
        """Tells the child to end, unless a terminal already has. A child that lost the request gets
        it again.
        """
        if self._answers[_LOST]:
            self._answers[_LOST], self._asked_at, self._is_passed_on = 0, monotonic(), False
            return
        if self._answers[_ENDS]:
            return
        if waits > _ANSWER_SECONDS:
            self._send(signal.SIGKILL)
        elif waits > _TERMINAL_SECONDS and not self._is_passed_on:
            self._is_passed_on = True
            self._send(signal.SIGINT if self.asked == signal.SIGINT else signal.SIGTERM)

    def _look(self, now: float) -> None:
        if self.asked:
            self._end(now - self._asked_at)
            return
        waits = 0.0 if self._answers[_RUNS] else now - self._asked_at
        if waits > self._call_seconds:
            self.why = phrase(
                "one call of native code took over {seconds:g} s, and was stopped; {name} sets "
                "another limit",
                self._call_seconds,
                CALL_SECONDS,
            )
            self._send(signal.SIGKILL)
        elif not waits and now - self._asked_at > self._ask_seconds:
            self._answers[_RUNS], self._asked_at = 0, now
            self._send(_ASK)
        if _is_memory_short():
            self._look_at_memory()

    def _look_at_memory(self) -> None:
        held = _numbers(Path(f"/proc/{self._child}/status")).get("VmRSS", 0)
        if 2 * held > _numbers(_MEMORY).get("MemTotal", 0):
            self.why = phrase(
                "the command took {size}, and this machine has no memory left; it was stopped",
                bytes_text(held),
            )
            self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._child, number)


_MEMORY = Path("/proc/meminfo")


def _is_memory_short() -> bool:
    known = _numbers(_MEMORY)
    return known.get("MemAvailable", 1) < _LEAST_FREE * known.get("MemTotal", 0)


def _numbers(path: Path) -> dict[str, int]:
    """The numbers of a Linux file, which are in kilobytes, as bytes; empty on other systems."""
    rows = (line.split() for line in read_text(path).splitlines())
    return {row[0].rstrip(":"): 1024 * int(row[1]) for row in rows if row[-1:] == ["kB"]}


def _wake(number: int, frame: FrameType | None) -> None:
    """Does nothing: any signal with a handler wakes a waiting process."""


def _why_dead(number: int) -> str:
    name = signal.Signals(number).name
    if number == signal.SIGKILL:
        return phrase("the command was killed ({name}), as Linux does where memory is short", name)
    return crash_sentence(name)


def crash_sentence(name: str) -> str:
    """What is said of native code that died, of what `name` tells."""
    return phrase(
        "the runtime crashed ({name}); a file that was given is damaged, or the runtime has a bug; "
        "nothing half-written is left",
        name,
    )
