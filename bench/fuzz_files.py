"""Damaged files in process: load, inspect, copy, tidy, quantize, write, load again.

Children with limits on memory and time work through the seeds in batches; a seed that ends its
child is an offender, and the next child goes on after it.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from report import print_table, tell_figure
from stock import model_files

import litesmith
from litesmith.passes.core.recipe import apply
from litesmith.run.accelerators.targets import DELEGATES
from litesmith.tflite.file import load
from litesmith.tflite.write import to_bytes
from litesmith.units import bytes_text
from tests.tflite.mutate import SORTS, mutated
from tests.zoo import MODELS

# Every file is copied and tidied; the other ways take turns.
ALWAYS = ("", "cleanup | fold | fuse")
IN_TURN = (
    "inspect",
    "targets",
    "upgrade",
    "quantize(to=float16)",
    "quantize(to=dynamic)",
    "quantize(to=weight-int4)",
    "equalize",
    "rewrite",
    "borders(io=int8)",
    "borders(io=float, int32=true, fixed=true)",
    "fold(float16=true, shapes=true)",
    "prune(sparsity=0.5, tune=false)",
    "cluster(k=8, tune=false)",
)
MOST_SECONDS = 2.0
MOST_BYTES = 500_000_000
LARGEST_FILE = 350_000
BATCH = 250
# The kernel ends a child that spends this long on one file, even inside compiled code.
HANGING_SECONDS = 20.0


@dataclass(frozen=True)
class Ending:
    """How one damaged file ended, in processor seconds and bytes of memory growth."""

    seed: int
    outcome: str
    is_fine: bool
    seconds: float = 0.0
    growth: int = 0
    trace: str = ""

    @property
    def sort(self) -> str:
        return SORTS[self.seed % len(SORTS)]


@cache
def sources(folder: Path) -> tuple[tuple[str, bytes], ...]:
    """Name and bytes of every file to be damaged, those of the subfolders too; small ones first."""
    made = [(name, to_bytes(make())) for name, make in MODELS.items()]
    found = [*model_files(folder), *folder.glob("*/*.tflite")]
    found.sort(key=lambda file: (file.stat().st_size, file.name))
    small = [(file.name, file.read_bytes()) for file in found if _is_wanted(file)]
    return (*made, *small)


def _is_wanted(file: Path) -> bool:
    try:
        return file.stat().st_size < LARGEST_FILE and bool(load(file))
    except litesmith.BadModel:
        return False


def pick(folder: Path, seed: int) -> tuple[str, bytes]:
    """The file that a seed damages; neighbouring seeds damage the same one in every way."""
    files = sources(folder)
    return files[seed // len(SORTS) % len(files)]


def damaged_file(folder: Path, seed: int) -> bytes:
    return mutated(pick(folder, seed)[1], seed)


def ending(folder: Path, seed: int, base: int) -> Ending:
    """Sends a damaged file through everything; memory counts from `base` bytes."""
    data = damaged_file(folder, seed)
    before = peak_memory()
    start = time.process_time()
    outcome, is_fine, trace = journey(data, seed)
    seconds = time.process_time() - start
    # A peak below an earlier one cannot be seen, and is no news.
    growth = peak_memory() - base if peak_memory() > before else 0
    is_fine &= seconds <= MOST_SECONDS and growth <= MOST_BYTES
    return Ending(seed, outcome, is_fine, seconds, growth, trace)


def journey(data: bytes, seed: int) -> tuple[str, bool, str]:
    """The outcome, whether it is a right one, and the last lines of a traceback where it is not."""
    outcome, turn = "valid", seed // len(SORTS) * 5 % len(IN_TURN)
    model: litesmith.Model | None = None
    for stage in ("load", *ALWAYS, IN_TURN[turn], IN_TURN[turn - 1]):
        try:
            model = _worked(data, model, stage)
        except litesmith.LitesmithError as error:
            fine = not isinstance(error, _Unreadable) and is_one_line(str(error))
            if model is None or not fine:
                return _told(error, stage, is_fine=fine)
            outcome = "valid, a step refuses"
        except Exception as error:  # the point of the bench
            return _told(error, stage or "copy", is_fine=False)
    return outcome, True, ""


def _worked(data: bytes, model: litesmith.Model | None, stage: str) -> litesmith.Model:
    """The model, after a stage of the journey that went well."""
    if model is None:
        return load(data)
    if stage == "inspect":
        litesmith.inspect(data, ops=True).to_json()
    elif stage == "targets":
        for rules in [row.predict for row in DELEGATES if row.predict is not None]:
            rules(model)
    else:
        copy = to_bytes(apply(model, stage).model)
        try:
            load(copy)
        except litesmith.LitesmithError as error:
            raise _Unreadable("{error}", error) from error
    return model


class _Unreadable(litesmith.LitesmithError):
    """What we wrote cannot be read again."""


def is_one_line(message: str) -> bool:
    return bool(message) and "\n" not in message


def _told(error: Exception, stage: str, *, is_fine: bool) -> tuple[str, bool, str]:
    trace = "" if is_fine else traceback.format_exc(limit=-5)
    return f"{type(error).__name__} in {stage}", is_fine, trace


def peak_memory() -> int:
    """The most resident bytes that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def work_through(folder: Path, first: int, end: int) -> None:
    """A child's work: one line of JSON for each seed."""
    sources(folder)
    for turn in range(len(IN_TURN)):  # imports what it needs
        journey(pick(folder, 0)[1], turn * len(SORTS))
    if sys.platform == "linux":
        limit = address_space() + MOST_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    base = peak_memory()
    for seed in range(first, end):
        signal.setitimer(signal.ITIMER_PROF, HANGING_SECONDS)
        print(json.dumps(asdict(ending(folder, seed, base))), flush=True)


