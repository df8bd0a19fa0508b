"""TensorFlow Lite Micro's own plan: the largest buffer first, each into the first gap that fits.

The placement equals that of `greedy_memory_planner.cc`, ties included, so that a plan of ours is
compared with the bytes that a device would really use without it.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from litesmith.micro.buffers import Buffer


@dataclass(frozen=True, eq=False)
class MemoryPlan:
    """The offset of each buffer from the start of the arena, in the order of `buffers`."""

    buffers: tuple[Buffer, ...]
    offsets: tuple[int, ...]

    @cached_property
    def bytes(self) -> int:
        """The size of the arena's head."""
        ends = (at + one.bytes for at, one in zip(self.offsets, self.buffers, strict=True))
        return max(ends, default=0)

    def overlaps(self) -> list[tuple[Buffer, Buffer]]:
        """Pairs that share bytes while both live."""
        placed = sorted(zip(self.offsets, self.buffers, strict=True), key=lambda pair: pair[0])
        found: list[tuple[Buffer, Buffer]] = []
        for place, (at, one) in enumerate(placed):
            for other_at, other in placed[place + 1 :]:
                if other_at >= at + one.bytes:
                    break
                if one.meets(other):
                    found.append((one, other))
        return found


def plan_greedily(
    buffers: Sequence[Buffer], fixed: Mapping[Buffer, int] | None = None
) -> MemoryPlan:
    """The interpreter's plan; `fixed` are offsets that the file itself gives."""
    given = fixed or MappingProxyType({})
    numbers = range(len(buffers))
    first = [n for n in numbers if buffers[n] in given]
    # From the last to the first, then sorted by size without disturbing ties.
    rest = [n for n in reversed(numbers) if buffers[n] not in given]
    rest.sort(key=lambda n: -buffers[n].bytes)
    offsets = [0] * len(buffers)
    placed: list[int] = []  # numbers by offset
    starts: list[int] = []
    for number in (*first, *rest):
        one = buffers[number]
        at = given[one] if one in given else _first_gap(one, placed, offsets, buffers)
        offsets[number] = at
        place = bisect_right(starts, at)
        placed.insert(place, number)
        starts.insert(place, at)
    return MemoryPlan(tuple(buffers), tuple(offsets))


def _first_gap(
    one: Buffer, placed: Sequence[int], offsets: Sequence[int], buffers: Sequence[Buffer]
) -> int:
    """The lowest offset at which the buffer shares bytes with nothing that lives beside it."""
    at = 0
    for number in placed:
        other = buffers[number]
        if not one.meets(other):
            continue
        if offsets[number] - at >= one.bytes:
            break
        at = max(at, offsets[number] + other.bytes)
    return at
