"""Some of the samples for the work, the others to judge it by."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np

from litesmith.ir.types import Array
from litesmith.measure.data import Samples
from litesmith.measure.samples import Data, Sample


@dataclass(frozen=True, eq=False)
class Part:
    """The samples of some data that are held out, or the others: the same ones each time.

    share     one in so many is held out
    held_out  True for these, False for the others
    most      no more than so many; None for all
    """

    data: Data
    share: int
    held_out: bool
    most: int | None = None

    @property
    def source(self) -> str:
        return self.data.source

    @property
    def digest(self) -> str:
        which = "one" if self.held_out else "all but one"
        limit = "" if self.most is None else f", at most {self.most}"
        return f"{self.data.digest} {which} in {self.share}{limit}"

    @property
    def notes(self) -> tuple[str, ...]:
        return self.data.notes

    @property
    def classes(self) -> Array | None:
        """The class of each item, where the data knows them."""
        known: Array | None = getattr(self.data, "classes", None)
        if known is None:
            return None
        batch = len(known) // max(1, len(self.data))
        items = [place * batch + item for place in self._places for item in range(batch)]
        return known[np.array(items, np.intp)]

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Sample]:
        if isinstance(self.data, Samples):  # what is not asked for is not read
            return iter(self.data.at(self._places))
        places = frozenset(self._places)
        return (sample for place, sample in enumerate(self.data) if place in places)

    @cached_property
    def _places(self) -> list[int]:
        """Chosen by what the samples hold, so that their order does not matter."""
        digests = [sha256(b"".join(a.tobytes() for a in s.inputs)).digest() for s in self.data]
        by_digest = sorted(range(len(digests)), key=lambda place: digests[place])
        count = len(digests) // self.share
        return sorted((by_digest[:count] if self.held_out else by_digest[count:])[: self.most])
