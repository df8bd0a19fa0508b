"""LSTMs that are one op and have an integer kernel, by the places of their inputs."""

from collections.abc import Iterator
from typing import NamedTuple

from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Op, Tensor, constant_numbers
from litesmith.passes.core.layers import Layer, unpacked_constants

# Weights of the input, weights of the last output, peepholes and biases, each of the input, forget,
# cell and output gate in turn; a peephole is not there for the cell gate.
INPUT_WEIGHTS, RECURRENT_WEIGHTS = range(1, 5), range(5, 9)
PEEPHOLES, BIASES = range(9, 12), range(12, 16)
PROJECTION, PROJECTION_BIAS = 16, 17
STATE, CELL = 18, 19
NORMS = range(20, 24)


class Lstm(NamedTuple):
    """Such an op; parts that may be absent are None."""

    op: Op

    def part(self, place: int) -> Tensor | None:
        return self.op.inputs[place] if place < len(self.op.inputs) else None

    def need(self, place: int) -> Tensor:
        """A part that every such op has."""
        tensor = self.op.inputs[place]
        assert tensor is not None
        return tensor

    def has(self, places: range) -> bool:
        return any(self.part(place) is not None for place in places)


def lstm_of(op: Op) -> Lstm | None:
    """The op as an LSTM; None where it is none, or has no integer kernel."""
    row = OPS[op.kind]
    is_lstm = "int8" in row.versions and row.inputs.split().count("v") == 2
    is_whole = is_lstm and len(op.inputs) > CELL and op.inputs[CELL] is not None
    return Lstm(op) if is_whole else None


def cells_of(graph: Graph) -> dict[Tensor, Op]:
    """The tensor that holds the cell of each such LSTM, and the op."""
    found = ((op, lstm_of(op)) for op in graph.ops)
    return {lstm.need(CELL): op for op, lstm in found if lstm is not None}


def products_of(graph: Graph) -> Iterator[Layer]:
    """The products of data and constant weights inside such LSTMs, each as if it were a layer: of
    the input, which a bias is added to, and of the last output, which is the state. The op writes
    neither."""
    unpacked = unpacked_constants(graph)
    for lstm in filter(None, map(lstm_of, graph.ops)):
        ends = len(lstm.op.inputs)
        for gate in range(4):
            for data, weights, bias in (
                (0, INPUT_WEIGHTS, BIASES[gate]),
                (STATE, RECURRENT_WEIGHTS, ends),
            ):
                read = lstm.part(weights[gate])
                unpack = None if read is None else unpacked.get(read)
                layer = Layer(lstm.op, data, weights[gate], bias, 0, unpack)
                if read is not None and _is_constant(layer):
                    yield layer


def _is_constant(layer: Layer) -> bool:
    is_matrix = constant_numbers(layer.weight) is not None and len(layer.weight.shape) == 2
    return is_matrix and (layer.bias is None or constant_numbers(layer.bias) is not None)
