"""The metrics: one table, and the 95 % interval of each."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from litesmith.accuracy import scoring
from litesmith.accuracy.paired import (
    Estimate,
    Finish,
    Influence,
    Rows,
    bounded,
    difference,
    estimate,
    jackknife,
    share,
    share_difference,
)
from litesmith.accuracy.scoring import Case
from litesmith.data.user_functions import users_function
from litesmith.errors import BadInput
from litesmith.phrases import phrase


class Metric(NamedTuple):
    """How a metric is made.

    statistics  of one sample -> (rows, numbers)
    finish      from the means of these to the metric; of one row, its own result
    unit        "share" for what lies between 0 and 1
    better      1 where higher is better, −1 where lower is, 0 where nobody can know
    needs       "label" or "reference"
    """

    title: str
    statistics: Callable[[Case], Rows]
    finish: Finish
    unit: str = "share"
    better: int = 1
    needs: str = "label"
    chooses: bool = False  # True where it looks at the class that is chosen
    bounds: tuple[float, float] = (-math.inf, math.inf)
    whole: Callable[[Rows], Influence] | None = None  # for what is no function of means


def value_of(metric: Metric, rows: Rows) -> Estimate:
    """The metric with its 95 % interval.

    Wilson's for a share of rows; for the rest Student's, with the error by the jackknife.
    """
    if metric.unit != "share":
        return estimate(_influence(metric, rows), *metric.bounds)
    if metric.finish is scoring.first and _is_binary(rows):
        return share(rows[:, 0])
    return bounded(_influence(metric, rows))


def difference_of(metric: Metric, rows: Rows, reference: Rows) -> Estimate:
    """The metric of one model less that of another on the same rows, with its 95 % interval."""
    if metric.unit == "share" and metric.finish is scoring.first and _is_binary(rows, reference):
        return share_difference(rows[:, 0], reference[:, 0])
    return difference(_influence(metric, rows), _influence(metric, reference))


def _is_binary(*columns: Rows) -> bool:
    return all(bool(np.isin(rows[:, 0], (0, 1)).all()) for rows in columns)


def _influence(metric: Metric, rows: Rows) -> Influence:
    return jackknife(rows, metric.finish) if metric.whole is None else metric.whole(rows)


_POSITIVE = (0.0, math.inf)

METRICS = {
    "agreement": Metric(
        phrase("top-1 agreement"), scoring.agreement, scoring.first, needs="reference", chooses=True
    ),
    "auc": Metric("AUC", scoring.auc, scoring.score, whole=scoring.auc_influence),
    "cosine": Metric(
        phrase("cosine"),
        scoring.cosine,
        scoring.first,
        unit="",
        needs="reference",
        bounds=(-1.0, 1.0),
    ),
    "mae": Metric("MAE", scoring.mae, scoring.first, unit="", better=-1, bounds=_POSITIVE),
    "miou": Metric(phrase("mean IoU"), scoring.miou, scoring.mean_iou, chooses=True),
    "rmse": Metric("RMSE", scoring.rmse, scoring.root, unit="", better=-1, bounds=_POSITIVE),
    "snr": Metric("SNR", scoring.snr, scoring.decibels, unit="dB", needs="reference"),
    "top1": Metric(phrase("top-1"), scoring.top1, scoring.first, chooses=True),
    "top5": Metric(phrase("top-5"), scoring.top5, scoring.first, chooses=True),
}


Function = Callable[..., object]

# Functions that the user handed over themselves, by the names that results and records have.
_functions: dict[str, Function] = {}


def metric_name(metric: str | Function) -> str:
    """The name of a metric; a function is called `module:function` from here on."""
    if isinstance(metric, str):
        return metric
    if not callable(metric):
        raise BadInput(
            "metric={metric!r}: give a name, module:function, or a function of outputs and label",
            metric,
        )
    name = f"{metric.__module__}:{getattr(metric, '__qualname__', type(metric).__qualname__)}"
    _functions[name] = metric
    return name


def metric_named(name: str) -> Metric:
    """A row of the table, or one that is made of a function of the user's."""
    if name in METRICS:
        return METRICS[name]
    if name in _functions:
        return users_metric(name, _functions[name])
    if ":" in name:
        return users_metric(name, users_function(name))
    raise BadInput(
        "no metric {name!r}; there are auto, {metrics} and module:function of yours",
        name,
        ", ".join(METRICS),
    )


def users_metric(title: str, function: Function) -> Metric:
    """A metric of the user's: the mean of function(outputs, label) over the samples.

    Outputs are arrays of real numbers in the model's order; the label is None where there is none.
    """

    def statistics(case: Case) -> Rows:
        try:
            found = np.asarray(function(list(case.outputs), case.label), np.float64)
        except Exception as error:  # foreign code: whatever it raises is not ours
            told = f"{type(error).__name__}: {error}"
            raise BadInput(
                "metric {title} fails for sample {name!r} ({told})", title, case.name, told
            ) from error
        if found.size != 1 or not np.isfinite(found).all():
            raise BadInput(
                "metric {title} gave {tolist} for sample {name!r}; it is to return one "
                "finite number",
                title,
                found.tolist(),
                case.name,
            )
        return found.reshape(1, 1)

    return Metric(title, statistics, scoring.first, unit="", better=0, needs="")
