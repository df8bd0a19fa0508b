"""The form of every op at the least cost: of the ops themselves, and of conversions between them.

One form after the other is offered to all ops at once, and a minimum cut tells who takes it. With
two forms the first offer ends at the optimum; with more, at a choice that no offer of one form
improves.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from litesmith.numeric.minimum_cut import ENDLESS, SINK, SOURCE, FlowNetwork

# Costs are whole numbers of so many parts of a microsecond.
_PARTS = 1000

# Offers of every form; each pass over them lowers the cost, and a few do.
_MOST_PASSES = 8


class Flow(NamedTuple):
    """What one op writes and others read. A form that the writer has not got is made once, however
    many read it.

    cost  microseconds that making one more form takes
    """

    writer: int
    readers: tuple[int, ...]
    cost: float

    def conversions(self, forms: Sequence[str]) -> int:
        """How often it is converted where ops have these forms."""
        return len({forms[op] for op in self.readers} - {forms[self.writer]})


class Penalty(NamedTuple):
    """What is lost, in microseconds that it is worth, where any of these ops has this form."""

    ops: frozenset[int]
    form: str
    cost: float


@dataclass(frozen=True)
class Costs:
    """What every choice costs.

    ops  of each op, microseconds in each form that it can have
    """

    ops: Sequence[Mapping[str, float]]
    flows: Sequence[Flow] = ()
    penalties: Sequence[Penalty] = ()

    def of(self, forms: Sequence[str]) -> float:
        """What ops in these forms take, with all conversions and penalties."""
        own = sum(costs[form] for costs, form in zip(self.ops, forms, strict=True))
        converted = sum(flow.cost * flow.conversions(forms) for flow in self.flows)
        lost = sum(p.cost for p in self.penalties if any(forms[op] == p.form for op in p.ops))
        return own + converted + lost


def assign(costs: Costs) -> tuple[str, ...]:
    """The form of each op."""
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
    """Who takes a form that is offered to all at once, at the least cost."""
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
    """The network of one offer: who lies on the far side of its cut takes the form."""

    def __init__(self, now: Sequence[str], form: str, allowed: Sequence[bool]) -> None:
        self._now, self._form = now, form
        self._network = FlowNetwork()
        self._nodes = {
            op: self._network.node() for op, has in enumerate(now) if has != form and allowed[op]
        }

    def is_free(self, op: int) -> bool:
        """Whether an op can choose."""
        return op in self._nodes

    def charge(
        self, taking: Collection[int] | None, staying: Collection[int] | None, cost: float
    ) -> None:
        """Costs this much where any of `taking` takes the form, or has it, and any of `staying`
        does not; None for either means always."""
        capacity = round(cost * _PARTS)
        ends = self._ends(taking, SINK, has=True)
        starts = self._ends(staying, SOURCE, has=False)
        if not capacity or not ends or not starts:
            return
        start = self._gather(starts, is_start=True)
        end = self._gather(ends, is_start=False)
        self._network.join(start, end, capacity)

    def _ends(self, ops: Collection[int] | None, always: int, *, has: bool) -> list[int]:
        """The nodes of some ops; the source or the sink alone where one of them is settled."""
        if ops is None:
            return [always]
        settled = (op for op in ops if op not in self._nodes)
        if any((self._now[op] == self._form) == has for op in settled):
            return [always]
        return [self._nodes[op] for op in ops if op in self._nodes]

    def _gather(self, nodes: Sequence[int], *, is_start: bool) -> int:
        """One node that stands for any of several."""
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
