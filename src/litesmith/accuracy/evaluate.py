"""Scores models: a metric with its interval, and the paired difference of two models."""

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from typing import NamedTuple

from litesmith.accuracy.metrics import (
    METRICS,
    Function,
    Metric,
    choose_metric,
    difference_of,
    metric_for,
    metric_name,
    value_of,
)
from litesmith.accuracy.paired import Groups, Rows
from litesmith.accuracy.sharded import (
    Tally,
    join_tallies,
    keep_everything,
    sample_statistics,
    sharded_tallies,
)
from litesmith.data.answers import outputs_of
from litesmith.data.sample_splits import SeenCopies, knows_groups, row_groups
from litesmith.data.samples import Data, Sample
from litesmith.data.shipping import source_digest
from litesmith.display import show_html, show_line
from litesmith.errors import BadInput
from litesmith.evidence.measurement import Measurement
from litesmith.ir.types import Model
from litesmith.phrases import phrase
from litesmith.progress import Progress, Status, silent, watch
from litesmith.run.core.target import Target
from litesmith.run.litert.capi import installed_version
from litesmith.run.session import Source
from litesmith.tflite.file import load
from litesmith.timing.host import host
from litesmith.units import score_text, total_text
from litesmith.workers.engine import Engine

BETTER: str = phrase("better")
WORSE: str = phrase("worse")
HIGHER: str = phrase("higher")
LOWER: str = phrase("lower")
SAME = phrase("no difference beyond the noise")

_VERDICTS = {1: (BETTER, WORSE), -1: (WORSE, BETTER), 0: (HIGHER, LOWER)}


@dataclass(frozen=True)
class Against:
    """A model compared with a reference on the same samples; None where a value is unknown.

    value, difference  the reference's metric, and how much more the model reaches; the interval is
                       paired, so only samples on which the two differ widen it
    agreement          the share of samples (or pixels) where both choose the same class
    low, high          the 95 % interval of `value`
    cosine, snr_db     the drift of the outputs, for the output that has drifted most
    """

    value: float | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    agreement: float | None = None
    cosine: float | None = None
    snr_db: float | None = None
    better: int = 1
    low: float | None = None
    high: float | None = None

    @property
    def verdict(self) -> str:
        """The verdict on the model; "" where the metric is itself a comparison, or infinite for
        both."""
        if self.difference_low is None or self.difference_high is None:
            return ""
        if math.isnan(self.difference_low):
            return ""
        above, below = _VERDICTS[self.better]
        if self.difference_low > 0:
            return above
        return below if self.difference_high < 0 else SAME


