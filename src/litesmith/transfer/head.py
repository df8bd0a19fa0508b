"""The outputs of a cut model for every item of some data, cached; and a new head, solved on these
embeddings and attached behind them."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from litesmith.calibration.observed_cache import outputs_place, read_outputs, write_outputs
from litesmith.data.answers import Outputs, outputs_of
from litesmith.data.opened_samples import OpenedSamples
from litesmith.data.samples import Sample
from litesmith.errors import BadInput
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Model, Op, Record, Tensor, Value
from litesmith.numeric.softmax_regression import (
    STRENGTHS,
    CrossValidated,
    Examples,
    Linear,
    cross_validate,
    solve,
)
from litesmith.run.session import Source
from litesmith.transfer.embedding import add_head, constant, free_batch
from litesmith.transfer.labelled_data import FEWEST

# Reports the number of finished items, and the total.
Tell = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Embedded:
    """Items as a head sees them, in the order of their contents, whatever the order of the files.

    features  one row per item: (items, features)
    labels    the class of each item
    digests   the digest of each item's contents
    places    the place of each item in the data
    """

    features: Array
    labels: Array
    digests: tuple[str, ...]
    places: Array

    def at(self, rows: Sequence[int] | Array) -> "Embedded":
        """The items of these rows."""
        index: NDArray[np.intp] = np.asarray(rows, np.intp)
        places: list[int] = index.tolist()
        return Embedded(
            self.features[index],
            self.labels[index],
            tuple(self.digests[row] for row in places),
            self.places[index],
        )


def embed(model: Model, data: OpenedSamples, labels: Array, tell: Tell | None = None) -> Embedded:
    """The embeddings of all items of labelled data."""
    rows = rows_of(model, data, tell)
    spoiled = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(spoiled):
        raise BadInput(
            "{source}: {names} makes numbers that are infinite or no numbers; mend or leave "
            "out such items",
            data.source,
            data.names[int(spoiled[0])],
        )
    digests = data.digests
    order = sorted(range(len(rows)), key=lambda row: (digests[row], int(labels[row])))
    places = np.array(order, np.intp)
    return Embedded(rows[places], labels[places], tuple(digests[p] for p in order), places)


def rows_of(model: Model, data: OpenedSamples, tell: Tell | None = None) -> Array:
    """A model's output for each item, one row per item; cached."""
    place = outputs_place(model, data)
    known = read_outputs(place, data.digests)
    if known is not None:
        return known
    found = answer_rows(model, data, tell).astype(np.float32)
    write_outputs(place, data.digests, found)
    return found


def answer_rows(model: Source, data: OpenedSamples, tell: Tell | None = None) -> Array:
    """A model's output for each item, one row per item."""
    rows: list[Array] = []
    with closing(outputs_of([model], iter(data), _first_answer)) as answers:
        for row in answers:
            rows.append(row)
            if tell is not None:
                tell(len(rows) * data.batch, len(data) * data.batch)
    return np.concatenate(rows)


def _first_answer(sample: Sample, answers: Sequence[Outputs]) -> Array:
    return answers[0][0].copy()


# The number of folds for judging each strength; one fold suffices where the product of items,
# features and classes exceeds the second number.
_FOLDS, _MOST_PRODUCTS = 5, 300_000_000

OUTPUT = "probability"


@dataclass(frozen=True, eq=False)
class Head:
    """A solved head.

    tried     the compared strengths of the penalty, each judged on items kept out of its solution
    strength  the chosen strength
    """

    linear: Linear
    tried: tuple[CrossValidated, ...]
    strength: float

    @property
    def chosen(self) -> CrossValidated:
        """The cross-validated result of the chosen strength."""
        return next(one for one in self.tried if one.strength == self.strength)


def solve_head(items: Embedded, classes: int, *, balance: bool = False) -> Head:
    """The head whose strength does best in cross-validation, solved on all items."""
    examples = examples_of(items, classes, balance=balance)
    folds = folds_of(items, _FOLDS)
    if examples.features.size * classes > _MOST_PRODUCTS:
        folds = np.where(folds == 0, 0, -1)
    tried = cross_validate(examples, folds, STRENGTHS) if (folds >= 0).any() else ()
    best = min(tried, key=lambda one: one.loss).strength if tried else STRENGTHS[2]
    return Head(solve(examples, best), tuple(tried), best)


def examples_of(items: Embedded, classes: int, *, balance: bool = False) -> Examples:
    """Items to learn from; with `balance`, every class has the same weight, however many items it
    has."""
    counts = np.bincount(items.labels, minlength=classes)
    weights = np.ones(len(items.labels))
    if balance:
        weights = len(items.labels) / (np.count_nonzero(counts) * counts[items.labels])
    return Examples(items.features, items.labels, weights, classes)


def with_head(model: Model, linear: Linear) -> Model:
    """A cut model with a head on its embedding: FULLY_CONNECTED and SOFTMAX."""
    vector = model.main.outputs[0]
    shape = (vector.shape[0], len(linear.bias))
    free = free_batch(model.main, shape)
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
    return add_head(model, ops, chances)


def _op(kind: str, inputs: tuple[Tensor, ...], output: Tensor) -> Op:
    defaults: dict[str, Value] = dict(OPS[kind].defaults)
    return Op(kind, inputs, (output,), Record(OPS[kind].options).set(**defaults))


def folds_of(items: Embedded, most: int) -> Array:
    """The fold of each item: equally many of every class, equal items in the same fold; −1 for the
    only item of a class, which is never judged."""
    folds = np.full(len(items.labels), -1, np.int64)
    for label in np.unique(items.labels):
        rows = np.flatnonzero(items.labels == label)
        different = sorted({items.digests[row] for row in rows})
        if len(different) < FEWEST:
            continue
        place = {digest: number % most for number, digest in enumerate(different)}
        folds[rows] = [place[items.digests[row]] for row in rows]
    return folds
