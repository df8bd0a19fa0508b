"""The patterns that one graph is built of, and names of ops by them: "block 3, feed-forward
output".
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import NamedTuple

from litesmith.blocks.attention import Attention, attentions
from litesmith.blocks.embeddings import Embedding, embeddings
from litesmith.blocks.feed_forward import FeedForward, feed_forwards
from litesmith.blocks.gelu import Activation, activations
from litesmith.blocks.normalization import Normalization, normalizations
from litesmith.blocks.recurrence import WHOLE, Cell, cells, chains, loop_kind
from litesmith.blocks.wiring import Wiring, data_of
from litesmith.ir.types import Model, Op, Tensor
from litesmith.phrases import phrase


@dataclass(frozen=True, eq=False)
class Structure:
    """The patterns in the main graph of a model; a tuple for each kind of pattern.

    names  the names of ops, by their role in a pattern
    """

    attention: tuple[Attention, ...] = ()
    feed_forward: tuple[FeedForward, ...] = ()
    normalization: tuple[Normalization, ...] = ()
    activation: tuple[Activation, ...] = ()
    recurrence: tuple[tuple[Cell, ...], ...] = ()
    whole_recurrence: tuple[tuple[Op, str], ...] = ()
    embedding: tuple[Embedding, ...] = ()
    names: Mapping[Op, str] = field(default_factory=dict[Op, str])

    @property
    def is_sequential(self) -> bool:
        """True for a transformer or a recurrent network, or a model with parts of one."""
        return bool(self.attention or self.recurrence or self.whole_recurrence)

    @property
    def sentences(self) -> list[str]:
        """A line for each kind of pattern that occurs."""
        return [line for describe in PATTERNS.values() for line in describe(self)]


def structure_of(model: Model) -> Structure:
    """The patterns of a model's main graph."""
    wiring = Wiring.of(model.main)
    curves = tuple(activations(wiring))
    by_output = {curve.output: curve for curve in curves}
    found = Structure(
        tuple(attentions(wiring)),
        tuple(feed_forwards(wiring, by_output)),
        tuple(normalizations(wiring)),
        curves,
        tuple(map(tuple, chains(list(cells(wiring))))),
        tuple(_whole_recurrences(model)),
        tuple(embeddings(wiring)),
    )
    return replace(found, names=_names(wiring, found))


def _whole_recurrences(model: Model) -> Iterator[tuple[Op, str]]:
    for op in model.main.ops:
        kind = WHOLE.get(op.kind) or loop_kind(model, op)
        if kind:
            yield op, kind


# Names.


class _Namer:
    """Gives names to ops; the first name of an op stays. `blocks` has the number of the block
    around a feed-forward, by its last layer.
    """

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.names: dict[Op, str] = {}
        self.blocks: dict[Op, int] = {}

    def give(self, op: Op | None, name: str) -> None:
        if op is not None:
            self.names.setdefault(op, name)


def _names(wiring: Wiring, found: Structure) -> dict[Op, str]:
    namer = _Namer(wiring)
    places = {op: place for place, op in enumerate(wiring.graph.ops)}
    starts = [places[one.softmax] for one in found.attention]
    for number, one in enumerate(found.attention, 1):
        _name_attention(namer, number, one)
    counts: dict[int, int] = {}
    for one in found.feed_forward:
        block = max(1, sum(start < places[one.down] for start in starts))
        counts[block] = counts.get(block, 0) + 1
        _name_feed_forward(namer, block if starts else 0, counts[block], one)
    for one in found.normalization:
        _name_normalization(namer, found, one)
    for number, steps in enumerate(found.recurrence, 1):
        for step, cell in enumerate(steps, 1):
            _name_cell(namer, number, step, cell)
    for number, (op, kind) in enumerate(found.whole_recurrence, 1 + len(found.recurrence)):
        namer.give(op, phrase("{kind} {number}", kind, number))
    for one in found.embedding:
        namer.give(one.op, phrase("embedding of {rows} rows", one.table.shape[0]))
        namer.give(one.places, phrase("sum with the embedding of places"))
    for one in found.activation:
        for op in one.ops:
            namer.give(op, one.name)
    return namer.names


def _name_attention(namer: _Namer, number: int, one: Attention) -> None:
    layers = {op for op in (one.query, one.key, one.value) if op is not None}
    if len(layers) == 1 and one.query is one.key:
        name = phrase("block {number}, attention queries, keys and values", number)
        namer.give(one.query, name)
    namer.give(one.query, phrase("block {number}, attention queries", number))
    namer.give(one.key, phrase("block {number}, attention keys", number))
    namer.give(one.value, phrase("block {number}, attention values", number))
    namer.give(one.scores, phrase("block {number}, attention scores", number))
    for op in one.masks:
        namer.give(op, phrase("block {number}, attention mask", number))
    for op in one.scaling:
        namer.give(op, phrase("block {number}, attention scores, scaled", number))
    namer.give(one.softmax, phrase("block {number}, attention softmax", number))
    namer.give(one.context, phrase("block {number}, attention context", number))
    namer.give(one.out, phrase("block {number}, attention output", number))
    shortcut = None if one.out is None else _residual(namer.wiring, one.out)
    namer.give(shortcut, phrase("block {number}, residual sum after the attention", number))


