"""The forms of the ops of transformers and recurrent networks, where int8 is too coarse.

Four things ruin such a network in int8, seen on several: the pieces of normalizations, whose
squares and roots span more than 8 bits can tell apart; the sums that blocks add to, and the state
that a recurrence hands on, where errors gather; layers that write into such a sum with a few
channels a hundred times as large as the others, which one step has to serve; and layers that read
such channels. The first two have wider forms. For the others `level` and `smooth` give every
channel steps of its own, and the layers stay int8.

A recurrence passes its state through the same layers again and again: where all is integers, these
layers have int16 data too, and so have layers that read such channels of an input.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from litesmith.anatomy.footprint import op_macs
from litesmith.blocks.recurrence import step_layers
from litesmith.blocks.structure import Structure, structure_of
from litesmith.blocks.wiring import Wiring, data_of, only_moves
from litesmith.ir.ops import OPS
from litesmith.ir.types import Model, Op, Tensor
from litesmith.passes.core.layers import layer_of
from litesmith.passes.core.recipe import Recipe, apply, parse
from litesmith.passes.core.schemes import Names
from litesmith.passes.core.step import Context
from litesmith.passes.quantizing.level import Level, reach
from litesmith.passes.quantizing.qat import Qat
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.passes.quantizing.smooth import Smooth, is_folded, layers_behind
from litesmith.phrases import phrase
from litesmith.precision.fastest_forms import names_of, quantize_place
from litesmith.units import number_text, percent_text

# A channel that reaches this many times as far as half of all channels leaves those 2 bits less.
_FAR = 4.0

# Rewrites into ops that have an int16 kernel.
_WIDENING = parse("rewrite(ops=[RSQRT, SQUARED_DIFFERENCE])")

# The kinds that compute in int16 between layers where everything must be integers.
_BETWEEN = ("ADD", "DIV", "MUL", "SUB")


def with_sequence_forms(
    model: Model, recipes: Sequence[Recipe], context: Context, *, is_integer: bool
) -> tuple[tuple[Recipe, ...], tuple[str, ...]]:
    """Adds wider forms to the recipes of a model where int8 would ruin it; returns them with notes
    for the user, or unchanged where the model is neither a transformer nor a recurrent network.

    The wider form is float; with `is_integer` it is int16, given by the first step `quantize`.
    Recipes that come here keep no op by its number, because ops are added before `quantize`.
    """
    if context.tools is None or not structure_of(model).is_sequential:
        return tuple(recipes), ()
    front = _WIDENING if is_integer else ()
    place = quantize_place(recipes[0])
    given = apply(model, (*recipes[0][:place], *front), context).model
    structure = structure_of(given)
    stretched = _far(given, list(_adding(structure)), context)
    read = _far(given, list(_read(given, structure)), context)
    if stretched:
        front = (*front, Level(only=_names(given, stretched)))
    if structure.normalization:
        # By then `level` has added a product after each of its layers, which renumbers the ops.
        leveled = apply(given, front[-1:] if stretched else (), context).model
        front = (*front, Smooth(products=_names(leveled, _same(leveled, read))))
    reference = apply(model, (*recipes[0][:place], *front), context).model
    layers = _wide_layers(reference, recipes[0], context) if is_integer else set[Op]()
    wide = set(_wide(reference, layers, is_integer=is_integer))
    if not wide:
        return tuple(recipes), ()
    names = names_of(reference.main, sorted(wide))
    notes = tuple(_notes(reference, wide, is_integer=is_integer))
    notes += tuple(_leveled_notes(structure, stretched))
    if layers and layers.issuperset(filter(layer_of, reference.main.ops)):
        recipes = [_in_int16(recipe) for recipe in recipes]
    elif is_integer:
        front = (*front, Quantize(to="int16x8", only=names))
    made = [_before_quantize(recipe, front) for recipe in recipes]
    return tuple(made if is_integer else (_with_keep(recipe, names) for recipe in made)), notes


def _before_quantize(recipe: Recipe, more: Recipe) -> Recipe:
    place = quantize_place(recipe)
    return (*recipe[:place], *more, *recipe[place:])


def _in_int16(recipe: Recipe) -> Recipe:
    """A recipe that gives all layers of a network int16 data."""
    place = quantize_place(recipe)
    step = recipe[place]
    assert isinstance(step, Quantize)
    return (*recipe[:place], replace(step, to="int16x8"), *recipe[place + 1 :])


def _with_keep(recipe: Recipe, names: Sequence[str | int]) -> Recipe:
    place = quantize_place(recipe)
    step = recipe[place]
    assert isinstance(step, Quantize | Qat)
    kept = replace(step, keep=tuple(dict.fromkeys((*step.keep, *names))))
    return (*recipe[:place], kept, *recipe[place + 1 :])


def _wide(model: Model, layers: Collection[Op], *, is_integer: bool) -> Iterator[int]:
    """The ops that need the wider form: the pieces of normalizations, the sums of blocks and the
    ops that lead to them, and those that hand on a state. Where everything is integers, also every
    op that adds or multiplies between layers, and some layers."""
    structure = structure_of(model)
    pieces = {op for one in structure.normalization for op in one.ops}
    pieces |= {*_sums(model, structure), *_products(model, structure)}
    steps = [cell for one in structure.recurrence for cell in one]
    handing = {op for cell in steps for op in cell.ops}
    handing |= _following(model, {*handing, *step_layers(model.main, steps)})
    handing |= _moved_to(model, {*handing, *layers}) if layers else set[Op]()
    for place, op in enumerate(model.main.ops):
        is_real = any(tensor.dtype == "float32" for tensor in op.outputs)
        is_between = is_integer and is_real and op.kind in _BETWEEN
        has_kernel = not is_integer or "int16" in OPS[op.kind].versions
        is_piece = op in pieces or op in handing or is_between
        if has_kernel and (op in layers if layer_of(op) else is_piece):
            yield place


def _following(model: Model, ops: Collection[Op]) -> set[Op]:
    """The ops after these that only move, add, multiply or bend their values."""
    wiring, found = Wiring.of(model.main), {*ops}
    for op in model.main.ops:
        data = data_of(op)
        is_simple = _moves(op) or op.kind in ("ADD", "LOGISTIC", "MUL", "SUB", "TANH")
        if is_simple and data and found.issuperset(map(wiring.makers.get, data)):
            found.add(op)
    return found.difference(ops)


def _moved_to(model: Model, ops: Collection[Op]) -> set[Op]:
    """The ops that only move values and are the only readers of them."""
    wiring, found = Wiring.of(model.main), {*ops}
    for op in reversed(model.main.ops):
        readers = [one for made in op.outputs for one in wiring.readers.get(made, ())]
        if _moves(op) and readers and found.issuperset(readers):
            found.add(op)
    return found.difference(ops)


def _moves(op: Op) -> bool:
    return op.kind in ("CONCATENATION", "PACK") or only_moves(op)


def _wide_layers(model: Model, recipe: Recipe, context: Context) -> set[Op]:
    """The layers of recurrences, and the layers that read far channels of an input. None where
    callers hand over int8, which int8 layers take and give."""
    step = recipe[quantize_place(recipe)]
    steps = [cell for one in structure_of(model).recurrence for cell in one]
    if not steps or not isinstance(step, Quantize) or step.io != "float":
        return set()
    return {*filter(layer_of, step_layers(model.main, steps)), *_hearing(model, context)}


def _hearing(model: Model, context: Context) -> Iterator[Op]:
    """The layers that read an input of the model of which a few channels reach far beyond the
    others."""
    assert context.tools is not None
    wiring = Wiring.of(model.main)
    readers = {t: [op for op in wiring.users(t) if layer_of(op)] for t in model.main.inputs}
    heard = [tensor for tensor, ops in readers.items() if ops and tensor.dtype == "float32"]
    seen = context.tools.observe(model, heard, frozenset({"channels"}))
    for tensor in heard:
        if reach(seen[tensor]) >= _FAR:
            yield from readers[tensor]


def _sums(model: Model, structure: Structure) -> Iterator[Op]:
    """The sums after attentions and feed-forward blocks, and the products that lead to them."""
    wiring = Wiring.of(model.main)
    for layer in _adding(structure):
        for op in wiring.users(layer.outputs[0], ("ADD", "MUL")):
            if op.kind == "ADD" and len(data_of(op)) == 2:
                yield op
                yield from _leading(wiring, op, layer.outputs[0])


def _products(model: Model, structure: Structure) -> Iterator[Op]:
    """The products that `smooth` inserts between an activation and layers, and that activation."""
    wiring = Wiring.of(model.main)
    for curve in structure.activation:
        for op in wiring.readers.get(curve.output, ()):
            if op.kind == "MUL" and layers_behind(wiring, op):
                yield op
                yield from curve.ops


def _leading(wiring: Wiring, end: Op, source: Tensor) -> Iterator[Op]:
    """The ops from a layer to the sum that takes its result."""
    for tensor in data_of(end):
        between = list(wiring.between(tensor, source))
        if between and source in data_of(between[-1]):
            yield from between


def _adding(structure: Structure) -> Iterator[Op]:
    """The last layers of attentions and feed-forward blocks."""
    for one in structure.attention:
        if one.out is not None:
            yield one.out
    for one in structure.feed_forward:
        yield one.down


def _read(model: Model, structure: Structure) -> Iterator[Op]:
    """The tensors that layers read from normalizations, also before their gain, and from
    activations."""
    wiring = Wiring.of(model.main)
    for one in structure.normalization:
        if not is_folded(wiring, one):
            yield from one.ops
    for curve in structure.activation:
        yield wiring.makers[curve.output]


def _far(model: Model, ops: Sequence[Op], context: Context) -> dict[Op, float]:
    """The ops that write a few channels far beyond the others, with the ratio, the worst first."""
    assert context.tools is not None
    wiring = Wiring.of(model.main)
    some = [op for op in dict.fromkeys(ops) if layer_of(op) or layers_behind(wiring, op)]
    seen = context.tools.observe(model, [op.outputs[0] for op in some], frozenset({"channels"}))
    found = {op: reach(seen[op.outputs[0]]) for op in some}
    far = {op: factor for op, factor in found.items() if factor >= _FAR}
    return dict(sorted(far.items(), key=lambda one: -one[1]))


def _same(model: Model, ops: Collection[Op]) -> list[Op]:
    """The ops of one model that write the tensors which these ops write in another."""
    written = {tensor for op in ops for tensor in op.outputs}
    return [op for op in model.main.ops if not written.isdisjoint(op.outputs)]


def _names(model: Model, ops: Collection[Op]) -> Names:
    places = {op: place for place, op in enumerate(model.main.ops)}
    return names_of(model.main, sorted(places[op] for op in ops))


def _notes(model: Model, wide: set[int], *, is_integer: bool) -> Iterator[str]:
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


def _leveled_notes(structure: Structure, stretched: dict[Op, float]) -> Iterator[str]:
    for op, factor in list(stretched.items())[:3]:
        name = structure.names.get(op, op.kind)
        yield phrase(
            "{name}: its largest channel reaches {factor} times as far as half of them; a product "
            "behind it gives each channel steps of its own",
            name,
            number_text(round(factor)),
        )