def finite(value: float | None) -> float | None:
    """Returns a finite number, or None: JSON cannot express infinity or NaN."""
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True, repr=False)
class Evaluation:
    """One metric of one model on some data, with its 95 % interval.

    A metric with the unit "share" is a share: 0.6915 stands for 69.15 %. `n` counts rows (samples
    times the model's batch); `independent` counts groups of rows, such as copies. `measurement`
    keeps the result of each row, and `rows` the statistics behind it. `model` is the model's path,
    if it has one.
    """

    metric: str
    unit: str
    value: float
    low: float
    high: float
    n: int
    measurement: Measurement = field(repr=False)
    source: str
    preparation: str
    notes: tuple[str, ...] = ()
    against: Against | None = None
    rows: Rows | None = field(default=None, repr=False, compare=False)
    model: str = ""
    independent: int = 0

    __repr__ = show_line

    @property
    def target(self) -> str:
        return self.measurement.target

    @property
    def runtime(self) -> str:
        return "numpy" if self.target == "numpy" else f"LiteRT {installed_version()}"

    @property
    def sentence(self) -> str:
        score = phrase("{metric} {value}", self.title, score_text(self.value, self.unit))
        verdict = "" if self.against is None else self.against.verdict
        return phrase("{told}; {verdict}", score, verdict) if verdict else score

    def to_rows(self) -> list[dict[str, object]]:
        """One row: the score, and its comparison with the reference."""
        names = ("metric", "value", "low", "high", "n", "target")
        against = ("reference", "difference", "difference_low", "difference_high", "agreement")
        facts = self.to_json()
        return [{name: facts[name] for name in (*names, *against) if name in facts}]

    def to_json(self) -> dict[str, object]:
        """The evaluation as JSON; numbers that are not finite are null."""
        found = self.against
        facts: dict[str, object] = {
            "schema": 1,
            "model": self.model,
            "metric": self.metric,
            "unit": self.unit,
            "value": finite(self.value),
            "low": finite(self.low),
            "high": finite(self.high),
            "n": self.n,
            "independent": self.independent,
            "data": self.source,
            "preparation": self.preparation,
            "target": self.target,
            "runtime": self.runtime,
            "notes": self.notes,
        }
        if found is None:
            return facts
        return facts | {
            "reference": finite(found.value),
            "difference": finite(found.difference),
            "difference_low": finite(found.difference_low),
            "difference_high": finite(found.difference_high),
            "agreement": finite(found.agreement),
            "cosine": finite(found.cosine),
            "snr_db": finite(found.snr_db),
            "verdict": found.verdict or None,
        }

    def _repr_html_(self) -> str:
        count = phrase("{n} samples on {target}", total_text(self.n), self.target)
        return show_html(self, [count, *self.notes])

    @property
    def title(self) -> str:
        """The metric's usual name."""
        return METRICS[self.metric].title if self.metric in METRICS else self.metric


def evaluate_all(
    models: Sequence[Source],
    data: Data,
    *,
    against: Source | None = None,
    metric: str | Function = "auto",
    on: str | Target = "cpu:1",
    engine: Engine | None = None,
    progress: Progress = silent,
) -> tuple[Evaluation, ...]:
    """Scores several models in one pass: each sample is read once and given to all of them.

    An engine has other machines do the work, each with some of the samples.
    """
    everyone = [*models, against] if against is not None else list(models)
    seen = None if knows_groups(data) else SeenCopies(data.items.batch)
    samples = iter(data if seen is None else seen.watch(data))
    first = _first(samples, data)
    main = _load(models[0])
    asked = metric if isinstance(metric, str) else metric_name(metric)
    has_reference = against is not None
    name, notes = choose_metric(main, data, first, asked, has_reference=has_reference)
    chosen = metric_for(name, data)
    keep = partial(sample_statistics, metric=chosen, compared=has_reference)
    place = _machine()
    scoring = Status("scoring", of=len(data))
    if engine is not None:
        found = sharded_tallies(
            engine, everyone, data, name, chosen, Target.parse(on), has_reference
        )
        tallies, place, notes = found.tallies, found.place, (*notes, *found.notes)
    elif chosen.needs:
        found = outputs_of(everyone, chain([first], samples), keep, on=on)
        tallies = list(watch(found, scoring, progress))
    else:  # a user's function is called in order by one thread, because it may not be thread-safe
        stream = chain([first], samples)
        with closing(outputs_of(everyone, stream, keep_everything, on=on)) as answers:
            tallies = [keep(*answer) for answer in watch(answers, scoring, progress)]
    columns = list(zip(*tallies, strict=True))
    reference = join_tallies(columns[-1]) if against is not None else None
    groups = row_groups(data, len(join_tallies(columns[0])["own"]), seen)
    job = _Pass(name, chosen, str(Target.parse(on)), data, reference, notes, place, groups)
    return tuple(
        _evaluation(model, join_tallies(column), job)
        for model, column in zip(models, columns, strict=False)
    )


def refuse_misfit(model: Source, data: Data) -> None:
    """Raises, after one sample, where the data cannot score a model and another made from it."""
    first = _first(iter(data), data)
    name, _ = choose_metric(_load(model), data, first, "auto", has_reference=True)
    keep = partial(sample_statistics, metric=metric_for(name, data), compared=True)
    list(outputs_of([model, model], [first], keep, workers=1))


