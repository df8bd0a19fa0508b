"""The metrics: one table, the 95 % interval of each, and which metric suits data and model."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.accuracy import average_precision, retrieval, scoring
from litesmith.accuracy.paired import (
    Estimate,
    Finish,
    Groups,
    Influence,
    Rows,
    bounded_difference,
    bounded_estimate,
    difference,
    estimate,
    jackknife,
    share,
    share_difference,
)
from litesmith.accuracy.scoring import ScoredSample
from litesmith.arguments import argument
from litesmith.data.samples import Data, Sample
from litesmith.data.user_functions import users_function
from litesmith.errors import BadInput
from litesmith.ir.softmax_scores import ends_in_softmax
from litesmith.ir.types import Array, Graph, Model
from litesmith.phrases import phrase
from litesmith.tasks.task import Answer
from litesmith.tasks.task_table import TASKS, task_named
from litesmith.tasks.user_task import users_task
from litesmith.units import number_text, plain

_ANY = (-math.inf, math.inf)
_POSITIVE = (0.0, math.inf)


class Metric(NamedTuple):
    """How a metric is computed.

    statistics  from one sample to an array of (rows, numbers)
    finish      from the means of these numbers to the metric; from one row to its own result
    unit        "share" for values between 0 and 1, or beyond where bounds say so
    better      1 where higher is better, −1 where lower is, 0 where neither is known
    needs       "label" or "reference"; "task" for metrics of a task's answers
    """

    title: str
    statistics: Callable[[ScoredSample], Rows]
    finish: Finish
    unit: str = "share"
    better: int = 1
    needs: str = "label"
    chooses: bool = False  # True where it depends on the chosen class
    counts_ties: bool = False  # True where a row is right, wrong, or partly right by a tie
    bounds: tuple[float, float] = _ANY
    whole: Callable[[Rows], Influence] | None = None  # for metrics that are no function of means

    @property
    def counts_items(self) -> bool:
        """True where the metric is a mean over items, so that their number limits what can be
        proven."""
        return self.finish is scoring.first and self.whole is None


def value_of(metric: Metric, rows: Rows, groups: Groups = None) -> Estimate:
    """The metric with its 95 % interval, by groups of rows that may go wrong together.

    Wilson's interval for a share of rows; otherwise Student's, with the error by the jackknife.
    """
    if metric.unit == "share" and _is_share_of_rows(metric, rows):
        return share(rows[:, 0], groups)
    found = _influence(metric, rows, groups)
    is_share = metric.unit == "share" and found.value <= 1
    return bounded_estimate(found) if is_share else estimate(found, *metric.bounds)


def difference_of(metric: Metric, rows: Rows, reference: Rows, groups: Groups = None) -> Estimate:
    """The metric of one model minus another's on the same rows, with its 95 % interval."""
    if metric.unit == "share" and _is_share_of_rows(metric, rows, reference):
        return share_difference(rows[:, 0], reference[:, 0], groups)
    own, other = _influence(metric, rows, groups), _influence(metric, reference, groups)
    return (bounded_difference if metric.unit == "share" else difference)(own, other)


def _is_share_of_rows(metric: Metric, *columns: Rows) -> bool:
    """True for rows that are right or wrong; a row that is right by a tie counts in part."""
    is_mean = metric.counts_items
    if metric.counts_ties:
        return is_mean
    return is_mean and all(bool(np.isin(rows[:, 0], (0, 1)).all()) for rows in columns)


def _influence(metric: Metric, rows: Rows, groups: Groups) -> Influence:
    found = jackknife(rows, metric.finish) if metric.whole is None else metric.whole(rows)
    return found._replace(groups=groups)


def _by_task(case: ScoredSample) -> Rows:
    raise BadInput("sample {name!r} belongs to no task that is scored so", case.name)