def _name_feed_forward(namer: _Namer, block: int, count: int, one: FeedForward) -> None:
    which = phrase("feed-forward") if count == 1 else phrase("feed-forward {count}", count)
    where = phrase("block {block}, {which}", block, which) if block else which
    for op in one.up:
        namer.give(op, phrase("{where} input", where))
    for op in one.inner:
        namer.give(op, phrase("{where} activation", where))
    namer.give(one.down, phrase("{where} output", where))
    namer.blocks[one.down] = block
    shortcut = _residual(namer.wiring, one.down)
    if block:
        name = phrase("block {block}, residual sum after the {which}", block, which)
        namer.give(shortcut, name)


def _residual(wiring: Wiring, layer: Op) -> Op | None:
    """The sum that adds a layer's result to its block's input."""
    users = wiring.users(layer.outputs[0], ("ADD", "MUL"))
    return next((op for op in users if op.kind == "ADD" and len(data_of(op)) == 2), None)


def _name_normalization(namer: _Namer, found: Structure, one: Normalization) -> None:
    """Names a normalization by the first block that reads its output."""
    readers = set(namer.wiring.users(one.output))
    name = phrase("normalization")
    for number, attention in enumerate(found.attention, 1):
        if readers & {attention.query, attention.key, attention.value}:
            name = phrase("block {number}, normalization before the attention", number)
            break
    else:
        for block in found.feed_forward:
            if readers & set(block.up):
                name = _before_feed_forward(namer, block)
                break
    for op in one.ops:
        namer.give(op, name)


def _before_feed_forward(namer: _Namer, block: FeedForward) -> str:
    number = namer.blocks.get(block.down, 0)
    if not number:
        return phrase("normalization before the feed-forward")
    return phrase("block {number}, normalization before the feed-forward", number)


def _name_cell(namer: _Namer, number: int, step: int, cell: Cell) -> None:
    where = phrase("{kind} {number}, step {step}", cell.kind, number, step)
    for op in cell.layers:
        namer.give(op, phrase("{where}, gates", where))
    for op in cell.ops:
        is_state = cell.after in op.outputs
        own = phrase("{where}, state", where) if is_state else phrase("{where}, inside", where)
        namer.give(op, own)


# Sentences for people: one row for each kind of pattern.


class _Alike(NamedTuple):
    """The number of patterns that one text describes."""

    text: str
    number: int


def _alike(texts: Sequence[str]) -> list[_Alike]:
    return [_Alike(text, number) for text, number in Counter(texts).items()]


def _tell_attention(found: Structure) -> Iterator[str]:
    texts = [_attention_text(one) for one in found.attention]
    for one in _alike(texts):
        yield phrase("{count} × attention, {text}", one.number, one.text)


def _attention_text(one: Attention) -> str:
    places = prod(one.softmax.outputs[0].shape[-1:])
    masked = phrase(", masked") if one.masks else ""
    return phrase("{heads} heads over {places} places{masked}", one.heads, places, masked)


def _tell_feed_forward(found: Structure) -> Iterator[str]:
    widths = (one.widths for one in found.feed_forward)
    texts = [phrase("{outside} to {inside} and back", outer, inner) for outer, inner in widths]
    for one in _alike(texts):
        yield phrase("{count} × feed-forward, {text}", one.number, one.text)


def _tell_normalization(found: Structure) -> Iterator[str]:
    for one in _alike([str(len(n.ops)) for n in found.normalization]):
        yield phrase("{count} × layer normalization in {pieces} pieces", one.number, one.text)


def _tell_activation(found: Structure) -> Iterator[str]:
    for one in _alike([_activation_text(curve) for curve in found.activation]):
        yield phrase("{count} × {text}", one.number, one.text)


def _activation_text(curve: Activation) -> str:
    whole = len(curve.ops) == 1
    return curve.name if whole else phrase("{name} in {pieces} pieces", curve.name, len(curve.ops))


def _tell_recurrence(found: Structure) -> Iterator[str]:
    for steps in found.recurrence:
        width = steps[0].after.shape[-1] if steps[0].after.shape else 1
        kind = steps[0].kind
        if len(steps) == 1:
            yield phrase("{kind} of {width}, one step a run", kind, width)
        else:
            yield phrase("{kind} of {width}, {steps} steps unrolled", kind, width, len(steps))
    for one in _alike([kind for _, kind in found.whole_recurrence]):
        yield phrase("{count} × {text}", one.number, one.text)


def _tell_embedding(found: Structure) -> Iterator[str]:
    for one in found.embedding:
        rows, *width = one.table.shape
        yield phrase("embedding of {rows} rows of {width}", rows, prod(width))


PATTERNS: dict[str, Callable[[Structure], Iterator[str]]] = {
    "embedding": _tell_embedding,
    "attention": _tell_attention,
    "feed_forward": _tell_feed_forward,
    "normalization": _tell_normalization,
    "activation": _tell_activation,
    "recurrence": _tell_recurrence,
}


def names_by_output(found: Structure) -> dict[Tensor, str]:
    """The names of ops, by their outputs."""
    return {tensor: name for op, name in found.names.items() for tensor in op.outputs}
