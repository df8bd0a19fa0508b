"""The forms of the ops of transformers and recurrent networks, where int8 is too coarse.

Three things ruin such a network in int8, seen on several: the pieces of normalizations, whose
squares and roots span more than 8 bits can tell apart; the sums that blocks add to, and the state
that a recurrence hands on, where errors gather; and layers that write into such a sum with a few
channels a hundred times as large as the others, which one step has to serve. The last are found by
what the data makes of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from litesmith.anatomy.footprint import op_macs
from litesmith.blocks.structure import Structure, structure_of
from litesmith.blocks.wiring import Wiring, data_of
from litesmith.ir.ops import OPS
from litesmith.ir.types import Model, Op, Tensor
from litesmith.passes.core.layers import layer_of
from litesmith.passes.core.recipe import Recipe, apply, parse
from litesmith.passes.core.step import Context
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.phrases import phrase
from litesmith.precision.fastest_forms import names_of, quantize_place
from litesmith.units import number_text, percent_text

# A channel that reaches so many times as far as half of all channels leaves these no steps.
_FAR = 16.0

# The share of all products that may have 16 bits where all is to be integers.
_MOST_WIDE = 0.15

# Said with ops that have a kernel for int16.
_WIDENING = parse("rewrite(ops=[RSQRT, SQUARED_DIFFERENCE])")


class Stretched(NamedTuple):
    """A layer by its number, and how far its largest channel is beyond half of them all."""

    place: int
    factor: float


def with_sequence_forms(
    model: Model, recipes: Sequence[Recipe], context: Context, *, is_integer: bool
) -> tuple[tuple[Recipe, ...], tuple[str, ...]]:
    """The recipes of one model with wider forms where int8 ruins it, and what is to be said; as
    they are where the model is no transformer and no recurrent network.

    The wider form is float; with `is_integer`, int16, which the first `quantize` then gives.
    """
    if context.tools is None or not structure_of(model).is_sequential:
        return tuple(recipes), ()
    made = [_before_quantize(r, _WIDENING) if is_integer else r for r in recipes]
    place = quantize_place(made[0])
    reference = apply(model, made[0][:place], context).model
    structure = structure_of(reference)
    wide = set(_pieces(reference, structure))
    stretched = _stretched(reference, structure, context)
    if is_integer:
        wide = {op for op in wide if "int16" in OPS[reference.main.ops[op].kind].versions}
        stretched = _within(reference, stretched)
    wide |= {one.place for one in stretched}
    if not wide:
        return tuple(recipes), ()
    names = names_of(reference.main, sorted(wide))
    notes = tuple(_notes(reference, structure, wide, stretched, is_integer=is_integer))
    if is_integer:
        first = (Quantize(to="int16x8", only=names),)
        return tuple(_before_quantize(recipe, first) for recipe in made), notes
    return tuple(_with_keep(recipe, names) for recipe in made), notes


def _before_quantize(recipe: Recipe, more: Recipe) -> Recipe:
    place = quantize_place(recipe)
    return (*recipe[:place], *more, *recipe[place:])


def _with_keep(recipe: Recipe, names: Sequence[str | int]) -> Recipe:
    place = quantize_place(recipe)
    step = recipe[place]
    assert isinstance(step, Quantize)
    kept = replace(step, keep=tuple(dict.fromkeys((*step.keep, *names))))
    return (*recipe[:place], kept, *recipe[place + 1 :])


def _pieces(model: Model, structure: Structure) -> Iterator[int]:
    """The pieces of normalizations, the sums before them, and what hands a state on."""
    sums = set(_sums(model, structure))
    pieces = {op for one in structure.normalization for op in one.ops}
    pieces |= {op for steps in structure.recurrence for cell in steps for op in cell.ops}
    for place, op in enumerate(model.main.ops):
        if (op in pieces or not sums.isdisjoint(op.outputs)) and layer_of(op) is None:
            yield place


def _sums(model: Model, structure: Structure) -> Iterator[Tensor]:
    """What blocks add to: the sums behind attentions and feed-forward blocks."""
    wiring = Wiring.of(model.main)
    for layer in _adding(structure):
        for op in wiring.users(layer.outputs[0], ("ADD", "MUL")):
            if op.kind == "ADD" and len(data_of(op)) == 2:
                yield op.outputs[0]


def _adding(structure: Structure) -> Iterator[Op]:
    """The last layers of attentions and feed-forward blocks."""
    for one in structure.attention:
        if one.out is not None:
            yield one.out
    for one in structure.feed_forward:
        yield one.down


def _stretched(model: Model, structure: Structure, context: Context) -> list[Stretched]:
    """The layers that write into a sum with few channels far beyond the others, worst first."""
    assert context.tools is not None
    places = {op: place for place, op in enumerate(model.main.ops)}
    layers = dict.fromkeys(_adding(structure))
    seen = context.tools.observe(model, [op.outputs[0] for op in layers], frozenset({"channels"}))
    found: list[Stretched] = []
    for op in layers:
        span = seen[op.outputs[0]]
        if span.channel_low is None or span.channel_high is None or span.spoiled:
            continue
        peaks = np.maximum(-span.channel_low, span.channel_high)
        middle = float(np.median(peaks))
        factor = float(peaks.max()) / middle if middle > 0 else 0.0
        if factor >= _FAR:
            found.append(Stretched(places[op], factor))
    return sorted(found, key=lambda one: -one.factor)


def _within(model: Model, found: Sequence[Stretched]) -> list[Stretched]:
    """Those that come first, as long as they have few of the products."""
    budget = _MOST_WIDE * sum(op_macs(op) for op in model.main.ops)
    taken: list[Stretched] = []
    for one in found:
        macs = op_macs(model.main.ops[one.place])
        if macs <= budget:
            budget -= macs
            taken.append(one)
    return taken


def _notes(
    model: Model,
    structure: Structure,
    wide: set[int],
    stretched: Sequence[Stretched],
    *,
    is_integer: bool,
) -> Iterator[str]:
    form = "int16" if is_integer else "float"
    macs = [op_macs(op) for op in model.main.ops]
    share = sum(macs[place] for place in wide) / max(1, sum(macs))
    yield phrase(
        "{count} ops in {form}, {share} of the products: normalizations, sums between blocks, "
        "recurrent state, which int8 would ruin",
        len(wide),
        form,
        percent_text(share),
    )
    for one in stretched[:3]:
        name = structure.names.get(model.main.ops[one.place], str(one.place))
        yield phrase(
            "{name}: its largest channel reaches {factor} times as far as half of them; {form}",
            name,
            number_text(one.factor),
            form,
        )
