"""What a smaller model really saves on disk, in a download, in MACs and in time; and which kernels
skip its zeros, op by op.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import inf, isfinite
from pathlib import Path

import numpy as np

from litesmith.anatomy.footprint import footprint, gzip_bytes, zstd_bytes
from litesmith.anatomy.sparse_speedup import skipping
from litesmith.anatomy.weights import Promises, WeightFacts, promises, weight_facts, zero_share
from litesmith.errors import CannotRun
from litesmith.ir.model_text import op_name
from litesmith.ir.types import Model
from litesmith.passes.shrinking.arm_sparse import arm_sparse
from litesmith.phrases import phrase
from litesmith.progress import Progress, silent
from litesmith.run.core.target import LITESMITH, Target
from litesmith.run.trial_run import probe_source
from litesmith.tflite.file import load, pieces
from litesmith.timing.latency import Rule, list_contenders, measure
from litesmith.timing.statistics import FASTER, SAME, SLOWER, Ratio
from litesmith.timing.turns import Contender, Quota, one_load
from litesmith.units import plain, time_text

OURS = str(Target("cpu", 1, LITESMITH))

_SECONDS = 1.0
_SLOW_SECONDS = 0.05  # a run as long as this is its own warm-up
MOST_SECONDS = 0.5

# A file with this many more zeros, or with this small a share of the distinct values, is expected
# to be faster.
_MORE_ZEROS, _FEWER_VALUES = 0.02, 0.5

# Ratios of time after / time before between this and 1 count as hardly faster.
_HARDLY = 0.95

_MULTIPLIED = phrase("are multiplied like any number here")


@dataclass(frozen=True)
class FileSizes:
    """The sizes of one file."""

    bytes: int
    gzip_bytes: int
    zstd_bytes: int
    macs: int
    weights: tuple[WeightFacts, ...]

    @property
    def layers(self) -> "FileSizes":
        """The same sizes for the weights of layers alone."""
        return replace(self, weights=tuple(facts for facts in self.weights if facts.is_layer))

    @property
    def zeros(self) -> int:
        return sum(facts.zeros for facts in self.weights)

    @property
    def elements(self) -> int:
        return sum(facts.elements for facts in self.weights)

    @property
    def dtypes(self) -> set[str]:
        return {facts.dtype for facts in self.weights}

    @property
    def values(self) -> int:
        """The number of distinct values in each weight, summed."""
        return sum(facts.values for facts in self.weights)

    @property
    def zero_share(self) -> float:
        return zero_share(self.weights)

    def to_json(self) -> dict[str, object]:
        return {
            "bytes": self.bytes,
            "gzip_bytes": self.gzip_bytes,
            "zstd_bytes": self.zstd_bytes,
            "macs": self.macs,
            "zeros": self.zeros,
            "zero_share": self.zero_share,
        }


@dataclass(frozen=True)
class Latency:
    """Both files in one interleaved run; the ratio is time after / time before."""

    before_us: float
    after_us: float
    ratio: Ratio
    target: str


@dataclass(frozen=True)
class Shrunk:
    """A file and the smaller one made from it.

    promises  the layers whose zeros or codes had to stay, and how much of them the written file
              lost
    latency   None where it was not measured; `untimed` says why
    """

    before: FileSizes
    after: FileSizes
    promises: Promises
    latency: Latency | None
    untimed: str = ""

    @property
    def is_verified(self) -> bool:
        """True where every promised zero and code is in the written file."""
        return not self.promises.broken

    @property
    def verdict(self) -> str:
        """Whether the smaller file is faster, in words, and which savings do not contribute."""
        if self.latency is None:
            return self._with_idle(phrase("not measured: {untimed}", self.untimed))
        ratio, (low, _) = self.latency.ratio, self.latency.ratio.interval
        if ratio.verdict == FASTER:
            same = self.before.layers.dtypes == self.after.layers.dtypes
            if ratio.value > _HARDLY and self._idle and same:
                return phrase(
                    "{speed}, not by its {idle}: they {multiplied}",
                    ratio.words,
                    self._idle,
                    _MULTIPLIED,
                )
            return self._with_idle(ratio.words)
        if ratio.verdict == SLOWER:
            return self._with_idle(ratio.words)
        if ratio.verdict == SAME and low > _HARDLY and self._idle:
            return self._with_idle(phrase("not faster"))
        return self._with_idle(
            phrase("within the noise") if ratio.verdict == SAME else ratio.verdict
        )

    def to_json(self) -> dict[str, object]:
        """The costs of the written file; `zeros` is a count, `zero_share` the share of all
        weights."""
        return {
            **self.after.to_json(),
            "before": self.before.to_json(),
            "latency": latency_facts(self.latency, self.verdict),
            "weights": [_weight_json(facts) for facts in self.after.weights],
            "verified": self.is_verified,
            "broken": list(self.promises.broken),
        }

    def _with_idle(self, verdict: str) -> str:
        return (
            phrase("{verdict}; {idle} {multiplied}", verdict, self._idle, _MULTIPLIED)
            if self._idle
            else verdict
        )

    @property
    def _idle(self) -> str:
        """The savings in this file that do not save the processor any work; "" where there are
        none.
        """
        before, after = self.before.layers, self.after.layers
        if after.macs != before.macs or any(facts.sparse for facts in after.weights):
            return ""
        least = min(before.values, after.elements - after.zeros)
        if before.dtypes == after.dtypes and after.values < _FEWER_VALUES * least:
            return "repeated weights"
        if after.zero_share > before.zero_share + _MORE_ZEROS:
            return "zeros"
        return ""


def latency_facts(latency: Latency | None, words: str) -> dict[str, object]:
    """The times for JSON, with a verdict in words, or the reason why there are none."""
    facts: dict[str, object] = {"ratio": None, "low": None, "high": None, "verdict": words}
    if latency is None:
        return facts
    low, high = latency.ratio.interval
    return facts | {
        "ratio": latency.ratio.value,
        "low": low,
        "high": high if isfinite(high) else None,
        "verdict": words or latency.ratio.verdict,
        "before_us": latency.before_us,
        "after_us": latency.after_us,
        "target": latency.target,
    }


def _weight_json(facts: WeightFacts) -> dict[str, object]:
    return {
        "name": facts.name,
        "op": facts.op,
        "dtype": facts.dtype,
        "elements": facts.elements,
        "zeros": facts.zeros,
        "unique": facts.unique,
        "codes": facts.codes,
        "bits": facts.bits,
        "sparse": facts.sparse,
    }


def report_sizes(
    before: Path,
    after: Path,
    *,
    promised: Sequence[Model] = (),
    patient: bool = False,
    runs: int | None = None,
    most_seconds: float = MOST_SECONDS,
    progress: Progress = silent,
) -> Shrunk:
    """Measures the sizes of two files and times them, in this many runs or for about a second;
    `patient` also times files whose run takes longer than `most_seconds`.

    `promised` are the intermediate models of a recipe: the second file must contain their zeros and
    codes, and those of the first file.
    """
    models = load(before), load(after)
    costs = [_costs(path, model) for path, model in zip((before, after), models, strict=True)]
    found = [promises(model, models[1]) for model in (models[0], *promised)]
    broken = dict.fromkeys(text for one in found for text in one.broken)
    kept = Promises(max(one.layers for one in found), tuple(broken))
    group = list_contenders([before, after])
    latency, untimed = time_pair(group, runs, inf if patient else most_seconds, progress)
    return Shrunk(costs[0], costs[1], kept, latency, untimed)


def _costs(path: Path, model: Model) -> FileSizes:
    size = path.stat().st_size
    return FileSizes(
        bytes=size,
        gzip_bytes=gzip_bytes(pieces(path)),
        zstd_bytes=zstd_bytes(pieces(path), size),
        macs=footprint(model).macs,
        weights=weight_facts(model),
    )


def _probe(one: Contender) -> None:
    probe_source(one.source, str(one.target))


def time_pair(
    group: Sequence[Contender],
    runs: int | None = None,
    most_seconds: float = MOST_SECONDS,
    progress: Progress = silent,
    seconds: float = _SECONDS,
) -> tuple[Latency | None, str]:
    """Times two contenders in turns; returns the reason where that is not possible."""
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(_probe, group))
        one_run = _run_seconds(group)
    except CannotRun as error:
        return None, str(error)
    if one_run > most_seconds:
        return None, phrase(
            "a run takes {time}; litesmith bench compares the two", time_text(1e6 * one_run)
        )
    warmup_runs = 0 if one_run > _SLOW_SECONDS else None
    rule = Rule(runs, seconds if runs is None else None, warmup_runs, look_seconds=0)
    done = measure(group, rule, progress, memory=False)
    times = [result.percentile_us(50) for result in done.results]
    return Latency(times[0], times[1], done.comparisons[0].ratio, str(group[0].target)), ""


def _run_seconds(group: Sequence[Contender]) -> float:
    """The approximate time of the slower contender, by its first run."""
    order, once = range(len(group)), Quota(runs=1, warmup_runs=0)
    loads = one_load(group, order, once, np.random.default_rng(0))
    return max(min(load.first_us, load.median_us) for load in loads) / 1e6


def arm_facts(model: Model) -> list[dict[str, object]]:
    """For each convolution, whether XNNPACK on ARM skips its zeros, and why not."""
    return [
        {"op": plain(op_name(op)), "sparse": not why, "why": why}
        for op, why in arm_sparse(model.main).items()
    ]


def skipping_facts(model: Model) -> list[dict[str, object]]:
    """For each layer, its zeros as Litesmith's own kernels see them; `even` is the share from which
    these kernels are faster, None where they never are."""
    return [
        {
            "op": plain(op_name(one.op)),
            "index": one.place,
            "zero_blocks": one.facts.zeros,
            "even": one.facts.even,
            "gain": one.facts.gain,
            "target": OURS,
        }
        for one in skipping(model)
    ]
