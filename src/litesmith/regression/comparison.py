"""Whether one model is as good as another, and faster: on the same samples, and in turns."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from litesmith.accuracy.evaluate import Evaluation, evaluate_all
from litesmith.accuracy.metrics import METRICS, Function, value_of
from litesmith.accuracy.paired import Rows
from litesmith.accuracy.scoring import MOST_DB, ScoredSample
from litesmith.anatomy.footprint import gzip_bytes
from litesmith.calibration.context import RandomSamples
from litesmith.data.answers import Outputs, outputs_of
from litesmith.data.sample_splits import look_at_some
from litesmith.data.samples import Data, Sample, is_real
from litesmith.display import show_html, show_line
from litesmith.errors import BadInput
from litesmith.evidence.codec import Bounds, finite
from litesmith.ir.types import Model, Tensor
from litesmith.phrases import phrase
from litesmith.progress import Progress, silent
from litesmith.run.core.target import Target
from litesmith.run.session import Source
from litesmith.tflite.file import load, pieces
from litesmith.tflite.write import chunks
from litesmith.timing.latency import (
    Bench,
    Result,
    Rule,
    list_contenders,
    measure,
    with_advice,
)
from litesmith.timing.statistics import FASTER, MARGIN, SAME, SLOWER, UNKNOWN, Ratio, Row
from litesmith.units import factor_text, gain_text, plain, score_text, total_text

# The number of samples that show the drift of each output, and of random ones in place of samples.
_DRIFT_SAMPLES, _RANDOM_SAMPLES = 64, 16

Json = dict[str, object]

NO_DATA = phrase("no data was given")


FileBytes = Annotated[int, Bounds(least=1)]


class Size(NamedTuple):
    """The sizes of a file."""

    bytes: FileBytes
    gzip_bytes: FileBytes


class OutputDrift(NamedTuple):
    """How far an output of B is from A's; None where shapes differ or A's output is not finite."""

    output: str
    cosine: float | None
    snr_db: float | None

    @property
    def is_equal(self) -> bool:
        return self.snr_db == MOST_DB


@dataclass(frozen=True)
class Drifts:
    """The drift of each output, and the samples that showed it.

    why  the reason where there is no drift to report
    """

    outputs: tuple[OutputDrift, ...] = ()
    samples: int = 0
    is_random: bool = False
    why: str = ""

    def to_json(self) -> Json:
        return {
            "samples": self.samples,
            "random": self.is_random,
            "outputs": [drift._asdict() for drift in self.outputs],
            "why": self.why,
        }


@dataclass(frozen=True, repr=False)
class Compared:
    """Two models: A is the present model, B would replace it.

    sizes     of A and of B
    bench     their times, from one interleaved run
    accuracy  B's, compared with A's on the same samples; None with the reason in `why`
    """

    sizes: tuple[Size, Size]
    bench: Bench
    accuracy: Evaluation | None
    drifts: Drifts
    why: str = ""

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def results(self) -> tuple[Result, Result]:
        return self.bench.results[0], self.bench.results[1]

    @property
    def ratio(self) -> Ratio:
        """Time of B / time of A."""
        return self.bench.comparisons[0].ratio

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on what made the times unsteady."""
        return self.bench.warnings

    @property
    def file_sizes(self) -> dict[str, tuple[int | None, int | None]]:
        """The sizes of A and B, by the name of the size."""
        (a, b), (first, second) = self.sizes, self.results
        return {
            phrase("disk"): (a.bytes, b.bytes),
            "gzip": (a.gzip_bytes, b.gzip_bytes),
            phrase("peak memory"): (first.peak_bytes, second.peak_bytes),
        }

    @property
    def names(self) -> tuple[str, str]:
        """The shortest parts of the models' names that distinguish them."""
        paths = [Path(result.model) for result in self.results]
        alike = paths[0].name == paths[1].name and paths[0] != paths[1]
        return _name(paths[0], alike), _name(paths[1], alike)

    @property
    def verdict(self) -> str:
        """The verdict in one sentence; an unknown time comes first."""
        a, b = self.names
        than, quality = "itself" if a == b else a, _quality(self.accuracy, self.why)
        weight, found = _weight(*self.sizes), self.ratio
        if found.verdict in (FASTER, SLOWER):
            speed = phrase("{speed} ({times})", found.words, found.times_words)
            costs = phrase("{speed} and {weight}", speed, weight)
            return phrase("{b} is {costs} than {than}; {quality}", b, costs, than, quality)
        speed = phrase("speed: {what}", found.words) if found.verdict == UNKNOWN else found.words
        if found.verdict == SAME:
            return phrase(
                "{b} is {weight} than {than}, and no difference in speed was seen ({times}); "
                "{quality}",
                b,
                weight,
                than,
                found.times_words,
                quality,
            )
        return phrase(
            "{speed}; {b} is {weight} than {than}; {quality}", speed, b, weight, than, quality
        )

    @property
    def sentence(self) -> str:
        return self.verdict

    def to_rows(self) -> list[Row]:
        """One row per model, for a data frame."""
        return [
            {**result.row(), "bytes": size.bytes, "gzip_bytes": size.gzip_bytes}
            for result, size in zip(self.results, self.sizes, strict=True)
        ]

    def to_json(self) -> Json:
        """The comparison as `--json` prints it; numbers that are not finite are null."""
        low, high = self.ratio.interval
        times = [result.percentile_us(50) for result in self.results]
        disk, gzipped, peak = (_pair(*sizes) for sizes in self.file_sizes.values())
        return {
            "schema": 1,
            **_pair(*(result.model for result in self.results)),
            "accuracy": None if self.accuracy is None else _accuracy_json(self.accuracy),
            "no_accuracy": self.why,
            "latency": {
                "ratio": self.ratio.value,
                "low": low,
                "high": finite(high),
                "verdict": self.ratio.verdict,
                "a_us": times[0],
                "b_us": times[1],
                "target": self.results[0].target,
                "block_ratios": self.ratio.blocks,
            },
            "bytes": disk,
            "gzip_bytes": gzipped,
            "peak_bytes": peak,
            "drift": self.drifts.to_json(),
            "verdict": self.verdict,
            "digests": _pair(*(result.contender.digest for result in self.results)),
            "host": self.bench.host.facts(),
            "warnings": self.warnings,
        }


