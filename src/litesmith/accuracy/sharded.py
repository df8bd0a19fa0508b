"""Scores by the workers of a Ray cluster, each with some of the samples; the numbers are those of
one machine.

The statistics of a sample do not depend on other samples, and return in the samples' order;
intervals and differences are computed from them here, as in a run without a cluster. So the result
is equal to the last digit, as long as all machines have the same kind of CPU: kernels for another
kind round differently.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple, cast

import numpy as np

from litesmith.accuracy.metrics import METRICS, Metric
from litesmith.accuracy.paired import Rows
from litesmith.accuracy.scoring import ScoredSample, ties
from litesmith.data.answers import Outputs, is_stateless
from litesmith.data.samples import Data, Sample
from litesmith.data.shipping import Content, Portion, answering, portions, send_model, source_digest
from litesmith.ir.types import Model
from litesmith.phrases import join, phrase
from litesmith.run.core.target import Target
from litesmith.run.session import Source
from litesmith.tasks.task import pad_rows
from litesmith.tflite.file import load
from litesmith.timing.host import machine_here
from litesmith.units import total_text
from litesmith.workers.engine import Engine, Held

Tally = dict[str, Rows]


def sample_statistics(
    sample: Sample, answers: Sequence[Outputs], *, metric: Metric, compared: bool
) -> list[Tally]:
    """The statistics of one sample for each model; where models are compared, the last one is the
    reference of the others.
    """
    reference = answers[-1] if compared else None
    sample_facts = sample.label, reference, sample.name, sample.inputs
    cases = [ScoredSample(outputs, *sample_facts) for outputs in answers]
    tallies = [_tally(case, metric, compared) for case in cases[: len(cases) - compared]]
    if compared and metric.needs != "reference":
        tallies.append(_tally(cases[-1], metric, False))
    elif compared:
        tallies.append({})
    return tallies


def join_tallies(tallies: Sequence[Tally]) -> Tally:
    """Joins the statistics that every sample has into one array each."""
    names = [name for name in tallies[0] if all(name in tally for tally in tallies)]
    return {name: pad_rows([tally[name] for tally in tallies]) for name in names}


def keep_everything(sample: Sample, answers: Sequence[Outputs]) -> tuple[Sample, Sequence[Outputs]]:
    """Keeps a sample and all its outputs."""
    return sample, answers


def _tally(case: ScoredSample, metric: Metric, compared: bool) -> Tally:
    nan = any(o.dtype.kind == "f" and bool(np.isnan(o).any()) for o in case.outputs)
    tally = {"own": metric.statistics(case), "nan": np.array([[float(nan)]])}
    if metric.counts_ties:
        tally["ties"] = ties(case)
    if compared and _alike(case):
        tally["cosine"] = METRICS["cosine"].statistics(case)
        tally["snr"] = METRICS["snr"].statistics(case)
        if metric.chooses:
            tally["agreement"] = METRICS["agreement"].statistics(case)
    return tally


def _alike(case: ScoredSample) -> bool:
    """True where the model and its reference answer with numbers of the same shapes."""
    reference = case.reference or ()
    return [o.shape for o in case.outputs] == [o.shape for o in reference] and all(
        o.dtype.kind in "fiub" and o.size for o in (*case.outputs, *reference)
    )


# Answers of a reference to a piece of the data are kept for the next model, if they are no larger.
_MOST_BYTES = 4_000_000


class Scored(NamedTuple):
    """The statistics of the samples in parts, the machines that computed them, and notes."""

    tallies: list[list[Tally]]
    place: str
    notes: tuple[str, ...]


class _ShardJob(NamedTuple):
    """The work of a worker.

    metric    "" for a function of the user or of a task, which is called here, on outputs that
              return
    compared  True where the last model is the reference of the others
    keys      the digests of the models
    """

    metric: str
    compared: bool
    target: str
    keys: tuple[str, ...]


def sharded_tallies(
    engine: Engine,
    models: Sequence[Source],
    data: Data,
    metric: str,
    chosen: Metric,
    target: Target,
    compared: bool,
) -> Scored:
    """The statistics of all samples, in their order."""
    keys = tuple(map(source_digest, models))
    is_theirs = metric in METRICS and chosen.needs != "task"
    job = _ShardJob(metric if is_theirs else "", compared, str(target), keys)
    contents = [send_model(engine, source, key) for source, key in zip(models, keys, strict=True)]
    loaded = [source if isinstance(source, Model) else load(source) for source in models]
    if target.kind not in ("cpu", "numpy"):  # accelerators are on the cluster's devices
        ((_, portion),) = portions(engine, data, whole=True)
        words = _words(data, 1)
        parts = [engine.alone(words, score_portion, portion, job, None, *contents, models=keys)]
    else:
        whole = not all(map(is_stateless, loaded))
        is_small = sum(t.nbytes for t in loaded[-1].main.outputs) <= _MOST_BYTES
        started = _start_pieces(engine, data, job, contents, whole, compared and is_small)
        parts = list(engine.gathered(started))
    found = [one for part, _ in parts for one in part]
    places = sorted({place for _, place in parts})
    if not job.metric:
        keep = partial(sample_statistics, metric=chosen, compared=compared)
        found = [keep(*answer) for answer in cast("list[tuple[Sample, list[Outputs]]]", found)]
    return Scored(cast("list[list[Tally]]", found), join(places, "; "), _notes(places))


def _start_pieces(
    engine: Engine,
    data: Data,
    job: _ShardJob,
    contents: Sequence[Held[Content]],
    whole: bool,
    reuses: bool,
) -> Iterator[Held[tuple[list[object], str]]]:
    """Starts a call for each piece of the data; the answers of the reference are computed once."""
    for number, (name, portion) in enumerate(portions(engine, data, whole=whole), 1):
        words = _words(data, number)
        if reuses:
            key = f"answers {job.keys[-1]} {job.target} {name}"
            given = (words, answers, portion, job.keys[-1], job.target, contents[-1])
            reference = engine.once(key, partial(engine.call, *given))
            yield engine.call(words, score_portion, portion, job, reference, *contents[:-1])
        else:
            yield engine.call(words, score_portion, portion, job, None, *contents)


def _words(data: Data, number: int) -> str:
    return phrase("scoring {count} samples, part {number}", total_text(len(data)), number)


def _notes(places: Sequence[str]) -> tuple[str, ...]:
    if len(places) == 1:
        return ()
    return (
        phrase(
            "scored on {count} kinds of machines, whose kernels may round differently: {places}",
            len(places),
            join(places, "; "),
        ),
    )


# Functions that run on the workers.


def answers(portion: Portion, key: str, target: str, content: Content) -> list[Outputs]:
    """The outputs of one model for some of the samples."""
    model = answering(key, content, target)
    return [model(sample) for sample in portion.one_by_one()]


def score_portion(
    portion: Portion, job: _ShardJob, reference: list[Outputs] | None, *contents: Content
) -> tuple[list[object], str]:
    """The statistics of some samples; `reference` has the answers of the last model."""
    pairs = zip(job.keys, contents, strict=False)
    models = [answering(key, content, job.target) for key, content in pairs]
    keep = _keep(job)
    found: list[object] = []
    for number, sample in enumerate(portion.one_by_one()):
        own = [model(sample) for model in models]
        if reference is not None:
            own.append(reference[number])
        found.append(keep(sample, own))
    if job.metric:  # one array per model instead of one object per sample
        found = [list(map(join_tallies, zip(*cast("list[list[Tally]]", found), strict=True)))]
    return found, _machine()


def _keep(job: _ShardJob) -> Callable[[Sample, Sequence[Outputs]], object]:
    if job.metric:
        return partial(sample_statistics, metric=METRICS[job.metric], compared=job.compared)
    return lambda sample, own: keep_everything(replace(sample, inputs=()), own)


@cache
def _machine() -> str:
    return machine_here()
