"""Rules for losses, which graphs of training carry."""

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.reductions import softmax_along
from litesmith.conversion.rules.scattering import places_along
from litesmith.conversion.rules.values import like
from litesmith.ir.types import Tensor


def log_likelihood(lower: Lowering, node: Node) -> Tensor:
    scores, target, weight = lower.inputs(node, 3)[:3]
    return _loss(lower, node, lower.need(scores), lower.need(target), weight)


def cross_entropy(lower: Lowering, node: Node) -> tuple[Tensor, Tensor]:
    scores, target, weight = lower.inputs(node, 3)[:3]
    logs = softmax_along(lower, "LOG_SOFTMAX", lower.need(scores), 1)
    return _loss(lower, node, logs, lower.need(target), weight), logs


def _loss(
    lower: Lowering, node: Node, logs: Tensor, target: Tensor, weight: Tensor | None
) -> Tensor:
    """The negative logarithm of each target's probability, weighted by its class."""
    target = lower.cast(target, "int32")
    counts: Tensor | None = None
    if "ignore_index" in node.settings:
        left_out = np.array(node.integer("ignore_index"), np.int32)
        counts = lower.op("NOT_EQUAL", target, left_out)
        target = lower.op("SELECT_V2", counts, target, np.array(0, np.int32))
    places = places_along(lower, logs, lower.reshape(target, _with_class(target.shape)), 1)
    picked = lower.reshape(lower.op("GATHER_ND", logs, places), target.shape)
    shares = None if weight is None else lower.op("GATHER", weight, target, axis=0)
    if counts is not None:
        counted = lower.cast(counts, "float32")
        shares = counted if shares is None else lower.op("MUL", shares, counted)
        picked = lower.op("SELECT_V2", counts, picked, like(picked, 0))
    loss = lower.op("NEG", picked)
    if shares is not None:
        loss = lower.op("MUL", loss, shares)
    return _reduced(lower, node.word("reduction", "mean"), loss, shares)


def _with_class(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0], 1, *shape[1:]) if shape else (1,)


def _reduced(lower: Lowering, how: str, loss: Tensor, shares: Tensor | None) -> Tensor:
    axes = np.arange(len(loss.shape), dtype=np.int32)
    if how == "none":
        return loss
    if how == "mean" and shares is None:
        return lower.op("MEAN", loss, axes)
    total = lower.op("SUM", loss, axes)
    if how == "sum" or shares is None:
        return total
    return lower.op("DIV", total, lower.op("SUM", shares, axes))


RULES: dict[str, Rule] = {
    "NegativeLogLikelihoodLoss": log_likelihood,
    "SoftmaxCrossEntropyLoss": cross_entropy,
}
