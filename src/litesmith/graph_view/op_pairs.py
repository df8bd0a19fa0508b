"""Which op of one model corresponds to which of another, and how it changed."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from litesmith.diagnosis.float_pairs import Twin, find_twins
from litesmith.errors import LitesmithError
from litesmith.ir.edit import consumers
from litesmith.ir.model_text import options_text, type_text
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Model, Op, Tensor
from litesmith.passes.core.step import Context
from litesmith.passes.tidy.fold import Fold
from litesmith.phrases import phrase

# The possible changes of an op.
SAME: str = phrase("unchanged")
CHANGED: str = phrase("changed")
QUANTIZED: str = phrase("quantized")
KEPT_FLOAT: str = phrase("kept float")
FUSED: str = phrase("fused")
DROPPED: str = phrase("dropped")
ADDED: str = phrase("added")

CHANGES = (SAME, CHANGED, QUANTIZED, KEPT_FLOAT, FUSED, DROPPED, ADDED)


@dataclass(frozen=True)
class GraphPairs:
    """A graph of both models, op by op, by the indices of the ops.

    pairs    ops of the first model -> ops of the second
    changes  the change of each op of the first model, and of each added op of the second
    fused    a removed op of the first model -> the op of the second that does its work
    """

    pairs: Mapping[int, int]
    before: Mapping[int, str] = field(default_factory=dict[int, str])
    added: tuple[int, ...] = ()
    fused: Mapping[int, int] = field(default_factory=dict[int, int])


def pair_graphs(a: Model, b: Model, number: int) -> GraphPairs:
    """The ops of graph `number` of both models; a graph that one of them lacks has no ops there."""
    before, after = graph_of(a, number), graph_of(b, number)
    known = _pair_by_values(a, b) if number == 0 else {}
    pairs = _add_pairs_by_name(before, after, known)
    fused = _find_fused(before, after, pairs)
    has_integers = any(_is_integer(op) for op in after.ops)
    changes = {
        index: _change_of(op, index, after, pairs, fused, has_integers)
        for index, op in enumerate(before.ops)
    }
    kept = set(pairs.values())
    added = tuple(index for index in range(len(after.ops)) if index not in kept)
    return GraphPairs(pairs, changes, added, fused)


def graph_of(model: Model, number: int) -> Graph:
    """A graph by its number; an empty one where the model has fewer."""
    return model.graphs[number] if number < len(model.graphs) else Graph("", (), (), (), ())


def _pair_by_values(a: Model, b: Model) -> dict[int, int]:
    """Pairs ops by what they compute; empty where the outputs of single ops cannot be observed."""
    try:
        reference = Fold(float16=True).apply(a, Context()).model
        found = find_twins(b, reference)
    except LitesmithError:
        return {}
    makers = {t: place for place, op in enumerate(a.main.ops) for t in op.outputs}
    pairs: dict[int, int] = {}
    for twin in found:
        place = _place_before(a.main, makers, twin)
        if place is not None and place not in pairs:
            pairs[place] = twin.place
    return pairs


def _place_before(graph: Graph, makers: Mapping[Tensor, int], twin: Twin) -> int | None:
    """The op of the first model that a twin's op stands for: the one before an activation that
    only the second model has fused."""
    if twin.op is None:
        return None
    if twin.layers is not None:
        return makers.get(twin.layers[1].op.outputs[0])
    place = makers.get(twin.theirs)
    if place is None or graph.ops[place].kind == twin.op.kind:
        return place
    source = graph.ops[place].inputs[0]
    before = None if source is None else makers.get(source)
    return before if before is not None and graph.ops[before].kind == twin.op.kind else place


def _add_pairs_by_name(a: Graph, b: Graph, known: dict[int, int]) -> dict[int, int]:
    """Adds to the pairs the ops of equal names, then ops of equal kind and shape, in order."""
    pairs = dict(known)
    taken = set(pairs.values())
    names = Counter((op.kind, t.name) for graph in (a, b) for op in graph.ops for t in op.outputs)
    by_name = {(op.kind, t.name): n for n, op in enumerate(b.ops) for t in op.outputs[:1]}
    for index, op in enumerate(a.ops):
        key = (op.kind, op.outputs[0].name) if op.outputs else ("", "")
        other = by_name.get(key)
        if index not in pairs and other is not None and names[key] == 2 and other not in taken:
            pairs[index] = other
            taken.add(other)
    for start, end in _gaps(pairs, len(a.ops), len(b.ops)):
        left = [n for n in range(start[0], end[0]) if n not in pairs]
        right = [n for n in range(start[1], end[1]) if n not in taken]
        before, after = [_key(a.ops[n]) for n in left], [_key(b.ops[n]) for n in right]
        for i, j, length in SequenceMatcher(None, before, after, False).get_matching_blocks():
            pairs |= {left[i + n]: right[j + n] for n in range(length)}
    return dict(sorted(pairs.items()))


def _key(op: Op) -> tuple[object, ...]:
    return op.label, tuple(t.shape for t in op.outputs)


_Corner = tuple[int, int]


def _gaps(pairs: Mapping[int, int], before: int, after: int) -> list[tuple[_Corner, _Corner]]:
    """The stretches of both models between pairs that stand in the same order in both."""
    order = _longest_rise(sorted(pairs.items()))
    starts = [(0, 0), *((a + 1, b + 1) for a, b in order)]
    return list(zip(starts, [*order, (before, after)], strict=True))


def _longest_rise(pairs: Sequence[_Corner]) -> list[_Corner]:
    """The longest selection of pairs whose second numbers rise as their first ones do."""
    tails: list[int] = []
    ends: list[int] = []
    behind: list[int] = []
    for place, (_, second) in enumerate(pairs):
        at = bisect_left(tails, second)
        behind.append(ends[at - 1] if at else -1)
        tails[at:], ends[at:] = [second, *tails[at + 1 :]], [place, *ends[at + 1 :]]
    found: list[_Corner] = []
    place = ends[-1] if ends else -1
    while place >= 0:
        found.append(pairs[place])
        place = behind[place]
    return found[::-1]


def _find_fused(a: Graph, b: Graph, pairs: Mapping[int, int]) -> dict[int, int]:
    """Ops that compute something and have no counterpart, each with the op that does its work: the
    nearest earlier op with a counterpart, otherwise the nearest later one.
    """
    makers = {t: place for place, op in enumerate(a.ops) for t in op.outputs}
    readers = consumers(a)
    places = {op: place for place, op in enumerate(a.ops)}
    found: dict[int, int] = {}
    for index, op in enumerate(a.ops):
        if index in pairs or not _computes(op):
            continue
        nearest = _walk_back(a, index, makers, pairs) if not OPS[op.kind].pads else None
        if nearest is None:
            nearest = _walk_on(a, index, readers, places, pairs)
        if nearest is not None and _can_absorb(b.ops[pairs[nearest]]):
            found[index] = pairs[nearest]
    return found


def _computes(op: Op) -> bool:
    row = OPS[op.kind]
    moves = row.reshapes or row.transposes or row.converts or row.rescales or row.unpacks
    return not (moves or row.is_control_flow)


def _can_absorb(op: Op) -> bool:
    """Whether an op can do the work of another: a layer, or an op with a fused activation."""
    return OPS[op.kind].is_layer or op.option("fused_activation_function") not in (None, "NONE")


def _walk_back(
    graph: Graph, index: int, makers: Mapping[Tensor, int], pairs: Mapping[int, int]
) -> int | None:
    """The pair that computes an op's input, looking through removed ops."""
    place: int | None = index
    while place is not None and place not in pairs:
        computed = [makers[t] for t in graph.ops[place].inputs if t is not None and t in makers]
        place = max(computed, default=None)
    return place