def _first(samples: Iterator[Sample], data: Data) -> Sample:
    first = next(samples, None)
    if first is None:
        raise BadInput("data {source}: there is no sample", data.source)
    return first


class _Pass(NamedTuple):
    """What the evaluations of one pass share."""

    name: str
    metric: Metric
    target: str
    data: Data
    reference: Tally | None
    notes: tuple[str, ...]
    place: str
    groups: Groups


def _evaluation(model: Source, tally: Tally, job: _Pass) -> Evaluation:
    rows = tally["own"]
    value = value_of(job.metric, rows, job.groups)
    samples = tuple(job.metric.finish(rows).tolist())
    against = None if job.reference is None else _against(tally, job.reference, job)
    unit, place = job.metric.unit, (job.target, source_digest(model), job.place)
    return Evaluation(
        job.name,
        unit,
        *value,
        n=len(rows),
        measurement=Measurement(job.name, unit, samples, *place),
        source=job.data.source,
        preparation=preparation_text(job.data),
        notes=(*job.data.notes, *job.notes, *_notes(tally, job)),
        against=against,
        rows=rows,
        independent=independent_rows(len(rows), job.groups),
    )


def independent_rows(count: int, groups: Groups) -> int:
    """The number of rows that are not copies of others."""
    return count if groups is None else int(groups.max()) + 1


def _against(tally: Tally, reference: Tally, job: _Pass) -> Against:
    known: dict[str, float] = {}
    metric, groups = job.metric, job.groups
    if "own" in reference:
        own = value_of(metric, reference["own"], groups)
        low_high = difference_of(metric, tally["own"], reference["own"], groups)
        names = ("difference", "difference_low", "difference_high")
        known = {
            **dict(zip(("value", "low", "high"), own, strict=True)),
            **dict(zip(names, low_high, strict=True)),
        }
    names = {"agreement": "agreement", "cosine": "cosine", "snr": "snr_db"}
    for name, where in names.items():
        if name in tally:
            known[where] = value_of(METRICS[name], tally[name]).value
    return Against(**known, better=metric.better)


def _notes(tally: Tally, job: _Pass) -> Iterator[str]:
    if job.groups is not None:
        yield copies_text(len(job.groups), independent_rows(0, job.groups), job.data)
    wrong = {
        1: phrase("counted as wrong"),
        -1: phrase("counted as infinitely wrong"),
        0: phrase("left to the metric"),
    }
    for whose, rows in (
        ("outputs", tally),
        (phrase("outputs of the reference"), job.reference or {}),
    ):
        count = int(rows["nan"].sum()) if "nan" in rows else 0
        if count:
            yield (
                phrase(
                    "{whose} are NaN for {count} of {count2} samples, {wrong}",
                    whose,
                    count,
                    len(rows["nan"]),
                    wrong[job.metric.better],
                )
            )
    ties = int((tally["ties"] > 0).sum()) if "ties" in tally else 0
    if ties and job.metric.counts_ties:
        yield phrase(
            "{count} of {count2} samples have several classes that share the highest "
            "score; each counts in part",
            total_text(ties),
            total_text(len(tally["ties"])),
        )
    if job.reference is not None and "snr" not in tally:
        yield phrase(
            "drift was not measured: the two models answer with different shapes or without numbers"
        )


def copies_text(count: int, different: int, data: Data) -> str:
    """A note for samples that are not independent."""
    known = data.items.preparation
    why = phrase("they are in groups") if known and known.group else phrase("copies were found")
    return phrase(
        "{count} samples, {different} independent: {why}, and intervals count independent ones",
        total_text(count),
        total_text(different),
        why,
    )


def _load(source: Source) -> Model:
    return source if isinstance(source, Model) else load(source)


def preparation_text(data: Data) -> str:
    """How the data was prepared, as far as that is known."""
    known = data.items.preparation
    return "" if known is None else known.text


@cache
def _machine() -> str:
    return str(host())
