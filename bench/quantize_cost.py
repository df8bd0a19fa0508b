"""Quantizing costs no more time than with ai-edge-quantizer, and little memory.

MobileNet v1 1.0 to int8 on 20 samples, `--effort quick`, beside the peer: each time a fresh process
from start to exit, in turns, from the same .npy; nothing is remembered between runs. Memory is the
growth of the peak over the process after its imports, with the runtime's library loaded; samples
come from a generator, which is read once and kept on disk, so that they do not count. Bar: no
longer than the peer; at most 6 times the file, and no more with 1,000 samples than with 20;
`--effort best` for EfficientNet-Lite0 under 120 s.

`--only images`: three networks from a folder of 300 images to an int8 file with the default effort,
decoding counted on both sides. Bar: at most 1.3 times the peer's time, 600 MB resident, 200 MB
written.
"""

import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

import numpy as np
from peer import INSTALL, with_signature
from report import print_table, tell_figure, verdict_line
from resident import resident
from stock import ASSETS, arguments, want_folder

import litesmith
from litesmith.data.preparation import Preparation
from litesmith.data.sources import open_data
from litesmith.timing.statistics import Ratio
from litesmith.units import bytes_text

MODEL, LARGE = "mobilenet_v1_1.0_224.tflite", "efficientnet_lite0_f32.tflite"
NETWORKS = ("mobilenet_v2_torchvision.tflite", MODEL, LARGE)
FEW, MANY = 20, 1000
MOST_TIMES, MOST_RESIDENT, MOST_WRITTEN = 1.3, 600_000_000, 200_000_000
MOST_MEMORY, MOST_SECONDS = 6.0, 120.0
MOST_ROUNDS = 3  # of whole jobs
# How much more memory many samples may take before it counts: two runs differ by about as much.
NOISE = 0.25
SAMPLES = "LITESMITH_BENCH_SAMPLES"  # names the folder of .npy files that `stream` reads
PEERS = {"average": "peer", "profiler": "peer, its profiler mode"}


