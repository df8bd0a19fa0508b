"""Which of two models is faster, told honestly on a noisy machine; run alone, it tests itself.

Times of two separate runs differ by load, clock and luck. Here the two models take turns in one
process, and each pair of neighbouring samples gives one ratio, so that what slows both cancels.

* A block loads both models anew, because where a model happens to lie in memory makes it faster
  or slower for as long as it lives there; only other places show how much. It does so twice, with
  the old model first and with the new one first: the order of loading decides who lies better.
* Half of the pairs run the old model first and half the new one, shuffled. Their medians are
  averaged, which cancels the cost of coming second; a median ignores bursts of load.
* The result is the median over blocks. Its 95 % interval comes from the order of the blocks'
  values (the sign test turned round), which assumes nothing about their distribution.
* A verdict needs the whole interval beyond 1 %: less than that is not worth a word.

Alone, this compares models with themselves. Bar: at most 5 % of the comparisons see a difference.
"""

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from report import print_table, verdict_line
from stock import arguments, model_files, prepared

MARGIN = 0.01
LEAST_BLOCKS = 10
USUAL_BLOCKS = 12
LEAST_PAIRS = 8
WIDE = 0.05  # an interval wider than this earns more time,
STRETCH = 3  # up to so many times what was asked for
SAMPLE_SECONDS = 0.001  # a sample is repeated runs until about here: clocks are not finer
WARM_UP_SECONDS = 0.02
THEMSELVES = ("kws_hybrid.tflite", "mobilenet_v2_1.0_224_quant.tflite")


@dataclass(frozen=True)
class Comparison:
    """The ratio new time / old time of each block, and what follows from them."""

    blocks: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return median(self.blocks)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the median."""
        ordered = sorted(self.blocks)
        place = cut(len(ordered))
        return ordered[place], ordered[-1 - place]

    @property
    def verdict(self) -> str:
        low, high = self.interval
        if low > 1 + MARGIN:
            return "slower"
        return "faster" if high < 1 - MARGIN else "no difference"

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.ratio:.3f} ({low:.3f} to {high:.3f}, {len(self.blocks)} blocks)"


@dataclass(frozen=True)
class Plan:
    """How many runs make a sample, and how many pairs of samples half a block."""

    runs: int
    pairs: int


def compare(old: Path, new: Path, *, seconds: float, seed: int = 0) -> Comparison:
    """Runs both models in turns for about so long, and longer where load blurs the result."""
    random = np.random.default_rng(seed)
    plan = make_plan(old, seconds)
    start = perf_counter()
    blocks: list[float] = []
    wanted = seconds
    while len(blocks) < LEAST_BLOCKS or perf_counter() - start < wanted:
        blocks.append(math.exp(block(old, new, plan, random)))
        low, high = Comparison(tuple(blocks)).interval
        wanted = STRETCH * seconds if high - low > WIDE else seconds
    return Comparison(tuple(blocks))


def make_plan(model: Path, seconds: float) -> Plan:
    """Samples long enough for the clock; at least eight pairs to half a block."""
    interpreter = prepared(model)
    warm_up(interpreter)
    one_run = median(sample(interpreter, 1) for _ in range(5))
    runs = max(1, round(SAMPLE_SECONDS / one_run))
    fitting = seconds / USUAL_BLOCKS / (4 * runs * one_run)
    return Plan(runs, max(LEAST_PAIRS, 2 * round(fitting / 2)))


def block(old: Path, new: Path, plan: Plan, random: np.random.Generator) -> float:
    """The log of new time / old time, with each of the models loaded first once."""
    firsts = random.permutation(2).tolist()
    return sum(half_block((old, new), first, plan, random) for first in firsts) / 2


def half_block(
    files: tuple[Path, Path], first: int, plan: Plan, random: np.random.Generator
) -> float:
    """The log of new time / old time, after a fresh load of both, `first` before the other."""
    pair = {place: prepared(files[place]) for place in (first, 1 - first)}
    for interpreter in pair.values():
        warm_up(interpreter)
    logs: tuple[list[float], list[float]] = ([], [])
    leads = np.arange(plan.pairs) % 2
    random.shuffle(leads)
    for lead in leads.tolist():
        times = {place: sample(pair[place], plan.runs) for place in (lead, 1 - lead)}
        logs[lead].append(math.log(times[1] / times[0]))
    return (median(logs[0]) + median(logs[1])) / 2


def warm_up(interpreter: Interpreter) -> None:
    end = perf_counter() + WARM_UP_SECONDS
    interpreter.invoke()
    while perf_counter() < end:
        interpreter.invoke()


def sample(interpreter: Interpreter, runs: int) -> float:
    """Seconds that so many runs take together."""
    start = perf_counter()
    for _ in range(runs):
        interpreter.invoke()
    return perf_counter() - start


def cut(count: int) -> int:
    """How many values at each end lie outside the 95 % interval of a median."""
    tail = 0.0
    for place in range(count):
        tail += math.comb(count, place) / 2**count
        if tail > 0.025:
            return max(0, place - 1)
    return 0


def row(name: str, results: list[Comparison]) -> tuple[str, ...]:
    verdicts = [result.verdict for result in results]
    missing_one = sum(not low <= 1 <= high for low, high in (r.interval for r in results))
    farthest = max((result.ratio for result in results), key=lambda ratio: abs(math.log(ratio)))
    counts = (verdicts.count(verdict) for verdict in ("no difference", "faster", "slower"))
    return (name, str(len(results)), *map(str, counts), str(missing_one), f"{farthest:.3f}")


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each comparison")
    parser.add_argument("--comparisons", type=int, default=20, help="for each of two models")
    options = parser.parse_args()
    files = [file for file in model_files(options.models) if file.name in THEMSELVES]
    files = files or model_files(options.models)[:2]
    results: dict[str, list[Comparison]] = {file.name: [] for file in files}
    for seed in range(options.comparisons):
        for file in files:
            results[file.name].append(compare(file, file, seconds=options.seconds, seed=seed))
    head = (
        "model against itself",
        "all",
        "no difference",
        "faster",
        "slower",
        "without 1",
        "worst",
    )
    print_table(head, [row(name, found) for name, found in results.items()])
    print("without 1: 95 % intervals that leave out 1, before the margin of 1 %")
    every = [result for found in results.values() for result in found]
    seen = sum(result.verdict != "no difference" for result in every)
    limit = 0.05 * len(every)
    missed = [f"{seen} of {len(every)} saw a difference"] if seen > limit else []
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
