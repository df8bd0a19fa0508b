"""Does the comparison tell the truth: no difference where there is none, and one where there is.

* A/A: a model against itself, many short comparisons. Bar: the 95 % interval contains 1.00 in at
  least 92.5 % of them (370 of 400).
* A/B: a model of 20 convolutions against one of 21. Bar: "slower" in at least 90 % (45 of 50).
* Busy (`--busy`): pairs of short and of long models beside 0 to 4 busy processes. Bars: headline,
  table, page and JSON never disagree by more than rounding; no verdict other than *unclear*
  contradicts a quiet run, the steadiest of `--quiet` comparisons beside nothing, none of which is
  unclear. The last bar needs a machine with nothing else to do.
"""

import argparse
import io
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from report import print_table, tell_figure, verdict_line
from stock import compare

import litesmith
from litesmith.cli.text.compare_text import print_comparison
from litesmith.cli.text.printing import console
from litesmith.ir.build import Builder
from litesmith.regression.comparison import Compared
from litesmith.tflite.write import to_bytes
from litesmith.timing.statistics import SLOWER, UNCLEAR, Ratio
from litesmith.timing.threads import competing_load

HOLDS, CALLED = 370 / 400, 45 / 50

# A value of a run that is not unclear is no further than this from the quiet one.
NEAR = 0.1

_TIMES = re.compile(r"([\d.]+) (ns|µs|ms|s) → ([\d.]+) (ns|µs|ms|s)")
_FACTORS = re.compile(r"([\d.]+) × (faster|slower)")
_UNITS = {"ns": 1e-3, "µs": 1.0, "ms": 1e3, "s": 1e6}


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


def quotients(text: str) -> Iterator[float]:
    """Time of b / time of a, as often as a text says it: by two times, or by a factor."""
    for before, unit, after, other in _TIMES.findall(text):
        yield float(after) * _UNITS[other] / (float(before) * _UNITS[unit])
    for factor, word in _FACTORS.findall(text):
        yield float(factor) if word == "slower" else 1 / float(factor)


def disagreements(text: str, ratio: float) -> list[str]:
    """What a text says that is not this ratio, beyond the rounding of three digits."""
    return [
        f"{told:.3f} for {ratio:.3f}" for told in quotients(text) if abs(told / ratio - 1) > 0.016
    ]


def shown(found: Compared) -> str:
    """What a person reads of a comparison, in one line."""
    told = io.StringIO()
    with redirect_stdout(told):
        console.file = told
        print_comparison(found)
    rows = [line for line in told.getvalue().splitlines() if line.startswith("time on")]
    return " ".join((found.verdict.partition(";")[0], *rows))


def busy_comparisons(seconds: float, quiet: int) -> tuple[list[tuple[str, ...]], list[str]]:
    """Each pair beside 0 to 4 busy processes, held against quiet runs of it."""
    pairs = {
        "short": (convolutions(8), convolutions(4)),
        "long": (convolutions(1, 64), convolutions(6, 64)),
        "same": (convolutions(8),) * 2,
    }
    rows: list[tuple[str, ...]] = []
    faults: list[str] = []
    for name, (a, b) in pairs.items():
        calm = [litesmith.compare(a, b, seconds=seconds) for _ in range(quiet)]
        known = min(calm, key=lambda one: one.ratio.interval[1] / one.ratio.interval[0]).ratio
        unclear = sum(one.ratio.verdict == UNCLEAR for one in calm)
        faults += [f"{name}: {unclear} of {quiet} quiet runs unclear"] if unclear else []
        for count in range(5):
            with competing_load(count):
                found = litesmith.compare(a, b, seconds=seconds)
            ratio, latency = found.ratio, found.to_json()["latency"]
            assert isinstance(latency, dict)
            wrong = disagreements(shown(found), latency["b_us"] / latency["a_us"])
            is_off = abs(ratio.value / known.value - 1) > NEAR or ratio.verdict != known.verdict
            wrong += ["contradicts the quiet run"] if is_off and ratio.verdict != UNCLEAR else []
            faults += [f"{name} beside {count}: {one}" for one in wrong]
            words = (ratio.words, ratio.times_words, known.words, "; ".join(wrong))
            rows.append((f"{name} beside {count}", *words))
            print(*rows[-1], sep=" | ", flush=True)
    return rows, faults


def busy_page(count: int) -> list[str]:
    """What the page of a search beside busy processes says in two ways."""
    with TemporaryDirectory() as folder, competing_load(count):
        found = litesmith.demo(Path(folder) / "demo", runs=24)
        best = found.summary.chosen
        if best is None or best.latency is None or best.latency.ratio is None or not found.report:
            return []
        page = re.sub(r"<[^>]+>", " ", found.report.read_text(encoding="utf-8"))
        head = page[page.index("Asked for") - 600 : page.index("What each model costs", 2000)]
        wrong = disagreements(f"{found.sentence} {head}", best.latency.ratio)
    return [f"page beside {count}: {one}" for one in wrong]


def busy(seconds: float, quiet: int) -> int:
    rows, faults = busy_comparisons(seconds, quiet)
    for count in (0, 2, 4):
        faults += busy_page(count)
    print_table(("pair", "told", "times", "quiet", "wrong"), rows)
    return verdict_line(faults)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=400, help="comparisons A/A")
    parser.add_argument("--ab-count", type=int, default=50, help="comparisons A/B")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each comparison A/B")
    parser.add_argument("--aa-seconds", type=float, default=0.3, help="for each comparison A/A")
    parser.add_argument("--busy", action="store_true", help="beside busy processes instead")
    parser.add_argument("--quiet", type=int, default=3, help="quiet runs of each pair with --busy")
    options = parser.parse_args()
    if options.busy:
        return busy(options.seconds, options.quiet)
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
