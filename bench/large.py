"""Load and save of a 100 MB model: time and memory beside the flatbuffers object API.

Two models are built: a few large constants, and 2,000 ops with 50 KB each. Each repetition is a
fresh process that has imported what it needs, then loads and saves once, in turns. litesmith alone
flushes to disk, which costs what the disk costs: the ratio of times is told with the flush and
without it. Bar: litesmith takes at most 1.5 times as long, flush and all, and its memory grows by
less than 2.2 times the file.
"""

import json
import os
import resource
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

# A child's ru_maxrss starts from its parent's, so the parent stays small: children import the rest.
from report import print_table, tell_figure, verdict_line

from litesmith.units import bytes_text

MOST_TIME, MOST_MEMORY = 1.5, 2.2
SHAPES = {"few large": (4, 2560), "many small": (2000, 112)}  # ops, and width of each weight


class Cost(NamedTuple):
    """What one load and save took.

    seconds  in all
    growth   bytes of resident memory, at the most
    flush    of the seconds, those in which the disk was waited for
    """

    seconds: float
    growth: int
    flush: float


def build(name: str, target: Path) -> None:
    """Writes a chain of fully connected ops."""
    import numpy as np

    import litesmith

    ops, width = SHAPES[name]
    random = np.random.default_rng(0)
    builder = litesmith.Builder()
    x = builder.input("x", (1, width))
    for _ in range(ops):
        weight = random.random((width, width), np.float32) - 0.5
        x = builder.op("FULLY_CONNECTED", x, weight, None)
    litesmith.save(builder.model(x), target)


def copy_with_litesmith(source: Path, target: Path) -> Cost:
    from litesmith import load, save  # before the clock starts: names of litesmith are lazy

    def copy() -> None:
        save(load(source), target)

    return cost(copy)


def copy_with_object_api(source: Path, target: Path) -> Cost:
    import flatbuffers
    from ai_edge_litert.schema_py_generated import ModelT

    def copy() -> None:
        data = source.read_bytes()
        model = ModelT.InitFromPackedBuf(data, 0)
        builder = flatbuffers.Builder(len(data) + (1 << 20))
        builder.Finish(model.Pack(builder), b"TFL3")
        target.write_bytes(builder.Output())

    return cost(copy)


WAYS: dict[str, Callable[[Path, Path], Cost]] = {
    "litesmith": copy_with_litesmith,
    "object API": copy_with_object_api,
}


def cost(copy: Callable[[], None]) -> Cost:
    flushes: list[float] = []
    flush = os.fsync

    def time_flush(handle: int) -> None:
        start = perf_counter()
        flush(handle)
        flushes.append(perf_counter() - start)

    os.fsync = time_flush
    before = memory()
    start = perf_counter()
    copy()
    return Cost(perf_counter() - start, peak_memory() - before, sum(flushes))


def memory() -> int:
    """The resident bytes of this process now; the peak where the system does not tell."""
    statm = Path("/proc/self/statm")
    if not statm.is_file():
        return peak_memory()
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_memory() -> int:
    """The most resident bytes that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def child(*words: str) -> str:
    """What a fresh process of this script prints."""
    command = [sys.executable, __file__, "--child", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def measure(source: Path, repetitions: int) -> dict[str, list[Cost]]:
    """The costs of both ways, in turns of random order."""
    costs: dict[str, list[Cost]] = {way: [] for way in WAYS}
    target = source.with_name("copy.tflite")
    random = Random(0)
    for _ in range(repetitions):
        for way in random.sample(list(WAYS), len(WAYS)):
            costs[way].append(Cost(*json.loads(child(way, str(source), str(target)))))
            target.unlink()
    return costs


def rows(name: str, size: int, costs: dict[str, list[Cost]]) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    for way, found in costs.items():
        times = sorted(cost.seconds for cost in found)
        growth = max(cost.growth for cost in found)
        spread = f"{times[0]:.3f} to {times[-1]:.3f} s"
        memory = f"{bytes_text(growth)}, {growth / size:.2f} × the file"
        lines.append((name, bytes_text(size), way, f"{median(times):.3f} s", spread, memory))
    return lines


def misses(name: str, size: int, costs: dict[str, list[Cost]]) -> list[str]:
    """The bars that litesmith missed; prints the ratio of times."""
    ours, theirs = (median(cost.seconds for cost in costs[way]) for way in WAYS)
    unflushed = median(cost.seconds - cost.flush for cost in costs["litesmith"])
    growth = max(cost.growth for cost in costs["litesmith"])
    print(f"{name}: time litesmith / object API = {ours / theirs:.2f} (bar {MOST_TIME})", end=", ")
    print(f"{unflushed / theirs:.2f} without the flush to disk")
    tell_figure(f"{name} time", ours / theirs)
    tell_figure(f"{name} time without flush", unflushed / theirs)
    for way, of_way in costs.items():
        tell_figure(f"{name} {way} memory", max(cost.growth for cost in of_way) / size)
    found: list[str] = []
    if ours / theirs > MOST_TIME:
        found.append(f"{name}: {ours / theirs:.2f} times as long as the object API")
    if growth >= MOST_MEMORY * size:
        found.append(f"{name}: memory grew by {growth / size:.2f} times the file")
    return found


def parsed() -> Namespace:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=11, help="of each way and model")
    parser.add_argument("--child", nargs="+", metavar="WORD")
    return parser.parse_args()


def run_child(words: list[str]) -> None:
    """A child's work: `build MODEL FILE`, or a way with its source and target."""
    if words[0] == "build":
        build(words[1], Path(words[2]))
    else:
        print(json.dumps(WAYS[words[0]](Path(words[1]), Path(words[2]))))


def main() -> int:
    options = parsed()
    if options.child:
        run_child(options.child)
        return 0
    lines: list[tuple[str, ...]] = []
    missed: list[str] = []
    with TemporaryDirectory() as folder:
        for name in SHAPES:
            source = Path(folder) / "model.tflite"
            child("build", name, str(source))
            costs = measure(source, options.repetitions)
            size = source.stat().st_size
            lines += rows(name, size, costs)
            missed += misses(name, size, costs)
    print_table(("model", "size", "way", "median", "range", "memory growth"), lines)
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
