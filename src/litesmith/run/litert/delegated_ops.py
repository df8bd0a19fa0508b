"""A delegate of the user's, or of ours, on an unchanged model: its ops become custom ops as the
model opens.

Nothing of this is written to a file: the copy that the runtime reads is in memory only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from litesmith.errors import BadInput, CannotRun, LitesmithError
from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import called_graphs, regraph, with_graphs
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import has_effect, infer_shapes, late_tensors
from litesmith.ir.partition import Part, part_graph, partition, replace_parts
from litesmith.ir.types import Array, Graph, Model, Op, Tensor
from litesmith.ops.delegate import Delegate, Kernel, Native, Run, Shape
from litesmith.ops.results import error_text
from litesmith.phrases import phrase
from litesmith.run.core.placement import MEASURED, Home, Placement
from litesmith.run.litert.capi import ELEMENT_TYPES


class ProgramKernel:
    """A part of a graph, computed by what a delegate made of it. Implements `Kernel`."""

    note = ""

    def __init__(self, delegate: Delegate, graph: Graph) -> None:
        self._delegate, self._graph, self._made = delegate, graph, graph
        self._program = self._made_for(graph)

    def shapes(self, inputs: Sequence[Shape]) -> list[Shape]:
        if [t.shape for t in self._made.inputs] != list(inputs):
            self._made = resize_graph(self._graph, inputs)
            self._program = self._made_for(self._made)
        return [t.shape for t in self._made.outputs]

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        self._program(inputs, outputs)

    def native(self) -> Native | None:
        return getattr(self._program, "native", None)

    def _made_for(self, graph: Graph) -> Run:
        try:
            return self._delegate.program(graph)
        except LitesmithError:
            raise
        except Exception as error:
            where = phrase(
                "{op_name} and {count} more ops", op_name(graph.ops[0]), len(graph.ops) - 1
            )
            raise CannotRun("delegate: {where}: {error}", where, error_text(error)) from error


def delegate_ops(model: Model, delegate: Delegate, name: str) -> tuple[Model, Mapping[str, Kernel]]:
    """The model with its claimed ops as custom ops, as few as their dependencies allow, and what
    computes each of them, by name."""
    kernels: dict[str, Kernel] = {}
    graphs: list[Graph] = []
    for graph in model.graphs:
        claimed = {
            op for op, why in zip(graph.ops, refusals(graph, delegate), strict=True) if not why
        }
        parts = partition(graph, claimed)
        replaced: dict[Part, Op] = {}
        for part in (part for part in parts if part.is_claimed):
            inner = part_graph(graph, part.ops)
            if not inner.outputs:
                continue  # nobody wants them
            custom = f"{name}:{len(kernels)}"
            kernels[custom] = ProgramKernel(delegate, inner)
            replaced[part] = Op("CUSTOM", inner.inputs, inner.outputs, custom=custom)
        graphs.append(regraph(graph, ops=replace_parts(parts, replaced)) if replaced else graph)
    return with_graphs(model, graphs) if kernels else model, kernels


def refusals(graph: Graph, delegate: Delegate) -> list[str]:
    """Why each op of a graph stays with the runtime; "" where the delegate takes it."""
    late = late_tensors(graph)
    return [_why_not(op, late) or _claimed(op, delegate) for op in graph.ops]


def _why_not(op: Op, late: set[Tensor]) -> str:
    """Why an op can be in no custom op."""
    if called_graphs(op):
        return phrase("it runs other graphs")
    if has_effect(op) and not op.is_custom:
        return phrase("it has an effect or a state")
    for tensor in (*op.inputs, *op.outputs):
        if tensor is None:
            continue
        if tensor in late:
            return phrase("sizes depend on values")
        plain = DTYPES[tensor.dtype].storage == tensor.dtype and tensor.dtype in ELEMENT_TYPES
        if not tensor.is_const and not plain:
            return phrase("{dtype} has no plain array", tensor.dtype)
    return ""


def _claimed(op: Op, delegate: Delegate) -> str:
    try:
        answer = delegate.claims(op)
    except LitesmithError:
        raise
    except Exception as error:
        raise CannotRun(
            "delegate: claims({op_name}): {error_text}", op_name(op), error_text(error)
        ) from error
    if answer is True:
        return ""
    if isinstance(answer, str):
        return answer or phrase("it does not claim it")
    if answer is False or answer is None:
        return phrase("it does not claim it")
    raise BadInput(
        "delegate: claims({op_name}) gave {answer!r}; give True, or a reason", op_name(op), answer
    )


def place(model: Model, delegate: Delegate, name: str) -> Placement:
    """Which ops a delegate takes; each other one with the reason it gave."""
    reasons = refusals(model.main, delegate)
    homes = tuple(
        Home(number, op.kind, taken=not why, why=why or phrase("it claims it"))
        for number, (op, why) in enumerate(zip(model.main.ops, reasons, strict=True))
    )
    claimed = {op for op, why in zip(model.main.ops, reasons, strict=True) if not why}
    parts = sum(part.is_claimed for part in partition(model.main, claimed))
    return Placement(f"custom:{name}", MEASURED, homes, parts)


def resize_graph(graph: Graph, inputs: Sequence[Shape]) -> Graph:
    """The graph for other shapes of its inputs, by the shape rules of its ops."""
    new: dict[Tensor, Tensor] = {
        t: replace(t, shape=tuple(shape)) for t, shape in zip(graph.inputs, inputs, strict=True)
    }
    ops: list[Op] = []
    for op in graph.ops:
        given = tuple(None if t is None else new.get(t, t) for t in op.inputs)
        shapes = infer_shapes(op.kind, given, op.options)
        if shapes is None:
            raise CannotRun("{op_name}: its shape after a resize is not known", op_name(op))
        for tensor, shape in zip(op.outputs, shapes, strict=True):
            new[tensor] = replace(tensor, shape=shape)
        ops.append(replace(op, inputs=given, outputs=tuple(new[t] for t in op.outputs)))
    return replace(
        graph,
        inputs=tuple(new[t] for t in graph.inputs),
        outputs=tuple(new[t] for t in graph.outputs),
        ops=tuple(ops),
        tensors=tuple(new.get(t, t) for t in graph.tensors),
    )
