"""What a step is: one frozen dataclass a technique; its fields are its whole configuration."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from litesmith.ir.edit import with_graphs
from litesmith.ir.types import Graph, Model


class Skip(NamedTuple):
    """Something a step left alone, and why."""

    where: str
    why: str


@dataclass(frozen=True)
class Change:
    """What a step gives: the new model, what it touched, and what it left alone."""

    model: Model
    touched: tuple[str, ...] = ()
    skipped: tuple[Skip, ...] = ()


@dataclass(frozen=True)
class Context:
    """What steps may ask for from the layers above; there is nothing to ask for yet."""


class Step(Protocol):
    """A technique with its settings. `apply` never changes the model it is given."""

    def apply(self, model: Model, context: Context) -> Change: ...


def settle(
    model: Model, edits: Sequence[Callable[[Model], Change]], most_rounds: int = 10_000
) -> Change:
    """Applies the edits in turn, again and again, until a round touches nothing.

    What was skipped counts as of the last round: a reason may be gone once a neighbour changed.
    """
    touched: list[str] = []
    skipped: list[Skip] = []
    for _ in range(most_rounds):
        before = len(touched)
        skipped = []
        for edit in edits:
            change = edit(model)
            model = change.model
            touched += change.touched
            skipped += change.skipped
        if len(touched) == before:
            break
    return Change(model, tuple(touched), tuple(skipped))


GraphEdit = Callable[[Graph], tuple[Graph, list[str], list[Skip]]]


def on_graphs(model: Model, edit: GraphEdit) -> Change:
    """Applies an edit to every graph. It must leave the graphs' own inputs and outputs in place."""
    graphs: list[Graph] = []
    touched: list[str] = []
    skipped: list[Skip] = []
    for graph in model.graphs:
        edited, did, left = edit(graph)
        graphs.append(edited if did else graph)
        touched += did
        skipped += left
    return Change(with_graphs(model, graphs) if touched else model, tuple(touched), tuple(skipped))
