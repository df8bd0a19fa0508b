"""Planned memory: the tensors and scratch of a model, with the first and last op of each lifetime.

The clock is TensorFlow Lite Micro's own (micro_allocation_info.cc): 0 is the start, where the
inputs are filled; each op is a tick, and so is the entry of each graph that a control flow op runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from litesmith.ir.types import Graph, Model, Op, Tensor

ALIGNMENT = 16  # of every buffer: MicroArenaBufferAlignment
_UNUSED = -1

# The bytes of an element in the arena, where they differ from the file: int4 is unpacked.
_BYTES = {
    "bool": 1,
    "complex128": 16,
    "complex64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "int16": 2,
    "int32": 4,
    "int4": 1,
    "int64": 8,
    "int8": 1,
    "resource": 4,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "uint8": 1,
}


class Scratch(NamedTuple):
    """Scratch that a kernel requests: bytes that live during its own op."""

    graph: int
    op: int
    bytes: int


@dataclass(frozen=True, eq=False)
class Buffer:
    """A piece of planned memory.

    bytes        the planned size, a multiple of 16
    first, last  the ticks between which it lives, both included
    tensor       the tensor with these values; None for scratch
    graph, op    the op that uses scratch; for a tensor, `graph` is the graph that lists it
    """

    bytes: int
    first: int
    last: int
    tensor: Tensor | None = None
    graph: int = 0
    op: int = _UNUSED

    @property
    def is_scratch(self) -> bool:
        return self.tensor is None

    def meets(self, other: "Buffer") -> bool:
        """True where both live at some tick."""
        return self.first <= other.last and other.first <= self.last


def tensor_bytes(tensor: Tensor) -> int:
    """Bytes of a tensor in the arena; 0 for a type that the interpreter does not know."""
    return tensor.elements * _BYTES.get(tensor.dtype, 0)


def align_up(count: int, alignment: int = ALIGNMENT) -> int:
    return -(-count // alignment) * alignment


def is_planned(tensor: Tensor) -> bool:
    """True for tensors without values in the file, except variables, which are permanent."""
    has_data = tensor.data is not None and tensor.data.size > 0
    return not has_data and not tensor.variable and tensor_bytes(tensor) > 0


def list_buffers(model: Model, requests: Iterable[Scratch] = ()) -> tuple[Buffer, ...]:
    """Every planned buffer in the interpreter's order: tensors graph by graph, then scratch."""
    requested = tuple(requests)
    clock = _mark_lifetimes(model, requested)
    handles = {t for _, _, op in model.ops() if op.kind == "VAR_HANDLE" for t in op.outputs}
    found = [
        Buffer(align_up(tensor_bytes(tensor)), *clock.tensors.get(tensor, _NEVER), tensor, number)
        for number, graph in enumerate(model.graphs)
        for tensor in graph.tensors
        if is_planned(tensor) and tensor not in handles  # a handle lies in its kernel's data
    ]
    for place, request in enumerate(requested):
        span = clock.scratch.get(place, _NEVER)
        found.append(Buffer(align_up(request.bytes), *span, None, request.graph, request.op))
    return tuple(found)


_NEVER = (_UNUSED, _UNUSED)
Span = tuple[int, int]


@dataclass
class _Clock:
    """The lifetimes seen so far."""

    now: int = 0
    tensors: dict[Tensor, Span] = field(default_factory=dict[Tensor, Span])
    scratch: dict[int, Span] = field(default_factory=dict[int, Span])

    def create(self, tensor: Tensor) -> None:
        first, last = self.tensors.get(tensor, _NEVER)
        self.tensors[tensor] = (self.now if first == _UNUSED else first, last)

    def use(self, tensor: Tensor) -> None:
        self.tensors[tensor] = (self.tensors.get(tensor, _NEVER)[0], self.now)


def _mark_lifetimes(model: Model, requests: Sequence[Scratch]) -> _Clock:
    clock = _Clock()
    places_by_op: dict[tuple[int, int], list[int]] = {}
    for place, request in enumerate(requests):
        places_by_op.setdefault((request.graph, request.op), []).append(place)
    _mark_graph(model, 0, clock, places_by_op)
    return clock


def _mark_graph(
    model: Model, number: int, clock: _Clock, places_by_op: Mapping[tuple[int, int], Sequence[int]]
) -> None:
    graph = model.graphs[number]
    for tensor in graph.inputs:
        clock.create(tensor)
        clock.use(tensor)
    for place, op in enumerate(graph.ops):
        clock.now += 1
        start = clock.now
        for tensor in op.outputs:
            clock.create(tensor)
        for inner in inner_graphs(op):
            clock.now += 1
            _mark_graph(model, inner, clock, places_by_op)
        for tensor in filter(None, op.inputs):
            clock.use(tensor)
        for tensor in op.outputs:
            clock.use(tensor)
        for request in places_by_op.get((number, place), ()):
            first = clock.scratch.get(request, _NEVER)[0]
            clock.scratch[request] = (start if first == _UNUSED else first, clock.now)
    for tensor in graph.outputs:
        clock.create(tensor)
        clock.use(tensor)


# The graphs that a control flow op runs, in the order in which the interpreter plans them.
_INNER = {
    "CALL_ONCE": ("init_subgraph_index",),
    "IF": ("then_subgraph_index", "else_subgraph_index"),
    "WHILE": ("cond_subgraph_index", "body_subgraph_index"),
}


def inner_graphs(op: Op) -> tuple[int, ...]:
    """The numbers of the graphs that an op runs."""
    names = _INNER.get(op.kind, ())
    return tuple(op.options.integer(name) for name in names) if op.options is not None else ()


def live_bytes(buffers: Iterable[Buffer]) -> dict[int, int]:
    """The bytes that are live at each tick, a lower bound for every plan."""
    live = tuple(buffers)
    ticks = range(max((buffer.last for buffer in live), default=0) + 1)
    return {
        tick: sum(buffer.bytes for buffer in live if buffer.first <= tick <= buffer.last)
        for tick in ticks
    }


def tick_labels(model: Model) -> dict[int, str]:
    """A label for each tick of the main graph: the inputs, then each op by its kind."""
    labels = {0: "inputs"}
    clock = 0
    for op in model.main.ops:
        clock += 1
        labels[clock] = op.label
        clock += sum(1 + _ticks(model, inner) for inner in inner_graphs(op))
    return labels


def _ticks(model: Model, number: int) -> int:
    graph: Graph = model.graphs[number]
    inner = (1 + _ticks(model, one) for op in graph.ops for one in inner_graphs(op))
    return len(graph.ops) + sum(inner)
