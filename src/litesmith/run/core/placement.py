"""`Placement`: where each op of a model goes on a target, and why."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.types import Model, Op
from litesmith.phrases import phrase

# How a placement or a latency came about: the compiler or runtime really did it; a tool made for
# the accelerator worked it out; rules from public documents say so.
MEASURED: str = phrase("measured")
ESTIMATED: str = phrase("estimated")
PREDICTED: str = phrase("predicted")

Fact = float | int | str

_MARK = re.compile(r"op(\d+)\.")


class Home(NamedTuple):
    """The place where one op of the main graph runs."""

    place: int  # number of the op in the main graph
    kind: str
    taken: bool  # True where the accelerator takes it
    why: str  # why it does, or why not: never empty


@dataclass(frozen=True)
class Placement:
    """The placement of a model on a target."""

    target: str
    how: str
    homes: tuple[Home, ...]  # one for every op of the main graph, in order
    partitions: int  # runs of neighbouring ops that the accelerator takes
    latency_us: float | None = None
    latency_how: str = ""
    facts: Mapping[str, Fact] = field(default_factory=lambda: MappingProxyType({}))
    refused: str = ""  # why it takes the model not at all
    needs_int8: bool = False  # True where it would take the model once that is int8

    @property
    def taken(self) -> int:
        return sum(home.taken for home in self.homes)

    @property
    def left(self) -> int:
        return len(self.homes) - self.taken

    @property
    def is_whole(self) -> bool:
        """True where nothing stays on the CPU."""
        return bool(self.homes) and not self.left

    @property
    def main_reason(self) -> str:
        """The reason that keeps most ops on the CPU, or the model from the target; "" where there
        is none."""
        if self.refused:
            return self.refused
        reasons = Counter(home.why for home in self.homes if not home.taken)
        return max(reasons, key=reasons.__getitem__, default="")

    def __str__(self) -> str:
        if self.refused:
            return f"{self.target}: {self.refused}"
        pieces = (
            "1 partition"
            if self.partitions == 1
            else phrase("{partitions} partitions", self.partitions)
        )
        return phrase(
            "{target}: {taken} of {count} ops in {pieces} ({how})",
            self.target,
            self.taken,
            len(self.homes),
            pieces,
            self.how,
        )


def mark_ops(model: Model) -> Model:
    """The model with tensors named after the ops of the main graph that make them, so that these
    can be found in a compiler's output."""
    graph = model.main
    marked = {
        tensor: replace(tensor, name=f"op{place}.{number}")
        for place, op in enumerate(graph.ops)
        for number, tensor in enumerate(op.outputs)
    }
    for number, tensor in enumerate(graph.tensors):
        if tensor not in marked:
            marked[tensor] = replace(tensor, name=f"in{number}")
    return with_graphs(model, [rewrite(graph, tensors=marked), *model.graphs[1:]], marked)


def marks_of(ops: Iterable[Op]) -> set[int]:
    """The marked ops whose results these ops make."""
    found = (_MARK.match(tensor.name) for op in ops for tensor in op.outputs)
    return {int(mark[1]) for mark in found if mark is not None}


def refuse(target: str, how: str, model: Model, why: str) -> Placement:
    """The placement where the target does not take the model at all."""
    ops = enumerate(model.main.ops)
    homes = tuple(Home(place, op.kind, taken=False, why=why) for place, op in ops)
    return Placement(target, how, homes, 0, refused=why)
