"""The target `cpu:N:litesmith`: kernels of our own for what the runtime computes slowly.

int16 data with int8 weights comes out bit by bit as the runtime's; float layers with zeros in
blocks of four, as near as another order of sums. A graph of which every op has such a kernel runs
as one program, without the runtime; of others, parts become custom ops of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litesmith.errors import BadInput, CannotApply, LitesmithError
from litesmith.ir.types import Array, Graph, Model, Op
from litesmith.jit.graph import Steps, assembled, prepared
from litesmith.jit.native import address_of, why_not
from litesmith.jit.prepare_sparse import SPARSE
from litesmith.jit.program import Alias, Program, address, aligned
from litesmith.ops.delegate import Native
from litesmith.run import delegated
from litesmith.run.capi import Event
from litesmith.run.placement import PREDICTED, Placement, refuse
from litesmith.run.runner import Port
from litesmith.run.target import LITESMITH, Target

TAG = "litesmith"  # of what a profile tells of these kernels

_PLAIN = "neither int16 data nor a float layer of 1×1"
_NAME = re.compile(r"^'[^']*':? ")  # which a reason may begin with
_MOST_REASONS = 2

# What a profile has of a run: its whole, and where it ends (LiteRT's types of events).
_REST, _BUILTIN, _END = 1, 2, 32

Names = tuple[Sequence[str], Sequence[str]]


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
        return Native(address_of("part"), address(self.program.record), room, self.program)


class Kernels:
    """Takes the ops that are faster in kernels of ours. Implements `Delegate`."""

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._known: dict[Op, Steps | str] = {}

    def claims(self, op: Op) -> bool | str:
        steps = self._prepared(op)
        if isinstance(steps, str):
            return steps
        # What changes no number costs the runtime nothing either, among ops of its own.
        is_own = _has_int16(op) or any(not isinstance(step, Alias) for step in steps)
        return True if is_own else _PLAIN

    def program(self, graph: Graph) -> Part:
        steps: list[Steps] = []
        for op in graph.ops:
            found = self._prepared(op)
            if isinstance(found, str):
                raise CannotApply(found)
            steps.append(found)
        for op in graph.ops:
            del self._known[op]  # the program has all of it
        return Part(assembled(steps, graph.inputs, graph.outputs), self._threads)

    def takes_all(self, graph: Graph) -> bool:
        """True where a graph can be one program, and something is won by it."""
        reasons = delegated.refusals(graph, self)
        others = (op for op, why in zip(graph.ops, reasons, strict=True) if why)
        return not all(reasons) and all(map(self._is_alias, others))

    def _is_alias(self, op: Op) -> bool:
        """True where an op changes no number."""
        steps = self._known.get(op, "")
        return not isinstance(steps, str) and all(isinstance(step, Alias) for step in steps)

    def _prepared(self, op: Op) -> Steps | str:
        """The kernels of an op, or why it has none."""
        if op not in self._known:
            try:
                self._known[op] = _steps(op)
            except CannotApply as error:
                self._known[op] = _NAME.sub("", str(error))
        return self._known[op]


def _steps(op: Op) -> Steps:
    tensors = [t for t in (*op.inputs, *op.outputs) if t is not None]
    if any(not t.elements for t in tensors if not t.is_const):
        raise CannotApply("it has no elements")
    first = op.inputs[0] if op.inputs else None
    is_float = op.kind in SPARSE and first is not None and first.dtype == "float32"
    if not is_float and not _has_int16(op) and op.kind not in _SAME:
        raise CannotApply(_PLAIN)
    return prepared(op)


_SAME = ("EXPAND_DIMS", "RESHAPE", "SQUEEZE")


def _has_int16(op: Op) -> bool:
    return any(t.dtype == "int16" for t in (*op.inputs, *op.outputs) if t is not None)


class KernelRunner:
    """A whole graph as one program; the arrays of its ports are what it reads and writes."""

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
                Port(name, aligned(np.zeros(t.shape, t.dtype)))
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
            self._use(delegated.resized(self._graph, wanted))
        except (LitesmithError, ValueError) as error:
            raise BadInput(f"cannot resize to {list(shapes.values())}: {error}") from None

    def close(self) -> None:
        self.inputs = self.outputs = ()

    # Profiling.

    def start_profile(self) -> None:
        self._moments = []

    def stop_profile(self) -> list[Event]:
        """An event for each kernel, as the runtime would tell of kernels of its own."""
        told, self._moments = self._moments or [], None
        return [event for moments in told for event in self._events(moments)]

    def _events(self, moments: Sequence[int]) -> list[Event]:
        # Cut to whole microseconds before they are subtracted, so that nothing is lost on average.
        us = [moment // 1000 for moment in moments]
        spans = zip(self._program.owners, us, us[1:], strict=False)
        return [
            self._event("Invoke", _REST, 0, us[0], us[-1]),
            *(self._event(TAG, _BUILTIN, owner, start, end) for owner, start, end in spans),
            self._event("", _END, 0, us[-1], us[-1]),
        ]

    def _event(self, tag: str, kind: int, index: int, start: int, end: int) -> Event:
        made = Event(tag=tag.encode(), type=kind, start_us=start, elapsed_us=end - start)
        made.index, made.graph = index, self._number
        return made


def taken_note(model: Model, kernels: Kernels) -> str:
    """How many ops of a model run on kernels of ours, and why not the others."""
    reasons = [why for graph in model.graphs for why in delegated.refusals(graph, kernels)]
    left = Counter(why for why in reasons if why)
    taken = len(reasons) - left.total()
    counted = f"{taken or 'none'} of {len(reasons)} ops on Litesmith's kernels"
    if not left:
        return counted
    told = [f"not {count}: {why}" for why, count in left.most_common(_MOST_REASONS)]
    more = left.total() - sum(count for _, count in left.most_common(_MOST_REASONS))
    return "; ".join([counted, *told, *([f"not {more} for other reasons"] if more else [])])


def without_note() -> str:
    """Why there are none here; "" where there are."""
    missing = why_not()
    return f"runs on the runtime's kernels: {missing}" if missing else ""


def place(model: Model) -> Placement:
    """Which ops of a model have a kernel here."""
    target = str(Target("cpu", 1, LITESMITH))
    missing = why_not()
    if missing:
        return refuse(target, PREDICTED, model, missing)
    return replace(delegated.place(model, Kernels(), LITESMITH), target=target)
