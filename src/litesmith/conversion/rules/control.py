"""Rules for If, Loop and Scan: written out where that is known and short, else IF and WHILE."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from litesmith.conversion.core.inner_graphs import (
    finish,
    inner_lowering,
    outer_names,
    read_names,
    while_loop,
    written_out,
)
from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node, SourceGraph
from litesmith.conversion.rules.shapes import cut_out, positive
from litesmith.ir.types import Tensor, constant_numbers
from litesmith.phrases import phrase

# Nodes that a loop may become; a longer one stays a loop, unless its values change their shapes.
SHORT = 256
LONGEST = 20_000
# The largest count of LiteRT's loop, and of numbers in a list.
_MOST_TURNS = 2**31 - 1
_LONGEST_LIST = 1 << 28


def branch(lower: Lowering, node: Node) -> Sequence[Tensor]:
    """The branch that is taken, where that is known; else LiteRT's IF."""
    condition = lower.first(node)
    known = constant_numbers(condition)
    names = ("then_branch", "else_branch")
    if known is not None:
        return written_out(lower, node.graph(names[0 if known.any() else 1]), {})
    graphs = [node.graph(name) for name in names]
    read = _outer(lower, graphs)
    before = len(lower.left)
    try:
        made = [_inner_branch(lower, g, name, read) for g, name in zip(graphs, names, strict=True)]
    except Unsupported as error:
        why = lower.left[before].why if lower.left[before:] else str(error)
        del lower.left[before:]
        raise _undecided(lower, condition, why) from None
    (then, then_results), (other, other_results) = made
    forms = [
        [phrase("{dtype} {shape}", t.dtype, t.shape) for t in results]
        for results in (then_results, other_results)
    ]
    for name, one, two in zip(node.outputs, *forms, strict=True):
        if one != two:
            why = phrase("its branches give {name!r} as {one} or {two}", name, one, two)
            raise _undecided(lower, condition, why)
    inputs = [t for t in read.values() if not t.is_const]
    lower.builder.op(
        "IF",
        lower.reshape(condition, ()),
        *inputs,
        shape=[t.shape for t in then_results],
        then_subgraph_index=then,
        else_subgraph_index=other,
    )
    return _typed(lower, then_results)


def _undecided(lower: Lowering, condition: Tensor, why: str) -> Unsupported:
    """Why both branches cannot stand side by side, and the input that decides between them."""
    names = lower.origins(condition) if not lower.is_inner else []
    lower.wanted.update(dict.fromkeys(names))
    if not names:
        return Unsupported("only a run tells which branch is taken, and {why}", why)
    return Unsupported(
        "input {name!r} decides which branch is taken, and {why}; fix the input: "
        "--fix {name}=VALUE",
        ", ".join(names),
        why,
    )


def _typed(lower: Lowering, like: Sequence[Tensor]) -> Sequence[Tensor]:
    """The outputs of the last op, with the element types that an inner graph gives them."""
    op = lower.builder.ops.pop()
    outputs = tuple(replace(t, dtype=o.dtype) for t, o in zip(op.outputs, like, strict=True))
    lower.builder.ops.append(replace(op, outputs=outputs))
    return outputs


def _outer(lower: Lowering, graphs: Sequence[SourceGraph]) -> dict[str, Tensor]:
    """The values that graphs read from the surrounding one, by name."""
    names = dict.fromkeys(name for graph in graphs for name in outer_names(graph))
    return {name: lower.values[name] for name in names if name in lower.values}


def _inner_branch(
    lower: Lowering, graph: SourceGraph, name: str, read: Mapping[str, Tensor]
) -> tuple[int, Sequence[Tensor]]:
    inner = inner_lowering(lower, name)
    given = {
        n: t if t.is_const else inner.builder.input(n, t.shape, t.dtype) for n, t in read.items()
    }
    results = written_out(inner, graph, given)
    return finish(lower, inner, results), results


# Turns that are counted


# States, and lists.
Results: TypeAlias = tuple[Sequence[Tensor], Sequence[Tensor]]


