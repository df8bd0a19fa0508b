"""The target `cpu:N:litesmith`: Litesmith's own kernels for ops that the runtime computes slowly.

int16 data with int8 weights, and int8 layers with zeros in blocks of four, give the runtime's
results bit by bit; float layers with such zeros, results as near as another order of sums allows. A
graph in which every op has such a kernel runs as one program, without the runtime; in other graphs,
parts become custom ops of the runtime.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litesmith.errors import BadInput, CannotApply, LitesmithError
from litesmith.ir.types import Array, Graph, Model, Op, Tensor
from litesmith.kernels.compiled import kernel_address
from litesmith.kernels.graph_programs import Steps, assemble, prepare_op
from litesmith.kernels.programs.learn_costs import learn_costs
from litesmith.kernels.programs.prepare_sparse import sparse_layer
from litesmith.kernels.programs.program import Alias, Program, address, align
from litesmith.kernels.programs.sparse_parts import gain_over_stored, may_be_sparse, sparse_facts
from litesmith.native import compile as native
from litesmith.native.compile import why_not
from litesmith.ops.delegate import Native
from litesmith.passes.shrinking.sparsify import with_zeros
from litesmith.phrases import phrase
from litesmith.run.core.placement import PREDICTED, Placement, refuse
from litesmith.run.core.runner import Port
from litesmith.run.core.target import LITESMITH, Target
from litesmith.run.litert import delegated_ops as delegated
from litesmith.run.litert.capi import Event
from litesmith.run.litert.own_kernels import Names

_PLAIN = phrase("neither int16 data nor a layer that can be sparse")
_STORED = phrase("the runtime is as fast with its weights in its own sparse form")
_NOT_SO_SPARSE = phrase("XNNPACK is as fast on {threads} threads")
_NAME = re.compile(r"^'[^']*':? ")  # which a reason may begin with
_MOST_REASONS = 2

_LEAST_ZEROS = 0.05  # fewer zero blocks are chance, not pruning

# The approximate cost of starting and ending work on several threads when the runtime calls, in
# microseconds; work that takes less than four times as long on one thread stays on it.
_TOGETHER_US = 25.0
_ALONE_US = 4 * _TOGETHER_US

# The events of a run's profile: the whole run, and its end (LiteRT's types of events).
_REST, _BUILTIN, _END = 1, 2, 32


class Part:
    """A part of a graph as a program: called with arrays, or as machine code."""

    def __init__(self, program: Program, threads: int) -> None:
        self.program, self.threads = program, threads
        self.native = self._native() if threads == 1 else None

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        self.program.run(inputs, outputs, threads=self.threads)

    def _native(self) -> Native:
        ports = len(self.program.inputs) + len(self.program.outputs)
        room = np.zeros(max(ports, 1), np.int64)
        return Native(kernel_address("part"), address(self.program.record), room, self.program)


class Kernels:
    """Takes the ops that are faster in kernels of ours. Implements `Delegate`.

    learns  whether layers with zeros are timed here, once a processor, before it is decided
    """

    def __init__(self, threads: int = 1, *, learns: bool = False) -> None:
        self._threads, self._learns = threads, learns
        self._known: dict[Op, Steps | str] = {}
        self._us: dict[Op, float] = {}  # of sparse layers on one thread, as expected

    def claims(self, op: Op) -> bool | str:
        steps = self._prepared(op)
        if isinstance(steps, str):
            return steps
        # Ops that change no number cost the runtime nothing either, among its own ops.
        is_own = _has_int16(op) or any(not isinstance(step, Alias) for step in steps)
        return True if is_own else _PLAIN

    def program(self, graph: Graph) -> Part:
        steps = [self._taken(op) for op in graph.ops]
        is_short = sum(self._us.get(op, _ALONE_US) for op in graph.ops) < _ALONE_US
        for op in graph.ops:
            del self._known[op]  # the program has all of it
        threads = 1 if is_short else self._threads
        return Part(assemble(steps, graph.inputs, graph.outputs), threads)

    def _taken(self, op: Op) -> Steps:
        """The kernels of an op that was claimed: after a resize, those that are no faster too."""
        found = self._prepared(op)
        if not isinstance(found, str):
            return found
        if not may_be_sparse(op) or not op.outputs[0].elements:
            raise CannotApply(found)
        return [sparse_layer(_dense(op))]

    def takes_all(self, graph: Graph) -> bool:
        """True where a graph can be one program, and something is won by it."""
        reasons = delegated.refusals(graph, self)
        others = (op for op, why in zip(graph.ops, reasons, strict=True) if why)
        return not all(reasons) and all(map(self._is_alias, others))

    def open_graph(self, graph: Graph, *, names: Names, number: int = 0) -> KernelRunner:
        """A whole graph as one program, without the runtime."""
        return KernelRunner(graph, self, names=names, number=number)

    def taken_note(self, model: Model) -> str:
        """How many ops of a model run on Litesmith's own kernels, and why not the others."""
        reasons = [why for graph in model.graphs for why in delegated.refusals(graph, self)]
        left = Counter(why for why in reasons if why)
        taken = len(reasons) - left.total()
        counted = phrase(
            "{taken} of {count} ops on Litesmith's kernels", taken or phrase("none"), len(reasons)
        )
        if not left:
            return counted
        told = [
            phrase("not {count}: {why}", count, why)
            for why, count in left.most_common(_MOST_REASONS)
        ]
        more = left.total() - sum(count for _, count in left.most_common(_MOST_REASONS))
        return "; ".join(
            [counted, *told, *([phrase("not {more} for other reasons", more)] if more else [])]
        )

    def _is_alias(self, op: Op) -> bool:
        """True where an op changes no number."""
        steps = self._known.get(op, "")
        return not isinstance(steps, str) and all(isinstance(step, Alias) for step in steps)

    def _prepared(self, op: Op) -> Steps | str:
        """The kernels of an op, or why it has none."""
        if op not in self._known:
            try:
                if self._learns and _has_zeros(op):
                    learn_costs()
                self._known[op] = _steps(op)
                self._refuse_as_fast(op)
            except CannotApply as error:
                told = str(error)
                self._known[op] = _NAME.sub("", told) if _NAME.match(told) else told
        return self._known[op]

    def _refuse_as_fast(self, op: Op) -> None:
        """Raises where a dense layer that uses all threads is as fast as a sparse one."""
        if not may_be_sparse(op) or _is_stored(op.inputs[1]):
            return
        facts = sparse_facts(op)
        dense = facts.dense_us
        self._us[op] = us = dense / facts.gain
        ours = us if us < _ALONE_US else us / self._threads + _TOGETHER_US
        if self._threads > 1 and ours >= dense / self._threads:
            raise CannotApply(_NOT_SO_SPARSE.format(threads=self._threads))


