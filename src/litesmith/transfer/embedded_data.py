"""The embeddings of some data: what a cut model makes of every item, kept for the next time."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litesmith.calibration.observed_cache import outputs_place, read_outputs, write_outputs
from litesmith.data.answers import Outputs, outputs_of
from litesmith.data.samples import Sample
from litesmith.data.sources import Samples
from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model

# How many items are done, of how many.
Tell = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Embedded:
    """Items as a head sees them, ordered by what they hold: the order of the files changes nothing.

    features  a row for each item: (items, features)
    labels    the class of each
    digests   what each one holds
    places    the place of each among the data's items
    """

    features: Array
    labels: Array
    digests: tuple[str, ...]
    places: Array

    def at(self, rows: Sequence[int] | Array) -> "Embedded":
        """Some of them."""
        index: NDArray[np.intp] = np.asarray(rows, np.intp)
        places: list[int] = index.tolist()
        return Embedded(
            self.features[index],
            self.labels[index],
            tuple(self.digests[row] for row in places),
            self.places[index],
        )


def embed(model: Model, data: Samples, labels: Array, tell: Tell | None = None) -> Embedded:
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


def rows_of(model: Model, data: Samples, tell: Tell | None = None) -> Array:
    """What a model answers to each item, a row each: from the cache where it is there."""
    place = outputs_place(model, data)
    known = read_outputs(place, data.digests)
    if known is not None:
        return known
    count = len(data)
    rows: list[Array] = []
    with closing(outputs_of([model], iter(data), _row)) as answers:
        for row in answers:
            rows.append(row)
            if tell is not None:
                tell(len(rows) * data.batch, count * data.batch)
    found = np.concatenate(rows)
    write_outputs(place, data.digests, found)
    return found


def _row(sample: Sample, answers: Sequence[Outputs]) -> Array:
    return answers[0][0].astype(np.float32)
