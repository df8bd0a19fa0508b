"""Rules for If, Loop and Scan: written out where that is known and short, else IF and WHILE."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from litesmith.conversion.inner_graphs import (
    finish,
    inner_lowering,
    outer_names,
    while_loop,
    written_out,
)
from litesmith.conversion.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.rules.shapes import cut_out, positive
from litesmith.conversion.source import Node, SourceGraph
from litesmith.ir.types import Tensor, constant_numbers

# Nodes that a loop may become; a longer one stays a loop, unless its values change their shapes.
SHORT = 256
LONGEST = 20_000


def branch(lower: Lowering, node: Node) -> Sequence[Tensor]:
    """The branch that is taken, where that is known; else LiteRT's IF."""
    condition = lower.first(node)
    known = constant_numbers(condition)
    names = ("then_branch", "else_branch")
    if known is not None:
        return written_out(lower, node.graph(names[0 if known.any() else 1]), {})
    graphs = [node.graph(name) for name in names]
    read = _outer(lower, graphs)
    made = [_inner_branch(lower, g, name, read) for g, name in zip(graphs, names, strict=True)]
    (then, then_results), (other, other_results) = made
    forms = [[(t.shape, t.dtype) for t in results] for results in (then_results, other_results)]
    for name, one, two in zip(node.outputs, *forms, strict=True):
        if one != two:
            raise Unsupported(
                "its branches give {name!r} as {one} or {two}, and only a run tells which; fix the "
                "input that decides it to a constant",
                name,
                f"{one[1]} {one[0]}",
                f"{two[1]} {two[0]}",
            )
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


def _typed(lower: Lowering, like: Sequence[Tensor]) -> Sequence[Tensor]:
    """The outputs of the last op, with the element types that an inner graph gives them."""
    op = lower.builder.ops.pop()
    outputs = tuple(replace(t, dtype=o.dtype) for t, o in zip(op.outputs, like, strict=True))
    lower.builder.ops.append(replace(op, outputs=outputs))
    return outputs


def _outer(lower: Lowering, graphs: Sequence[SourceGraph]) -> dict[str, Tensor]:
    """What graphs read of the one around them, by name."""
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


# Loops


def loop(lower: Lowering, node: Node) -> Sequence[Tensor]:
    count, condition, *states = lower.inputs(node, 2)
    body = node.graph("body")
    carried = tuple(lower.need(t) for t in states)
    start = condition if condition is not None else lower.const(np.array(True))
    turns = constant_numbers(count)
    nodes = LONGEST + 1 if turns is None else int(turns.reshape(-1)[0]) * len(body.nodes)

    def short() -> Sequence[Tensor]:
        assert turns is not None
        return _short_loop(lower, body, int(turns.reshape(-1)[0]), start, carried)

    def long() -> Sequence[Tensor]:
        return _long_loop(lower, body, count, start, carried)

    ways = [short, long] if nodes <= SHORT else [long, short] if nodes <= LONGEST else [long]
    return _first_that_works(lower, ways)


def _first_that_works(
    lower: Lowering, ways: Sequence[Callable[[], Sequence[Tensor]]]
) -> Sequence[Tensor]:
    """What the first way makes that can be gone; nothing stays of those that cannot."""
    *early, last = ways
    for way in early:
        ops, graphs, left = len(lower.builder.ops), len(lower.graphs), len(lower.left)
        try:
            return way()
        except Unsupported:
            del lower.builder.ops[ops:], lower.graphs[graphs:], lower.left[left:]
    return last()


def _short_loop(
    lower: Lowering,
    body: SourceGraph,
    limit: int,
    condition: Tensor,
    states: tuple[Tensor, ...],
) -> Sequence[Tensor]:
    """All turns one after the other."""
    listed: list[list[Tensor]] = [[] for _ in body.outputs[1 + len(states) :]]
    names = [v.name for v in body.inputs]
    for number in range(limit):
        known = constant_numbers(condition)
        if known is None:
            raise Unsupported("only a run tells when the loop ends")
        if not known.any():
            break
        turn = lower.const(np.array(number, np.int64))
        given = dict(zip(names, (turn, condition, *states), strict=False))
        condition, *rest = written_out(lower, body, given)
        states = tuple(rest[: len(states)])
        for held, one in zip(listed, rest[len(states) :], strict=True):
            held.append(one)
    if any(not held for held in listed):
        raise Unsupported("it lists the results of no turn at all, which LiteRT has no shape for")
    return [*states, *(_stacked(lower, held, 0) for held in listed)]