class Cycle(NamedTuple):
    """A body that runs a known number of times.

    parts  tensors of which each turn gets a row, along the first axis
    skips  the number of the body's outputs before its states
    """

    body: SourceGraph
    turns: int
    states: tuple[Tensor, ...]
    parts: tuple[Tensor, ...] = ()
    skips: int = 0

    def turn(
        self,
        lower: Lowering,
        outer: Mapping[str, Tensor],
        number: Tensor,
        states: Sequence[Tensor],
        rows: Sequence[Tensor],
    ) -> Results:
        """The states after a turn, and the values that it lists."""
        front = (number, lower.const(np.array(True)))[: 2 * self.skips]
        names = [v.name for v in self.body.inputs]
        given = dict(zip(names, (*front, *states, *rows), strict=True))
        results = written_out(lower, self.body, {**outer, **given})[self.skips :]
        return results[: len(states)], results[len(states) :]


def _unchanged(cycle: Cycle) -> dict[int, str]:
    """The states that no turn changes, with their names in the body."""
    same = {n.outputs[0]: n.inputs[0] for n in cycle.body.nodes if n.kind == "Identity"}
    found: dict[int, str] = {}
    for place in range(len(cycle.states)):
        name = cycle.body.outputs[cycle.skips + place].name
        for _ in same:
            name = same.get(name, name)
        if name == cycle.body.inputs[2 * cycle.skips + place].name:
            found[place] = name
    return found


def _without(cycle: Cycle, fixed: Mapping[int, str]) -> Cycle:
    """The cycle without some states, which its body then reads of the graph around it."""
    inputs = {2 * cycle.skips + place for place in fixed}
    outputs = {cycle.skips + place for place in fixed}
    body = replace(
        cycle.body,
        inputs=tuple(v for i, v in enumerate(cycle.body.inputs) if i not in inputs),
        outputs=tuple(v for i, v in enumerate(cycle.body.outputs) if i not in outputs),
    )
    states = tuple(t for i, t in enumerate(cycle.states) if i not in fixed)
    return cycle._replace(body=body, states=states)


def _with_fixed_states(
    lower: Lowering, cycle: Cycle, run: Callable[[Lowering, Cycle], Results]
) -> Results:
    """The results of a cycle in which constant states are read instead of carried."""
    fixed, outer = _unchanged(cycle), lower.values
    lower.values = {**outer, **{name: cycle.states[i] for i, name in fixed.items()}}
    try:
        after, lists = run(lower, _without(cycle, fixed))
    finally:
        lower.values = outer
    moving = iter(after)
    return [t if i in fixed else next(moving) for i, t in enumerate(cycle.states)], lists


def _repeated(lower: Lowering, cycle: Cycle) -> Results:
    """The states after all turns, and each list as one tensor, the turns along its first axis."""
    nodes = cycle.turns * len(cycle.body.nodes)
    ways = [_written_turns, _turns_in_loop][:: 1 if nodes <= SHORT else -1]
    ways = ways if nodes <= LONGEST else ways[:1]
    *early, last = ways
    for way in early:
        ops, graphs, left = len(lower.builder.ops), len(lower.graphs), len(lower.left)
        try:
            return way(lower, cycle)
        except Unsupported:
            del lower.builder.ops[ops:], lower.graphs[graphs:], lower.left[left:]
    return last(lower, cycle)


def _written_turns(lower: Lowering, cycle: Cycle) -> Results:
    """All turns one after the other."""
    states: Sequence[Tensor] = cycle.states
    listed: list[list[Tensor]] = [[] for _ in cycle.body.outputs[cycle.skips + len(states) :]]
    for turn in range(cycle.turns):
        number = lower.const(np.array(turn, np.int64))
        rows = [_row(lower, part, turn) for part in cycle.parts]
        states, made = cycle.turn(lower, {}, number, states, rows)
        for held, one in zip(listed, made, strict=True):
            held.append(one)
    if any(not held for held in listed):
        raise Unsupported("it lists the results of no turn at all, which LiteRT has no shape for")
    return states, [_stacked(lower, held) for held in listed]


def _row(lower: Lowering, x: Tensor, place: int) -> Tensor:
    cut = [(place, place + 1, 1), *((0, d, 1) for d in x.shape[1:])]
    return lower.reshape(cut_out(lower, x, cut), x.shape[1:])


def _stacked(lower: Lowering, parts: Sequence[Tensor]) -> Tensor:
    if any(p.shape != parts[0].shape for p in parts):
        raise Unsupported("what its turns list has different shapes")
    rows = [lower.reshape(p, (1, *p.shape)) for p in parts]
    return rows[0] if len(rows) == 1 else lower.op("CONCATENATION", *rows, axis=0)


