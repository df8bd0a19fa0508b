"""Does the comparison tell the truth: no difference where there is none, and one where there is.

* A/A: a model against itself, many short comparisons. Bar: the 95 % interval contains 1.00 in at
  least 92.5 % of them (370 of 400).
* A/B: a model of 20 convolutions against one of 21. Bar: "slower" in at least 90 % (45 of 50).
* Busy (`--busy`): 40 runs beside 0 to 4 busy processes: `compare` and `bench` of pairs whose ratio
  is known, and the page of a search. Bars: headline, table, page and JSON never disagree by more
  than rounding; no verdict other than *unclear* contradicts what is known.
* Quiet (`--quiet`): 40 such comparisons beside nothing. Bar: besides that, none is unclear, on a
  machine with nothing else to do.
"""

import argparse
import io
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from itertools import cycle, product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

import numpy as np
from report import print_table, tell_figure, verdict_line
from stock import compare

import litesmith
from litesmith.cli.text.bench_text import print_bench
from litesmith.cli.text.compare_text import print_comparison
from litesmith.cli.text.printing import console
from litesmith.ir.build import Builder
from litesmith.regression.comparison import Compared
from litesmith.tflite.write import to_bytes
from litesmith.timing.latency import Bench
from litesmith.timing.statistics import FASTER, SAME, SLOWER, UNCLEAR, Ratio
from litesmith.timing.threads import competing_load

HOLDS, CALLED = 370 / 400, 45 / 50

# A value of a run that is not unclear is no further than this from the known one.
NEAR = 0.1


class Pair(NamedTuple):
    """Two models with these numbers of convolutions; the ratio of their times is that of the
    numbers."""

    a: int
    b: int
    channels: int

    @property
    def ratio(self) -> float:
        return self.b / self.a

    @property
    def verdict(self) -> str:
        return SAME if self.a == self.b else SLOWER if self.b > self.a else FASTER


PAIRS = {"short": Pair(8, 4, 16), "long": Pair(1, 6, 64), "same": Pair(8, 8, 16)}
PAGE = "page"
RUNS = 40

_TIME = r"([\d.]+) (ns|µs|ms|s)"
_TIMES = re.compile(rf"{_TIME} → {_TIME}")
_CELLS = re.compile(rf"time on \S+ +{_TIME} +{_TIME}")
_TAGS = re.compile(r"(?s)<(style|script).*?</\1>|<[^>]+>")
_P50 = re.compile(rf"^cpu:1 +{_TIME} \(", re.MULTILINE)
_FACTORS = re.compile(r"([\d.]+) × (faster|slower)")
_UNITS = {"ns": 1e-3, "µs": 1.0, "ms": 1e3, "s": 1e6}


def convolutions(count: int, channels: int = 16) -> bytes:
    """This many equal convolutions in a row."""
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
    """Every statement of time of b / time of a in a text: by two times, or by a factor."""
    pairs = [*_TIMES.findall(text), *_CELLS.findall(text)]
    if len(each := _P50.findall(text)) == 2:
        pairs.append((*each[0], *each[1]))
    for before, unit, after, other in pairs:
        yield float(after) * _UNITS[other] / (float(before) * _UNITS[unit])
    for factor, word in _FACTORS.findall(text):
        yield float(factor) if word == "slower" else 1 / float(factor)


def wrongly_told(text: str, ratio: float) -> list[str]:
    """The statements in a text that contradict this ratio beyond the rounding of three digits."""
    told = [*quotients(text)]
    wrong = [f"{one:.3f} for {ratio:.3f}" for one in told if abs(one / ratio - 1) > 0.016]
    return wrong if told else ["tells no times"]


def printed(found: Compared | Bench) -> str:
    """The printed lines about time; that b is smaller in memory is not one of them."""
    told = io.StringIO()
    with redirect_stdout(told):
        console.file = told
        if isinstance(found, Bench):
            print_bench(found)
            return told.getvalue()
        print_comparison(found)
    rows = [line for line in told.getvalue().splitlines() if line.startswith("time on")]
    return "\n".join((found.verdict.partition(";")[0], *rows))


