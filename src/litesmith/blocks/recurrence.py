"""LSTM and GRU: as one op, in a loop, or unrolled step by step."""

from collections.abc import Iterator
from typing import NamedTuple

from litesmith.blocks.wiring import Wiring, data_of, is_weighted
from litesmith.ir.edit import called_graphs
from litesmith.ir.types import Graph, Model, Op, Tensor

# Ops that are a whole recurrence.
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
    before  the state that the step is given
    after   the state that it hands on
    ops     what the new state is made by, from the gates on
    layers  the layers whose results the gates are
    """

    kind: str
    before: Tensor
    after: Tensor
    ops: tuple[Op, ...]
    layers: tuple[Op, ...]


def cells(wiring: Wiring) -> Iterator[Cell]:
    """Every step of an unrolled LSTM or GRU, found by the sum that makes its new state."""
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
    is_gru = gate is other or _is_rest(wiring, gate, other)
    gates = [op for op in (gate, other) if op.kind == "LOGISTIC"]
    pieces = [*gates, curve, *products, total]
    pieces += () if is_gru else _output(wiring, total)
    layers = dict.fromkeys(layer for one in (*gates, curve) for layer in _layers(wiring, one))
    kind = "GRU" if is_gru else "LSTM"
    return Cell(kind, value, total.outputs[0], tuple(dict.fromkeys(pieces)), tuple(layers))


def _gate_and_value(wiring: Wiring, product: Op) -> tuple[Op, Tensor] | None:
    """The factor that is a logistic, or 1 minus one, and the other."""
    first, second = data_of(product)
    for gate, value in ((first, second), (second, first)):
        op = wiring.maker(gate)
        if op is not None and (op.kind == "LOGISTIC" or _complement(wiring, op) is not None):
            return op, value
    return None


def _complement(wiring: Wiring, op: Op) -> Op | None:
    """The logistic that an op takes from 1."""
    if op.kind != "SUB" or op.inputs[0] is None or not op.inputs[0].is_const:
        return None
    gate = wiring.maker(op.inputs[1])
    return gate if gate is not None and gate.kind == "LOGISTIC" else None


def _is_rest(wiring: Wiring, gate: Op, other: Op) -> bool:
    return _complement(wiring, gate) is other or _complement(wiring, other) is gate


def _output(wiring: Wiring, total: Op) -> Iterator[Op]:
    """What an LSTM's output is made of its state by."""
    for curve in wiring.users(total.outputs[0]):
        if curve.kind == "TANH":
            yield curve
            yield from (op for op in wiring.users(curve.outputs[0]) if op.kind == "MUL")


def _layers(wiring: Wiring, op: Op, depth: int = 6) -> Iterator[Op]:
    """The layers whose results, added up, an op reads."""
    for tensor in data_of(op):
        maker = wiring.maker(tensor)
        if maker is not None and is_weighted(maker):
            yield maker
        elif maker is not None and depth and maker.kind in _SUMS:
            yield from _layers(wiring, maker, depth - 1)


def chains(found: list[Cell]) -> list[list[Cell]]:
    """The steps in order, one list a recurrence: a step is given the state that another made."""
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
    """What a loop computes, LSTM or GRU, by the graphs that it runs; "" where it is neither."""
    if op.kind != "WHILE":
        return ""
    for number in called_graphs(op):
        graph: Graph | None = model.graphs[number] if number < len(model.graphs) else None
        found = next(cells(Wiring.of(graph)), None) if graph is not None else None
        if found is not None:
            return found.kind
    return ""