def _stacked(lower: Lowering, parts: Sequence[Tensor], axis: int) -> Tensor:
    shape = list(parts[0].shape)
    if any(p.shape != parts[0].shape for p in parts):
        raise Unsupported("what its turns list has different shapes")
    shape.insert(axis, 1)
    rows = [lower.reshape(p, shape) for p in parts]
    return rows[0] if len(rows) == 1 else lower.op("CONCATENATION", *rows, axis=axis)


def _long_loop(
    lower: Lowering,
    body: SourceGraph,
    count: Tensor | None,
    condition: Tensor,
    states: tuple[Tensor, ...],
) -> Sequence[Tensor]:
    """LiteRT's WHILE; what the turns list is kept in a tensor of the whole length."""
    read = _outer(lower, [body])
    lists = len(body.outputs) - 1 - len(states)
    limit = lower.const(np.array([2**31 - 1], np.int32))
    if count is not None:
        most = lower.op("MINIMUM", lower.reshape(count, (1,)), np.array([2**31 - 1], count.dtype))
        limit = lower.cast(most, "int32")
    whole = constant_numbers(limit)
    if lists and (whole is None or not _always(lower, body, condition, states)):
        raise Unsupported("how much it lists depends on values; LiteRT wants sizes that are known")
    steps = int(whole[0]) if whole is not None else 0
    lined = [_empty_list(steps, form) for form in _listed_forms(lower, body, condition, states)]
    names = [v.name for v in body.inputs]

    def turn(
        inner: Lowering, number: Tensor, held: Sequence[Tensor], seen: Sequence[Tensor]
    ) -> list[Tensor]:
        given = dict(zip(read, seen, strict=True))
        place = inner.cast(inner.reshape(number, ()), "int64")
        given |= dict(zip(names, (place, *held[: 1 + len(states)]), strict=False))
        results = written_out(inner, body, given)
        new = list(results[: 1 + len(states)])
        new[0] = inner.reshape(new[0], condition.shape)
        for old, one in zip(held[len(new) :], results[len(new) :], strict=True):
            new.append(_put(inner, old, one, number))
        return new

    first = [condition, *states, *(lower.const(a) for a in lined)]
    made = while_loop(lower, limit, first, list(read.values()), turn, goes_on=0)
    return made[1:]


def _always(
    lower: Lowering, body: SourceGraph, condition: Tensor, states: Sequence[Tensor]
) -> bool:
    """True where a turn never ends the loop."""
    known = constant_numbers(condition)
    results = _tried(lower, body, condition, states)
    again = constant_numbers(results[0])
    return known is not None and bool(known.all()) and again is not None and bool(again.all())


def _listed_forms(
    lower: Lowering, body: SourceGraph, condition: Tensor, states: Sequence[Tensor]
) -> list[Tensor]:
    if len(body.outputs) == 1 + len(states):
        return []
    return list(_tried(lower, body, condition, states)[1 + len(states) :])