def stream() -> Iterator[np.ndarray]:
    """Samples one by one, as a user's own function gives them: a few images, moved sideways."""
    for number in range(MANY):
        image = np.load(Path(os.environ[SAMPLES]) / f"{number % FEW}.npy")
        yield np.roll(image, number // FEW, axis=1)


def timed(line: list[str]) -> float:
    start = perf_counter()
    environment = os.environ | {"LITESMITH_CACHE": ""}
    subprocess.run(line, check=True, capture_output=True, env=environment)
    return perf_counter() - start


def our_line(model: Path, data: Path, out: Path) -> list[str]:
    quick = ["--effort", "quick", "--samples", str(FEW), "--data", str(data)]
    return [sys.executable, "-m", "litesmith", "quantize", str(model), "-o", str(out), *quick]


def peer_line(peer: str, model: Path, data: Path, out: Path, way: str) -> list[str]:
    entry = litesmith.load(model).signatures[0]
    words = [str(model), str(data), str(out), way, entry.key, entry.inputs[0][0]]
    return [peer, str(Path(__file__).with_name("peer_child.py")), *words]


def in_turns(lines: dict[str, list[str]], rounds: int) -> dict[str, list[float]]:
    """The seconds of each command, once a round, in an order that turns; the first does not count,
    for the disk and the compiled modules of Python are warm after it."""
    seconds: dict[str, list[float]] = {who: [] for who in lines}
    for number in range(rounds + 1):
        order = list(lines)[:: 1 if number % 2 else -1]
        for who in order:
            taken = timed(lines[who])
            if number:
                seconds[who].append(taken)
    return seconds


def growth(model: Path, count: int, effort: str, out: Path) -> int:
    """A child's work: quantizes as the command does; how far that raised the peak of memory."""
    from litesmith.cli import main  # noqa: F401  all that the command imports
    from litesmith.cli.call import call
    from litesmith.cli.commands import COMMANDS

    b = litesmith.Builder()
    x = b.input("x", (1, 4))
    with litesmith.Session(b.model(b.op("ADD", x, x)), "cpu:2") as session:
        session.run()
    before = resident("VmRSS")
    typed = {"model": model, "out": out, "data": "quantize_cost:stream", "samples": count}
    call("quantize", COMMANDS["quantize"], {**typed, "effort": effort, "as_json": True})
    return resident("VmHWM") - before


def asked_growth(model: Path, count: int, effort: str, samples: Path) -> int:
    """The same in a fresh process."""
    words = [str(model), str(count), effort, str(samples / "grown.tflite")]
    environment = os.environ | {"LITESMITH_CACHE": "", SAMPLES: str(samples)}
    line = [sys.executable, Path(__file__).name, "--child", *words]
    done = subprocess.run(
        line, check=True, capture_output=True, text=True, env=environment, cwd=Path(__file__).parent
    )
    return int(done.stdout.splitlines()[-1])


def time_part(options: Namespace, folder: Path) -> list[str]:
    """Prints the times; what missed its bar."""
    source = options.models / MODEL
    named = folder / "named.tflite"
    litesmith.save(with_signature(litesmith.load(source)), named)
    np.save(folder / "calls.npy", np.load(folder / "samples.npy")[:, None])
    lines = {"ours": our_line(source, folder / "samples.npy", folder / "ours.tflite")}
    for way, who in PEERS.items() if options.peer else ():
        out = folder / "peer.tflite"
        lines[who] = peer_line(options.peer, named, folder / "calls.npy", out, way)
    seconds = in_turns(lines, options.rounds)
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for who, taken in seconds.items():
        ratio = Ratio(tuple(o / t for o, t in zip(seconds["ours"], taken, strict=True)))
        low, high = ratio.interval
        shown = "" if who == "ours" else f"{ratio.value:.2f} ({low:.2f} to {high:.2f})"
        rows.append(
            (who, f"{median(taken):.2f} s", f"{min(taken):.2f} to {max(taken):.2f} s", shown)
        )
        tell_figure(f"ours / {who}", ratio.value, low, high)
        if who == PEERS["average"] and ratio.value > 1:
            missed.append(f"{ratio.value:.2f} times as long as the peer")
    print_table((f"{MODEL}, {FEW} samples, quick", "median", "range", "ours / it, 95 %"), rows)
    return missed


class Cost(NamedTuple):
    """The seconds of a command from start to exit, those of all cores, its peak of memory, and what
    it wrote to disk."""

    seconds: float
    busy: float
    resident: int
    written: int


def cost_of(line: list[str]) -> Cost:
    start = perf_counter()
    environment = os.environ | {"LITESMITH_CACHE": ""}
    child = subprocess.Popen(
        line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    assert status == 0, line
    busy = used.ru_utime + used.ru_stime
    return Cost(perf_counter() - start, busy, 1024 * used.ru_maxrss, 512 * used.ru_oublock)


def images_part(options: Namespace, folder: Path) -> list[str]:
    """Prints what whole jobs cost; what missed its bar."""
    images = options.data / "imagenet_calibration"
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for name in (one for one in NETWORKS if options.network in one):
        source, named = options.models / name, folder / "named.tflite"
        litesmith.save(with_signature(litesmith.load(source)), named)
        given = ["--data", str(images), "--samples", "300", "--norm", "tf"]
        ours = [sys.executable, "-m", "litesmith", "quantize", str(source), *given]
        lines = {"ours": [*ours, "-o", str(folder / "ours.tflite")]}
        if options.peer:
            lines["peer"] = peer_line(options.peer, named, images, folder / "peer.tflite", "minmax")
        costs: dict[str, list[Cost]] = {who: [] for who in lines}
        for _ in range(min(options.rounds, MOST_ROUNDS)):
            for who, line in lines.items():
                costs[who].append(cost_of(line))
        seconds = {who: median(one.seconds for one in found) for who, found in costs.items()}
        for who, found in costs.items():
            busy = median(one.busy for one in found)
            memory, written = max(c.resident for c in found), max(c.written for c in found)
            shown = (f"{seconds[who]:.1f} s", f"{busy:.1f} s", bytes_text(memory))
            rows.append((f"{name} {who}", *shown, bytes_text(written)))
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
            if who == "ours" and (memory > MOST_RESIDENT or written > MOST_WRITTEN):
                missed.append(f"{name}: {bytes_text(memory)} resident, {written} B written")
        if options.peer and seconds["ours"] > MOST_TIMES * seconds["peer"]:
            missed.append(f"{name}: {seconds['ours'] / seconds['peer']:.2f} times as long")
    print_table(("int8 from 300 images", "median", "all cores", "resident", "written"), rows)
    return missed


def memory_part(options: Namespace, folder: Path) -> list[str]:
    """Prints how memory grows; what missed its bar."""
    source = options.models / MODEL
    size = source.stat().st_size
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for effort in ("quick", "default"):
        found: dict[int, float] = {}
        for count in (FEW, MANY):
            grown = asked_growth(source, count, effort, folder)
            found[count] = grown / size
            rows.append((effort, str(count), bytes_text(grown), f"{grown / size:.2f}"))
        if effort != "quick":
            continue  # shown, with no bar: values of every sample lie in files that are mapped
        if max(found.values()) > MOST_MEMORY:
            missed.append(f"{effort}: memory grew by {max(found.values()):.2f} times the file")
        if found[MANY] > found[FEW] + NOISE:
            more = found[MANY] - found[FEW]
            missed.append(f"{effort}: {MANY} samples take {more:.2f} files more than {FEW}")
    print_table(("effort", "samples", "memory growth", "times the file"), rows)
    return missed


def best_part(options: Namespace, folder: Path) -> list[str]:
    """Prints the time of the best effort; what missed its bar."""
    how = ["--mean", "127", "--std", "128", "--resize", "bicubic"]
    data = ["--data", str(options.data / "imagenet_calibration"), *how]
    line = [sys.executable, "-m", "litesmith", "quantize", str(options.models / LARGE), *data]
    seconds = timed([*line, "--effort", "best", "-o", str(folder / "best.tflite")])
    bar = f"under {MOST_SECONDS:.0f} s"
    print_table((LARGE, "seconds", "bar"), [("int8, --effort best", f"{seconds:.1f}", bar)])
    return [] if seconds < MOST_SECONDS else [f"--effort best took {seconds:.0f} s"]


PARTS = {"time": time_part, "memory": memory_part, "best": best_part, "images": images_part}


def write_samples(options: Namespace, folder: Path) -> None:
    """The images that all parts use, in a file of shape (20, 224, 224, 3) and one by one."""
    place = options.data / "imagenet_calibration"
    model = litesmith.load(options.models / MODEL)
    opened = open_data(place, model, preparation=Preparation(norm="tf"), samples=FEW)
    images = [sample.inputs[0][0] for sample in opened]
    np.save(folder / "samples.npy", np.stack(images))
    for number, image in enumerate(images):
        np.save(folder / f"{number}.npy", image)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=ASSETS / "data", help="holds the images")
    parser.add_argument("--peer", help="the Python that has ai-edge-quantizer")
    parser.add_argument("--rounds", type=int, default=9, help="of time")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--network", default="", help="the networks of `images` with this name")
    parser.add_argument("--child", nargs=4)
    options = parser.parse_args()
    if options.child:
        model, count, effort, out = options.child
        print(json.dumps(growth(Path(model), int(count), effort, Path(out))))
        return 0
    want_folder(options.models, "--models")
    want_folder(options.data, "--data")
    if not options.peer and "time" in options.only:
        print(INSTALL)
    missed: list[str] = []
    with TemporaryDirectory() as folder:
        write_samples(options, Path(folder))
        for name in options.only:
            missed += PARTS[name](options, Path(folder))
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