def _pair(a: object, b: object) -> Json:
    return {"a": a, "b": b}


def _accuracy_json(found: Evaluation) -> Json:
    """The accuracy as JSON. `low` and `high` belong to the difference; where there is none, B's
    value is itself the comparison."""
    against = found.against
    assert against is not None
    return {
        "metric": found.metric,
        "unit": found.unit,
        "a": finite(against.value),
        "b": finite(found.value),
        "b_low": finite(found.low),
        "b_high": finite(found.high),
        "difference": finite(against.difference),
        "low": finite(against.difference_low),
        "high": finite(against.difference_high),
        "verdict": against.verdict or None,
        "agreement": finite(against.agreement),
        "n": found.n,
        "independent": found.independent,
        "data": found.source,
        "preparation": found.preparation,
        "notes": found.notes,
    }


class CompareSettings(NamedTuple):
    """How to compare two models.

    seconds  how long to time them; None times until the interval is narrow
    """

    on: str | Target = "cpu:1"
    metric: str | Function = "auto"
    seconds: float | None = None
    progress: Progress = silent


def compare_models(a: Source, b: Source, data: Data | None, manner: CompareSettings) -> Compared:
    """Scores B beside A on data opened for A, and times both in turns."""
    why = misfit(load_source(a), load_source(b)) or (NO_DATA if data is None else "")
    accuracy = None
    if data is not None and not why:
        (accuracy,) = evaluate_all(
            [b], data, against=a, metric=manner.metric, on=manner.on, progress=manner.progress
        )
    drifts = drift(a, b, data, on=manner.on)
    group, rule = list_contenders([a, b], manner.on), Rule(seconds=manner.seconds)
    timed = with_advice(measure(group, rule, manner.progress))
    return Compared((measure_size(a), measure_size(b)), timed, accuracy, drifts, why)


def load_source(source: Source) -> Model:
    return source if isinstance(source, Model) else load(source)


