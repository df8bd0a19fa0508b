"""Which metric suits data and a model, seen before any long work."""

import math

import numpy as np
from numpy.typing import NDArray

from litesmith.accuracy.metrics import METRICS, metric_named
from litesmith.data.samples import Data, Sample
from litesmith.errors import BadInput
from litesmith.ir.softmax_scores import ends_in_softmax
from litesmith.ir.types import Graph, Model
from litesmith.phrases import phrase
from litesmith.units import number_text


def chosen_metric(
    model: Model, data: Data, first: Sample, metric: str, *, has_reference: bool
) -> tuple[str, tuple[str, ...]]:
    """The metric to take, and why it is not the one that the labels ask for."""
    graph = model.main
    name, why = _automatic(graph, data, first) if metric == "auto" else (metric, "")
    if not name and not has_reference:
        what = "labels" if first.label is None else phrase("labels that fit")
        raise BadInput("{why}; give {what}, or a reference to compare with", why, what)
    if not name:
        name = "agreement" if _ends_in_classes(graph) else "snr"
    if metric_named(name).needs == "reference" and not has_reference:
        raise BadInput("metric {name} compares with a reference; give one to hold it against", name)
    wrong = _misfit(name, graph, data, first)
    if wrong:
        raise BadInput(wrong)
    told = (
        (phrase("{why}; {title} is told in place of accuracy", why, METRICS[name].title),)
        if why
        else ()
    )
    return name, told if first.label is not None else ()


def _automatic(graph: Graph, data: Data, first: Sample) -> tuple[str, str]:
    """The metric that suits the labels and what the model answers with; "" and why where none
    does, so that only a comparison is left."""
    label = first.label
    if label is None:
        return "", phrase("the data has no labels")
    if label.dtype.kind not in "iub":
        return "rmse", ""
    if label.ndim >= 3:
        return "miou", ""
    if label.size != len(label):
        raise BadInput(
            "labels of type {dtype} and shape {shape} suit no metric; name one",
            label.dtype,
            label.shape,
        )
    if _class_count(graph, len(label)) is not None:
        why = _outside(graph, data, first)
        return ("", why) if why else ("top1", "")
    if any(t.elements == len(label) for t in graph.outputs):
        is_two = bool(np.isin(_known_classes(data, first), (0, 1)).all())
        return ("auc", "") if is_two else ("rmse", "")
    return "", phrase("the labels are class numbers, and the model has no list of scores")


def _misfit(name: str, graph: Graph, data: Data, first: Sample) -> str:
    """Why labels that are known now will stop a metric at the end; "" where they will not."""
    if name in ("top1", "top5"):
        return _outside(graph, data, first)
    known = data.items.classes
    if name == "auc" and known is not None and len(np.unique(known)) == 1:
        return phrase(
            "data {source}: auc needs samples of both classes; all labels are {known}",
            data.source,
            known[0],
        )
    return ""


def _class_count(graph: Graph, rows: int) -> float | None:
    """The classes that the model tells apart for so many rows; infinite where it names one."""
    for tensor in graph.outputs:
        is_stored = tensor.quant is None and "int" in tensor.dtype
        if is_stored and tensor.elements == rows:
            return math.inf
        if tensor.shape and not is_stored and tensor.elements == rows * tensor.shape[-1] > rows:
            return tensor.shape[-1]
    return None


def _outside(graph: Graph, data: Data, first: Sample) -> str:
    """What is wrong with labels that are no classes of the model; "" where all are."""
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
    """The labels of all samples where the data knows them, else those of the first."""
    known = data.items.classes
    label = first.label if known is None else known
    if label is None or label.dtype.kind not in "iub" or label.size != len(label):
        return np.zeros(0, np.int64)
    return label.reshape(-1).astype(np.int64)


def _ends_in_classes(graph: Graph) -> bool:
    """True where the first output is a softmax, whatever is done to its shape and type."""
    return bool(graph.outputs) and ends_in_softmax(graph, graph.outputs[0])
