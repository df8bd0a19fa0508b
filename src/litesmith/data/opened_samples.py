"""Samples made from rows: the chosen items, grouped by the model's batch, prepared when read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from litesmith.data.groups import Grouping
from litesmith.data.images import in_parallel, picture
from litesmith.data.preparation import UNTOUCHED, Preparation
from litesmith.data.readers import (
    Rows,
    batch_of,
)
from litesmith.data.samples import Items, Sample, prepare_item
from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False)
class OpenedSamples:
    """Samples made from rows: the chosen items, grouped by the model's batch, prepared when read.

    others    the preparation of single inputs, by number, where the model states another one
    grouping  which items are copies; None where every item counts as independent
    """

    source: str
    rows: Rows
    chosen: tuple[int, ...]
    model: Model
    preparation: Preparation
    notes: tuple[str, ...] = ()
    others: tuple[tuple[int, Preparation], ...] = ()
    grouping: Grouping | None = None

    @property
    def batch(self) -> int:
        """The number of items in a sample; 1 where the inputs have no batch dimension."""
        return batch_of(self.model) or 1

    def __len__(self) -> int:
        return len(self.chosen) // self.batch

    def __iter__(self) -> Iterator[Sample]:
        return in_parallel(self._sample, self._groups())

    def one_by_one(self) -> Iterator[Sample]:
        """The samples, read by this thread alone, where every core has work of its own."""
        return map(self._sample, self._groups())

    def _groups(self) -> list[tuple[int, ...]]:
        return [self.chosen[i * self.batch :][: self.batch] for i in range(len(self))]

    def spread(self, count: int) -> "OpenedSamples":
        """At most `count` of the samples, evenly spread; the others are not read."""
        return self.at(spread_evenly(range(len(self)), count))

    def at(self, places: Sequence[int]) -> "OpenedSamples":
        """The samples at these places; the others are not read."""
        chosen = [self.chosen[p * self.batch + i] for p in places for i in range(self.batch)]
        return replace(self, chosen=tuple(chosen))

    @property
    def names(self) -> tuple[str, ...]:
        """The origin of each item."""
        return tuple(self.rows.names[index] for index in self.chosen)

    @property
    def classes(self) -> Array | None:
        """The model's class of each item, where the labels are class numbers."""
        if self.rows.classes is None:
            return None
        return self.rows.classes[list(self.chosen)] + (self.preparation.label_offset or 0)

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """A digest of each item's contents, independent of preparation and label."""
        return tuple(in_parallel(self.rows.digest, self.chosen))

    @cached_property
    def labelled_digests(self) -> tuple[str, ...]:
        """A digest of each item's contents and label, independent of the preparation."""
        pairs = zip(self.digests, self._label_digests(), strict=True)
        return tuple(f"{item} {label}" for item, label in pairs)

    @property
    def items(self) -> Items:
        return Items(
            self.batch,
            self.preparation,
            self.classes,
            self,
            groups=lambda: self.groups,
            misfit=self.rows.misfit,
            task=self.rows.task or self.preparation.task,
            scorer=self.rows.scorer,
        )

    @property
    def groups(self) -> NDArray[np.int64]:
        """The group of each item."""
        if self.grouping is None:
            return np.arange(len(self.chosen))
        return self.grouping.of(self.chosen)

    @property
    def digest(self) -> str:
        """Equal for the same items and labels with the same preparation, in any order."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        items = sorted(self.labelled_digests)
        inputs = [f"{t.dtype} {t.dynamic or t.shape}" for t in self.model.main.inputs]
        done = [self.preparation.text, *(f"{place} {other.text}" for place, other in self.others)]
        return sha256("\n".join([*done, *inputs, *items]).encode()).hexdigest()

    def _label_digests(self) -> list[str]:
        if self.rows.classes is not None:
            return [str(self.rows.classes[index]) for index in self.chosen]
        if not self.chosen or self.rows.read(self.chosen[0])[1] is None:
            return [""] * len(self.chosen)
        labels = map(self._label, self.chosen)
        return ["" if b is None else sha256(b.tobytes()).hexdigest() for b in labels]

    def _label(self, index: int) -> Array | None:
        own = self.rows.label
        return self.rows.read(index)[1] if own is None else own(index)

    def _sample(self, group: Sequence[int]) -> Sample:
        items = [self.rows.read(index) for index in group]
        places = range(len(self.model.main.inputs))
        inputs = tuple(
            self._joined(place, [arrays[place] for arrays, _ in items]) for place in places
        )
        labels = [label for _, label in items if label is not None]
        label = np.stack(labels) if labels else None
        if self.rows.classes is not None:
            label = self.rows.classes[list(group)] + (self.preparation.label_offset or 0)
        name = ", ".join(self.rows.names[index] for index in group)
        return Sample(inputs, label, name, self._more(group), self.rows.averages)

    def _more(self, group: Sequence[int]) -> tuple[tuple[Array, ...], ...]:
        """The inputs of further calls for an item that is longer than the model's input."""
        if self.rows.more is None or self.batch > 1:
            return ()
        return tuple(
            tuple(self._joined(place, [array]) for place, array in enumerate(arrays))
            for arrays in self.rows.more(group[0])
        )

    def _joined(self, place: int, items: Sequence[Array]) -> Array:
        tensor = self.model.main.inputs[place]
        made = [prepare_item(tensor, item, self._preparation(place)) for item in items]
        if not batch_of(self.model):
            return made[0]
        if len({one.shape for one in made}) > 1:
            raise BadInput(
                "{source}: the items of a batch of {batch} have different shapes; make them equal",
                self.source,
                self.batch,
            )
        return np.stack(made)

    def _preparation(self, place: int) -> Preparation:
        """The preparation of one input: a normalisation is for images, where there are any."""
        inputs = self.model.main.inputs
        if picture(inputs[place]) is None and any(map(picture, inputs)):
            return UNTOUCHED
        return dict(self.others).get(place, self.preparation)


def spread_evenly(items: Sequence[int], wanted: int) -> list[int]:
    """Chooses `wanted` items, evenly spread; all where there are no more."""
    if wanted >= len(items):
        return list(items)
    return [items[(2 * i + 1) * len(items) // (2 * wanted)] for i in range(wanted)]