def _tried(
    lower: Lowering, body: SourceGraph, condition: Tensor, states: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """What a turn gives, to see its forms: nothing stays of it."""
    inner, graphs = inner_lowering(lower, "trial"), len(lower.graphs)
    given = {
        n: t if t.is_const else inner.builder.input(n, t.shape, t.dtype)
        for n, t in _outer(lower, [body]).items()
    }
    number = inner.builder.input("number", (), "int64")
    held = [inner.builder.input(f"state{i}", t.shape, t.dtype) for i, t in enumerate(states)]
    names = [v.name for v in body.inputs]
    given |= dict(zip(names, (number, condition, *held), strict=False))
    results = written_out(inner, body, given)
    del lower.graphs[graphs:]
    return results


def _empty_list(steps: int, one: Tensor) -> np.ndarray:
    return np.zeros((steps, *one.shape), one.dtype)


def _put(lower: Lowering, whole: Tensor, one: Tensor, number: Tensor) -> Tensor:
    """A list with one more result in its place."""
    corner = number
    if len(whole.shape) > 1:
        zeros = np.zeros(len(whole.shape) - 1, np.int32)
        corner = lower.op("CONCATENATION", number, zeros, axis=0)
    row = lower.reshape(one, (1, *one.shape))
    return lower.op("DYNAMIC_UPDATE_SLICE", whole, row, corner)


# Scan


class Scanned(NamedTuple):
    """What a scan goes through, each part along its first axis, in the order of the steps."""

    steps: int
    parts: tuple[Tensor, ...]
    states: tuple[Tensor, ...]


def scan(lower: Lowering, node: Node) -> Sequence[Tensor]:
    if lower.opset < 9:
        raise Unsupported("Scan of opset 8 has a batch of its own; export with opset 11 or newer")
    body, count = node.graph("body"), node.integer("num_scan_inputs")
    tensors = [lower.need(t) for t in lower.inputs(node)]
    states, parts = tuple(tensors[:-count]), tensors[-count:]
    axes = node.integers("scan_input_axes", [0] * count)
    turned = node.integers("scan_input_directions", [0] * count)
    axes = [positive(axis, len(t.shape)) for axis, t in zip(axes, parts, strict=True)]
    steps = parts[0].shape[axes[0]]
    lined = [
        _along_first(lower, t, a, bool(d)) for t, a, d in zip(parts, axes, turned, strict=True)
    ]
    way = Scanned(steps, tuple(lined), states)
    short = steps * len(body.nodes) <= SHORT
    after, lists = (_short_scan if short else _long_scan)(lower, body, way)
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


def _short_scan(
    lower: Lowering, body: SourceGraph, way: Scanned
) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    states = way.states
    listed: list[list[Tensor]] = [[] for _ in body.outputs[len(states) :]]
    names = [v.name for v in body.inputs]
    for t in range(way.steps):
        rows = [_row(lower, part, t) for part in way.parts]
        given = dict(zip(names, (*states, *rows), strict=True))
        results = written_out(lower, body, given)
        states = results[: len(states)]
        for held, one in zip(listed, results[len(states) :], strict=True):
            held.append(one)
    return states, [_stacked(lower, held, 0) for held in listed]


def _row(lower: Lowering, x: Tensor, place: int) -> Tensor:
    cut = [(place, place + 1, 1), *((0, d, 1) for d in x.shape[1:])]
    return lower.reshape(cut_out(lower, x, cut), x.shape[1:])


def _long_scan(
    lower: Lowering, body: SourceGraph, way: Scanned
) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    read = _outer(lower, [body])
    names = [v.name for v in body.inputs]
    count = len(way.states)

    def step(
        inner: Lowering,
        outer: Sequence[Tensor],
        states: Sequence[Tensor],
        rows: Sequence[Tensor],
    ) -> tuple[Tensor, ...]:
        given = dict(zip(read, outer, strict=True))
        return written_out(inner, body, given | dict(zip(names, (*states, *rows), strict=True)))

    def turn(
        inner: Lowering, number: Tensor, held: Sequence[Tensor], seen: Sequence[Tensor]
    ) -> list[Tensor]:
        rows = [
            inner.reshape(inner.op("GATHER", t, number, axis=0), t.shape[1:])
            for t in seen[: len(way.parts)]
        ]
        results = step(inner, seen[len(way.parts) :], held[:count], rows)
        pairs = zip(held[count:], results[count:], strict=True)
        return [*results[:count], *(_put(inner, old, one, number) for old, one in pairs)]

    trial, graphs = inner_lowering(lower, "trial"), len(lower.graphs)
    outer = [t if t.is_const else trial.builder.input(n, t.shape, t.dtype) for n, t in read.items()]
    held = [trial.builder.input(f"state{i}", t.shape, t.dtype) for i, t in enumerate(way.states)]
    rows = [trial.builder.input(f"row{i}", t.shape[1:], t.dtype) for i, t in enumerate(way.parts)]
    forms = step(trial, outer, held, rows)[count:]
    del lower.graphs[graphs:]
    empty = [lower.const(_empty_list(way.steps, form)) for form in forms]
    turns = lower.const(np.array([way.steps], np.int32))
    seen = [*way.parts, *read.values()]
    made = while_loop(lower, turns, [*way.states, *empty], seen, turn)
    return made[:count], made[count:]


RULES: dict[str, Rule] = {"If": branch, "Loop": loop, "Scan": scan}
