"""Does the comparison tell the truth: no difference where there is none, and one where there is.

* A/A: a model against itself, many short comparisons. Bar: the 95 % interval contains 1.00 in at
  least 92.5 % of them (370 of 400).
* A/B: a model of 20 convolutions against one of 21. Bar: "slower" in at least 90 % (45 of 50).
"""

import argparse
import sys
from time import perf_counter

import numpy as np
from report import print_table, tell_figure, verdict_line
from stock import compare

from litesmith.ir.build import Builder
from litesmith.tflite.write import to_bytes
from litesmith.timing.statistics import SLOWER, Ratio

HOLDS, CALLED = 370 / 400, 45 / 50


def convolutions(count: int, channels: int = 16) -> bytes:
    """So many equal convolutions in a row."""
    random = np.random.default_rng(0)
    b = Builder()
    x = b.input("x", (1, 32, 32, channels))
    for _ in range(count):
        weight = random.normal(0, 0.08, (channels, 3, 3, channels)).astype(np.float32)
        x = b.op("CONV_2D", x, weight, np.zeros(channels, np.float32))
    return to_bytes(b.model(x))


def row(name: str, ratios: list[Ratio], good: int, seconds: float) -> tuple[str, ...]:
    values = np.array([ratio.value for ratio in ratios])
    widths = [high - low for low, high in (ratio.interval for ratio in ratios)]
    low, high = np.percentile(values, (2.5, 97.5))
    spread = f"{low:.4f} to {high:.4f}"
    count = f"{good} of {len(ratios)}"
    return (
        name,
        count,
        f"{np.median(values):.4f}",
        spread,
        f"{np.median(widths):.4f}",
        f"{seconds:.1f}",
    )


def same(count: int, seconds: float) -> tuple[tuple[str, ...], bool]:
    model, start = convolutions(4), perf_counter()
    ratios = [compare(model, model, seconds=seconds, seed=seed) for seed in range(count)]
    good = sum(low <= 1 <= high for low, high in (ratio.interval for ratio in ratios))
    each = (perf_counter() - start) / max(1, count)
    return row("A/A: interval holds 1.00", ratios, good, each), good >= HOLDS * count


def different(count: int, seconds: float) -> tuple[tuple[str, ...], bool]:
    a, b, start = convolutions(20), convolutions(21), perf_counter()
    ratios = [compare(a, b, seconds=seconds, seed=seed) for seed in range(count)]
    good = sum(ratio.verdict == SLOWER for ratio in ratios)
    each = (perf_counter() - start) / max(1, count)
    return row("A/B: 20 or 21, called", ratios, good, each), good >= CALLED * count


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=400, help="comparisons A/A")
    parser.add_argument("--ab-count", type=int, default=50, help="comparisons A/B")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each comparison A/B")
    parser.add_argument("--aa-seconds", type=float, default=0.3, help="for each comparison A/A")
    options = parser.parse_args()
    head = ("comparison", "good", "median ratio", "95 % of ratios", "width", "seconds")
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for run, count, seconds in (
        (same, options.count, options.aa_seconds),
        (different, options.ab_count, options.seconds),
    ):
        if count:
            shown, met = run(count, seconds)
            tell_figure(run.__name__, int(shown[1].partition(" ")[0]) / count)
            rows.append(shown)
            missed += [] if met else [f"{shown[0]}: {shown[1]}"]
            print(*shown, flush=True)
    print_table(head, rows)
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
