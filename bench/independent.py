"""Is "proven" proven: how often a model that loses twice its budget passes, by the kind of samples.

Each data set is drawn anew: arrays, of which some are copies, and for each whether the model before
and the one after answer rightly. The tool is given the arrays, finds the groups, and judges.

* Loss: the true drop is twice the budget. Bar: "proven" in at most 5 % of the data sets, whatever
  the samples; beside it what is said where every sample is taken for independent.
* Power: nothing is lost, and the samples are independent. Bar: "proven" as often as without a
  search for copies, within 2 points.
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from report import print_table, verdict_line

from litesmith.accuracy.metrics import METRICS, difference_of
from litesmith.accuracy.paired import Groups
from litesmith.data.sample_splits import row_groups
from litesmith.data.sources import open_data
from litesmith.evidence.records import PairedScore, Score
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.search.trial.budget import PROVEN, Budget, verdict

FALSE, LOST_POWER = 0.05, 0.02
BUDGETS = (0.01, 0.025, 0.05)

# The numbers in an array, and the share of their spread by which near copies differ.
WIDTH, NOISE = 16, 0.02

# The share of samples that a model after loses and wins, beside what it loses on the whole.
CHURN = 0.01


class Kind(NamedTuple):
    """A kind of data: the number of samples, the copies of each, and how alike the fates of copies
    are."""

    name: str
    samples: int
    copies: int = 1
    noise: float = 0.0
    correlation: float = 1.0


KINDS = (
    Kind("480 independent", 480),
    Kind("32 samples, 15 copies", 32, 15),
    Kind("48 samples, 10 copies", 48, 10),
    Kind("48 samples, 10 near copies", 48, 10, NOISE),
    Kind("48 samples, 10 near copies, correlation 0.5", 48, 10, NOISE, 0.5),
)
POWER = Kind("2,000 independent", 2000)


def draw_arrays(kind: Kind, random: np.random.Generator) -> NDArray[np.float32]:
    first = np.repeat(random.normal(size=(kind.samples, WIDTH)), kind.copies, axis=0)
    return (first + kind.noise * random.normal(size=first.shape)).astype(np.float32)


def draw_changes(kind: Kind, random: np.random.Generator, drop: float) -> NDArray[np.float64]:
    """The loss (−1) or gain (1) of each sample: copies share the first one's fate with a chance
    that gives the correlation."""

    def draw(count: int) -> NDArray[np.float64]:
        lots = random.random(count)
        return np.where(lots < drop + CHURN, -1.0, np.where(lots > 1 - CHURN, 1.0, 0.0))

    together = np.repeat(draw(kind.samples), kind.copies)
    follows = random.random(len(together)) < np.sqrt(kind.correlation)
    return np.where(follows, together, draw(len(together)))


def is_proven(changes: NDArray[np.float64], budget: float, groups: Groups) -> bool:
    """The verdict of a search over held-out samples, in the tool's own words."""
    before = (changes <= 0).astype(np.float64)[:, None]
    found = difference_of(METRICS["top1"], before + changes[:, None], before, groups)
    paired = PairedScore(float(before.mean()), None, None, *found, None, None)
    score = Score("top1", "top-1", "share", None, None, None, len(changes), 1, paired)
    asked = Budget.parse(max_drop=f"{100 * budget}pt")
    return verdict(asked.room(score)) == PROVEN


def toy() -> Model:
    b = Builder()
    return b.model(b.op("RELU", b.input("x", (1, WIDTH))))


def count_proven(kind: Kind, drops: dict[float, float], seeds: range) -> NDArray[np.float64]:
    """How often each budget is said to be kept at a true drop: by groups, and without them."""
    model, proven = toy(), np.zeros((len(drops), 2))
    for seed in seeds:
        random = np.random.default_rng(seed)
        arrays = draw_arrays(kind, random)
        groups = row_groups(open_data({"x": arrays}, model), len(arrays))
        for place, (budget, drop) in enumerate(drops.items()):
            passes = partial(is_proven, draw_changes(kind, random, drop), budget)
            proven[place] += (passes(groups), passes(None))
    return proven


def rates(
    kind: Kind, drops: dict[float, float], count: int, jobs: int
) -> list[tuple[float, float, float]]:
    """For each budget, the shares of data sets where it is "proven": by groups, and without
    them."""
    parts = [range(first, count, jobs) for first in range(jobs)]
    with ProcessPoolExecutor(jobs) as pool:
        found = np.sum(list(pool.map(partial(count_proven, kind, drops), parts)), axis=0) / count
    return [(b, float(own), float(plain)) for b, (own, plain) in zip(drops, found, strict=True)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=2000, help="data sets of each kind")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    missed: list[str] = []
    rows: list[tuple[str, ...]] = []
    lost = {budget: 2 * budget for budget in BUDGETS}
    for kind, drops in (*((kind, lost) for kind in KINDS), (POWER, dict.fromkeys(BUDGETS, 0.0))):
        for budget, own, plain in rates(kind, drops, options.count, options.jobs):
            shown = (kind.name, f"{100 * budget:g} pt", f"{100 * drops[budget]:g} pt")
            rows.append((*shown, f"{100 * own:.2f} %", f"{100 * plain:.2f} %"))
            is_missed = own > FALSE if drops[budget] else own < plain - LOST_POWER
            missed += [f"{kind.name}, {shown[1]}: {rows[-1][3]}"] if is_missed else []
            print(*rows[-1], flush=True)
    print_table(("samples", "budget", "true drop", "proven", "without groups"), rows)
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
