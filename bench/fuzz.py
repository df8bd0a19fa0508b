"""Damaged files end as a valid model or BadModel, within 2 s and 500 MB each.

Every file goes load, footprint, cleanup | fold | fuse, write, load. Children with limits on
memory and time work through the seeds in batches; a seed that ends its child is an offender, and
the next child goes on after it. A seed decides the file and the damage: --only SEED shows one.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from report import print_table, verdict_line
from stock import arguments, model_files

import litesmith
from litesmith.anatomy.footprint import footprint
from litesmith.tflite.write import to_bytes
from litesmith.units import bytes_text
from tests.tflite.mutate import MUTATIONS, mutated
from tests.zoo import MODELS

RECIPE = "cleanup | fold | fuse"
MOST_SECONDS = 2.0
MOST_BYTES = 500_000_000
LARGEST_FILE = 3_000_000
BATCH = 250
# The kernel ends a child that spends this long on one file, even inside compiled code.
HANGING_SECONDS = 20.0
# After load, a file may still be refused, but not by the reading of what we wrote ourselves.
FINE = {
    "valid",
    "BadModel in load",
    "BadModel in footprint",
    "BadModel in apply",
    "CannotApply in apply",
    "CannotApply in write",
}


@dataclass(frozen=True)
class Ending:
    """How one damaged file ended, in processor seconds and bytes of memory growth."""

    seed: int
    outcome: str
    seconds: float = 0.0
    growth: int = 0
    trace: str = ""

    @property
    def is_fine(self) -> bool:
        within = self.seconds <= MOST_SECONDS and self.growth <= MOST_BYTES
        return self.outcome in FINE and within


@cache
def sources(folder: Path) -> tuple[tuple[str, bytes], ...]:
    """Name and bytes of every file to be damaged."""
    made = [(name, to_bytes(make())) for name, make in MODELS.items()]
    small = [file for file in model_files(folder) if file.stat().st_size < LARGEST_FILE]
    return (*made, *((file.name, file.read_bytes()) for file in small))


def pick(folder: Path, seed: int) -> tuple[str, bytes]:
    """The file that a seed damages; neighbouring seeds damage the same one in every way."""
    files = sources(folder)
    return files[seed // len(MUTATIONS) % len(files)]


def ending(folder: Path, seed: int, base: int) -> Ending:
    """Sends a damaged file through everything; memory counts from `base` bytes."""
    data = mutated(pick(folder, seed)[1], seed)
    before = peak_memory()
    start = time.process_time()
    outcome, trace = journey(data)
    seconds = time.process_time() - start
    # A peak below an earlier one cannot be seen, and is no news.
    growth = peak_memory() - base if peak_memory() > before else 0
    return Ending(seed, outcome, seconds, growth, trace)


def journey(data: bytes) -> tuple[str, str]:
    """The outcome, and the last lines of a traceback where an error is not ours."""
    stage = "load"
    try:
        model = litesmith.load(data)
        stage = "footprint"
        footprint(model)
        stage = "apply"
        model = litesmith.apply(model, RECIPE).model
        stage = "write"
        copy = to_bytes(model)
        stage = "reload"
        litesmith.load(copy)
    except litesmith.LitesmithError as error:
        kind = type(error).__name__ if is_one_line(str(error)) else "message of several lines"
        return f"{kind} in {stage}", traceback.format_exc(limit=-4)
    except Exception as error:  # the point of the bench
        return f"{type(error).__name__} in {stage}", traceback.format_exc(limit=-4)
    return "valid", ""


def is_one_line(message: str) -> bool:
    return bool(message) and "\n" not in message


def peak_memory() -> int:
    """The most resident bytes that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def work_through(folder: Path, first: int, end: int) -> None:
    """A child's work: one line of JSON for each seed."""
    sources(folder)
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
    while first < end:
        command = [sys.executable, __file__, "--models", str(folder), "--child"]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        child = subprocess.run(
            [*command, str(first), str(end)], capture_output=True, text=True, env=environment
        )
        endings += [Ending(**json.loads(line)) for line in child.stdout.splitlines()]
        first += len(child.stdout.splitlines())
        if first < end:  # the child died on this one
            outcome = f"child ended with status {child.returncode}"
            endings.append(Ending(first, outcome, trace=child.stderr[-2000:]))
            first += 1
    return endings


def all_endings(folder: Path, count: int) -> Iterator[Ending]:
    """Every seed's ending, two batches at a time."""
    starts = range(0, count, BATCH)
    with ThreadPoolExecutor(2) as pool:
        parts = [pool.submit(batch, folder, at, min(at + BATCH, count)) for at in starts]
        for number, part in enumerate(parts, 1):
            yield from part.result()
            print(f"{min(number * BATCH, count)} of {count}", file=sys.stderr)


def describe(folder: Path, found: Ending) -> str:
    name = pick(folder, found.seed)[0]
    how = MUTATIONS[found.seed % len(MUTATIONS)].__name__
    return (
        f"seed {found.seed} ({how} of {name}): {found.outcome}, "
        f"{found.seconds:.2f} s, {bytes_text(found.growth)}"
    )


def report(folder: Path, endings: list[Ending]) -> int:
    counts = Counter((e.outcome, e.seed % len(MUTATIONS)) for e in endings)
    totals = Counter(e.outcome for e in endings)
    head = ("outcome", *(mutation.__name__ for mutation in MUTATIONS), "all")
    rows = [
        (outcome, *(str(counts[outcome, i]) for i in range(len(MUTATIONS))), str(total))
        for outcome, total in totals.most_common()
    ]
    print_table(head, rows)
    print("slowest:", describe(folder, max(endings, key=lambda e: e.seconds)))
    print("largest:", describe(folder, max(endings, key=lambda e: e.growth)))
    offenders = [e for e in endings if not e.is_fine]
    for found in offenders:
        print(f"\n{describe(folder, found)}\n{found.trace.rstrip()}")
    return verdict_line([describe(folder, found) for found in offenders])


def parsed() -> Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--files", type=int, default=5000, help="how many damaged files")
    parser.add_argument("--only", type=int, metavar="SEED", help="one seed, in this process")
    parser.add_argument("--child", type=int, nargs=2, metavar=("FIRST", "END"))
    return parser.parse_args()


def main() -> int:
    options = parsed()
    folder: Path = options.models
    model_files(folder)
    if options.child:
        work_through(folder, *options.child)
        return 0
    if options.only is not None:
        found = ending(folder, options.only, peak_memory())
        print(describe(folder, found), found.trace, sep="\n")
        return 0 if found.is_fine else 1
    return report(folder, list(all_endings(folder, options.files)))


if __name__ == "__main__":
    sys.exit(main())
