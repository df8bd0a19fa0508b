"""A source model as a `Model`: lowered, its order solved, tidied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from litesmith.convert.integer_islands import integer_islands
from litesmith.convert.lowering import COMPUTED_AS, Left, Lowering
from litesmith.convert.rule_table import RULES
from litesmith.convert.source import SourceModel
from litesmith.errors import BadInput, BadModel
from litesmith.ir.types import Model, Signature


@dataclass(frozen=True, eq=False)
class Lowered:
    """A model, and what was left of the source where there is none."""

    model: Model | None
    left: tuple[Left, ...]
    notes: tuple[str, ...]


def lowered(source: SourceModel, sizes: Mapping[str, Sequence[int]] | None = None) -> Lowered:
    """The ops of a source in its own order, before anything is tidied."""
    lower = Lowering(RULES, source.opset)
    graph = source.graph
    for value in graph.inputs:
        lower.values[value.name] = lower.builder.input(
            value.name,
            _shape(value.name, value.sizes, sizes or {}),
            COMPUTED_AS.get(value.dtype, value.dtype),
        )
        lower.names[lower.values[value.name]] = value.name
    lower.walk(graph)
    missing = [v.name for v in graph.outputs if v.name not in lower.values]
    if missing and not lower.left:
        raise BadModel("its output {name!r} is made by no node", missing[0])
    if lower.left:
        return Lowered(None, tuple(lower.left), tuple(lower.notes))
    main = lower.graph([(v.name, lower.values[v.name]) for v in graph.outputs])
    islands = [integer_islands(g) for g in (main, *lower.graphs)]
    main = islands[0][0]
    lower.notes |= dict.fromkeys(note for _, notes in islands for note in notes)
    signature = Signature(
        "serving_default",
        0,
        tuple((t.name, t) for t in main.inputs),
        tuple((v.name, t) for v, t in zip(graph.outputs, main.outputs, strict=True)),
    )
    model = Model(tuple(g for g, _ in islands), (signature,), description="made with litesmith")
    return Lowered(model, (), tuple(lower.notes))


def _shape(
    name: str, sizes: Sequence[int | str] | None, given: Mapping[str, Sequence[int]]
) -> tuple[int, ...]:
    if name in given:
        return tuple(given[name])
    if sizes is None:
        raise BadInput(
            "input {name!r} has no shape; give one: --shape {name}=1,3,224,224", name, name
        )
    return tuple(s if isinstance(s, int) else 1 for s in sizes)
