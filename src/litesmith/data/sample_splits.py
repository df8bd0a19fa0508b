"""Splits samples into those for the work and those that judge it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from litesmith.data.groups import (
    Sketch,
    groups_text,
    join_groups,
    near_groups,
    number_groups,
    sketch_arrays,
)
from litesmith.data.opened_samples import OpenedSamples
from litesmith.data.readers import contents_digest
from litesmith.data.samples import Data, DataView, Items, Sample
from litesmith.phrases import phrase


@dataclass(frozen=True, eq=False)
class SomeSamples(DataView):
    """The samples of some data at certain places.

    find   finds the places, once
    named  the digest of these samples, from that of the data
    """

    find: Callable[[], Sequence[int]]
    named: Callable[[str], str]

    @cached_property
    def _places(self) -> Sequence[int]:
        return self.find()

    @property
    def digest(self) -> str:
        return self.named(self.data.digest)

    @property
    def items(self) -> Items:
        known = self.data.items
        if known.classes is not None:
            own = self._own(len(known.classes))
            known = replace(known, classes=known.classes[own])
        return replace(known, stored=None, groups=self._groups)

    def _own(self, count: int) -> NDArray[np.intp]:
        """The item numbers of the samples, where the data has this many items."""
        batch = count // max(1, len(self.data))
        own = [place * batch + item for place in self._places for item in range(batch)]
        return np.array(own, np.intp)

    def _groups(self) -> NDArray[np.int64]:
        every = item_groups(self.data)
        return every[self._own(len(every))]

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Sample]:
        stored = self.data.items.stored
        if stored is not None:  # other samples are not read
            return iter(stored.at(self._places))
        places = frozenset(self._places)
        return (sample for place, sample in enumerate(self.data) if place in places)


def part_of(data: Data, share: int, *, held_out: bool, most: int | None = None) -> Data:
    """One sample in `share`, held out, or all others; at most `most`. The contents of the samples
    decide, so the choice is the same each time, whatever the order."""
    which = "one" if held_out else "all but one"
    limit = "" if most is None else phrase(", at most {most}", most)

    def find() -> list[int]:
        groups = sample_groups(data)
        order = _by_contents(_input_digests(data), groups)
        count = _end_of_group(len(order) // share, order, groups)
        return sorted((order[:count] if held_out else order[count:])[:most])

    return SomeSamples(data, find, lambda digest: f"{digest} {which} in {share}{limit}")


def _at(data: Data, places: tuple[int, ...]) -> Data:
    """The samples at given places."""
    return SomeSamples(
        data, lambda: places, lambda digest: sha256(f"{digest} {places}".encode()).hexdigest()
    )


def split_data(data: Data, shares: Sequence[float]) -> list[Data]:
    """Splits the data into parts of about these shares; the last part gets the rest.

    The contents of the samples decide, so the order of the data does not matter; samples of one
    group, such as copies, stay in one part.
    """
    stored = data.items.stored
    digests = _input_digests(data) if stored is None else _item_digests(stored)
    groups = sample_groups(data)
    order = _by_contents(digests, groups)
    parts: list[Data] = []
    start = 0
    for number, share in enumerate(shares, 1):
        end = min(start + round(share * len(order)), len(order))
        if number == len(shares):
            end = len(order)
        end = _end_of_group(end, order, groups)
        # ordered by contents too, so that choosing from a part gives the same samples each time
        places = order[start:end]
        parts.append(_at(data, tuple(sorted(places))) if stored is None else stored.at(places))
        start = end
    return parts


def count_shared(a: Data, b: Data) -> int:
    """The number of samples of the first data that are also in the second, by their contents."""
    one, other = a.items.stored, b.items.stored
    if one is not None and other is not None and one.batch == other.batch:
        own, known = _item_digests(one), {*_item_digests(other)}
    else:
        own, known = _input_digests(a), {*_input_digests(b)}
    return sum(digest in known for digest in own)


def take_some(data: Data, most: int) -> Data:
    """At most `most` samples, from all over the data."""
    if len(data) <= most:
        return data
    stored = data.items.stored
    return part_of(data, 1, held_out=True, most=most) if stored is None else stored.spread(most)


def look_at_some(data: Data, most: int) -> Iterable[Sample]:
    """At most `most` samples: from all over stored data, or the first ones of other data."""
    stored = data.items.stored
    return islice(data, most) if stored is None else stored.spread(most)


def items(data: Data) -> int:
    """The number of items: a sample for a model with a batch holds several."""
    return len(data) * data.items.batch


def knows_groups(data: Data) -> bool:
    """True where the groups of data are known, or can be found without reading every sample in this
    process.
    """
    return data.items.groups is not None or data.items.is_random


def item_groups(data: Data) -> NDArray[np.int64]:
    """The group of each item: equal for items that are copies of each other or belong together."""
    known = data.items
    if known.groups is not None:
        return known.groups()
    if known.is_random:
        return np.arange(items(data))
    seen = SeenCopies(data.items.batch)
    deque(seen.watch(data), maxlen=0)
    return seen.groups


class SeenCopies:
    """Finds the groups of samples as they pass by, for data that does not know its groups."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._digests: list[str] = []
        self._sketches: list[Sketch | None] = []

    def watch(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Passes the samples on, after looking at each."""
        for sample in samples:
            for row in range(self._batch):
                own = tuple(a[row] if self._batch > 1 else a for a in sample.inputs)
                self._digests.append(contents_digest(own))
                self._sketches.append(sketch_arrays(own))
            yield sample

    def __len__(self) -> int:
        return len(self._digests)

    @property
    def groups(self) -> NDArray[np.int64]:
        near = near_groups(self._sketches).tolist()
        return join_groups(len(self), self._digests, near)


def sample_groups(data: Data, own: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """The group of each sample: samples whose batches share a group are put together. `own` holds
    the groups of the items, where they are known.
    """
    own = item_groups(data) if own is None else own
    batch = len(own) // max(1, len(data))
    if batch == 1:
        return own
    keys = own.reshape(len(data), batch)
    return join_groups(len(keys), *keys.T.tolist()) if batch else own


def row_groups(data: Data, rows: int, seen: SeenCopies | None = None) -> NDArray[np.int64] | None:
    """The group of each row of results (one row per item or per sample), numbered from 0 without
    gaps; None where every row is its own group. If `seen` has watched all of the data, the data is
    not read again."""
    own = seen.groups if seen is not None and len(seen) == items(data) else item_groups(data)
    groups = own if len(own) == rows else sample_groups(data, own)
    return number_groups(groups) if len(groups) == rows else None


def scored_digest(data: Data) -> str:
    """The digest of data to score on; it depends on the groups of the samples, as intervals do."""
    return f"{data.digest}{groups_text(item_groups(data))}"


def independent(data: Data) -> int:
    """The number of items that are not copies of others."""
    return len(np.unique(item_groups(data)))


def _by_contents(digests: Sequence[bytes], groups: NDArray[np.int64]) -> list[int]:
    """The places sorted by the contents of their samples, those of a group together."""
    first: dict[int, bytes] = {}
    for digest, group in zip(digests, groups.tolist(), strict=True):
        first[group] = min(digest, first.get(group, digest))
    keys = [(first[g], d) for g, d in zip(groups.tolist(), digests, strict=True)]
    return sorted(range(len(keys)), key=keys.__getitem__)


def _end_of_group(end: int, order: Sequence[int], groups: NDArray[np.int64]) -> int:
    """The first place from `end` on where a group ends."""
    while 0 < end < len(order) and groups[order[end]] == groups[order[end - 1]]:
        end += 1
    return end


def _input_digests(data: Data) -> list[bytes]:
    return [sha256(b"".join(a.tobytes() for a in s.inputs)).digest() for s in data]


def _item_digests(data: OpenedSamples) -> list[bytes]:
    """The digest of each item as stored, without preparing it."""
    batches = (data.digests[n * data.batch :][: data.batch] for n in range(len(data)))
    return [sha256("".join(items).encode()).digest() for items in batches]