def measure_size(source: Source) -> Size:
    """The bytes of a model's file, plain and after gzip."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return Size(path.stat().st_size, gzip_bytes(pieces(path)))
    content = list(chunks(source)) if isinstance(source, Model) else [memoryview(source)]
    return Size(sum(map(len, content)), gzip_bytes(content))


def misfit(a: Model, b: Model) -> str:
    """Why two models cannot be scored on the same samples; "" where they can."""
    inputs, outputs = (a.main.inputs, b.main.inputs), (a.main.outputs, b.main.outputs)
    for side, (mine, other) in (("input", inputs), ("output", outputs)):
        if len(mine) != len(other):
            return phrase("A has {count}, B has {count2}", _count(mine, side), _count(other, side))
    for one, two in zip(*inputs, strict=True):
        if not _fit(one, two):
            return phrase(
                "input {name!r} of A is {type}, B's is {type2}",
                plain(one.name),
                _type(one),
                _type(two),
            )
    if any(one.shape != two.shape for one, two in zip(*inputs, strict=True)):
        return ""  # a size is free there, and outputs have another size once A's size is given
    for one, two in zip(*outputs, strict=True):
        if not _answer_alike(one, two):
            return phrase(
                "output {name!r} of A is {type}, B's is {type2}",
                plain(one.name),
                _type(one),
                _type(two),
            )
    return ""


def _count(tensors: Sequence[Tensor], side: str) -> str:
    return f"{len(tensors)} {side}{'' if len(tensors) == 1 else 's'}"


def _type(tensor: Tensor) -> str:
    return f"{tensor.dtype} {'×'.join(map(str, tensor.dynamic or tensor.shape)) or 'scalar'}"


def _fit(a: Tensor, b: Tensor) -> bool:
    """True where A's input suits B: the same shape, and both or neither real numbers."""
    shapes = a.dynamic or a.shape, b.dynamic or b.shape
    if len(shapes[0]) != len(shapes[1]) or is_real(a) != is_real(b):
        return False
    pairs = zip(*shapes, strict=True)
    sizes = all(-1 in pair or pair[0] == pair[1] for pair in pairs)
    return sizes and (is_real(a) or a.dtype == b.dtype)


def _answer_alike(a: Tensor, b: Tensor) -> bool:
    """True where shapes agree, apart from dimensions of 1."""
    shapes = [[n for n in t.dynamic or t.shape if n != 1] for t in (a, b)]
    return shapes[0] == shapes[1] or any(-1 in shape for shape in shapes)


def drift(a: Source, b: Source, data: Data | None, *, on: str | Target = "cpu:1") -> Drifts:
    """How far each output of B is from A's, on some of the samples or on random inputs."""
    model = load_source(a)
    why = misfit(model, load_source(b))
    if why:
        return Drifts(why=why)
    outputs = model.main.outputs
    tallies: list[list[_Tally]]
    try:
        some = RandomSamples(model, _RANDOM_SAMPLES) if data is None else data
        samples = look_at_some(some, _DRIFT_SAMPLES)
        tallies = list(outputs_of([b, a], samples, partial(_kept, count=len(outputs)), on=on))
    except BadInput as error:
        if data is not None:
            raise
        return Drifts(why=str(error))
    found = tuple(
        _drift(plain(tensor.name), column)
        for tensor, column in zip(outputs, zip(*tallies, strict=True), strict=True)
    )
    return Drifts(found, len(tallies), data is None)


class _Tally(NamedTuple):
    """One output on one sample; None where the two models cannot be compared."""

    cosine: Rows | None
    snr: Rows | None


def _kept(_: Sample, answers: Sequence[Outputs], *, count: int) -> list[_Tally]:
    return [_tally(answers[0][place], answers[1][place]) for place in range(count)]


def _tally(ours: np.ndarray, wanted: np.ndarray) -> _Tally:
    numbers = all(o.dtype.kind in "fiub" and o.size for o in (ours, wanted))
    if ours.shape != wanted.shape or not numbers or not np.isfinite(wanted).all():
        return _Tally(None, None)
    case = ScoredSample((ours,), None, (wanted,))
    return _Tally(METRICS["cosine"].statistics(case), METRICS["snr"].statistics(case))


def _drift(output: str, column: Sequence[_Tally]) -> OutputDrift:
    values: list[float | None] = []
    for name in ("cosine", "snr"):
        rows = [row for tally in column if (row := getattr(tally, name)) is not None]
        values.append(value_of(METRICS[name], np.concatenate(rows)).value if rows else None)
    return OutputDrift(output, *values)


def _name(path: Path, in_full: bool) -> str:
    return plain(str(path) if in_full else path.name)


def _weight(a: Size, b: Size) -> str:
    factor = a.bytes / b.bytes
    if abs(factor - 1) < MARGIN:
        return phrase("no smaller")
    return (
        factor_text(factor, phrase("smaller"))
        if factor > 1
        else factor_text(1 / factor, phrase("larger"))
    )


def _quality(found: Evaluation | None, why: str) -> str:
    if found is None or found.against is None:
        return phrase("accuracy is not compared: {why}", why)
    against, count = found.against, phrase("{count} samples", total_text(found.n))
    if against.snr_db == MOST_DB:
        return phrase("the outputs are equal on all {count}", count)
    if against.difference is None:
        value = score_text(found.value, found.unit, found.low, found.high)
        return phrase("{title} {value} ({count} without labels)", found.title, value, count)
    if not against.verdict:
        return phrase("{title} is infinite for both ({count})", found.title, count)
    ends = against.difference_low or 0.0, against.difference_high or 0.0
    gain = gain_text(against.difference, found.unit, *ends)
    return f"{found.title}: {against.verdict} ({gain}, {count})"