def _turns_in_loop(lower: Lowering, cycle: Cycle) -> Results:
    """LiteRT's WHILE; the turns' values are kept in a tensor of the whole length."""
    read = _outer(lower, [cycle.body])
    count, parts = len(cycle.states), len(cycle.parts)
    forms = _forms(lower, cycle, read)
    if any(cycle.turns * t.elements > _LONGEST_LIST for t in forms):
        raise Unsupported("it lists the results of {count} turns, too many to keep", cycle.turns)
    lists = [lower.const(np.zeros((cycle.turns, *t.shape), t.dtype)) for t in forms]

    def turn(
        inner: Lowering, number: Tensor, held: Sequence[Tensor], seen: Sequence[Tensor]
    ) -> list[Tensor]:
        rows = [
            inner.reshape(inner.op("GATHER", t, number, axis=0), t.shape[1:]) for t in seen[:parts]
        ]
        outer = dict(zip(read, seen[parts:], strict=True))
        place = inner.cast(inner.reshape(number, ()), "int64")
        after, made = cycle.turn(inner, outer, place, held[:count], rows)
        pairs = zip(held[count:], made, strict=True)
        return [*after, *(_put(inner, old, one, number) for old, one in pairs)]

    turns = lower.const(np.array([cycle.turns], np.int32))
    seen = [*cycle.parts, *read.values()]
    made = while_loop(lower, turns, [*cycle.states, *lists], seen, turn)
    return made[:count], made[count:]


def _forms(lower: Lowering, cycle: Cycle, read: Mapping[str, Tensor]) -> Sequence[Tensor]:
    """The values that a turn lists, only to see their shapes."""
    inner, graphs = inner_lowering(lower, "trial"), len(lower.graphs)

    def like(tensor: Tensor, shape: Sequence[int]) -> Tensor:
        return inner.builder.input("value", shape, tensor.dtype)

    outer = {n: t if t.is_const else like(t, t.shape) for n, t in read.items()}
    number = inner.builder.input("number", (), "int64")
    states = [like(t, t.shape) for t in cycle.states]
    rows = [like(t, t.shape[1:]) for t in cycle.parts]
    _, listed = cycle.turn(inner, outer, number, states, rows)
    del lower.graphs[graphs:]
    return listed


def _put(lower: Lowering, whole: Tensor, one: Tensor, number: Tensor) -> Tensor:
    """A list with one more result in its place."""
    corner = number
    if len(whole.shape) > 1:
        zeros = np.zeros(len(whole.shape) - 1, np.int32)
        corner = lower.op("CONCATENATION", number, zeros, axis=0)
    row = lower.reshape(one, (1, *one.shape))
    return lower.op("DYNAMIC_UPDATE_SLICE", whole, row, corner)


# Loops


def loop(lower: Lowering, node: Node) -> Sequence[Tensor]:
    count, condition, *states = lower.inputs(node, 2)
    body = node.graph("body")
    carried = tuple(lower.need(t) for t in states)
    start = condition if condition is not None else lower.const(np.array(True))
    turns = _counted(lower, body, count, start, carried)
    if turns is not None:
        cycle = Cycle(body, turns, carried, skips=1)
        after, lists = _with_fixed_states(lower, cycle, _repeated)
        return [*after, *lists]
    if len(body.outputs) > 1 + len(carried):
        raise Unsupported("how much it lists depends on values; LiteRT wants sizes that are known")

    def run(lower: Lowering, cycle: Cycle) -> Results:
        return _open_loop(lower, cycle.body, count, start, cycle.states), ()

    return _with_fixed_states(lower, Cycle(body, 0, carried, skips=1), run)[0]


def _counted(
    lower: Lowering,
    body: SourceGraph,
    count: Tensor | None,
    condition: Tensor,
    states: tuple[Tensor, ...],
) -> int | None:
    """The number of turns of a loop; None where only a run can tell."""
    limit = LONGEST
    if count is not None:
        known = constant_numbers(count)
        if known is None:
            return None
        limit = int(known.reshape(-1)[0])
    small = _part_that_decides(body, len(states))
    inner = inner_lowering(lower, "trial")
    inner.left, inner.notes, inner.graphs = [], {}, []
    outer = {
        n: t if t.is_const else inner.builder.input(n, t.shape, t.dtype)
        for n, t in _outer(lower, [small]).items()
    }
    held = [t if t.is_const else inner.builder.input("state", t.shape, t.dtype) for t in states]
    names = [v.name for v in small.inputs]
    is_same = not {name for node in small.nodes for name in read_names(node)}.intersection(names)
    for turn in range(min(limit, LONGEST)):
        known = constant_numbers(condition)
        if known is None:
            return None
        if not known.any():
            return turn
        if turn and is_same:  # no turn decides otherwise than the first
            return limit if limit < _MOST_TURNS else None
        number = inner.const(np.array(turn, np.int64))
        given = dict(zip(names, (number, condition, *held), strict=True))
        try:
            again, *after = written_out(inner, small, {**outer, **given})
        except Unsupported:
            return None
        condition, held = again, after
    return limit if limit <= LONGEST else None