def batch(folder: Path, first: int, end: int) -> list[Ending]:
    """The endings of a range of seeds, with a new child after each one that dies."""
    endings: list[Ending] = []
    program = Path(__file__).with_name("fuzz.py")
    while first < end:
        command = [sys.executable, str(program), "files", "--models", str(folder), "--child"]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        child = subprocess.run(
            [*command, str(first), str(end)], capture_output=True, text=True, env=environment
        )
        endings += [Ending(**json.loads(line)) for line in child.stdout.splitlines()]
        first += len(child.stdout.splitlines())
        if first < end:  # the child died on this one
            outcome = f"child ended with status {child.returncode}"
            endings.append(Ending(first, outcome, False, trace=child.stderr[-2000:]))
            first += 1
    return endings


def all_endings(folder: Path, batches: Sequence[tuple[int, int]]) -> Iterator[list[Ending]]:
    """Every batch's endings, two batches at a time."""
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(batch, folder, *one) for one in batches[:2]]
        for one in (*batches[2:], None, None):
            if not waiting:
                return
            done = waiting.pop(0)
            try:
                yield done.result()
            except GeneratorExit:
                return
            if one is not None:
                waiting.append(pool.submit(batch, folder, *one))


def describe(folder: Path, found: Ending) -> str:
    return (
        f"seed {found.seed} ({found.sort} of {pick(folder, found.seed)[0]}): {found.outcome}, "
        f"{found.seconds:.2f} s, {bytes_text(found.growth)}"
    )


def print_endings(folder: Path, endings: list[Ending]) -> list[str]:
    """The table of outcomes; a sentence for each offender."""
    counts = Counter((e.outcome, e.sort) for e in endings)
    outcomes = [outcome for outcome, _ in Counter(e.outcome for e in endings).most_common()]
    rows = [(sort, *(str(counts[outcome, sort]) for outcome in outcomes)) for sort in SORTS]
    total = [str(sum(e.outcome == outcome for e in endings)) for outcome in outcomes]
    print_table(("damage", *outcomes), [*rows, ("all", *total)])
    tell_figure("files", len(endings))
    tell_figure("slowest", max(e.seconds for e in endings))
    tell_figure("largest", max(e.growth for e in endings))
    print("slowest:", describe(folder, max(endings, key=lambda e: e.seconds)))
    print("largest:", describe(folder, max(endings, key=lambda e: e.growth)))
    offenders = [e for e in endings if not e.is_fine]
    kinds = {found.trace.strip().rpartition("\n")[0][-300:]: found for found in offenders}
    for found in kinds.values():  # one of each
        print(f"\n{describe(folder, found)}\n{found.trace.rstrip()}")
    return [describe(folder, found) for found in offenders]
