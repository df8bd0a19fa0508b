"""Some of the samples for the work, the others to judge it by."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import islice

import numpy as np

from litesmith.data.samples import Data, DataView, Items, Sample
from litesmith.data.sources import Samples
from litesmith.phrases import phrase


@dataclass(frozen=True, eq=False)
class SomeSamples(DataView):
    """The samples of some data at certain places.

    find   the places, asked for once
    named  the digest, given that of the data
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
            batch = len(known.classes) // max(1, len(self.data))
            own = [place * batch + item for place in self._places for item in range(batch)]
            known = replace(known, classes=known.classes[np.array(own, np.intp)])
        return replace(known, stored=None)

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Sample]:
        stored = self.data.items.stored
        if stored is not None:  # what is not asked for is not read
            return iter(stored.at(self._places))
        places = frozenset(self._places)
        return (sample for place, sample in enumerate(self.data) if place in places)


def part_of(data: Data, share: int, *, held_out: bool, most: int | None = None) -> Data:
    """The samples that are held out, one in so many, or the others; no more than `most`. They are
    chosen by what they hold, so that their order does not matter: the same ones each time."""
    which = "one" if held_out else "all but one"
    limit = "" if most is None else phrase(", at most {most}", most)

    def find() -> list[int]:
        by_digest = _by_digest(_input_digests(data))
        count = len(by_digest) // share
        return sorted((by_digest[:count] if held_out else by_digest[count:])[:most])

    return SomeSamples(data, find, lambda digest: f"{digest} {which} in {share}{limit}")


def _at(data: Data, places: tuple[int, ...]) -> Data:
    """The samples at given places."""
    return SomeSamples(
        data, lambda: places, lambda digest: sha256(f"{digest} {places}".encode()).hexdigest()
    )


def split_data(data: Data, shares: Sequence[float]) -> list[Data]:
    """The data in parts of about these shares, the last one with the rest.

    Samples are told apart by what they hold: the order of the data does not matter, and a sample
    that is there twice is twice in one part.
    """
    stored = data.items.stored
    digests = _input_digests(data) if stored is None else _item_digests(stored)
    order = _by_digest(digests)
    parts: list[Data] = []
    start = 0
    for number, share in enumerate(shares, 1):
        end = min(start + round(share * len(order)), len(order))
        if number == len(shares):
            end = len(order)
        while 0 < end < len(order) and digests[order[end]] == digests[order[end - 1]]:
            end += 1
        places = order[start:end]  # by their contents too: what is chosen of a part is the same
        parts.append(_at(data, tuple(sorted(places))) if stored is None else stored.at(places))
        start = end
    return parts


def count_shared(a: Data, b: Data) -> int:
    """How many samples of the first are in the second too, by what they hold."""
    one, other = a.items.stored, b.items.stored
    if one is not None and other is not None and one.batch == other.batch:
        own, known = _item_digests(one), {*_item_digests(other)}
    else:
        own, known = _input_digests(a), {*_input_digests(b)}
    return sum(digest in known for digest in own)


def take_some(data: Data, most: int) -> Data:
    """The data, or so many of its samples from all over it."""
    if len(data) <= most:
        return data
    stored = data.items.stored
    return part_of(data, 1, held_out=True, most=most) if stored is None else stored.spread(most)


def look_at_some(data: Data, most: int) -> Iterable[Sample]:
    """At most so many samples: from all over stored data, of other data the first."""
    stored = data.items.stored
    return islice(data, most) if stored is None else stored.spread(most)


def items(data: Data) -> int:
    """How many items there are: a sample of a model with a batch has several."""
    return len(data) * data.items.batch


def _by_digest(digests: Sequence[bytes]) -> list[int]:
    return sorted(range(len(digests)), key=lambda place: digests[place])


def _input_digests(data: Data) -> list[bytes]:
    return [sha256(b"".join(a.tobytes() for a in s.inputs)).digest() for s in data]


def _item_digests(data: Samples) -> list[bytes]:
    """The same from what was stored, which need not be prepared for it."""
    batches = (data.digests[n * data.batch :][: data.batch] for n in range(len(data)))
    return [sha256("".join(items).encode()).digest() for items in batches]
