"""Damaged files that still open, through the commands as a user runs them.

Each command is a process of its own in a folder of its own, with a limit on time. No status but 0,
1 and 2, no signal, no hang, one line where it fails, nothing left in the folder or among the
temporary files; the most memory that any took is told.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer, get_ident
from time import monotonic

import numpy as np
from fuzz_files import damaged_file, pick
from fuzz_starter import Starter
from report import print_table

from litesmith.errors import LitesmithError
from litesmith.tflite.file import load
from litesmith.units import bytes_text
from tests.tflite.mutate import SORTS

MODEL, RESULT, DATA = "m.tflite", "out.tflite", "data.npz"
PAGE, ARRAY = "out.html", "array"
RANDOM = ("--data", DATA, "--samples", "8")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "inspect": ("inspect", MODEL, "--ops"),
    "copy": ("apply", MODEL, "", "-o", RESULT),
    "tidy": ("apply", MODEL, "cleanup | fold | fuse", "-o", RESULT),
    "bench": ("bench", MODEL, "--runs", "3"),
    "bench numpy": ("bench", MODEL, "--on", "numpy", "--runs", "1"),
    "profile": ("profile", MODEL, "--runs", "3"),
    "doctor": ("doctor", MODEL, "--seconds", "0.05"),
    "doctor --for": ("doctor", MODEL, "--for", "ethos-u55"),
    "quantize dynamic": ("quantize", MODEL, "--to", "dynamic", "-o", RESULT),
    "quantize int8": ("quantize", MODEL, *RANDOM, "--trust-data", "-o", RESULT),
    "eval": ("eval", MODEL, *RANDOM, "--against", MODEL),
    "targets": ("targets", MODEL),
    "view": ("view", MODEL, "--seconds", "0.05", "-o", PAGE),
    "view two": ("view", MODEL, MODEL, *RANDOM, "--seconds", "0.05", "-o", PAGE),
    "compare": ("compare", MODEL, MODEL, *RANDOM, "--seconds", "0.05"),
    "export": ("export", MODEL, "--c", ARRAY),
    "micro": ("bench", MODEL, "--on", "micro", "--runs", "1"),
    "prune": ("prune", MODEL, "--sparsity", "0.5", "--no-tune", "-o", RESULT),
}
RESULTS = (RESULT, PAGE, ARRAY)

# What one command may take before it counts as hanging, on a machine with nothing else to do;
# native calls end before it by themselves.
MOST_SECONDS, CALL_SECONDS = 120.0, 20.0
COMMANDS_EACH = 4
MOST_BYTES = 2_000_000_000
RIGHT = (0, 1, 2)
BUG = 70


@dataclass(frozen=True)
class Run:
    """How a command ended on a damaged file; `faults` says what is not as promised."""

    seed: int
    command: str
    status: int
    seconds: float
    memory: int
    faults: Sequence[str]
    told: str

    @property
    def is_fine(self) -> bool:
        return not self.faults


def survivor(folder: Path, seed: int) -> tuple[int, bytes]:
    """The first seed from here on, by steps of its own, whose file still opens."""
    number = 7919 * seed  # so that neighbours are other files
    while True:
        data = damaged_file(folder, number)
        try:
            load(data)
            return number, data
        except LitesmithError:
            number += 1


def runs_of(folder: Path, seed: int, wanted: int | None = None) -> Iterator[Run]:
    """Runs some commands, or all, on the damaged file of a seed."""
    _, data = survivor(folder, seed)
    names = list(COMMANDS)
    order = [names[(seed + 5 * i) % len(names)] for i in range(wanted or len(names))]
    for name in order:
        yield run_once(seed, data, name)


def run_once(seed: int, data: bytes, name: str, most: float | None = None) -> Run:
    most = most or MOST_SECONDS * max(1.0, os.getloadavg()[0])
    with TemporaryDirectory() as scratch:
        work, temporary = Path(scratch, "work"), Path(scratch, "temporary")
        for folder in (work, temporary):
            folder.mkdir()
        (work / MODEL).write_bytes(data)
        write_data(data, work / DATA)
        before = {path.name for path in work.iterdir()}
        words = COMMANDS[name]
        status, told, seconds, memory = run_command(words, work, temporary, most)
        faults = [
            *wrong_endings(status, told, seconds, memory, most),
            *left_behind(work, temporary, before, RESULTS if status in (0, 1) else ()),
        ]
        if (work / MODEL).read_bytes() != data:
            faults.append("the input was changed")
        return Run(seed, name, status, seconds, memory, tuple(faults), told[-1500:])


def write_data(data: bytes, place: Path) -> None:
    """Random samples of what the model's first inputs take; nothing where they are too large."""
    inputs = load(data).main.inputs
    count = 8 if sum(t.elements for t in inputs) < 1 << 20 else 0
    random = np.random.default_rng(0)
    arrays = {}
    for number, tensor in enumerate(inputs if count else ()):
        item = tensor.shape[1:] if tensor.shape[:1] == (1,) else tensor.shape
        name = "x" if len(inputs) == 1 else f"x{number}"
        arrays[name] = random.random((count, *item)).astype(np.float32)
    np.savez(place, **(arrays or {"x": np.zeros((8, 4), np.float32)}))


