"""The cell of an LSTM step by step; the runtime does not expose it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.ir.types import Array, Record

Floats = NDArray[np.float32]


class LstmState(NamedTuple):
    """The state that an LSTM passes from step to step, each (batch, values)."""

    output: Floats
    cell: Floats


def run_lstm(
    options: Record, inputs: Sequence[Array | None], state: LstmState
) -> tuple[Floats, LstmState]:
    """The cell at every step, (steps, batch, units), and the state behind the last, from the inputs
    of a UNIDIRECTIONAL_SEQUENCE_LSTM without layer normalization; its two states are not read."""
    x = inputs[0]
    assert x is not None
    steps = x if options["time_major"] else np.swapaxes(x, 0, 1)
    gates = [gate for gate in range(4) if inputs[1 + gate] is not None]
    weight, recurrent, bias = (_join_gates(inputs, first, gates) for first in (1, 5, 12))
    clip = options.number("cell_clip")
    output, cell = state
    cells: list[Floats] = []
    for sums in steps @ weight.T + bias:
        parts = dict(zip(gates, np.split(sums + output @ recurrent.T, len(gates), -1), strict=True))
        forget = _logistic(parts[1] + _peephole(inputs[10], cell))
        update = _logistic(parts[0] + _peephole(inputs[9], cell)) if 0 in parts else 1 - forget
        cell = forget * cell + update * np.tanh(parts[2])
        cell = np.clip(cell, -clip, clip) if clip > 0 else cell
        output = _logistic(parts[3] + _peephole(inputs[11], cell)) * np.tanh(cell)
        output = _project(options, output, inputs[16], inputs[17])
        cells.append(cell)
    return np.stack(cells), LstmState(output, cell)


def _logistic(values: Array) -> Floats:
    return np.tanh(values * np.float32(0.5)) * np.float32(0.5) + np.float32(0.5)


def _join_gates(inputs: Sequence[Array | None], first: int, gates: Sequence[int]) -> Array:
    """One part (such as the weights) of all gates, stacked."""
    return np.concatenate([part for g in gates if (part := inputs[first + g]) is not None])


def _peephole(weight: Array | None, cell: Floats) -> Array | float:
    return 0.0 if weight is None else weight * cell


def _project(options: Record, hidden: Floats, weight: Array | None, bias: Array | None) -> Floats:
    if weight is None:
        return hidden
    clip = options.number("proj_clip")
    output = hidden @ weight.T + (0.0 if bias is None else bias)
    return np.clip(output, -clip, clip) if clip > 0 else output