METRICS = {
    "agreement": Metric(
        phrase("top-1 agreement"), scoring.agreement, scoring.first, needs="reference", chooses=True
    ),
    "anomaly_auc": Metric(
        "AUC", scoring.anomaly, scoring.first, needs="label", whole=scoring.auc_influence
    ),
    "ap": Metric(
        "AP",
        _by_task,
        average_precision.of_each,
        needs="task",
        whole=average_precision.average_precision,
    ),
    "ap50": Metric(
        "AP50",
        _by_task,
        average_precision.each_at_half,
        needs="task",
        whole=average_precision.at_half,
    ),
    "auc": Metric("AUC", scoring.auc, scoring.first, whole=scoring.auc_influence),
    "cer": Metric("CER", _by_task, scoring.ratio, better=-1, needs="task", bounds=_POSITIVE),
    "cosine": Metric(
        phrase("cosine"),
        scoring.cosine,
        scoring.first,
        unit="",
        needs="reference",
        bounds=(-1.0, 1.0),
    ),
    "em": Metric(phrase("exact match"), _by_task, scoring.first, needs="task"),
    "f1": Metric("F1", _by_task, scoring.first, needs="task"),
    "labels_f1": Metric(phrase("F1 of labels"), scoring.labels_f1, scoring.ratio),
    "mae": Metric("MAE", scoring.mae, scoring.first, unit="", better=-1, bounds=_POSITIVE),
    "miou": Metric(phrase("mean IoU"), scoring.miou, scoring.mean_iou, chooses=True),
    "oks": Metric(
        "AP (OKS)",
        _by_task,
        average_precision.of_each,
        needs="task",
        whole=average_precision.average_precision,
    ),
    "pck": Metric("PCK", _by_task, scoring.ratio, needs="task"),
    "retrieval": Metric(
        phrase("retrieval"),
        scoring.embedding_rows,
        retrieval.nearest_of_same_class,
        whole=retrieval.retrieval,
    ),
    "rmse": Metric("RMSE", scoring.rmse, scoring.root, unit="", better=-1, bounds=_POSITIVE),
    "snr": Metric("SNR", scoring.snr, scoring.decibels, unit="dB", needs="reference"),
    "top1": Metric(phrase("top-1"), scoring.top1, scoring.first, chooses=True, counts_ties=True),
    "top5": Metric(phrase("top-5"), scoring.top5, scoring.first, chooses=True, counts_ties=True),
    "wer": Metric("WER", _by_task, scoring.ratio, better=-1, needs="task", bounds=_POSITIVE),
}


Function = Callable[..., object]

# The functions that the user passed in, by the names that results and records give them.
_functions: dict[str, Function] = {}


def metric_name(metric: str | Function) -> str:
    """The name of the caller's metric; a function gets the name `module:function`. No other
    function accepts code: names from files go to `metric_named`.
    """
    if isinstance(metric, str):
        if metric not in METRICS and ":" in metric:
            _functions[metric] = users_function(metric)
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
    """The metric with this name: from the table, or from a function that the caller passed in."""
    if name in METRICS:
        return METRICS[name]
    if name in _functions:
        return users_metric(name, _functions[name])
    own = users_task(name)
    if own is not None:
        return users_metric(name, own.score, own.better)
    if ":" in name:
        raise BadInput(
            "the metric {name} is code, and a file that is read brings none; read the code, then "
            "give it yourself with {metric}",
            plain(name),
            argument("metric", plain(name)),
        )
    raise BadInput(
        "no metric {name!r}; there are auto, {metrics} and your own module:function",
        name,
        ", ".join(METRICS),
    )


def metric_for(name: str, data: Data) -> Metric:
    """The metric with this name for some data: a metric of a task scores the answers of
    that task."""
    metric, scorer = metric_named(name), data.items.scorer
    if metric.needs != "task":
        return metric
    known = task_named(data.items.task).metrics if data.items.task else ()
    if scorer is None or name not in known:
        tasks = ", ".join(task for task, row in TASKS.items() if name in row.metrics)
        raise BadInput(
            "metric {name} is for {tasks}; the data {source} is not read as that: give {option}",
            name,
            tasks,
            data.source,
            argument("task", tasks.partition(",")[0]),
        )

    def statistics(case: ScoredSample) -> Rows:
        if case.label is None:
            raise BadInput("sample {name!r} has no label", case.name)
        return scorer.rows(name, Answer(case.outputs, case.label, (), case.name))

    return metric._replace(statistics=statistics)