def _walk_on(
    graph: Graph,
    index: int,
    readers: Mapping[Tensor, Sequence[Op]],
    places: Mapping[Op, int],
    pairs: Mapping[int, int],
) -> int | None:
    """The pair that reads an op's output, looking through removed ops."""
    place: int | None = index
    while place is not None and place not in pairs:
        reading = [places[op] for t in graph.ops[place].outputs for op in readers.get(t, ())]
        place = min(reading, default=None)
    return place


def _change_of(
    op: Op,
    index: int,
    after: Graph,
    pairs: Mapping[int, int],
    fused: Mapping[int, int],
    has_integers: bool,
) -> str:
    if index not in pairs:
        return FUSED if index in fused else DROPPED
    other = after.ops[pairs[index]]
    if not _is_integer(op) and _is_integer(other):
        return QUANTIZED
    if has_integers and _is_float(op) and _is_float(other):
        return KEPT_FLOAT
    return SAME if _text(op) == _text(other) and _constants(op, other) else CHANGED


def _is_integer(op: Op) -> bool:
    """Whether an op reads or writes quantized values, or has quantized weights."""
    if OPS[op.kind].rescales:
        return False
    return any(t.quant is not None for t in (*op.inputs, *op.outputs) if t is not None)


def _is_float(op: Op) -> bool:
    return any(t.dtype in ("float32", "float16") for t in op.outputs)


def _text(op: Op) -> tuple[object, ...]:
    types = [type_text(t) for t in (*op.inputs, *op.outputs) if t is not None]
    return op.label, options_text(op.options), tuple(types)


def _constants(a: Op, b: Op) -> bool:
    """Whether the constants of two ops of the same types hold the same bytes."""
    for x, y in zip(a.inputs, b.inputs, strict=False):
        if x is None or y is None or x.data is None or y.data is None:
            continue
        if x.data is not y.data and x.data.tobytes() != y.data.tobytes():
            return False
    return True
