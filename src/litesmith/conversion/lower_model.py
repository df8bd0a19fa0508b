"""A source model as a `Model`: lowered, its order of axes solved, tidied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from litesmith.conversion.core.lowering import COMPUTED_AS, Left, Lowering, refuse_size
from litesmith.conversion.core.source import SourceGraph, SourceModel, Value
from litesmith.conversion.free_sizes import FreeSize, free
from litesmith.conversion.integer_islands import integer_islands
from litesmith.conversion.patterns import joined
from litesmith.conversion.rule_table import RULES
from litesmith.errors import BadInput, BadModel
from litesmith.ir.dtype import DTYPES
from litesmith.ir.types import Array, Model, Signature, Tensor
from litesmith.passes.core.recipe import apply
from litesmith.passes.tidy.relayout import relayout
from litesmith.phrases import phrase

Sizes = Mapping[str, Sequence[int]]

# The metadata that holds the digest of a model's source.
SOURCE_DIGEST = "litesmith_source"

# The first and the last opset that the rules cover.
_OLDEST, _NEWEST = 7, 28

_BEFORE = "cleanup | fold"
_AFTER = "cleanup | fold | fuse | cleanup"

# Sizes to try where a source leaves them free.
_GUESSES = (64, 128, 224, 256, 320, 512)


@dataclass(frozen=True, eq=False)
class Lowered:
    """A model, and the unsupported part of the source where there is none.

    model   the ops of the source, in its own order of axes
    left    the nodes without a form in LiteRT
    notes   what the user should know
    wanted  inputs that would have to be fixed
    """

    model: Model | None
    left: tuple[Left, ...]
    notes: tuple[str, ...]
    wanted: tuple[str, ...] = ()


def lowered(
    source: SourceModel, sizes: Sizes | None = None, constants: Mapping[str, Array] | None = None
) -> Lowered:
    """The ops of a source in its own order, before anything is tidied; `constants` are inputs that
    are fixed to values."""
    refuse_types(source)
    graph, fixed = source.graph, constants or {}
    shapes = {v.name: _shape(v, sizes or {}) for v in graph.inputs}
    lower = Lowering(RULES, source.opset, shapes=_told(graph, shapes))
    for value in graph.inputs:
        if value.name in fixed:
            lower.values[value.name] = _fixed(lower, value, fixed[value.name])
            continue
        refuse_size(shapes[value.name])
        made = lower.builder.input(value.name, shapes[value.name], _computed(value))
        lower.values[value.name] = made
        lower.names[made] = value.name
    lower.walk(joined(graph))
    missing = [v.name for v in graph.outputs if v.name not in lower.values]
    if missing and not lower.left:
        raise BadModel("its output {name!r} is made by no node", missing[0])
    if lower.left:
        return Lowered(None, tuple(lower.left), tuple(lower.notes), tuple(lower.wanted))
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


def _told(
    graph: SourceGraph, shapes: Mapping[str, tuple[int, ...]]
) -> Mapping[str, tuple[int, ...]]:
    """The shapes of values that the source states, which hold for its own sizes."""
    kept = all(
        not isinstance(said, int) or said == size
        for value in graph.inputs
        for said, size in zip(value.sizes or (), shapes[value.name], strict=False)
    )
    return graph.shapes if kept else {}


def _fixed(lower: Lowering, value: Value, given: Array) -> Tensor:
    """An input with a value for good, in the type that the source says."""
    try:
        return lower.const(np.asarray(given).astype(_computed(value)), value.name)
    except (TypeError, ValueError):
        raise BadInput(
            "input {name!r} is {dtype}; the value given is not", value.name, value.dtype
        ) from None


def refuse_types(source: SourceModel) -> None:
    """Raises on types in which LiteRT does not compute, and on operators older than the rules."""
    if source.opset < _OLDEST:
        raise BadInput(
            "opset {opset} is older than {oldest}; bring it forward: onnx.version_converter, or "
            "export the model again",
            source.opset,
            _OLDEST,
        )
    if source.opset > _NEWEST:
        raise BadInput(
            "opset {opset} is newer than {newest}, the newest that is known here; export the model "
            "with that one",
            source.opset,
            _NEWEST,
        )
    for value in source.graph.inputs:
        if value.dtype not in (*DTYPES, *COMPUTED_AS, "sequence"):
            raise BadInput(
                "input {name!r} is {dtype}, with which LiteRT does not compute; export it as "
                "float32",
                value.name,
                value.dtype,
            )
        if value.dtype in ("float64", "complex64", "complex128"):
            raise BadInput(
                "input {name!r} is {dtype}; LiteRT computes in float32: export it as float32",
                value.name,
                value.dtype,
            )
        if value.dtype in ("sequence", "string"):
            raise BadInput(
                "input {name!r} is a {dtype}; LiteRT takes tensors of numbers: do that part "
                "before the model",
                value.name,
                phrase(value.dtype),
            )
    for name, array in source.graph.constants.items():
        if str(array.dtype) in ("float64", "complex64", "complex128") and array.size > 64:
            raise BadInput(
                "constant {name!r} is {dtype}; LiteRT computes in float32: export it as float32",
                name,
                array.dtype,
            )


def _computed(value: Value) -> str:
    return COMPUTED_AS.get(value.dtype, value.dtype)


def _shape(value: Value, given: Sizes) -> tuple[int, ...]:
    if value.name in given:
        return tuple(given[value.name])
    if value.sizes is None:
        raise BadInput(
            "input {name!r} has no shape; give one: --shape {name}=1,3,224,224",
            value.name,
        )
    return tuple(s if isinstance(s, int) else 1 for s in value.sizes)


def with_sizes(source: SourceModel, given: Sizes, constants: Mapping[str, Array]) -> Lowered:
    """The source lowered in the given sizes. Free sizes stay free, where everything that follows
    from them can also be computed in LiteRT."""
    known = {v.name: v for v in source.graph.inputs}
    for name, wanted in given.items():
        _refuse_sizes(known, name, wanted)
    given = _spread(source, given, constants)
    symbols = dict.fromkeys(
        s
        for v in source.graph.inputs
        if v.name not in given and v.name not in constants
        for s in v.sizes or ()
        if isinstance(s, str)
    )
    if not symbols:
        return lowered(source, given, constants)
    batch = {v.sizes[0] for v in known.values() if v.sizes and isinstance(v.sizes[0], str)}
    guess = dict.fromkeys(symbols, 1)
    base = Lowered(None, (), ())
    for size in _GUESSES:
        guess = {s: 1 if s in batch else size for s in symbols}
        base = lowered(source, _sized(source, given, guess), constants)
        if base.model is not None or set(symbols) <= batch:
            break
    if base.model is None:  # what is free may be a batch wherever it stands, as in a state
        guess, batch = dict.fromkeys(symbols, 1), set(symbols)
        single = lowered(source, _sized(source, given, guess), constants)
        if single.model is None:
            return _with_advice(base, source, given)
        base = single
    return _freed(source, base, guess, given, constants, batch)


def _with_advice(base: Lowered, source: SourceModel, given: Sizes) -> Lowered:
    """Adds how to give the sizes that are free, where a node of a known kind may want others."""
    if not any(left.kind in RULES for left in base.left):
        return base
    told = [
        phrase(
            "input {name!r} leaves sizes free, and those that were tried may not fit; give them: "
            "--shape {example}",
            value.name,
            _example(value),
        )
        for value in source.graph.inputs
        if value.name not in given and any(isinstance(s, str) for s in value.sizes or ())
    ]
    return replace(base, notes=(*base.notes, *told))


def _spread(source: SourceModel, given: Sizes, constants: Mapping[str, Array]) -> Sizes:
    """The given sizes, applied to all inputs whose free sizes have the same names."""
    named = {
        symbol: size
        for value in source.graph.inputs
        for symbol, size in zip(value.sizes or (), given.get(value.name, ()), strict=False)
        if isinstance(symbol, str)
    }
    found = dict(given)
    for value in source.graph.inputs:
        sizes = tuple(named.get(s, s) if isinstance(s, str) else s for s in value.sizes or ())
        whole = tuple(s for s in sizes if isinstance(s, int))
        told = value.name in given or value.name in constants
        if not told and sizes != value.sizes and whole == sizes:
            found[value.name] = whole
    return found


def _sized(
    source: SourceModel, given: Sizes, guess: Mapping[str, int]
) -> dict[str, tuple[int, ...]]:
    return {
        v.name: tuple(given[v.name])
        if v.name in given
        else tuple(s if isinstance(s, int) else guess[s] for s in v.sizes or ())
        for v in source.graph.inputs
        if v.name in given or v.sizes is not None
    }


def _freed(
    source: SourceModel,
    base: Lowered,
    guess: Mapping[str, int],
    given: Sizes,
    constants: Mapping[str, Array],
    batch: set[str],
) -> Lowered:
    """The model with every size free that another size shows to be so."""
    assert base.model is not None
    model, notes = base.model, list(base.notes)
    # The batch comes last: a RESHAPE can leave one size open, and most users want one sample at a
    # time.
    for symbol, size in sorted(guess.items(), key=lambda pair: pair[0] in batch):
        other_sizes = _sized(source, given, {**guess, symbol: size * 2 if size > 1 else 3})
        other = lowered(source, other_sizes, constants).model
        places = {
            v.name: [i for i, s in enumerate(v.sizes or ()) if s == symbol]
            for v in source.graph.inputs
            if v.name not in given and v.name not in constants
        }
        found = free(model, other, FreeSize(symbol, places))
        if isinstance(found, Model):
            model = found
        elif symbol in batch:
            notes.append(
                phrase("{symbol} is fixed at 1: {why}; --shape sets another", symbol, found)
            )
        else:
            example = next(v for v in source.graph.inputs if symbol in (v.sizes or ()))
            raise BadInput(
                "input {name!r}: size {symbol} is free, and LiteRT cannot leave it so ({why}); "
                "give sizes: --shape {example}",
                example.name,
                symbol,
                found,
                _example(example),
            )
    return replace(base, model=model, notes=tuple(notes))


def _example(value: Value) -> str:
    sizes = [
        str(s) if isinstance(s, int) else "1" if not i else "224"
        for i, s in enumerate(value.sizes or ())
    ]
    return f"{value.name}={','.join(sizes)}"


def _refuse_sizes(known: Mapping[str, Value], name: str, sizes: Sequence[int]) -> None:
    if name not in known:
        raise BadInput(
            "--shape {name}: the source has no such input; it has {names}", name, ", ".join(known)
        )
    own = known[name].sizes
    if own is None:
        return
    fits = len(own) == len(sizes) and all(
        a == b for a, b in zip(own, sizes, strict=True) if isinstance(a, int)
    )
    if not fits:
        raise BadInput(
            "--shape {name}={sizes}: the source says {own}",
            name,
            ",".join(map(str, sizes)),
            ",".join(map(str, own)),
        )


class Tidied(NamedTuple):
    """A model as it is written; `turned` names inputs and outputs that are channels last now."""

    model: Model
    turned: frozenset[str]


def tidied(model: Model, keep_layout: bool) -> Tidied:
    """The model in the order of axes that suits it, without what it does not need."""
    relaid = relayout(apply(model, _BEFORE).model, images=not keep_layout)
    return Tidied(apply(relaid.change.model, _AFTER).model, relaid.turned)
