"""A source model as a `Model`: lowered, its order solved, tidied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from litesmith.convert.lowering import COMPUTED_AS, Left, Lowering
from litesmith.convert.rule_table import RULES
from litesmith.convert.source import SourceGraph, SourceModel, Value
from litesmith.errors import BadInput, BadModel
from litesmith.ir.dtype import Array
from litesmith.ir.types import Model, Signature, Tensor


@dataclass(frozen=True, eq=False)
class Lowered:
    """A model, and what was left of the source where there is none."""

    model: Model | None
    left: tuple[Left, ...]
    notes: tuple[str, ...]
    wanted: tuple[str, ...] = ()  # inputs that would have to be fixed


def lowered(
    source: SourceModel,
    sizes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Array] | None = None,
) -> Lowered:
    """The ops of a source in its own order, before anything is tidied; some inputs may be given
    another size, others a value for good."""
    graph, fixed = source.graph, constants or {}
    shapes = {v.name: _shape(v.name, v.sizes, sizes or {}) for v in graph.inputs}
    lower = Lowering(RULES, source.opset, shapes=_told(graph, shapes))
    for value in graph.inputs:
        if value.name in fixed:
            lower.values[value.name] = _fixed(lower, value, fixed[value.name])
            continue
        lower.values[value.name] = lower.builder.input(
            value.name, shapes[value.name], COMPUTED_AS.get(value.dtype, value.dtype)
        )
        lower.names[lower.values[value.name]] = value.name
    lower.walk(graph)
    missing = [v.name for v in graph.outputs if v.name not in lower.values]
    if missing and not lower.left:
        raise BadModel("its output {name!r} is made by no node", missing[0])
    if lower.left:
        return Lowered(None, tuple(lower.left), tuple(lower.notes), tuple(lower.wanted))
    main = lower.graph([(v.name, lower.values[v.name]) for v in graph.outputs])
    signature = Signature(
        "serving_default",
        0,
        tuple((t.name, t) for t in main.inputs),
        tuple((v.name, t) for v, t in zip(graph.outputs, main.outputs, strict=True)),
    )
    model = Model((main, *lower.graphs), (signature,), description="made with litesmith")
    return Lowered(model, (), tuple(lower.notes))


def _shape(
    name: str, sizes: Sequence[int | str] | None, given: Mapping[str, Sequence[int]]
) -> tuple[int, ...]:
    if name in given:
        return tuple(given[name])
    if sizes is None:
        raise BadInput("input {name!r} has no shape; give one: --shape {name}=1,3,224,224", name)
    return tuple(s if isinstance(s, int) else 1 for s in sizes)


def _told(
    graph: SourceGraph, shapes: Mapping[str, tuple[int, ...]]
) -> Mapping[str, tuple[int, ...]]:
    """What the source says of its values' shapes, which holds for the sizes that it has itself."""
    kept = all(
        v.sizes is None
        or all(
            not isinstance(s, int) or s == d for s, d in zip(v.sizes, shapes[v.name], strict=False)
        )
        for v in graph.inputs
    )
    return graph.shapes if kept else {}


def _fixed(lower: Lowering, value: Value, given: Array) -> Tensor:
    """An input with a value for good, in the type that the source says."""
    dtype = COMPUTED_AS.get(value.dtype, value.dtype)
    try:
        return lower.const(np.asarray(given).astype(dtype), value.name)
    except (TypeError, ValueError):
        raise BadInput(
            "input {name!r} is {dtype}; the value given is not", value.name, dtype
        ) from None
