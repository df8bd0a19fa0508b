"""LSTM and GRU: as one op, in a loop, or unrolled step by step."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from litesmith.blocks.wiring import Wiring, data_of, is_weighted
from litesmith.ir.edit import called_graphs
from litesmith.ir.types import Graph, Model, Op, Tensor

# Ops that run a whole recurrence.
WHOLE = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": "LSTM",
    "BIDIRECTIONAL_SEQUENCE_RNN": "RNN",
    "LSTM": "LSTM",
    "RNN": "RNN",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "LSTM",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "RNN",
}

_SUMS = ("ADD", "MUL", "SUB")


class Cell(NamedTuple):
    """One step of an unrolled recurrence.

    kind    LSTM or GRU
    before  the state before the step
    after   the state after the step
    ops     the ops that compute the new state, from the sums that the gates read
    layers  the layers whose results the gates read
    """

    kind: str
    before: Tensor
    after: Tensor
    ops: tuple[Op, ...]
    layers: tuple[Op, ...]


def cells(wiring: Wiring) -> Iterator[Cell]:
    """Finds every step of an unrolled LSTM or GRU by the sum that computes its new state."""
    for op in wiring.graph.ops:
        if op.kind == "ADD" and len(data_of(op)) == 2:
            found = _cell(wiring, op)
            if found is not None:
                yield found


def _cell(wiring: Wiring, total: Op) -> Cell | None:
    """c = f × c' + i × g of an LSTM; h = z × h' + (1 − z) × n of a GRU."""
    products = [op for tensor in data_of(total) if (op := wiring.maker(tensor)) is not None]
    products = [op for op in products if op.kind == "MUL" and len(data_of(op)) == 2]
    sides = [side for op in products if (side := _gate_and_value(wiring, op)) is not None]
    if len(sides) != 2:
        return None
    (gate, value), (other, candidate) = sides
    curves = [wiring.maker(one) for one in (value, candidate)]
    if curves[0] is not None and curves[0].kind == "TANH":
        gate, value, other, candidate = other, candidate, gate, value
    curve = wiring.maker(candidate)
    if curve is None or curve.kind != "TANH":
        return None
    is_gru = _is_rest(wiring, gate, other)
    state = wiring.origin(value)
    more = list(_reset(wiring, curve, state) if is_gru else _output(wiring, total))
    pieces = [op for op in (gate, other) if op.kind == "LOGISTIC"] + [curve]
    gates = [*pieces, *(op for op in more if op.kind == "LOGISTIC")]
    fed = dict.fromkeys(op for one in gates for op in _feeding(wiring, one, state))
    layers = tuple(op for op in fed if is_weighted(op))
    sums = [op for op in fed if not is_weighted(op)]
    kind = "GRU" if is_gru else "LSTM"
    inner = dict.fromkeys([*sums, *pieces, *products, total, *more])
    return Cell(kind, value, total.outputs[0], tuple(inner), layers)


def _gate_and_value(wiring: Wiring, product: Op) -> tuple[Op, Tensor] | None:
    """The factor that is a logistic or 1 minus a logistic, and the other factor."""
    first, second = data_of(product)
    for gate, value in ((first, second), (second, first)):
        op = wiring.maker(gate)
        if op is not None and (op.kind == "LOGISTIC" or _complement(wiring, op) is not None):
            return op, value
    return None


def _complement(wiring: Wiring, op: Op) -> Op | None:
    """The logistic that an op subtracts from 1."""
    if op.kind != "SUB" or op.inputs[0] is None or not op.inputs[0].is_const:
        return None
    gate = wiring.maker(op.inputs[1])
    return gate if gate is not None and gate.kind == "LOGISTIC" else None


def _is_rest(wiring: Wiring, gate: Op, other: Op) -> bool:
    return _complement(wiring, gate) is other or _complement(wiring, other) is gate


def _output(wiring: Wiring, total: Op) -> Iterator[Op]:
    """The ops that compute an LSTM's output from its state, and its output gate."""
    for curve in wiring.users(total.outputs[0]):
        if curve.kind == "TANH":
            yield curve
            for product in wiring.users(curve.outputs[0]):
                if product.kind == "MUL":
                    yield product
                    yield from _gate(wiring, product)


def _reset(wiring: Wiring, curve: Op, state: Tensor | None) -> Iterator[Op]:
    """The ops that bring a GRU's state into its candidate, and the reset gate."""
    for layer in _feeding(wiring, curve, state):
        joined = wiring.maker(layer.inputs[0]) if is_weighted(layer) else None
        parts = () if joined is None else data_of(joined)
        makers = [joined, *map(wiring.maker, parts)]
        for op in makers:
            if op is not None and op.kind == "MUL" and state in map(wiring.origin, data_of(op)):
                yield op
                yield from _gate(wiring, op)


def _gate(wiring: Wiring, product: Op) -> Iterator[Op]:
    found = _gate_and_value(wiring, product) if len(data_of(product)) == 2 else None
    if found is not None:
        yield found[0]


def _feeding(wiring: Wiring, op: Op, state: Tensor | None, depth: int = 6) -> Iterator[Op]:
    """The ops behind an op's inputs: sums, products and gates, back to the state or to layers, and
    these layers.
    """
    for tensor in data_of(op):
        maker = wiring.maker(tensor)
        if maker is None or wiring.origin(tensor) is state or not depth:
            continue
        if is_weighted(maker):
            yield maker
        elif maker.kind in _SUMS or maker.kind == "LOGISTIC":
            yield maker
            yield from _feeding(wiring, maker, state, depth - 1)


def step_layers(graph: Graph, found: Iterable[Cell]) -> dict[Op, None]:
    """The layers of all steps, in order; also those of a first step without a state, which is no
    `Cell` but shares the weights.
    """
    weights = {op.inputs[1] for cell in found for op in cell.layers}
    return {op: None for op in graph.ops if is_weighted(op) and op.inputs[1] in weights}


def chains(found: list[Cell]) -> list[list[Cell]]:
    """The steps in order, one list per recurrence: each step reads the state that the one before it
    wrote.
    """
    by_before: dict[Tensor, Cell] = {cell.before: cell for cell in found}
    followers = {by_before[cell.after].after for cell in found if cell.after in by_before}
    grouped: list[list[Cell]] = []
    for cell in found:
        if cell.after in followers:
            continue
        steps = [cell]
        while (following := by_before.get(steps[-1].after)) is not None:
            steps.append(following)
        grouped.append(steps)
    return grouped


def loop_kind(model: Model, op: Op) -> str:
    """LSTM or GRU where the graphs that a loop runs compute one; otherwise ""."""
    if op.kind != "WHILE":
        return ""
    for number in called_graphs(op):
        graph: Graph | None = model.graphs[number] if number < len(model.graphs) else None
        found = next(cells(Wiring.of(graph)), None) if graph is not None else None
        if found is not None:
            return found.kind
    return ""
