"""Patterns: chains of ops in a graph, each feeding only the next."""

from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from litesmith.ir.edit import consumers
from litesmith.ir.types import Graph, Op, Tensor


class Reads(NamedTuple):
    """The readers of each tensor, and the tensors that leave the graph."""

    readers: dict[Tensor, list[Op]]
    leaving: frozenset[Tensor]

    def only_reader(self, tensor: Tensor) -> Op | None:
        """The only op that reads the tensor; None where the tensor has other uses."""
        readers = self.readers.get(tensor, [])
        return readers[0] if len(readers) == 1 and tensor not in self.leaving else None


def reads(graph: Graph) -> Reads:
    return Reads(consumers(graph), frozenset(graph.outputs))


def chains(graph: Graph, pattern: Sequence[Set[str]]) -> Iterator[tuple[Op, ...]]:
    """Every chain whose ops have kinds from the pattern's sets, in order of the first op.

    The first output of each of its ops is read by the next one alone.
    """
    uses = reads(graph)
    for op in graph.ops:
        chain = _chain(op, pattern, uses)
        if chain is not None:
            yield chain


def _chain(op: Op, pattern: Sequence[Set[str]], uses: Reads) -> tuple[Op, ...] | None:
    found = [op]
    for place, kinds in enumerate(pattern):
        if found[-1].kind not in kinds:
            return None
        if place + 1 < len(pattern):
            following = uses.only_reader(found[-1].outputs[0]) if found[-1].outputs else None
            if following is None:
                return None
            found.append(following)
    return tuple(found)