def _steps(op: Op) -> Steps:
    tensors = [t for t in (*op.inputs, *op.outputs) if t is not None]
    if any(not t.elements for t in tensors if not t.is_const):
        raise CannotApply("it has no elements")
    if not may_be_sparse(op) and not _has_int16(op) and op.kind not in _SAME:
        raise CannotApply(_PLAIN)
    return _stored(op) if may_be_sparse(op) and _is_stored(op.inputs[1]) else prepare_op(op)


def _has_zeros(op: Op) -> bool:
    """True for a layer that could be computed without its zeros, and has some."""
    try:
        return may_be_sparse(op) and sparse_facts(_dense(op)).zeros >= _LEAST_ZEROS
    except CannotApply:
        return False


def _is_stored(weight: Tensor | None) -> bool:
    """True for float32 in the form that the runtime's sparse kernel takes: rows of blocks."""
    if weight is None or weight.sparsity is None or weight.dtype != "float32":
        return False
    order, blocks = (weight.sparsity.integers(name) for name in ("traversal_order", "block_map"))
    return [*order] == [0, 1, 2] and [*blocks] == [1]


def _stored(op: Op) -> Steps:
    """The kernel of a layer whose weights are stored without their zeros."""
    plain = _dense(op)
    facts = sparse_facts(plain)
    if gain_over_stored(*facts.shape, facts.zeros) <= 1:
        raise CannotApply(_STORED)
    return [sparse_layer(plain)]