def users_metric(title: str, function: Function, better: object = None) -> Metric:
    """A metric of the user's: the mean of function(outputs, label) over the samples.

    Outputs are arrays of real numbers in the model's order; the label is None where there is none.
    The function's attribute `better` may be 1 where more is better, or −1 where less is; otherwise
    any change counts as a loss.
    """
    better = getattr(function, "better", 0) if better is None else better
    if better not in (-1, 0, 1):
        raise BadInput(
            "metric {title}: its attribute better is {better!r}; give 1 or -1", title, better
        )

    def statistics(case: ScoredSample) -> Rows:
        try:
            found = np.asarray(function(list(case.outputs), case.label), np.float64)
        except Exception as error:  # the user's code may raise anything
            reason = f"{type(error).__name__}: {error}"
            raise BadInput(
                "metric {title} fails for sample {name!r} ({told})", title, case.name, reason
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

    sign = 1 if better == 1 else -1 if better == -1 else 0
    return Metric(title, statistics, scoring.first, unit="", better=sign, needs="")


def choose_metric(
    model: Model, data: Data, first: Sample, metric: str, *, has_reference: bool
) -> tuple[str, tuple[str, ...]]:
    """The metric to use, and the reasons where it is not the metric that the labels suggest."""
    graph = model.main
    name, why = metric, ""
    if metric == "auto":
        own = data.items.task
        name, why = (task_named(own).metrics[0], "") if own else _automatic(graph, data, first)
    if not name and not has_reference:
        what = "labels" if first.label is None else phrase("labels that fit")
        raise BadInput("{why}; give {what}, or a reference to compare with", why, what)
    if not name:
        is_choice = bool(graph.outputs) and ends_in_softmax(graph, graph.outputs[0])
        name = "agreement" if is_choice else "snr"
    if metric_named(name).needs == "reference" and not has_reference:
        raise BadInput("metric {name} compares with a reference; give one to hold it against", name)
    wrong = _misfit(name, graph, data, first)
    if wrong:
        raise BadInput(wrong)
    notes = (
        (phrase("{why}; {title} is reported in place of accuracy", why, METRICS[name].title),)
        if why
        else ()
    )
    return name, notes if first.label is not None else ()


def _automatic(graph: Graph, data: Data, first: Sample) -> tuple[str, str]:
    """The metric that suits the labels and the model's outputs; "" and the reason where none does,
    so that only a comparison is possible."""
    label = first.label
    if label is None:
        return "", phrase("the data has no labels")
    if label.dtype.kind not in "iub":
        return "rmse", ""
    if label.ndim >= 3:
        return "miou", ""
    if label.ndim == 2 and _is_several(graph, label):
        return "labels_f1", ""
    if label.size != len(label):
        raise BadInput(
            "labels of type {dtype} and shape {shape} suit no metric; name one",
            label.dtype,
            label.shape,
        )
    if _class_count(graph, len(label)) is not None:
        if data.items.misfit:
            return "top1", ""  # such labels are refused
        why = _outside(graph, data, first)
        return ("", why) if why else ("top1", "")
    if any(t.elements == len(label) for t in graph.outputs):
        is_two = bool(np.isin(_known_classes(data, first), (0, 1)).all())
        return ("auc", "") if is_two else ("rmse", "")
    return "", phrase("the labels are class numbers, and the model has no list of scores")


def _is_several(graph: Graph, label: Array) -> bool:
    """Whether the labels are zeros and ones for as many classes as the model scores."""
    is_marked = label.shape[1] > 1 and bool(np.isin(label, (0, 1)).all())
    return is_marked and any(t.elements == label.size for t in graph.outputs)


def _misfit(name: str, graph: Graph, data: Data, first: Sample) -> str:
    """Why labels that are already known will make a metric fail at the end; "" where they
    will not."""
    if name in ("top1", "top5"):
        return data.items.misfit or _outside(graph, data, first)
    known = data.items.classes
    if name == "auc" and known is not None and len(np.unique(known)) == 1:
        return phrase(
            "data {source}: auc needs samples of both classes; all labels are {known}",
            data.source,
            known[0],
        )
    return ""


def _class_count(graph: Graph, rows: int) -> float | None:
    """The number of classes that the model distinguishes; infinite where its output is a class
    number."""
    for tensor in graph.outputs:
        is_stored = tensor.quant is None and "int" in tensor.dtype
        if is_stored and tensor.elements == rows:
            return math.inf
        if tensor.shape and not is_stored and tensor.elements == rows * tensor.shape[-1] > rows:
            return tensor.shape[-1]
    return None


def _outside(graph: Graph, data: Data, first: Sample) -> str:
    """What is wrong with labels that are not classes of the model; "" where all labels are."""
    classes = _known_classes(data, first)
    count = _class_count(graph, 0 if first.label is None else len(first.label))
    bad = classes[(classes < 0) | (classes >= (math.inf if count is None else count))]
    if not bad.size:
        return ""
    return phrase(
        "data {source}: {size} of {size2} labels are outside the model's classes 0 to "
        "{number}, first {count} (is the label offset right?)",
        data.source,
        bad.size,
        classes.size,
        number_text((count or 1) - 1),
        int(bad[0]),
    )


def _known_classes(data: Data, first: Sample) -> NDArray[np.int64]:
    """The labels of all samples where the data knows them, otherwise those of the first."""
    known = data.items.classes
    label = first.label if known is None else known
    if label is None or label.dtype.kind not in "iub" or label.size != len(label):
        return np.zeros(0, np.int64)
    return label.reshape(-1).astype(np.int64)