def _part_that_decides(body: SourceGraph, count: int) -> SourceGraph:
    """The body with no nodes but those that decide whether it goes on; other states stay."""
    names, results = [v.name for v in body.inputs], [v.name for v in body.outputs]
    needed = {results[0]}
    kept: list[Node] = []
    grown = -1
    while grown != len(needed):
        grown = len(needed)
        kept = []
        for node in reversed(body.nodes):
            if needed.intersection(node.outputs):
                needed |= {*read_names(node)}
                kept.append(node)
        inner = {names[2 + i]: results[1 + i] for i in range(count)}
        needed |= {result for name, result in inner.items() if name in needed}
    outputs = [
        v if v.name in needed else replace(v, name=name)
        for v, name in zip(body.outputs[1 : 1 + count], names[2:], strict=True)
    ]
    return replace(body, nodes=tuple(kept[::-1]), outputs=(body.outputs[0], *outputs))


def _open_loop(
    lower: Lowering,
    body: SourceGraph,
    count: Tensor | None,
    condition: Tensor,
    states: tuple[Tensor, ...],
) -> Sequence[Tensor]:
    """LiteRT's WHILE, which goes on until a value says otherwise."""
    read = _outer(lower, [body])
    limit = lower.const(np.array([_MOST_TURNS], np.int32))
    if count is not None:
        most = lower.op("MINIMUM", lower.reshape(count, (1,)), np.array([_MOST_TURNS], count.dtype))
        limit = lower.cast(most, "int32")
    names = [v.name for v in body.inputs]

    def turn(
        inner: Lowering, number: Tensor, held: Sequence[Tensor], seen: Sequence[Tensor]
    ) -> list[Tensor]:
        place = inner.cast(inner.reshape(number, ()), "int64")
        given = dict(zip(read, seen, strict=True)) | dict(zip(names, (place, *held), strict=True))
        on, *after = written_out(inner, body, given)
        return [inner.reshape(on, condition.shape), *after]

    made = while_loop(lower, limit, [condition, *states], list(read.values()), turn, goes_on=0)
    return made[1:]


# Scan


def scan(lower: Lowering, node: Node) -> Sequence[Tensor]:
    if lower.opset < 9:
        raise Unsupported("Scan of opset 8 has a batch of its own; export with opset 11 or newer")
    body, count = node.graph("body"), node.integer("num_scan_inputs")
    tensors = [lower.need(t) for t in lower.inputs(node)]
    states, parts = tuple(tensors[:-count]), tensors[-count:]
    axes = node.integers("scan_input_axes", [0] * count)
    turned = node.integers("scan_input_directions", [0] * count)
    lined = tuple(
        _along_first(lower, t, positive(a, len(t.shape)), bool(d))
        for t, a, d in zip(parts, axes, turned, strict=True)
    )
    cycle = Cycle(body, lined[0].shape[0], states, lined)
    after, lists = _with_fixed_states(lower, cycle, _repeated)
    out_axes = node.integers("scan_output_axes", [0] * len(lists))
    back = node.integers("scan_output_directions", [0] * len(lists))
    ready = [
        _as_listed(lower, t, a, bool(d)) for t, a, d in zip(lists, out_axes, back, strict=True)
    ]
    return [*after, *ready]


def _along_first(lower: Lowering, x: Tensor, axis: int, turned: bool) -> Tensor:
    x = lower.transpose(x, [axis, *(i for i in range(len(x.shape)) if i != axis)])
    return lower.op("REVERSE_V2", x, np.array([0], np.int32)) if turned else x


def _as_listed(lower: Lowering, x: Tensor, axis: int, turned: bool) -> Tensor:
    if turned:
        x = lower.op("REVERSE_V2", x, np.array([0], np.int32))
    order = list(range(1, len(x.shape)))
    order.insert(positive(axis, len(x.shape)), 0)
    return lower.transpose(x, order)


RULES: dict[str, Rule] = {"If": branch, "Loop": loop, "Scan": scan}
