"""Which op writes a tensor and which ops read it, through ops that only move values."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from litesmith.ir.edit import consumers
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Op, Tensor, constant_numbers

# Ops whose outputs are values of their data, all or a part, in other places.
_TAKING = frozenset({"GATHER", "SLICE", "SPLIT", "SPLIT_V", "STRIDED_SLICE", "UNPACK"})

# Ops that compute each value from the values in the same place.
ELEMENTWISE = frozenset(
    {
        "ADD",
        "DIV",
        "LOGISTIC",
        "MAXIMUM",
        "MINIMUM",
        "MUL",
        "NEG",
        "POW",
        "RSQRT",
        "SQRT",
        "SQUARE",
        "SQUARED_DIFFERENCE",
        "SUB",
        "TANH",
    }
)


def only_moves(op: Op) -> bool:
    """True where an op's outputs are values of its data, in other places or another form."""
    row = OPS[op.kind]
    is_lookup = op.kind == "GATHER" and op.inputs[0] is not None and op.inputs[0].is_const
    moves = row.reshapes or row.transposes or row.converts or row.rescales
    return (moves or op.kind in _TAKING) and not is_lookup


def data_of(op: Op) -> list[Tensor]:
    """The computed inputs of an op; of an op that only picks values, its data alone."""
    found = [t for t in op.inputs if t is not None and not t.is_const]
    return found[-1:] if op.kind == "SPLIT" else found[:1] if only_moves(op) else found


@dataclass(frozen=True, eq=False)
class Wiring:
    """A graph by its tensors: the op that writes each, and the ops that read it."""

    graph: Graph
    makers: dict[Tensor, Op]
    readers: dict[Tensor, list[Op]]

    @staticmethod
    def of(graph: Graph) -> "Wiring":
        makers = {tensor: op for op in graph.ops for tensor in op.outputs}
        return Wiring(graph, makers, consumers(graph))

    def origin(self, tensor: Tensor | None, through: Collection[str] = ()) -> Tensor | None:
        """The tensor where values were computed: the search goes back through ops that only move
        them, and through ops of the kinds `through` that compute with one tensor and constants.
        """
        while tensor is not None:
            op = self.makers.get(tensor)
            if op is None:
                return tensor
            given = data_of(op)
            is_passed = only_moves(op) or (op.kind in through and len(given) == 1)
            if not is_passed or not given:
                return tensor
            tensor = given[0]
        return None

    def maker(self, tensor: Tensor | None, through: Collection[str] = ()) -> Op | None:
        """The op that computed the values of a tensor, beyond the ops that `origin` goes
        through.
        """
        source = self.origin(tensor, through)
        return None if source is None else self.makers.get(source)

    def users(self, tensor: Tensor, through: Collection[str] = ()) -> Iterator[Op]:
        """The ops that compute with a tensor's values, also where other ops move the values first;
        with `through`, ops of these kinds that compute with one tensor and constants are passed
        too.
        """
        for op in dict.fromkeys(self.readers.get(tensor, ())):
            if only_moves(op) or (op.kind in through and len(data_of(op)) == 1):
                for made in op.outputs:
                    yield from self.users(made, through)
            else:
                yield op

    def between(self, tensor: Tensor | None, source: Tensor | None) -> Iterator[Op]:
        """The ops from a source to a tensor along their first data, the last one first."""
        while tensor is not None and tensor is not source:
            op = self.makers.get(tensor)
            if op is None or not data_of(op):
                return
            yield op
            tensor = data_of(op)[0]

    def made_of(self, sources: Iterable[Tensor]) -> dict[Op, None]:
        """The elementwise ops that compute only with these tensors and constants, in order."""
        known, found = set(sources), dict[Op, None]()
        waiting = [op for tensor in known for op in self.readers.get(tensor, ())]
        while waiting:
            op = waiting.pop()
            if op in found or op.kind not in ELEMENTWISE or not known.issuperset(data_of(op)):
                continue
            found[op] = None
            known.update(op.outputs)
            waiting += [reader for made in op.outputs for reader in self.readers.get(made, ())]
        return {op: None for op in self.graph.ops if op in found}


def is_product(op: Op | None) -> bool:
    """True for a product of two computed matrices."""
    if op is None:
        return False
    dense = OPS[op.kind].is_dense and len(op.inputs) > 1 and op.inputs[1] is not None
    return op.kind == "BATCH_MATMUL" or (dense and not op.inputs[1].is_const)  # pyright: ignore


def is_weighted(op: Op | None) -> bool:
    """True for a layer with constant weights: dense, or a convolution of one pixel."""
    if op is None or len(op.inputs) < 2:
        return False
    row, weight = OPS[op.kind], op.inputs[1]
    if weight is None or is_product(op):
        return False
    pixel = len(weight.shape) == 4 and weight.shape[1:3] == (1, 1)
    return row.is_dense or (row.is_convolution and pixel)


def scalar(tensor: Tensor | None) -> float | None:
    """The number in a constant of one element; None for other tensors."""
    values = constant_numbers(tensor)
    if tensor is None or values is None or values.size != 1 or tensor.quant is not None:
        return None
    return float(values.reshape(-1)[0])


def has_scalar(ops: Iterable[Op], wanted: float) -> bool:
    """True where one of the ops computes with this number, within a thousandth."""
    held = (scalar(tensor) for op in ops for tensor in op.inputs)
    return any(value is not None and np.isclose(value, wanted, rtol=1e-3) for value in held)


def over_last(op: Op) -> bool:
    """True where an op reduces only the last axis; axes of size 1 do not count."""
    if len(op.inputs) < 2 or op.inputs[0] is None:
        return False
    axes, shape = constant_numbers(op.inputs[1]), op.inputs[0].shape
    if axes is None or not shape:
        return False
    last = len(shape) - 1
    places = {int(axis) % len(shape) for axis in axes.reshape(-1)}
    return {place for place in places if place == last or shape[place] != 1} == {last}
