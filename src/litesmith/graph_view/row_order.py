"""One order for the ops of two graphs in which every value is written before it is read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from litesmith.ir.types import Graph

A, B = 0, 1
INPUT, OP, OUTPUT = "input", "op", "output"


class GraphRow(NamedTuple):
    """An op of one graph or a pair of both, by index; or an input or output of the graphs."""

    kind: str
    a: int | None
    b: int | None

    def on(self, side: int) -> int | None:
        return self.b if side == B else self.a


class RowEdge(NamedTuple):
    """A value from one row to another, on the side of A or of B."""

    start: int
    end: int
    side: int


@dataclass(frozen=True)
class OrderedRows:
    """Rows from the inputs to the outputs, and the values that pass between them."""

    rows: tuple[GraphRow, ...]
    edges: tuple[RowEdge, ...]


# The similarity of two rows' names: more similar rows should stand closer.
Nearness = Callable[[GraphRow, GraphRow], int]
_Node = tuple[str, int]  # INPUT, OP or OUTPUT, and which


def order_rows(
    a: Graph, b: Graph | None, pairs: Mapping[int, int], nearness: Nearness
) -> OrderedRows:
    """Orders the rows of two graphs, or of one. A pair whose ops cannot share a row, because the
    graphs run them in opposite orders, becomes two rows.
    """
    graphs = (a,) if b is None else (a, b)
    needs = tuple(_needs(graph) for graph in graphs)
    work = _Order(_start(graphs, pairs), needs, nearness)
    rows = tuple(work.order())
    return OrderedRows(rows, tuple(_edges(rows, needs)))


def _needs(graph: Graph) -> dict[_Node, list[_Node]]:
    """The nodes that each node of a graph reads."""
    makers = {t: (INPUT, n) for n, t in enumerate(graph.inputs)}
    needs: dict[_Node, list[_Node]] = {(INPUT, n): [] for n in range(len(graph.inputs))}
    for index, op in enumerate(graph.ops):
        read = [makers[t] for t in op.inputs if t is not None and t in makers]
        needs[OP, index] = list(dict.fromkeys(read))
        makers |= dict.fromkeys(op.outputs, (OP, index))
    for number, tensor in enumerate(graph.outputs):
        needs[OUTPUT, number] = [makers[tensor]] if tensor in makers else []
    return needs


def _start(graphs: Sequence[Graph], pairs: Mapping[int, int]) -> list[GraphRow]:
    """All rows in an initial order: that of the first graph, with rows only in the second behind
    their neighbours."""
    ends = [(len(g.inputs), len(g.outputs)) for g in graphs]
    most = [max(counts) for counts in zip(*ends, strict=True)]
    inputs = [_end(INPUT, n, [count[0] for count in ends]) for n in range(most[0])]
    outputs = [_end(OUTPUT, n, [count[1] for count in ends]) for n in range(most[1])]
    ops = [GraphRow(OP, index, pairs.get(index)) for index in range(len(graphs[0].ops))]
    if len(graphs) == 1:
        return [*inputs, *ops, *outputs]
    taken = set(pairs.values())
    at = {row.b: place for place, row in enumerate(ops) if row.b is not None}
    keyed = [((place, 0), row) for place, row in enumerate(ops)]
    before = -1
    for index in range(len(graphs[1].ops)):
        before = at.get(index, before)
        if index not in taken:
            keyed.append(((before, index + 1), GraphRow(OP, None, index)))
    return [*inputs, *(row for _, row in sorted(keyed, key=lambda pair: pair[0])), *outputs]


def _end(kind: str, number: int, counts: Sequence[int]) -> GraphRow:
    own = [number if number < count else None for count in counts]
    return GraphRow(kind, own[0], own[1] if len(own) > 1 else None)


class _Order:
    """Takes ready rows one by one; among several, the one most similar to the last."""

    def __init__(
        self,
        rows: list[GraphRow],
        needs: Sequence[Mapping[_Node, list[_Node]]],
        nearness: Nearness,
    ) -> None:
        self._needs, self._nearness = needs, nearness
        self._waiting: dict[int, GraphRow] = dict(enumerate(rows))
        self._done: tuple[set[_Node], ...] = tuple(set[_Node]() for _ in needs)
        self._left: dict[int, int] = {}
        self._readers: tuple[dict[_Node, list[int]], ...] = tuple({} for _ in needs)
        for place, row in self._waiting.items():
            self._count(place, row)
        self._next = len(rows)

    def _count(self, place: int, row: GraphRow) -> None:
        """Counts the nodes that a row waits for."""
        self._left[place] = 0
        for side in range(len(self._needs)):
            for node in self._missing(row, side):
                self._left[place] += 1
                self._readers[side].setdefault(node, []).append(place)

    def _missing(self, row: GraphRow, side: int) -> list[_Node]:
        index = row.on(side)
        if index is None:
            return []
        return [node for node in self._needs[side][row.kind, index] if node not in self._done[side]]

    def order(self) -> Iterator[GraphRow]:
        ready = {place for place, left in self._left.items() if not left}
        last: GraphRow | None = None
        while self._waiting:
            if not ready:
                ready.add(self._split())
            place = self._choose(ready, last)
            ready.discard(place)
            last = self._waiting.pop(place)
            yield last
            ready |= self._finish(last)

    def _choose(self, ready: set[int], last: GraphRow | None) -> int:
        if last is None or len(ready) == 1:
            return min(ready)
        return min(ready, key=lambda place: (-self._nearness(last, self._waiting[place]), place))

    def _finish(self, row: GraphRow) -> set[int]:
        """The rows that become ready after a row."""
        freed: set[int] = set()
        for side in range(len(self._needs)):
            index = row.on(side)
            if index is None:
                continue
            node = (row.kind, index)
            self._done[side].add(node)
            for place in self._readers[side].pop(node, ()):
                if place in self._waiting:
                    self._left[place] -= 1
                    if not self._left[place]:
                        freed.add(place)
        return freed

    def _split(self) -> int:
        """Splits the first pair of which one op is ready; returns the place of that op."""
        for place, row in self._waiting.items():
            for side in range(len(self._needs)):
                if row.on(side) is not None and not self._missing(row, side):
                    return self._part(place, row, side)
        raise AssertionError("the first op of a graph that waits is ready")

    def _part(self, place: int, row: GraphRow, side: int) -> int:
        alone = (row._replace(b=None), row._replace(a=None))
        later, self._next = self._next, self._next + 1
        self._waiting[place] = alone[side]
        self._left[place] = 0
        self._waiting[later] = alone[1 - side]
        for readers in self._readers:
            for node, places in readers.items():
                readers[node] = [one for one in places if one != place]
        self._count(later, alone[1 - side])
        return place


def _edges(
    rows: Sequence[GraphRow], needs: Sequence[Mapping[_Node, list[_Node]]]
) -> Iterator[RowEdge]:
    for side, read in enumerate(needs):
        at = {
            (row.kind, index): place
            for place, row in enumerate(rows)
            for index in [row.on(side)]
            if index is not None
        }
        for node, sources in read.items():
            for source in sources:
                yield RowEdge(at[source], at[node], side)
