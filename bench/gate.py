"""Is `litesmith gate` quiet where nothing changed, and does it call what got worse, under load?

Other programs come and go all the while: none to four of them, busy with arithmetic or with memory.

* unchanged: the model of the baseline, ResNet-8. Bar: at most 1 alarm in 50 runs.
* slower: the same with layers more that change nothing, 10 % slower by an interleaved run. Bar: its
  latency is called in 10 of 10.
* less accurate: weights with noise, searched until 0.8 pt are lost on 5,000 images of CIFAR-10, a
  model of its own each time. Bar: its accuracy is called in 10 of 10.
* larger: a file with 5 % more bytes in it. Bar: both sizes are called in 10 of 10.
"""

import json
import random
import subprocess
import sys
import tempfile
from dataclasses import replace
from itertools import pairwise
from math import inf
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
from report import print_table, tell_figure, verdict_line
from stock import ASSETS, arguments, compare, want_folder

from litesmith.accuracy.evaluate import evaluate_all
from litesmith.data.preparation import Preparation
from litesmith.data.samples import Data
from litesmith.data.sources import open_data
from litesmith.ir.edit import regraph, rewrite, with_graphs
from litesmith.ir.types import Model, Op, Tensor
from litesmith.tflite.file import load, save
from litesmith.units import percent_text, ratio_text, time_text

MODEL, DATA = "pretrainedResnet.tflite", "cifar10_test.npz"
IMAGES, FEW_IMAGES = 5000, 500
SLOWER, LOST, LARGER = 1.10, 0.008, 1.05
MOST_ALARMS = 1 / 50

# Programs that take a core, and those that take the memory between it and the cores.
_BUSY = (
    "while True: sum(range(10000))",
    "a = bytearray(48 << 20); b = bytearray(48 << 20)\nwhile True: b[:] = a",
)


class Weather:
    """Other programs that come and go at random while it is entered."""

    def __init__(self, most: int, seed: int = 0) -> None:
        self._most, self._random = most, random.Random(seed)
        self._done, self._others = Event(), list[subprocess.Popen[bytes]]()
        self._thread = Thread(target=self._change, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _change(self) -> None:
        while not self._done.wait(self._random.uniform(0.2, 4.0)):
            wanted = self._random.randint(0, self._most)
            while len(self._others) > wanted:
                self._end(self._others.pop(self._random.randrange(len(self._others))))
            while len(self._others) < wanted:
                words = [sys.executable, "-S", "-c", self._random.choice(_BUSY)]
                self._others.append(subprocess.Popen(words))
        for other in self._others:
            self._end(other)

    @staticmethod
    def _end(other: "subprocess.Popen[bytes]") -> None:
        other.kill()
        other.wait()


def slower(model: Model, layers: int) -> Model:
    """The model with this many extra convolutions, whose windows of 1 change nothing."""
    graph = model.main
    place, first = next(pair for pair in enumerate(graph.ops) if pair[1].kind == "CONV_2D")
    shape = first.outputs[0].shape
    eye = np.eye(shape[-1], dtype=np.float32).reshape(shape[-1], 1, 1, shape[-1])
    weight = Tensor("same", eye.shape, data=eye)
    bias = Tensor("nothing", shape[-1:], data=np.zeros(shape[-1], np.float32))
    assert first.options is not None
    options = first.options.set(stride_w=1, stride_h=1)
    between = [Tensor(f"same_{number}", shape) for number in range(layers)]
    more = [
        Op("CONV_2D", (before, weight, bias), (after,), options, first.version)
        for before, after in pairwise([*between, first.outputs[0]])
    ]
    first = replace(first, outputs=tuple(between[:1]))
    ops = [*graph.ops[:place], first, *more, *graph.ops[place + 1 :]]
    return with_graphs(model, [regraph(graph, ops=ops)])


def noisy(model: Model, share: float, seed: int) -> Model:
    """Weights with noise of a share of their own size."""
    chance = np.random.default_rng(seed)
    made = {
        t: replace(t, data=_with_noise(np.asarray(t.data), share, chance))
        for t in model.main.tensors
        if t.data is not None and t.dtype == "float32" and t.data.ndim > 1
    }
    return with_graphs(model, [rewrite(model.main, tensors=made)])


def _with_noise(values: np.ndarray, share: float, chance: np.random.Generator) -> np.ndarray:
    noise = chance.normal(0, share * float(values.std()), values.shape)
    return (values + noise).astype(np.float32)


def larger(model: Model, size: int) -> Model:
    padding = np.random.default_rng(0).integers(0, 256, size, np.uint8)
    return replace(model, metadata=(*model.metadata, ("padding", padding)))


def slowed(model: Model, folder: Path, original: Path) -> tuple[Path, float]:
    """The number of extra layers that comes nearest to 10 %, by interleaved runs."""
    found: dict[int, tuple[float, Path]] = {}
    for layers in range(1, 40):
        path = folder / f"slower_{layers}.tflite"
        save(slower(model, layers), path)
        found[layers] = compare(original, path, seconds=4.0).value, path
        if found[layers][0] > SLOWER + 0.01:
            break
    ratio, path = min(found.values(), key=lambda one: abs(one[0] - SLOWER))
    return path, ratio


def spoiled(model: Model, folder: Path, data: Data, seed: int) -> tuple[Path, float]:
    """Noise that loses 0.8 pt, found by halving."""
    (right,) = (found.value for found in evaluate_all([model], data))
    low, high = 0.0, 0.4
    best = (1.0, model, 0.0)
    for _ in range(12):
        middle = (low + high) / 2
        made = noisy(model, middle, seed)
        lost = right - evaluate_all([made], data)[0].value
        best = min(best, (abs(lost - LOST), made, lost), key=lambda one: one[0])
        if best[0] < 0.0003:
            break
        low, high = (middle, high) if lost < LOST else (low, middle)
    path = folder / f"noisy_{seed}.tflite"
    save(best[1], path)
    return path, best[2]


def said(*words: object) -> subprocess.CompletedProcess[str]:
    """The output of the command."""
    command = [sys.executable, "-m", "litesmith", "gate", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"exit status {done.returncode}: {done.stderr}")
    return done


def gated(baseline: Path, model: Path, *words: object) -> dict[str, str]:
    """The verdict on each quantity and overall; the exit status is checked against it."""
    done = said(baseline, model, *words, "--json")
    told = json.loads(done.stdout)
    if (told["verdict"] == "worse") != (done.returncode == 1):
        raise SystemExit(f"exit status {done.returncode} with the verdict {told['verdict']}")
    verdicts = {check["quantity"]: check["verdict"] for check in told["checks"]}
    (times,) = (check for check in told["checks"] if check["quantity"] == "latency")
    change = ratio_text(times["change"], times["low"], times["high"] or inf)
    return {**verdicts, "all": told["verdict"], "latency change": f"{change} {times['clock']}"}


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=ASSETS / "data", help=f"holds {DATA}")
    parser.add_argument("--unchanged", type=int, default=50, help="runs on the unchanged model")
    parser.add_argument("--count", type=int, default=10, help="runs on each of the others")
    parser.add_argument("--programs", type=int, default=4, help="other programs at the most")
    options = parser.parse_args()
    original = want_folder(options.models, "--models") / MODEL
    source = want_folder(options.data, "--data") / DATA
    with tempfile.TemporaryDirectory() as name:
        jobs = made(Path(name), original, source, (options.unchanged, options.count))
        with Weather(options.programs):
            rows, missed = carried_out(jobs, Path(name), original, source)
    print_table(("model", "runs", "alarms", "called", "false", "unclear", "a run"), rows)
    return verdict_line(missed)


