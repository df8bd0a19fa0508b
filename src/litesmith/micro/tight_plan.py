"""A plan with less memory than the interpreter's own: many orders of placement are tried.

No plan is smaller than the bytes live at one tick. A plan is proven, not believed: `find_clashes`
compares every pair of buffers by itself, whatever placed them.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from litesmith.ir.types import Model, Op
from litesmith.micro.buffers import ALIGNMENT, Buffer, align_up, live_bytes
from litesmith.micro.greedy_plan import MemoryPlan, plan_greedily
from litesmith.micro.overlap import shared_distance

# For the output of an op and an input that dies there: how far below the input the output must
# start.
Shared = Mapping[tuple[Buffer, Buffer], int]

_TRIES = 4000  # placements of one buffer, over all orders that are tried


def plan_tightly(
    buffers: Sequence[Buffer], shared: Shared | None = None, seed: int = 0
) -> MemoryPlan:
    """The smallest plan found; never larger than the interpreter's own."""
    pairs = shared or {}
    best = plan_greedily(buffers)
    bound = 0 if pairs else max(live_bytes(buffers).values(), default=0)
    random = Random(seed)
    orders = [sorted(range(len(buffers)), key=key) for key in _keys(buffers)]
    rivals = _Neighbours(buffers, pairs)
    favourite: list[int] = list(range(len(buffers)))
    for attempt in range(max(len(orders), min(400, _TRIES // max(1, len(buffers))))):
        order = orders[attempt] if attempt < len(orders) else _disturb(favourite, random)
        found = rivals.place(order)
        if found.bytes < best.bytes:
            best, favourite = found, order
        if best.bytes <= bound:
            break
    return best


def _keys(buffers: Sequence[Buffer]) -> list[Callable[[int], tuple[int, ...]]]:
    """Orders that are known to be good: large first, long-lived first, those at the peak first."""
    lives = live_bytes(buffers)
    peak = [max((lives.get(t, 0) for t in range(b.first, b.last + 1)), default=0) for b in buffers]

    def area(n: int) -> int:
        return buffers[n].bytes * (buffers[n].last - buffers[n].first + 1)

    return [
        lambda n: (-buffers[n].bytes, buffers[n].first),
        lambda n: (-peak[n], -buffers[n].bytes),
        lambda n: (-peak[n], buffers[n].first),
        lambda n: (-area(n),),
        lambda n: (buffers[n].first, -buffers[n].bytes),
        lambda n: (-buffers[n].last, -buffers[n].bytes),
        # From the end: a chain of layers, each output just below its input.
        lambda n: (-buffers[n].first, -buffers[n].bytes),
        lambda n: (buffers[n].first - buffers[n].last, -buffers[n].bytes),
    ]


def _disturb(order: Sequence[int], random: Random) -> list[int]:
    """The order with one buffer moved to another place."""
    changed = list(order)
    one = changed.pop(random.randrange(len(changed)))
    changed.insert(random.randrange(len(changed) + 1), one)
    return changed


class _Neighbours:
    """For each buffer, the buffers that live at the same time and how near each may lie."""

    def __init__(self, buffers: Sequence[Buffer], shared: Shared) -> None:
        self._buffers = tuple(buffers)
        self._near: list[dict[int, tuple[int, int]]] = [{} for _ in buffers]
        for n, one in enumerate(buffers):
            for m, other in enumerate(buffers):
                if n != m and one.meets(other):
                    self._near[n][m] = _gaps(one, other, shared)

    def place(self, order: Sequence[int]) -> MemoryPlan:
        offsets = [-1] * len(self._buffers)
        for number in order:
            offsets[number] = self._lowest(number, offsets)
        return MemoryPlan(self._buffers, tuple(offsets))

    def _lowest(self, number: int, offsets: Sequence[int]) -> int:
        """The lowest offset that no placed rival forbids."""
        forbidden = sorted(
            (offsets[m] - below, offsets[m] + above)
            for m, (below, above) in self._near[number].items()
            if offsets[m] >= 0
        )
        at = 0
        for low, high in forbidden:
            if at <= low:
                break
            at = max(at, align_up(high))
        return at


def _gaps(one: Buffer, other: Buffer, shared: Shared) -> tuple[int, int]:
    """The least distances at which `one` must start below the other, or above it."""
    below = shared.get((one, other), one.bytes)  # one is an output, written over the other
    above = shared.get((other, one), other.bytes)
    return below, above


def find_clashes(plan: MemoryPlan, shared: Shared | None = None) -> list[tuple[Buffer, Buffer]]:
    """Pairs that would destroy each other's values; a plan without any is proven.

    Every pair that lives at a common tick lies apart, or is an output and an input that dies there
    with the distance that the kernel needs.
    """
    pairs = shared or {}
    found: list[tuple[Buffer, Buffer]] = []
    placed = list(zip(plan.buffers, plan.offsets, strict=True))
    for n, (one, at) in enumerate(placed):
        if at % ALIGNMENT or at < 0:
            found.append((one, one))
        for other, there in placed[n + 1 :]:
            if not one.meets(other) or at + one.bytes <= there or there + other.bytes <= at:
                continue
            is_below = (one, other) in pairs and there - at >= pairs[one, other]
            is_above = (other, one) in pairs and at - there >= pairs[other, one]
            if not is_below and not is_above:
                found.append((one, other))
    return found


def list_shared(model: Model, buffers: Sequence[Buffer]) -> dict[tuple[Buffer, Buffer], int]:
    """Outputs of the main graph that may be written over an input that dies there."""
    by_tensor = {one.tensor: one for one in buffers if one.tensor is not None}
    found: dict[tuple[Buffer, Buffer], int] = {}
    for op in model.main.ops:
        made = by_tensor.get(op.outputs[0]) if len(op.outputs) == 1 else None
        for place, tensor in enumerate(op.inputs):
            source = by_tensor.get(tensor) if tensor is not None else None
            if made is None or source is None or tensor in model.main.outputs:
                continue
            if not _dies_at(source, made, op):
                continue
            distance = shared_distance(op, place)
            if distance is not None and distance < made.bytes:
                found[made, source] = distance
    return found


def _dies_at(source: Buffer, made: Buffer, op: Op) -> bool:
    """True where the op is the last to read the source, and reads it once."""
    return source.last == made.first and list(op.inputs).count(source.tensor) == 1
