"""Which positions of which tensors are one and the same channel.

Every position along every axis of every tensor has a number. Ops say which numbers belong
together: ADD joins its inputs position by position, a convolution joins its filters with the
channels of its output. What is joined is one class: it can only be removed everywhere at once.
What an op needs as it is, and all that an unknown op touches, is pinned.
"""

from collections.abc import Mapping

from litesmith.ir.infer import integer_at, integers_at
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS, infer_shapes, options_or_defaults
from litesmith.ir.types import Graph, Op, Tensor
from litesmith.passes.core.schemes import roles
from litesmith.passes.shrinking.channel_joins import Channels, Joins
from litesmith.passes.shrinking.channel_rules import RULES
from litesmith.phrases import phrase


def channel_ids(graph: Graph) -> Channels:
    """The classes of channels of a graph."""
    joins = Joins(graph)
    for tensor in (*graph.inputs, *graph.outputs):
        joins.pin(tensor, why=phrase("it is an input or an output of the model"))
    for tensor in graph.tensors:
        if tensor.variable or tensor.sparsity is not None or tensor.quant is not None:
            joins.pin(tensor, why=phrase("it is a state, sparse or quantized"))
        for axis, size in enumerate(tensor.dynamic or ()):
            if size < 0:
                joins.pin(tensor, axis, why=phrase("its size is free"))
    for op in graph.ops:
        joins.why = phrase("{op_name} needs all of them", op_name(op))
        for role, tensor in zip(roles(op), op.inputs, strict=True):
            if tensor is not None and role not in "xwb":
                joins.pin(tensor)
        try:
            _check(joins, op)
            RULES[op.kind](joins, op)
        except (KeyError, ValueError):
            for tensor in (*op.inputs, *op.outputs, *op.intermediates):
                if tensor is not None:
                    joins.pin(tensor)
    return joins.solved()


def _check(joins: Joins, op: Op) -> None:
    """ValueError where the file promises other shapes than the op gives, or nobody can say."""
    shapes = infer_shapes(op.kind, op.inputs, op.options)
    if shapes is None and OPS[op.kind].takes_shape:
        sizes, promised = asked_sizes(op, joins.written), op.outputs[0].shape
        asked = op.inputs[shape_place(op)]
        assert asked is not None
        fits = len(sizes) == len(promised) and len(joins.readers[asked]) == 1
        if not fits or any(s not in (None, -1, p) for s, p in zip(sizes, promised, strict=True)):
            raise ValueError(phrase("its size is computed"))
        for axis, size in enumerate(sizes):
            if size is None:
                joins.pin(op.outputs[0], axis)
    elif shapes != tuple(t.shape for t in op.outputs):
        raise ValueError(phrase("another shape is promised"))


def shape_place(op: Op) -> int:
    """Which input asks for the shape of the output."""
    place = OPS[op.kind].setting
    assert place is not None
    return place


def asked_sizes(op: Op, written: Mapping[Tensor, Op]) -> list[int | None]:
    """The sizes that an op is asked for, perhaps put together by PACK; None for each that is
    computed."""
    place = shape_place(op)
    asked = op.inputs[place] if place < len(op.inputs) else None
    if asked is None:
        return list(options_or_defaults(op.kind, op.options).integers("new_shape"))
    pack = written.get(asked)
    if pack is None or pack.kind != "PACK":
        return list(integers_at(op.inputs, place))
    return [integer_at((t,), 0) if t is not None and t.is_const else None for t in pack.inputs]