class Job(NamedTuple):
    """Models to be held against the baseline, on so many images, and what is to be called."""

    title: str
    models: list[Path]
    images: int
    wanted: tuple[str, ...] = ()


def made(folder: Path, original: Path, source: Path, counts: tuple[int, int]) -> list[Job]:
    """The models, made while the machine is left alone."""
    model, (unchanged, count) = load(original), counts
    data = open_data(source, model, preparation=Preparation(norm="raw"), samples=IMAGES)
    slow, ratio = slowed(model, folder, original)
    print(f"slower: {slow.stem}, {ratio_text(ratio)} of the time", flush=True)
    worse = [spoiled(model, folder, data, seed) for seed in range(count)]
    print("lost:", ", ".join(percent_text(lost) for _, lost in worse), flush=True)
    large = folder / "larger.tflite"
    save(larger(model, 0), large)
    missing = round(LARGER * original.stat().st_size) - large.stat().st_size
    save(larger(model, missing), large)
    print(f"larger: {ratio_text(large.stat().st_size / original.stat().st_size)}", flush=True)
    return [
        Job("unchanged", [original] * unchanged, FEW_IMAGES),
        Job("slower", [slow] * count, FEW_IMAGES, ("latency",)),
        Job("less accurate", [path for path, _ in worse], IMAGES, ("accuracy",)),
        Job("larger", [large] * count, FEW_IMAGES, ("size", "gzip")),
    ]


def carried_out(
    jobs: list[Job], folder: Path, original: Path, source: Path
) -> tuple[list[tuple[str, ...]], list[str]]:
    rows, missed = list[tuple[str, ...]](), list[str]()
    for job in jobs:
        words = ("--data", source, "--norm", "raw", "--samples", job.images)
        baseline = folder / f"baseline_{job.images}.json"
        if not baseline.exists():
            said(baseline, original, "--update", *words)
        start = perf_counter()
        found = [logged(job.title, gated(baseline, path, *words)) for path in job.models]
        seconds = (perf_counter() - start) / max(1, len(found))
        row, misses = counted(job.title, found, job.wanted)
        rows.append((*row, time_text(seconds * 1e6)))
        missed += misses
    return rows, missed


def logged(title: str, found: dict[str, str]) -> dict[str, str]:
    print(title, found, flush=True)
    return found


def counted(
    title: str, found: list[dict[str, str]], wanted: tuple[str, ...]
) -> tuple[tuple[str, ...], list[str]]:
    """Runs that alarmed, that called all that is worse, and that called anything else."""
    called = sum(all(one[name] == "worse" for name in wanted) for one in found) if wanted else 0
    false = sum(
        any(verdict == "worse" for name, verdict in one.items() if name not in (*wanted, "all"))
        for one in found
    )
    alarms = sum(one["all"] == "worse" for one in found)
    tell_figure(f"{title} alarms", alarms)
    tell_figure(f"{title} called", called)
    unclear = sum("unclear" in one.values() for one in found)
    missed: list[str] = []
    if wanted and called < len(found):
        missed.append(f"{title}: called in {called} of {len(found)}")
    if not wanted and alarms > max(1, MOST_ALARMS * len(found)):
        missed.append(f"{title}: {alarms} alarms in {len(found)}")
    return (title, *map(str, (len(found), alarms, called, false, unclear))), missed


if __name__ == "__main__":
    sys.exit(main())
