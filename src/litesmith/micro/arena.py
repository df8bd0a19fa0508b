"""The arena of a model, added up: permanent memory by kind and by op, planned memory, and the
total.

The allocations are made one after another as the interpreter makes them (micro_allocator.cc,
micro_interpreter.cc), from the tail of the arena down, which gives the same padding between them.
With a word of 8 bytes and its counting allocator that is the wheel on this machine; with a word of
4 it is a microcontroller.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from litesmith.ir.types import Graph, Model, Op, Tensor
from litesmith.micro import structures as sizes
from litesmith.micro.buffers import (
    ALIGNMENT,
    Buffer,
    Scratch,
    align_up,
    list_buffers,
    tensor_bytes,
)
from litesmith.micro.greedy_plan import MemoryPlan, plan_greedily
from litesmith.micro.kernel_memory import kernel_of
from litesmith.micro.offline_plan import read_offsets
from litesmith.phrases import phrase

DEVICE, HOST = sizes.WORDS

# The kinds of permanent memory.
INTERPRETER: str = phrase("interpreter")
TENSORS: str = phrase("tensor structures")
NODES: str = phrase("op structures")
OPTIONS: str = phrase("op options")
KERNEL_DATA: str = phrase("kernel data")
VARIABLES: str = phrase("variables")
HANDLES: str = phrase("scratch handles")
PORTS: str = phrase("inputs and outputs")

_MOST_REQUESTS = 12  # of scratch per kernel; the interpreter reserves this many while it prepares


class Piece(NamedTuple):
    """One permanent allocation.

    bytes  its bytes in the arena, padding included
    graph, op  the op that it belongs to; -1 where it belongs to none
    """

    kind: str
    bytes: int
    graph: int = -1
    op: int = -1


@dataclass(frozen=True, eq=False)
class ArenaAccount:
    """The memory of a model in an arena.

    plan     the places of planned tensors and scratch
    lasting  permanent memory, in the order of allocation
    working  further bytes that the interpreter needs while it plans
    unknown  ops whose kernels are not in the table; their own memory is left out
    word     bytes of a pointer: 4 on a microcontroller
    """

    plan: MemoryPlan
    lasting: tuple[Piece, ...]
    working: int
    unknown: tuple[str, ...]
    word: int

    @cached_property
    def lasting_bytes(self) -> int:
        return sum(piece.bytes for piece in self.lasting)

    @property
    def planned_bytes(self) -> int:
        return self.plan.bytes

    @property
    def total(self) -> int:
        """The bytes in use once the model is ready, as the interpreter reports them."""
        return self.planned_bytes + self.lasting_bytes

    @property
    def needed(self) -> int:
        """Bytes that an arena must have: preparing may take more than running does."""
        handed_out_later = sum(p.bytes for p in self.lasting if p.kind in (PORTS, VARIABLES))
        return max(self.total, self.working + self.lasting_bytes - handed_out_later)

    @cached_property
    def scratch_bytes(self) -> int:
        """The most scratch that lives at one tick."""
        bytes_at: dict[int, int] = {}
        for scratch in self.plan.buffers:
            if scratch.is_scratch:
                bytes_at[scratch.first] = bytes_at.get(scratch.first, 0) + scratch.bytes
        return max(bytes_at.values(), default=0)

    def by_kind(self) -> dict[str, int]:
        """Bytes of permanent memory, by kind."""
        bytes_of: dict[str, int] = {}
        for piece in self.lasting:
            bytes_of[piece.kind] = bytes_of.get(piece.kind, 0) + piece.bytes
        return bytes_of

    def by_op(self) -> dict[tuple[int, int], int]:
        """Bytes of permanent memory, by graph and op."""
        bytes_of: dict[tuple[int, int], int] = {}
        for piece in self.lasting:
            if piece.op >= 0:
                key = piece.graph, piece.op
                bytes_of[key] = bytes_of.get(key, 0) + piece.bytes
        return bytes_of


def add_up_arena(model: Model, word: int = DEVICE) -> ArenaAccount:
    """The account of a model on a microcontroller, or with a word of 8 bytes in the wheel."""
    requests = list_requests(model, word)
    buffers = list_buffers(model, requests)
    plan = plan_greedily(buffers, fixed_offsets(model, buffers))
    lasting = tuple(_take_from_tail(_allocations(model, word, len(requests))))
    unknown = {op.label for _, _, op in model.ops() if kernel_of(op) is None}
    tensors = sum(len(graph.tensors) for graph in model.graphs)
    working = (
        sizes.size_of(sizes.SCRATCH_REQUEST, word) * (len(requests) + _MOST_REQUESTS)
        + word * len(model.graphs)
        + sizes.size_of(sizes.ALLOCATION_INFO, word) * (tensors + len(requests))
        + sizes.size_of(sizes.PLANNED_BUFFER, word) * len(buffers)
    )
    return ArenaAccount(plan, lasting, align_up(working), tuple(sorted(unknown)), word)


def list_requests(model: Model, word: int = DEVICE) -> tuple[Scratch, ...]:
    """The scratch that kernels ask for, in the order of preparing."""
    return tuple(
        Scratch(number, place, count)
        for number, graph in enumerate(model.graphs)
        for place, op in enumerate(graph.ops)
        if (kernel := kernel_of(op)) is not None
        for count in kernel.scratch(op, word)
    )


def fixed_offsets(model: Model, buffers: tuple[Buffer, ...]) -> Mapping[Buffer, int]:
    """The offsets that the file states."""
    offsets = read_offsets(model)
    if offsets is None:
        return {}
    return {one: offsets[one.tensor] for one in buffers if one.tensor in offsets}  # type: ignore[index]


class _Request(NamedTuple):
    """An allocation before it is made."""

    kind: str
    bytes: int
    alignment: int
    graph: int = -1
    op: int = -1


def _take_from_tail(wanted: Iterator[_Request]) -> Iterator[Piece]:
    """Blocks from the end of an arena downwards, each with the padding that its alignment needs."""
    end = 1 << 40
    for one in wanted:
        start = (end - one.bytes) // one.alignment * one.alignment
        yield Piece(one.kind, end - start, one.graph, one.op)
        end = start


def _allocations(model: Model, word: int, requests: int) -> Iterator[_Request]:
    """Every allocation that lasts, in order."""

    def structure(kind: str, fields: str, count: int = 1) -> _Request:
        size, alignment = sizes.layout(fields, word)
        return _Request(kind, size * count, alignment)

    counting = word == HOST
    yield structure(INTERPRETER, sizes.COUNTING_ARENA if counting else sizes.SINGLE_ARENA)
    yield structure(INTERPRETER, sizes.PLANNER)
    yield structure(INTERPRETER, sizes.COUNTING_ALLOCATOR if counting else sizes.ALLOCATOR)
    names = _variable_names(model)
    if names:
        yield _block(VARIABLES, sizes.size_of(sizes.VARIABLES, word))
        yield _block(VARIABLES, sizes.size_of(sizes.VARIABLE, word) * len(names))
    yield structure(INTERPRETER, sizes.OPTIONS_ALLOCATOR)
    yield structure(INTERPRETER, sizes.WHEEL_GRAPH if counting else sizes.GRAPH, len(model.graphs))
    for graph in model.graphs:
        yield structure(TENSORS, sizes.EVAL_TENSOR, len(graph.tensors))
    for graph in model.graphs:
        yield structure(NODES, sizes.NODE, len(graph.ops))
    yield from _options(model, word)
    yield from _kernel_data(model, word)
    yield from _kernel_memory(model, word)
    if requests:
        yield _Request(HANDLES, word * requests, word)
    for tensor in (t for graph in model.graphs for t in graph.tensors if t.variable):
        yield _block(VARIABLES, tensor_bytes(tensor))
    for side in (model.main.inputs, model.main.outputs):
        yield from _ports(side, word)


def _block(kind: str, count: int, graph: int = -1, op: int = -1) -> _Request:
    return _Request(kind, count, ALIGNMENT, graph, op)


def _numbered_ops(model: Model) -> Iterator[tuple[int, int, Op]]:
    for number, graph in enumerate(model.graphs):
        for place, op in enumerate(graph.ops):
            yield number, place, op


def _options(model: Model, word: int) -> Iterator[_Request]:
    for number, place, op in _numbered_ops(model):
        kernel = kernel_of(op)
        if kernel is not None and kernel.options:
            size, alignment = sizes.layout(kernel.options, word)
            yield _Request(OPTIONS, size, alignment, number, place)


def _kernel_data(model: Model, word: int) -> Iterator[_Request]:
    for number, place, op in _numbered_ops(model):
        kernel = kernel_of(op)
        if kernel is None:
            continue
        fields = kernel.wheel if word == HOST and kernel.wheel else kernel.data
        if fields:
            yield _block(KERNEL_DATA, sizes.size_of(fields, word), number, place)


def _kernel_memory(model: Model, word: int) -> Iterator[_Request]:
    """The memory that kernels request beside their own structure; a variable counts once, where it
    is assigned."""
    assigned: set[str] = set()
    for number, place, op in _numbered_ops(model):
        kernel = kernel_of(op)
        if kernel is not None:
            for count in kernel.lasting(op, word):
                yield _block(KERNEL_DATA, count, number, place)
        if op.kind == "ASSIGN_VARIABLE" and op.inputs[1] is not None:
            name = _variable_of(model.graphs[number], op.inputs[0])
            if name not in assigned:
                assigned.add(name)
                yield _block(VARIABLES, tensor_bytes(op.inputs[1]), number, place)


def _ports(tensors: tuple[Tensor, ...], word: int) -> Iterator[_Request]:
    yield _block(PORTS, word * len(tensors))
    for tensor in tensors:
        yield _Request(PORTS, *sizes.layout(sizes.TENSOR, word))
        if tensor.quant is not None and tensor.quant.scale.size:
            yield _Request(PORTS, *sizes.layout(sizes.QUANTIZATION, word))
            yield _Request(PORTS, 4 + 4 * tensor.quant.scale.size, 4)


def _variable_names(model: Model) -> set[str]:
    return {str(op.option("shared_name")) for _, _, op in model.ops() if op.kind == "VAR_HANDLE"}


def _variable_of(graph: Graph, handle: Tensor | None) -> str:
    made = (op for op in graph.ops if op.kind == "VAR_HANDLE" and handle in op.outputs)
    return next((str(op.option("shared_name")) for op in made), "")
