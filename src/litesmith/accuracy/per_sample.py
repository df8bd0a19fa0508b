"""What is kept of a sample for each model: rows of statistics by name."""

from collections.abc import Sequence

import numpy as np

from litesmith.accuracy.metrics import METRICS, Metric
from litesmith.accuracy.paired import Rows
from litesmith.accuracy.scoring import Case
from litesmith.data.answers import Outputs
from litesmith.data.samples import Sample

Tally = dict[str, Rows]


def kept(
    sample: Sample, answers: Sequence[Outputs], *, metric: Metric, compared: bool
) -> list[Tally]:
    """Of each model; where they are compared, the last is the reference of the others."""
    reference = answers[-1] if compared else None
    cases = [Case(outputs, sample.label, reference, sample.name) for outputs in answers]
    tallies = [_tally(case, metric, compared) for case in cases[: len(cases) - compared]]
    if compared and metric.needs != "reference":
        tallies.append(_tally(cases[-1], metric, False))
    elif compared:
        tallies.append({})
    return tallies


def joined(tallies: Sequence[Tally]) -> Tally:
    """Rows of all samples, of what every sample has."""
    names = [name for name in tallies[0] if all(name in tally for tally in tallies)]
    return {name: np.concatenate([tally[name] for tally in tallies]) for name in names}


def as_it_is(sample: Sample, answers: Sequence[Outputs]) -> tuple[Sample, Sequence[Outputs]]:
    """Everything."""
    return sample, answers


def _tally(case: Case, metric: Metric, compared: bool) -> Tally:
    nan = any(o.dtype.kind == "f" and bool(np.isnan(o).any()) for o in case.outputs)
    tally = {"own": metric.statistics(case), "nan": np.array([[float(nan)]])}
    if compared and _alike(case):
        tally["cosine"] = METRICS["cosine"].statistics(case)
        tally["snr"] = METRICS["snr"].statistics(case)
        if metric.chooses:
            tally["agreement"] = METRICS["agreement"].statistics(case)
    return tally


def _alike(case: Case) -> bool:
    """True where the model and its reference answer with numbers of the same shapes."""
    reference = case.reference or ()
    return [o.shape for o in case.outputs] == [o.shape for o in reference] and all(
        o.dtype.kind in "fiub" and o.size for o in (*case.outputs, *reference)
    )
