"""Chooses a form for every op so that ops, and the conversions between them, cost least in total.

Each form in turn is offered to all ops at once, and a minimum cut decides which ops accept it. With
two forms, one offer finds the optimum; with more, the search ends when no single offer improves the
total.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from litesmith.numeric.minimum_cut import ENDLESS, SINK, SOURCE, FlowNetwork

# The cut needs whole numbers, so costs are counted in this fraction of a microsecond.
_PARTS = 1000

# A pass offers every form once. Each pass lowers the cost, and a few passes suffice.
_MOST_PASSES = 8


class Flow(NamedTuple):
    """A tensor that one op writes and others read. It is converted once for each further form in
    which it is read, no matter how many ops read that form.

    cost  microseconds of one conversion
    """

    writer: int
    readers: tuple[int, ...]
    cost: float

    def conversions(self, forms: Sequence[str]) -> int:
        """The number of conversions that these forms of the ops require."""
        return len({forms[op] for op in self.readers} - {forms[self.writer]})


class Penalty(NamedTuple):
    """A cost, in microseconds, that is due once if any of these ops has this form."""

    ops: frozenset[int]
    form: str
    cost: float


@dataclass(frozen=True)
class Costs:
    """The cost of every possible choice of forms.

    ops  for each op, its microseconds in each form that it can have
    """

    ops: Sequence[Mapping[str, float]]
    flows: Sequence[Flow] = ()
    penalties: Sequence[Penalty] = ()

    def of(self, forms: Sequence[str]) -> float:
        """The cost of ops in these forms, conversions and penalties included."""
        own = sum(costs[form] for costs, form in zip(self.ops, forms, strict=True))
        converted = sum(flow.cost * flow.conversions(forms) for flow in self.flows)
        lost = sum(p.cost for p in self.penalties if any(forms[op] == p.form for op in p.ops))
        return own + converted + lost


def assign(costs: Costs) -> tuple[str, ...]:
    """Chooses the form of each op."""
    names = list(dict.fromkeys(form for row in costs.ops for form in row))
    cheapest = [min(row, key=row.__getitem__) for row in costs.ops]
    pairs = zip(costs.ops, cheapest, strict=True)
    best = tuple(names[0] if names[0] in row else other for row, other in pairs)
    for _ in range(_MOST_PASSES):
        before = costs.of(best)
        for name in names[::-1]:
            offered = _offer(costs, best, name)
            if costs.of(offered) < costs.of(best):
                best = offered
        if costs.of(best) >= before:
            break
    return best


def _offer(costs: Costs, now: Sequence[str], form: str) -> tuple[str, ...]:
    """The forms of all ops after one form was offered: ops accept it where that lowers the cost."""
    offer = _Offer(now, form, [form in row for row in costs.ops])
    for op, row in enumerate(costs.ops):
        if offer.is_free(op):
            offer.charge((op,), None, row[form])
            offer.charge(None, (op,), row[now[op]])
    for flow in costs.flows:
        offer.charge(flow.readers, (flow.writer,), flow.cost)
        for other in {now[op] for op in flow.readers} - {form}:
            staying = [op for op in flow.readers if now[op] == other]
            moved = (flow.writer,) if now[flow.writer] == other else None
            offer.charge(moved, staying, flow.cost)
    for penalty in costs.penalties:
        if penalty.form == form:
            offer.charge(tuple(penalty.ops), None, penalty.cost)
        else:
            offer.charge(None, [op for op in penalty.ops if now[op] == penalty.form], penalty.cost)
    return offer.taken()


class _Offer:
    """The flow network of one offer: ops on the far side of its minimum cut accept the form."""

    def __init__(self, now: Sequence[str], form: str, allowed: Sequence[bool]) -> None:
        self._now, self._form = now, form
        self._network = FlowNetwork()
        self._nodes = {
            op: self._network.node() for op, has in enumerate(now) if has != form and allowed[op]
        }

    def is_free(self, op: int) -> bool:
        """True where an op may accept or decline: it can have the form and does not have it yet."""
        return op in self._nodes

    def charge(
        self, taking: Collection[int] | None, staying: Collection[int] | None, cost: float
    ) -> None:
        """Adds a cost that is due where any op of `taking` ends up in the form while any op of
        `staying` does not; None instead of ops stands for a condition that always holds."""
        capacity = round(cost * _PARTS)
        ends = self._ends(taking, SINK, has=True)
        starts = self._ends(staying, SOURCE, has=False)
        if not capacity or not ends or not starts:
            return
        start = self._gather(starts, is_start=True)
        end = self._gather(ends, is_start=False)
        self._network.join(start, end, capacity)

    def _ends(self, ops: Collection[int] | None, always: int, *, has: bool) -> list[int]:
        """The nodes of the ops that can choose; only `always` where a settled op already meets the
        condition."""
        if ops is None:
            return [always]
        settled = (op for op in ops if op not in self._nodes)
        if any((self._now[op] == self._form) == has for op in settled):
            return [always]
        return [self._nodes[op] for op in ops if op in self._nodes]

    def _gather(self, nodes: Sequence[int], *, is_start: bool) -> int:
        """A single node that stands for "any of these nodes"."""
        if len(nodes) == 1:
            return nodes[0]
        joint = self._network.node()
        for node in nodes:
            pair = (node, joint) if is_start else (joint, node)
            self._network.join(*pair, ENDLESS)
        return joint

    def taken(self) -> tuple[str, ...]:
        far = self._network.far_side()
        return tuple(
            self._form if self._nodes.get(op) in far else has for op, has in enumerate(self._now)
        )
