"""`relayout`: the order in which each tensor's axes are stored, solved over the whole graph.

Models that came from channels-first tools turn images round and back between their ops. Which
tensors are stored channels first and which channels last is a choice of two for each; a TRANSPOSE
is needed where a reader wants the other one. A minimum cut finds the choice that moves the fewest
bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from litesmith.ir.edit import regraph, substitute, with_graphs
from litesmith.ir.ops import late_tensors
from litesmith.ir.types import Graph, Model, Op, Record, Tensor, constant_numbers, frozen
from litesmith.numeric.minimum_cut import ENDLESS, SINK, SOURCE, FlowNetwork
from litesmith.passes.core.step import Change, Context
from litesmith.passes.tidy.axis_order import (
    RANKS,
    Order,
    To,
    Turned,
    first,
    has_order,
    last,
    moves_nothing,
    turned,
)
from litesmith.phrases import phrase

# What one op more costs beside the bytes that it moves.
_CALL = 1024
# What a RESHAPE costs, which moves no bytes.
_FREE = 1


@dataclass(frozen=True)
class Relayout:
    """Store images in the order that needs the fewest transposes, over the whole graph at once.

    images  inputs and outputs of 4 or 5 dimensions may change their order too, to channels last
    """

    images: bool = False

    def apply(self, model: Model, context: Context) -> Change:
        return relayout(model, self.images).change


class Relaid(NamedTuple):
    """What became of a model: `turned` names inputs and outputs that have another order now."""

    change: Change
    turned: frozenset[str]


def relayout(model: Model, images: bool) -> Relaid:
    """The model in the order of axes that needs the fewest transposes."""
    graphs: list[Graph] = []
    renamed: dict[Tensor, Tensor] = {}
    touched: list[str] = []
    turned_ends: set[str] = set()
    for number, graph in enumerate(model.graphs):
        done = _Rewriting(graph, _orders(graph, images and not number))
        new = done.run()
        if _cost(new) >= _cost(graph):
            graphs.append(graph)
            continue
        graphs.append(new)
        renamed |= done.renamed
        turned_ends |= {tensor.name for tensor in done.orders.ends}
        touched.append(
            phrase("{before} transposes became {after}", _transposes(graph), _transposes(new))
        )
    change = Change(with_graphs(model, graphs, renamed), tuple(touched))
    return Relaid(change, frozenset(turned_ends))


def _transposes(graph: Graph) -> int:
    return sum(op.kind == "TRANSPOSE" for op in graph.ops)


def _cost(graph: Graph) -> int:
    turns = (op for op in graph.ops if op.kind == "TRANSPOSE" or _turns_to(op))
    return sum(_FREE if op.kind == "RESHAPE" else op.outputs[0].nbytes + _CALL for op in turns)


def _turns_to(op: Op) -> tuple[bool, ...]:
    """What an op that turns a tensor between the two orders does: to the last one, to the first
    one, or both, which are the same with three dimensions. () for any other op."""
    rank = len(op.outputs[0].shape) if op.outputs else 0
    if op.kind not in _TURNING or rank not in RANKS or op.inputs[0] is None:
        return ()
    turns = _TURNING[op.kind]
    return tuple(is_last for is_last, to in ((True, last), (False, first)) if turns(op, to(rank)))


def _transposes_to(op: Op, order: Order) -> bool:
    given = constant_numbers(op.inputs[1])
    return given is not None and tuple(given.tolist()) == order


def _reshapes_to(op: Op, order: Order) -> bool:
    """True where a RESHAPE does what a transpose would: only sizes of one change their places."""
    source, target = op.inputs[0], op.outputs[0]
    assert source is not None
    if len(source.shape) != len(order) or -1 in (source.dynamic or ()):
        return False
    is_turned = target.shape == tuple(source.shape[axis] for axis in order) != source.shape
    return is_turned and moves_nothing(source.shape, order)


_TURNING = {"RESHAPE": _reshapes_to, "TRANSPOSE": _transposes_to}


def _meanings(graph: Graph) -> dict[Tensor, bool]:
    """Whether a tensor means N, spatial …, C, as far as the transposes around it say so."""
    tied: dict[Tensor, list[tuple[Tensor, bool]]] = {}
    votes: dict[Tensor, int] = {}

    def tie(a: Tensor, b: Tensor, differs: bool) -> None:
        tied.setdefault(a, []).append((b, differs))
        tied.setdefault(b, []).append((a, differs))

    for op in graph.ops:
        ways, source = _turns_to(op), op.inputs[0] if op.inputs else None
        if ways and source is not None and has_order(source):
            tie(source, op.outputs[0], True)
            if len(ways) == 1:
                votes[source] = votes.get(source, 0) + (-1 if ways[0] else 1)
            continue
        form = turned(op, last)
        if form is None:
            continue
        kept = [t for t, is_new in zip(op.outputs, form.outputs, strict=True) if is_new]
        ordered = [t for t in (*op.inputs, *kept) if t is not None and has_order(t)]
        for other in ordered[1:]:
            tie(ordered[0], other, False)
    return _settled(tied, votes)


def _settled(
    tied: Mapping[Tensor, list[tuple[Tensor, bool]]], votes: Mapping[Tensor, int]
) -> dict[Tensor, bool]:
    """A meaning for each tensor, such that most transposes of a connected part make sense."""
    meaning: dict[Tensor, bool] = {}
    for root in tied:
        if root in meaning:
            continue
        meaning[root] = False
        part, total = [root], 0
        for tensor in part:
            total += votes.get(tensor, 0) * (-1 if meaning[tensor] else 1)
            for other, differs in tied[tensor]:
                if other not in meaning:
                    meaning[other] = meaning[tensor] != differs
                    part.append(other)
        if total > 0:
            meaning |= {tensor: not meaning[tensor] for tensor in part}
    return meaning


@dataclass(frozen=True)
class _Orders:
    """What was decided.

    meaning  the tensors that mean N, spatial …, C
    aliases  transposes that tensors which are stored alike do not need
    turned   ops that work on tensors stored in the other order than they mean
    ends     inputs and outputs that are stored in the other order than they mean
    """

    meaning: Mapping[Tensor, bool]
    aliases: frozenset[Op]
    turned: Mapping[Op, Turned]
    ends: frozenset[Tensor]


def _orders(graph: Graph, images: bool) -> _Orders:
    network, late, meaning = FlowNetwork(), late_tensors(graph), _meanings(graph)

    def natural(tensor: Tensor) -> int:
        return SINK if meaning.get(tensor) else SOURCE

    aliases = frozenset(op for op in graph.ops if _is_alias(op, meaning))
    forms = {
        op: form
        for op in graph.ops
        if op not in aliases and late.isdisjoint(op.outputs) and (form := _form(op, meaning))
    }
    nodes = {op: network.node() for op in forms}
    made: dict[Tensor, int] = {}  # the node of a tensor's own order
    wanted: dict[Tensor, list[int]] = {}  # the nodes of its readers' orders
    ends: dict[Tensor, int] = {}

    def end(tensor: Tensor) -> int:
        if not images or len(tensor.shape) < 4 or not has_order(tensor) or meaning.get(tensor):
            return natural(tensor)
        if tensor not in ends:
            ends[tensor] = network.node()
            network.join(SOURCE, ends[tensor], 1)  # as it was, where nothing is gained
        return ends[tensor]

    for tensor in graph.inputs:
        made[tensor] = end(tensor)
    for op in graph.ops:
        if op in aliases:
            node = network.node()
            made[op.outputs[0]] = node
            wanted.setdefault(_source(op), []).append(node)
            continue
        for tensor in filter(has_order, op.inputs):
            assert tensor is not None
            wanted.setdefault(tensor, []).append(nodes.get(op, natural(tensor)))
        for place, tensor in enumerate(op.outputs):
            is_turned = op in forms and forms[op].outputs[place]
            made[tensor] = nodes[op] if is_turned else natural(tensor)
    for tensor in graph.outputs:
        wanted.setdefault(tensor, []).append(end(tensor))
    _join(network, made, wanted, meaning)
    far = network.far_side()
    return _Orders(
        meaning,
        aliases,
        {op: forms[op] for op, node in nodes.items() if (node in far) != _means_last(op, meaning)},
        frozenset(t for t, node in ends.items() if node in far),
    )


def _source(op: Op) -> Tensor:
    source = op.inputs[0]
    assert source is not None
    return source


def _is_alias(op: Op, meaning: Mapping[Tensor, bool]) -> bool:
    """True for a turn from what its input means to what its output means."""
    ways = _turns_to(op)
    if not ways or op.outputs[0] not in meaning:
        return False
    is_last = meaning[op.outputs[0]]
    return is_last in ways and is_last != meaning.get(_source(op), False)


def _means_last(op: Op, meaning: Mapping[Tensor, bool]) -> bool:
    return any(meaning.get(t, False) for t in (*op.inputs, *op.outputs) if t and has_order(t))


def _form(op: Op, meaning: Mapping[Tensor, bool]) -> Turned | None:
    """The op on tensors that are stored in the other order than they mean; None where some of
    them mean one thing and some the other, or it has no such form."""
    is_last = _means_last(op, meaning)
    form = turned(op, first if is_last else last)
    if form is None:
        return None
    kept = [t for t, is_new in zip(op.outputs, form.outputs, strict=True) if is_new]
    ordered = [t for t in (*op.inputs, *kept) if t is not None and has_order(t)]
    return form if all(meaning.get(t, False) == is_last for t in ordered) else None


def _join(
    network: FlowNetwork,
    made: Mapping[Tensor, int],
    wanted: Mapping[Tensor, list[int]],
    meaning: Mapping[Tensor, bool],
) -> None:
    """A tensor that any reader wants in the other order is turned, once for all of them."""
    for tensor, readers in wanted.items():
        own = made.get(tensor, SOURCE)
        if tensor not in made or not has_order(tensor):
            continue
        to = first if meaning.get(tensor) else last
        is_free = moves_nothing(tensor.shape, to(len(tensor.shape)))
        cost = _FREE if is_free else tensor.nbytes + _CALL
        to_last, to_first = network.node(), network.node()
        network.join(own, to_last, cost)
        network.join(to_first, own, cost)
        for reader in readers:
            network.join(to_last, reader, ENDLESS)
            network.join(reader, to_first, ENDLESS)


@dataclass
class _Rewriting:
    """The graph with every tensor in its order; transposes where a reader wants the other.

    stored  each tensor channels first (False) and channels last (True), as far as it is needed
    """

    graph: Graph
    orders: _Orders
    ops: list[Op] = field(default_factory=list[Op])
    stored: dict[tuple[Tensor, bool], Tensor] = field(
        default_factory=dict[tuple[Tensor, bool], Tensor]
    )
    renamed: dict[Tensor, Tensor] = field(default_factory=dict[Tensor, Tensor])

    def run(self) -> Graph:
        inputs = [self._input(tensor) for tensor in self.graph.inputs]
        for op in self.graph.ops:
            self._op(op)
        outputs = [self._output(tensor) for tensor in self.graph.outputs]
        return regraph(self.graph, ops=self.ops, inputs=inputs, outputs=outputs)

    def _means_last(self, tensor: Tensor) -> bool:
        return self.orders.meaning.get(tensor, False)

    def _input(self, tensor: Tensor) -> Tensor:
        if tensor not in self.orders.ends:
            self.stored[tensor, self._means_last(tensor)] = tensor
            return tensor
        new = _reordered(tensor, last)
        if tensor.dynamic is not None:
            new = replace(new, dynamic=tuple(tensor.dynamic[a] for a in last(len(tensor.shape))))
        self.stored[tensor, True] = self.renamed[tensor] = new
        return new

    def _op(self, op: Op) -> None:
        if op in self.orders.aliases:
            for is_last in (False, True):
                if (_source(op), is_last) in self.stored:
                    self.stored[op.outputs[0], is_last] = self.stored[_source(op), is_last]
        elif op in self.orders.turned:
            self._turned(op, self.orders.turned[op])
        else:
            inputs = tuple(t and self._get(t, self._means_last(t)) for t in op.inputs)
            self.ops.append(replace(op, inputs=inputs))
            for tensor in op.outputs:
                self.stored[tensor, self._means_last(tensor)] = tensor

    def _turned(self, op: Op, form: Turned) -> None:
        is_last = not _means_last(op, self.orders.meaning)
        inputs = tuple(t and (self._get(t, is_last) if has_order(t) else t) for t in form.inputs)
        outputs: list[Tensor] = []
        for tensor, is_new in zip(op.outputs, form.outputs, strict=True):
            new = tensor
            if is_new and has_order(tensor):
                new = _reordered(tensor, last if is_last else first)
                self.stored[tensor, is_last] = new
            else:
                self.stored[tensor, self._means_last(tensor)] = new
            outputs.append(new)
        options = op.options
        if form.options and options is not None:
            options = options.set(**form.options)
        self.ops.append(replace(op, inputs=inputs, outputs=tuple(outputs), options=options))

    def _get(self, tensor: Tensor, is_last: bool) -> Tensor:
        """The tensor in an order; turned where it is stored in the other one only."""
        if not has_order(tensor):
            return tensor
        found = self.stored.get((tensor, is_last))
        if found is not None:
            return found
        other = self.stored[tensor, not is_last]
        to = last if is_last else first
        made = _reordered(other, to)
        self.ops.append(_transpose(other, made, to(len(tensor.shape))))
        self.stored[tensor, is_last] = made
        return made

    def _output(self, tensor: Tensor) -> Tensor:
        """The output, by its own name, made by an op for it alone."""
        found = self._get(tensor, self._means_last(tensor) != (tensor in self.orders.ends))
        if found is tensor:
            return tensor
        taken = {*self.graph.inputs, *self.renamed.values(), *self.graph.outputs}
        new = replace(found, name=tensor.name)
        if found in taken or found.is_const:
            self.ops.append(_reshape(found, new))
        else:
            self.ops = [substitute(op, {found: new}) for op in self.ops]
            self.stored = {key: new if t is found else t for key, t in self.stored.items()}
        self.renamed[tensor] = new
        return new


def _reordered(tensor: Tensor, to: To) -> Tensor:
    """A tensor as it is stored in another order."""
    return replace(
        tensor, shape=tuple(tensor.shape[a] for a in to(len(tensor.shape))), dynamic=None
    )


def _transpose(source: Tensor, target: Tensor, order: tuple[int, ...]) -> Op:
    if moves_nothing(source.shape, order):
        return _reshape(source, target)
    setting = Tensor(
        f"{target.name}/order", (len(order),), "int32", frozen(np.array(order, np.int32))
    )
    return Op("TRANSPOSE", (source, setting), (target,), Record("TransposeOptions"))


def _reshape(source: Tensor, target: Tensor) -> Op:
    shape = frozen(np.array(target.shape, np.int32))
    setting = Tensor(f"{target.name}/shape", shape.shape, "int32", shape)
    options = Record("ReshapeOptions").set(new_shape=target.shape)
    return Op("RESHAPE", (source, setting), (target,), options)