def run_command(
    words: tuple[str, ...], work: Path, temporary: Path, most: float
) -> tuple[int, str, float, int]:
    """Status, standard error, seconds and peak memory; status -SIGALRM where it hangs."""
    scratch = temporary.parent
    variables = {
        **os.environ,
        "TMPDIR": str(temporary),
        "LITESMITH_CALL_SECONDS": str(CALL_SECONDS),
        "LITESMITH_CACHE": str(scratch / "cache"),
    }
    starter, told = _starter(get_ident()), scratch / "told"
    began = monotonic()
    child = starter.start(words, folder=str(work), variables=variables, told=str(told))
    stopped: list[int] = []
    hangs = Timer(most, lambda: stopped.append(os.killpg(child, signal.SIGKILL) or 1))
    hangs.start()
    status, memory = starter.wait()
    hangs.cancel()
    seconds = monotonic() - began
    if stopped:
        status, memory = -signal.SIGALRM, 0
    return status, told.read_text(errors="replace"), seconds, memory


@cache
def _starter(_: int) -> Starter:
    """One for each thread."""
    return Starter()


def wrong_endings(
    status: int, told: str, seconds: float, memory: int, most: float
) -> Iterator[str]:
    if status == -signal.SIGALRM:
        yield f"hangs for over {most:.0f} s"
    elif status < 0:
        yield f"ends by {signal.Signals(-status).name}"
    elif status not in RIGHT:
        yield "a bug of ours" if status == BUG else f"status {status}"
    elif status == 2:
        lines = [line for line in told.splitlines() if line.startswith("litesmith: ")]
        aside = ("litesmith: warning: ", "litesmith: note: ")
        lines = [line for line in lines if not line.startswith(aside)]
        if len(lines) != 1 or "Traceback" in told:
            yield "no one line says why"
    if memory > MOST_BYTES:
        yield f"takes {bytes_text(memory)}"


def left_behind(
    work: Path, temporary: Path, before: set[str], results: Sequence[str]
) -> Iterator[str]:
    """What is in the folders and should not be."""
    files = [path.relative_to(work) for path in work.rglob("*")]
    here = {str(path) for path in files if path.parts[0] not in results} - before
    there = {str(path.relative_to(temporary)) for path in temporary.iterdir()}
    for name in sorted(here):
        yield f"leaves {name}"
    for name in sorted(there):
        yield f"leaves {name} among the temporary files"


def describe(folder: Path, run: Run) -> str:
    number = survivor(folder, run.seed)[0]
    damage = f"{SORTS[number % len(SORTS)]} of {pick(folder, number)[0]}"
    faults = "; ".join(run.faults) or f"status {run.status}"
    return f"seed {run.seed} ({damage}), {run.command}: {faults}, {run.seconds:.1f} s"


def print_runs(folder: Path, runs: list[Run]) -> list[str]:
    """The table of endings; a sentence for each offender."""
    statuses = sorted({run.status for run in runs})
    counts = Counter((run.command, run.status) for run in runs)
    names = [name for name in COMMANDS if any(run.command == name for run in runs)]
    rows: list[tuple[str, ...]] = []
    for name in names:
        of_name = [run for run in runs if run.command == name]
        cells = [str(counts[name, status]) for status in statuses]
        most = max(run.seconds for run in of_name), max(run.memory for run in of_name)
        rows.append((name, *cells, f"{most[0]:.1f} s", bytes_text(most[1])))
    print_table(("command", *map(str, statuses), "longest", "largest"), rows)
    offenders = [run for run in runs if not run.is_fine]
    for run in offenders:
        print(f"\n{describe(folder, run)}\n{run.told.rstrip()}")
    return [describe(folder, run) for run in offenders]
