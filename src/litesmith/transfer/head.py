"""A new head for a cut model: solved on its embeddings, and put behind them."""

from dataclasses import dataclass
from typing import cast

import numpy as np

from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Model, Op, Record, Tensor, Value
from litesmith.numeric.logistic import STRENGTHS, Examples, Judged, Linear, judged, solve
from litesmith.transfer.embedded_data import Embedded
from litesmith.transfer.embedding import batched, constant, headed
from litesmith.transfer.labelled import folds_of

# Each strength is judged on every item once, in so many parts; in one part of as many where that
# would take long: products of items, features and classes.
_FOLDS, _MOST_PRODUCTS = 5, 300_000_000

OUTPUT = "probability"


@dataclass(frozen=True, eq=False)
class Head:
    """A solved head.

    tried     the strengths of its penalty that were compared, by items it was not solved on
    strength  the one that was taken
    """

    linear: Linear
    tried: tuple[Judged, ...]
    strength: float

    @property
    def judged(self) -> Judged:
        """What cross-validation says of it."""
        return next(one for one in self.tried if one.strength == self.strength)


def solve_head(items: Embedded, classes: int, *, balance: bool = False) -> Head:
    """The head whose strength does best in cross-validation, solved on all items."""
    examples = examples_of(items, classes, balance=balance)
    folds = folds_of(items, _FOLDS)
    if examples.features.size * classes > _MOST_PRODUCTS:
        folds = np.where(folds == 0, 0, -1)
    tried = judged(examples, folds, STRENGTHS) if (folds >= 0).any() else ()
    best = min(tried, key=lambda one: one.loss).strength if tried else STRENGTHS[2]
    return Head(solve(examples, best), tuple(tried), best)


def examples_of(items: Embedded, classes: int, *, balance: bool = False) -> Examples:
    """Items to learn from; with `balance`, every class counts the same however many it has."""
    counts = np.bincount(items.labels, minlength=classes)
    weights = np.ones(len(items.labels))
    if balance:
        weights = len(items.labels) / (np.count_nonzero(counts) * counts[items.labels])
    return Examples(items.features, items.labels, weights, classes)


def with_head(model: Model, linear: Linear) -> Model:
    """A cut model with a head on its embedding: FULLY_CONNECTED and SOFTMAX."""
    vector = model.main.outputs[0]
    shape = (vector.shape[0], len(linear.bias))
    free = batched(model.main, shape)
    scores = Tensor("scores", shape, dynamic=free)
    chances = Tensor(OUTPUT, shape, dynamic=free)
    weight, bias = (
        constant(f"head/{name}", cast(Array, values).astype(np.float32))
        for name, values in (("weight", linear.weight), ("bias", linear.bias))
    )
    ops = (
        _op("FULLY_CONNECTED", (vector, weight, bias), scores),
        _op("SOFTMAX", (scores,), chances),
    )
    return headed(model, ops, chances)


def _op(kind: str, inputs: tuple[Tensor, ...], output: Tensor) -> Op:
    defaults: dict[str, Value] = dict(OPS[kind].defaults)
    return Op(kind, inputs, (output,), Record(OPS[kind].options).set(**defaults))