class Seen(NamedTuple):
    """One run: its statement about the speed, and the errors in it."""

    words: str
    wrong: list[str]
    is_unclear: bool = False


def see_pair(pair: Pair, seconds: float, *, by_bench: bool) -> Seen:
    """A pair compared by `bench` or by `compare`."""
    a, b = (convolutions(count, pair.channels) for count in (pair.a, pair.b))
    if by_bench:
        found = litesmith.bench([a, b], seconds=seconds)
        assert isinstance(found, Bench)
        ratio = found.comparisons[0].ratio
        a_us, b_us = found.comparisons[0].numbers.a_us, found.comparisons[0].numbers.b_us
    else:
        found = litesmith.compare(a, b, seconds=seconds)
        ratio, latency = found.ratio, found.to_json()["latency"]
        assert isinstance(latency, dict)
        a_us, b_us = latency["a_us"], latency["b_us"]
    assert a_us and b_us
    wrong = wrongly_told(printed(found), b_us / a_us)
    is_unclear = ratio.verdict == UNCLEAR
    is_off = abs(ratio.value / pair.ratio - 1) > NEAR or ratio.verdict != pair.verdict
    wrong += [f"contradicts {pair.ratio:.3g}"] if is_off and not is_unclear else []
    return Seen(f"{ratio.words}, {ratio.times_words}", wrong, is_unclear)


def see_page() -> Seen:
    """The page of a search and its headline."""
    with TemporaryDirectory() as folder:
        found = litesmith.demo(Path(folder) / "demo", runs=24)
        best = found.summary.chosen
        if best is None or best.latency is None or best.latency.ratio is None or not found.report:
            return Seen("nothing was chosen", [])
        page = _TAGS.sub(" ", found.report.read_text(encoding="utf-8"))
        head = page[page.index(" Verdict ") : page.index(" Run it with ")]
        text = " ".join(f"{found.sentence} {head}".split())
        return Seen(found.sentence, wrongly_told(text, best.latency.ratio))


def run_beside(loads: Sequence[int], kinds: Sequence[str], count: int, seconds: float) -> int:
    """Runs each kind of comparison this many times, beside each load in turn; returns the
    status."""
    rows: list[tuple[str, ...]] = []
    faults: list[str] = []
    for number, (kind, load) in zip(range(count), cycle(product(kinds, loads)), strict=False):
        pair, by_bench = PAIRS.get(kind), number // (len(kinds) * len(loads)) % 2 == 1
        with competing_load(load):
            seen = see_pair(pair, seconds, by_bench=by_bench) if pair else see_page()
        wrong = [*seen.wrong, "unclear"] if seen.is_unclear and not any(loads) else seen.wrong
        how = "" if not pair else ", bench" if by_bench else ", compare"
        rows.append((f"{kind} beside {load}{how}", seen.words, "; ".join(wrong)))
        faults += [f"{rows[-1][0]}: {one}" for one in wrong]
        print(*rows[-1], sep=" | ", flush=True)
    print_table(("run", "told", "wrong"), rows)
    return verdict_line(faults)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=400, help="comparisons A/A")
    parser.add_argument("--ab-count", type=int, default=50, help="comparisons A/B")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each comparison A/B")
    parser.add_argument("--aa-seconds", type=float, default=0.3, help="for each comparison A/A")
    for option, beside in (("--busy", "0 to 4 busy processes"), ("--quiet", "nothing")):
        help = f"so many runs beside {beside} instead"
        parser.add_argument(option, type=int, nargs="?", const=RUNS, metavar="RUNS", help=help)
    options = parser.parse_args()
    if options.busy:
        return run_beside(range(5), [*PAIRS, PAGE], options.busy, options.seconds)
    if options.quiet:
        return run_beside([0], [*PAIRS], options.quiet, options.seconds)
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
