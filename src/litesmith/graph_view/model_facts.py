"""A model as a page of graphs shows it: its ops, times, weights, and the accelerators."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from litesmith.anatomy.source_file import SourceFile
from litesmith.graph_view.op_facts import (
    OpFacts,
    Place,
    TensorFacts,
    WeightBars,
    op_facts,
    tensor_facts,
    weight_bars,
)
from litesmith.graph_view.op_measures import Timing
from litesmith.graph_view.op_pairs import GraphPairs, graph_of
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.layers import Layer, layers_of
from litesmith.run.accelerators.targets import DELEGATES, FAMILIES
from litesmith.units import plain

# The member that represents each family of accelerators.
_SHOWN = frozenset(FAMILIES.values())

Ends = tuple[tuple[TensorFacts, ...], tuple[TensorFacts, ...]]


class OpHome(NamedTuple):
    """Whether an accelerator takes an op, and why or why not; by rules alone."""

    is_taken: bool
    why: str


@dataclass(frozen=True, eq=False)
class ModelFacts:
    """One of the models.

    ends   the inputs and the outputs of each graph
    bars   the histogram of each layer's weights, on one axis with its counterpart's
    homes  for each accelerator, its answer for each op of the main graph
    """

    name: str
    bytes: int
    ops: Mapping[Place, OpFacts]
    ends: tuple[Ends, ...]
    timing: Timing
    bars: Mapping[Place, WeightBars]
    homes: Mapping[str, tuple[OpHome, ...]]


def model_facts(source: SourceFile, timing: Timing, bars: Mapping[Place, WeightBars]) -> ModelFacts:
    graphs = source.model.graphs
    return ModelFacts(
        name=plain(source.name),
        bytes=source.bytes,
        ops=op_facts(source.model),
        ends=tuple((_facts(graph.inputs), _facts(graph.outputs)) for graph in graphs),
        timing=timing,
        bars=bars,
        homes=_homes(source.model),
    )


def _facts(tensors: Sequence[Tensor]) -> tuple[TensorFacts, ...]:
    return tuple(map(tensor_facts, tensors))


def _homes(model: Model) -> dict[str, tuple[OpHome, ...]]:
    return {
        one.name: tuple(OpHome(home.taken, home.why) for home in one.predict(model).homes)
        for one in DELEGATES
        if one.predict is not None and (not one.name.startswith("ethos") or one.name in _SHOWN)
    }


def pair_bars(
    models: Sequence[Model], pairs: Sequence[GraphPairs]
) -> tuple[dict[Place, WeightBars], ...]:
    """The histograms of each model's weights, those of a pair on one axis."""
    found: tuple[dict[Place, WeightBars], ...] = tuple({} for _ in models)
    for number, known in enumerate(pairs):
        layers = [_layers(model, number) for model in models]
        for row in _rows(layers, known.pairs):
            own = [None if n is None else side.get(n) for n, side in zip(row, layers, strict=True)]
            for place, side, bars in zip(row, found, weight_bars(*own), strict=True):
                if bars is not None and place is not None:
                    side[number, place] = bars
    return found


def _layers(model: Model, number: int) -> dict[int, Layer]:
    """The ops of a graph that have weights, by index."""
    graph = graph_of(model, number)
    found = layers_of(graph)
    return {place: found[op] for place, op in enumerate(graph.ops) if op in found}


def _rows(
    layers: Sequence[Mapping[int, Layer]], pairs: Mapping[int, int]
) -> Iterator[tuple[int | None, ...]]:
    """The layers of both models, row by row."""
    if len(layers) == 1:
        yield from ((index,) for index in layers[0])
        return
    yield from ((index, pairs.get(index)) for index in layers[0])
    shown = {pairs.get(index) for index in layers[0]}
    yield from ((None, index) for index in layers[1] if index not in shown)
