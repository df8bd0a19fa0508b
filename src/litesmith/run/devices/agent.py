"""The runner that is sent to a device: it opens models there and times their runs.

It stands alone: the standard library, numpy and ai_edge_litert of Python 3.9 or later. Each line
of its input is a command as JSON, each line of its output an answer. A command that comes while
models run, and the end of the input, end the running.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# ai_edge_litert leaves parts of its types open.

from __future__ import annotations

import faulthandler
import gc
import hashlib
import json
import os
import platform
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from statistics import median
from time import perf_counter_ns, process_time, sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ai_edge_litert.interpreter import Interpreter

WHEEL = "ai-edge-litert"
KEPT_BYTES = 2_000_000_000  # of models, the last used ones
TELL_NS = 100_000_000  # how long samples are gathered before they are sent
WINDOW_NS = 4_000_000
MOST_WARM_UP_NS = 1_000_000_000
STEADY = 0.98  # a window that is less than 2 % faster than the best so far ends the warm-up
LOOK_SECONDS = 0.2


class Refused(Exception):
    """A request that cannot be met here; the message is one line."""


class Pipe:
    """Lines and bytes in, lines out. Native code's remarks cannot get among the answers."""

    def __init__(self) -> None:
        self._held = b""
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def line(self) -> bytes | None:
        """The next command; None at the end of the input."""
        while b"\n" not in self._held:
            more = os.read(0, 1 << 20)
            if not more:
                return None
            self._held += more
        line, self._held = self._held.split(b"\n", 1)
        return line

    def chunks(self, size: int) -> Iterator[bytes]:
        """This many bytes of the input, in pieces."""
        while size:
            piece = self._held[:size] or os.read(0, min(size, 1 << 20))
            if not piece:
                raise SystemExit(1)
            self._held = self._held[len(piece) :]
            size -= len(piece)
            yield piece

    def is_waiting(self) -> bool:
        return bool(self._held) or bool(select.select([0], [], [], 0)[0])

    def tell(self, **words: object) -> None:
        self._out.write(json.dumps(words) + "\n")
        self._out.flush()


class Seat:
    """An open model with values in its inputs."""

    def __init__(self, path: str, threads: int, kernels: str) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        resolver = {
            "builtin": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            "reference": OpResolverType.BUILTIN_REF,
            "xnnpack": OpResolverType.AUTO,
        }[kernels]
        start = perf_counter_ns()
        interpreter = Interpreter(
            model_path=path, num_threads=threads, experimental_op_resolver_type=resolver
        )
        interpreter.allocate_tensors()
        self.create_ns = perf_counter_ns() - start
        fill_inputs(interpreter)
        self.run = interpreter.invoke
        self.first_ns = timed(self.run)


Seats = dict[int, Seat]


def fill_inputs(interpreter: Interpreter) -> None:
    """Puts values that suit each type into every input, the same ones each time."""
    import numpy

    random = numpy.random.default_rng(0)
    for detail in interpreter.get_input_details():
        kind, shape = numpy.dtype(detail["dtype"]), tuple(detail["shape"])
        if kind.kind == "f":
            values = random.normal(0, 1, shape)
        elif kind.kind not in "iu" or kind.itemsize > 2:  # indices must not lead outside a table
            values = random.integers(0, 2, shape)
        else:
            span = numpy.iinfo(kind)
            values = random.integers(span.min, span.max, shape, endpoint=True)
        interpreter.set_tensor(detail["index"], numpy.asarray(values).astype(kind))


def timed(run: Callable[[], object]) -> int:
    start = perf_counter_ns()
    run()
    return perf_counter_ns() - start


def greet(pipe: Pipe) -> None:
    """Describes this machine, and whether models can run here."""
    facts = {
        "cpu": cpu_name(),
        "cores": cores(),
        "governor": text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "load": os.getloadavg()[0],
        "busy": busy(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": " ".join((platform.system(), platform.release(), platform.machine())),
        "python": platform.python_version(),
        "runtime": "",
    }
    if find_spec("ai_edge_litert") is not None and find_spec("numpy") is not None:
        try:
            facts["runtime"] = WHEEL + " " + metadata.version(WHEEL)
        except metadata.PackageNotFoundError:
            facts["runtime"] = WHEEL
    pipe.tell(facts=facts)


def look(pipe: Pipe, script: str) -> None:
    """Answers what a script of the shell prints about this machine."""
    done = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    pipe.tell(text=done.stdout.decode("utf-8", "replace"))


def pin(pipe: Pipe, cores: list[int]) -> None:
    """Runs what is opened from now on on these cores."""
    if not hasattr(os, "sched_setaffinity"):
        raise Refused("its system does not let a program choose its cores")
    os.sched_setaffinity(0, cores)
    pipe.tell(pinned=cores)


def put(pipe: Pipe, digest: str, size: int) -> None:
    """Answers whether the model is wanted, and takes it if so."""
    path = place(digest)
    if os.path.exists(path) and digest_of(path) == digest:
        os.utime(path)
        pipe.tell(wanted=False)
        return
    handle, partial = tempfile.mkstemp(dir=os.path.dirname(path))
    try:
        pipe.tell(wanted=True)
        trouble = written(handle, pipe.chunks(size))
        if trouble or digest_of(partial) != digest:
            cause = trouble or "it came damaged"
            raise Refused(f"the model cannot be kept as {path}: {cause}")
        os.replace(partial, path)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)
    forget_old(os.path.dirname(path))
    pipe.tell(kept=path)