def _dense(op: Op) -> Op:
    """A layer with all of its weights, zeros too."""
    data, weight, *rest = op.inputs
    if weight is None or not _is_stored(weight):
        return op
    return replace(op, inputs=(data, with_zeros(weight), *rest))


_SAME = ("EXPAND_DIMS", "RESHAPE", "SQUEEZE")


def _has_int16(op: Op) -> bool:
    return any(t.dtype == "int16" for t in (*op.inputs, *op.outputs) if t is not None)


class KernelRunner:
    """A whole graph as one program, which reads and writes the arrays of its ports."""

    copies = False

    def __init__(self, graph: Graph, kernels: Kernels, *, names: Names, number: int = 0) -> None:
        self._graph, self._kernels, self._names, self._number = graph, kernels, names, number
        self._moments: list[list[int]] | None = None
        self._use(graph)

    def _use(self, graph: Graph) -> None:
        part = self._kernels.program(graph)
        self._program, self._threads = part.program, part.threads
        self.inputs, self.outputs = (
            tuple(
                Port(name, align(np.zeros(t.shape, t.dtype)))
                for name, t in zip(side, tensors, strict=True)
            )
            for side, tensors in zip(self._names, (graph.inputs, graph.outputs), strict=True)
        )
        self._addresses = [address(port.array) for port in (*self.inputs, *self.outputs)]

    def run(self) -> None:
        if self._moments is None:
            self._program.run_at(self._addresses, threads=self._threads)
        else:
            told = self._program.run_timed(self._addresses, threads=self._threads)
            self._moments.append(told)

    def resize(self, shapes: dict[int, tuple[int, ...]]) -> None:
        wanted = [shapes.get(n, port.array.shape) for n, port in enumerate(self.inputs)]
        try:
            self._use(delegated.resize_graph(self._graph, wanted))
        except (LitesmithError, ValueError) as error:
            raise BadInput(
                "cannot resize to {values}: {error}", list(shapes.values()), error
            ) from None

    def close(self) -> None:
        self.inputs = self.outputs = ()

    # Profiling.

    def start_profile(self) -> None:
        self._moments = []

    def stop_profile(self) -> list[Event]:
        """An event for each kernel, in the form of the runtime's own events."""
        told, self._moments = self._moments or [], None
        return [event for moments in told for event in self._events(moments)]

    def _events(self, moments: Sequence[int]) -> list[Event]:
        # Cut to whole microseconds before they are subtracted, so that nothing is lost on average.
        us = [moment // 1000 for moment in moments]
        spans = zip(self._program.owners, us, us[1:], strict=False)
        return [
            self._event("Invoke", _REST, 0, us[0], us[-1]),
            *(self._event(LITESMITH, _BUILTIN, owner, start, end) for owner, start, end in spans),
            self._event("", _END, 0, us[-1], us[-1]),
        ]

    def _event(self, tag: str, kind: int, index: int, start: int, end: int) -> Event:
        made = Event(tag=tag.encode(), type=kind, start_us=start, elapsed_us=end - start)
        made.index, made.graph = index, self._number
        return made


def delegate(threads: int = 1) -> Kernels:
    return Kernels(threads, learns=True)


def is_cold() -> bool:
    """True where kernels must be compiled first, which takes some seconds once a machine."""
    return native.is_cold("kernels")


def place(model: Model) -> Placement:
    """Which ops of a model have a kernel here."""
    target = str(Target("cpu", 1, LITESMITH))
    missing = why_not()
    if missing:
        return refuse(target, PREDICTED, model, missing)
    return replace(delegated.place(model, Kernels(), LITESMITH), target=target)