def written(handle: int, pieces: Iterator[bytes]) -> str:
    """Why the pieces cannot be written; "" where they are. They are taken in any case: what
    follows them is the next command."""
    try:
        with os.fdopen(handle, "wb") as out:
            for piece in pieces:
                out.write(piece)
    except OSError as error:
        for _ in pieces:
            pass
        return error.strerror or "it cannot be written"
    return ""


def place(digest: str) -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(home, "litesmith-agent")
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, digest + ".tflite")


def digest_of(path: str) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            found.update(piece)
    return found.hexdigest()


def forget_old(folder: str, kept_bytes: int = KEPT_BYTES) -> None:
    """Deletes the models that were used least lately, once there are too many."""
    paths = [os.path.join(folder, name) for name in os.listdir(folder)]
    newest, *others = sorted(paths, key=os.path.getmtime, reverse=True)
    left = kept_bytes - os.path.getsize(newest)
    for path in others:
        left -= os.path.getsize(path)
        if left < 0:
            os.unlink(path)


def open_seat(pipe: Pipe, seats: Seats, number: int, digest: str, how: tuple[int, str]) -> None:
    if find_spec("ai_edge_litert") is None:
        raise Refused(WHEEL + " is not installed")
    try:
        seat = seats[number] = Seat(place(digest), *how)
    except (RuntimeError, ValueError) as error:
        raise Refused("the model does not open: " + " ".join(str(error).split())) from None
    pipe.tell(create_ns=seat.create_ns, first_ns=seat.first_ns)


def warm_up(pipe: Pipe, seats: Seats, number: int, runs: int | None) -> None:
    """Warms up for this many runs, or until a window of runs is no faster than the windows before
    it."""
    run, best = seats[number].run, float("inf")
    times: list[int] = []
    while runs is None and sum(times) < MOST_WARM_UP_NS:
        window: list[int] = []
        while sum(window) < WINDOW_NS:
            window.append(timed(run))
        times += window
        if median(window) > STEADY * best:
            break
        best = min(best, median(window))
    pipe.tell(ns=times + [timed(run) for _ in range(runs or 0)])


def play(pipe: Pipe, seats: Seats, number: int, runs: int, settle: bool) -> None:
    """So many runs, after one that is not counted where the model is to settle; with the last
    samples goes the time that all cores spent on a run.

    Samples are sent in few lines, because sending takes time from the run that follows."""
    told, run = perf_counter_ns(), seats[number].run
    if settle:
        run()
    start = process_time()
    times: list[int] = []
    for _ in range(runs):
        times.append(timed(run))
        if perf_counter_ns() - told > TELL_NS:
            pipe.tell(ns=times)
            told, times = perf_counter_ns(), []
            if pipe.is_waiting():
                break
    pipe.tell(ns=times, cpu_us=(process_time() - start) * 1e6 / runs)


def close(seats: Seats, number: int) -> None:
    seats.pop(number, None)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_name() -> str:
    for line in text("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "Hardware"):
            return value.strip()
    return text("/proc/device-tree/model").strip("\0") or platform.machine()


def busy() -> float:
    """The share of the cores' time that goes elsewhere while this process sleeps."""
    before = ticks()
    sleep(LOOK_SECONDS)
    after = ticks()
    every = after[1] - before[1]
    return max(0.0, 1 - (after[0] - before[0]) / every) if every else 0.0


def ticks() -> tuple[int, int]:
    """Idle and all clock ticks of all cores since the start."""
    words = text("/proc/stat").partition("\n")[0].split()
    counts = [int(word) for word in words[1:9]]
    return (counts[3] + counts[4], sum(counts)) if len(counts) > 4 else (0, 0)


def text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def main() -> None:
    faulthandler.enable()  # a crash of native code leaves a line of words
    gc.disable()
    pipe = Pipe()
    seats: Seats = {}
    does: dict[str, Callable[..., None]] = {
        "greet": partial(greet, pipe),
        "look": partial(look, pipe),
        "pin": partial(pin, pipe),
        "put": partial(put, pipe),
        "open": partial(open_seat, pipe, seats),
        "warm_up": partial(warm_up, pipe, seats),
        "play": partial(play, pipe, seats),
        "close": partial(close, seats),
    }
    for line in iter(pipe.line, None):
        words = json.loads(line)
        try:
            does[words.pop("do")](**words)
        except (Refused, RuntimeError, OSError, ImportError) as error:
            pipe.tell(refused=" ".join(str(error).split()))


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(1)
